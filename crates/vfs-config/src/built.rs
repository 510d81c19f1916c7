//! What a file describes, opened.

use std::path::PathBuf;
use std::sync::Arc;

use vfs_composite::CompositeBackend;
use vfs_core::{Backend, ChangeSet, FileChange, OpContext, Rebase, Result, VfsPath, edit};
use vfs_layers::{Audit, BackendSink, CheckpointedBackend, Commit, Explanation, OverlayBackend, QuotaMeter, RuleSet};

/// Whether a layer is around everything or around one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// Around the whole namespace.
    Everywhere,
    /// Around what is at one mount, or at `/`.
    Mount,
}

/// A part of a layer, and where in the namespace it is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Placed<T> {
    /// The part.
    pub part: T,
    /// Whether it is around everything or around one place.
    pub place: Place,
    /// Where it is: outside the namespace of [`Built::backend`], inside its own.
    pub rebase: Rebase,
}

/// An audit log, and the file that it is in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditLog {
    /// The log.
    pub audit: Audit,
    /// What appends to the file and reads it.
    pub sink: BackendSink,
    /// The file on this machine.
    pub file: PathBuf,
}

/// A namespace that is open, and the parts that a program may want to reach beside it.
///
/// # Behaviour
///
/// * [`backend`](Self::backend) is what an agent gets. The parts are for who is responsible for it: what is done with them
///   is judged by no policy and is in no audit log.
/// * Parts are in the order of the file, those around places first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Built {
    /// Everything, with all layers around it.
    pub backend: Arc<dyn Backend>,
    /// The places, without the layers around everything.
    pub composite: CompositeBackend,
    /// Changes that are kept apart.
    pub overlays: Vec<Placed<OverlayBackend>>,
    /// The rules of each policy, and those that hide stores.
    pub policies: Vec<Placed<RuleSet>>,
    /// The audit logs.
    pub audits: Vec<Placed<AuditLog>>,
    /// States to go back to, and changes to take back.
    pub checkpoints: Vec<Placed<CheckpointedBackend>>,
    /// How much is used of each quota.
    pub quotas: Vec<Placed<QuotaMeter>>,
}

impl Built {
    /// Brings all audit records into their logs, those of operations that were dropped too. To be awaited before the process
    /// ends.
    ///
    /// # Errors
    ///
    /// Those of the logs.
    pub async fn flush(&self) -> Result<()> {
        for log in &self.audits {
            log.part.audit.flush().await?;
        }
        Ok(())
    }

    /// Says what each policy that is asked would say of `word`, a permission or an operation, at `path`, asked by `actor`.
    ///
    /// # Behaviour
    ///
    /// The policies in the order of [`policies`](Self::policies). All have to allow it. What a link leads to is not looked
    /// at. Paths in the answers are those of the namespace.
    ///
    /// # Errors
    ///
    /// `invalid_argument` where `word` is neither.
    pub fn explain(&self, actor: Option<&str>, word: &str, path: &VfsPath) -> Result<Vec<Explanation>> {
        // A word that is none is refused whether there are policies or not.
        RuleSet::default().explain(actor, word, path)?;
        let mut explained = Vec::new();
        for Placed { part: rules, rebase, .. } in self.policies.iter().filter(|policy| self.concerns(policy, path)) {
            for mut explanation in rules.explain(actor, word, &rebase.inward(path)?)? {
                explanation.path = path.clone();
                explained.push(explanation);
            }
        }
        Ok(explained)
    }

    /// Whether what `placed` is around has `path`.
    fn concerns<T>(&self, placed: &Placed<T>, path: &VfsPath) -> bool {
        if placed.place == Place::Everywhere {
            return true;
        }
        let mounts = self.composite.mounts();
        let nearest =
            mounts.iter().filter(|mount| path.starts_with(&mount.path)).max_by_key(|mount| mount.path.as_str().len());
        nearest.is_some_and(|mount| mount.path == *placed.rebase.outer())
    }
}

impl Placed<OverlayBackend> {
    /// What was changed, in the namespace of [`Built::backend`].
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::diff`].
    pub async fn diff(&self, cx: &OpContext) -> Result<ChangeSet> {
        let changes = self.part.diff(cx).await.map_err(|error| self.rebase.error(error))?;
        self.outward(changes)
    }

    /// Brings what was changed to what lies beneath; with paths in the namespace of [`Built::backend`].
    ///
    /// # Errors
    ///
    /// Those of [`OverlayBackend::commit`].
    pub async fn commit(&self, cx: &OpContext) -> Result<Commit> {
        match self.part.commit(cx).await.map_err(|error| self.rebase.error(error))? {
            Commit::Applied(changes) => Ok(Commit::Applied(self.outward(changes)?)),
            Commit::Conflicts(mut conflicts) => {
                for conflict in &mut conflicts {
                    conflict.path = self.rebase.outward(&conflict.path)?;
                }
                Ok(Commit::Conflicts(conflicts))
            }
            other => Ok(other),
        }
    }

    fn outward(&self, changes: ChangeSet) -> Result<ChangeSet> {
        let outward = changes.changes.into_iter().map(|mut change: FileChange| {
            let path = self.rebase.outward(&change.path)?;
            change.diff = respelled(&change.diff, &change.path, &path);
            change.path = path;
            Ok(change)
        });
        let mut changes = outward.collect::<Result<Vec<_>>>()?;
        // A commit has them in the order in which it went about them.
        changes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(ChangeSet::new(changes))
    }
}

/// `text`, a diff of the file `from`, as one of the file `to`: only its headers name the file.
fn respelled(text: &str, from: &VfsPath, to: &VfsPath) -> String {
    if from == to {
        return text.to_owned();
    }
    let ([old_before, old_after], [before, after]) = (names(from), names(to));
    let rename = |line: &str| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        match line.split_once(' ') {
            Some(("---", name)) if name == old_before => format!("--- {before}"),
            Some(("+++", name)) if name == old_after => format!("+++ {after}"),
            Some(("Binary", _)) => line.replacen(&old_before, &before, 1).replacen(&old_after, &after, 1),
            _ => line.to_owned(),
        }
    };
    let mut lines = text.splitn(3, '\n');
    let (first, second, rest) = (lines.next(), lines.next(), lines.next());
    let headers = [first, second].into_iter().flatten().map(rename);
    headers.chain(rest.map(str::to_owned)).collect::<Vec<_>>().join("\n")
}

/// What a diff calls the file `path` before and after.
fn names(path: &VfsPath) -> [String; 2] {
    let sample = edit::diff(path, b"a\n", b"b\n");
    let mut lines = sample.lines();
    let mut name = |mark: &str| lines.next().and_then(|line| line.strip_prefix(mark)).unwrap_or_default().to_owned();
    [name("--- "), name("+++ ")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_respelled_in_its_headers_only() {
        let path = |text| VfsPath::parse(text).expect("a valid path");
        let (from, to) = (path("/a b"), path("/m/a b"));
        let states: [Option<&[u8]>; 5] = [None, Some(b"--- a/a b\n"), Some(b"+++ b/a b"), Some(b"\0"), Some(b"")];
        for old in states {
            for new in states {
                let text = edit::diff_files(&from, old, new);
                assert_eq!(respelled(&text, &from, &to), edit::diff_files(&to, old, new), "{text}");
            }
        }
    }
}

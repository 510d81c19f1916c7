//! What a file describes, opened.

use std::path::PathBuf;
use std::sync::Arc;

use vfs_composite::{CompositeBackend, Recovery};
use vfs_core::{Backend, ExecuteRequest, Layer as _, PathMapping, Result, VfsPath};
use vfs_layers::{Audit, BackendSink, QuotaMeter};
use vfs_policy::{Explanation, Policy, RuleEffect, RuleSet};
use vfs_versions::{CheckpointedBackend, OverlayBackend};

use crate::error::ConfigError;

/// Whether a layer is around everything or around one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// Interceptor the whole namespace.
    Everywhere,
    /// Interceptor what is at one mount, or at `/`.
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
    pub rebase: PathMapping,
    /// The logs further out, innermost first, and the path at which each records what is done to the part.
    pub(crate) audits: Vec<(Audit, VfsPath)>,
    /// The checkpoints further out, innermost first, and where each is.
    pub(crate) histories: Vec<(CheckpointedBackend, PathMapping)>,
    /// Whether it only hides or fixes what the layers keep, and says nothing about other files and commands.
    pub(crate) is_guard: bool,
}

impl<T> Placed<T> {
    pub(crate) fn new(part: T, place: Place, rebase: PathMapping) -> Self {
        Self { part, place, rebase, audits: Vec::new(), histories: Vec::new(), is_guard: false }
    }

    /// Has `checkpoints`, a layer further out at `by`, keep operations undoable after a commit of the part, if it is around it.
    pub(crate) fn keep_undoable_in(&mut self, checkpoints: &CheckpointedBackend, by: &Placed<()>) {
        let is_same_mount = self.place == Place::Mount && self.rebase.outer() == by.rebase.outer();
        if by.place == Place::Everywhere || is_same_mount {
            self.histories.push((checkpoints.clone(), by.rebase.clone()));
        }
    }

    /// Has `audit`, a layer further out at `by`, record what is done to the part, if it is around it.
    pub(crate) fn record_in(&mut self, audit: &Audit, by: &Placed<()>) {
        match by.place {
            Place::Everywhere => self.audits.push((audit.clone(), self.rebase.outer().clone())),
            Place::Mount if self.place == Place::Mount && self.rebase.outer() == by.rebase.outer() => {
                self.audits.push((audit.clone(), VfsPath::root()));
            }
            Place::Mount => {}
        }
    }
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
///   is judged by no policy. Operations of [`Placed`] that change files, such as [`Placed::commit`], are recorded in the audit
///   logs further out; what is done to [`Placed::part`] itself is in none.
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
    /// What became of moves across mounts that a crash had interrupted.
    pub recovery: Recovery,
    /// Likely mistakes and weakened guarantees: directories of the host that are mounted at two places, and those in which
    /// [concurrent changes by several processes](vfs_local::weakness_between_processes) may be lost; and interrupted moves that
    /// could not be recovered as a whole.
    pub warnings: Vec<ConfigError>,
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

    /// A backend whose shell was put over [`backend`](Self::backend), with what is around everything and is about commands,
    /// too: the policies, which have to allow each, and the audit logs, which record it.
    ///
    /// # Behaviour
    ///
    /// It is for commands alone: what is done with files through it would be judged and recorded twice.
    pub fn with_commands(&self, shell: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let policies = self.policies.iter().filter(|policy| policy.place == Place::Everywhere);
        let judged = policies.fold(shell, |shell, policy| Policy::new(Arc::new(policy.part.clone())).layer(shell));
        let audits = self.audits.iter().filter(|log| log.place == Place::Everywhere);
        audits.fold(judged, |shell, log| log.part.audit.layer(shell))
    }

    /// Says what each policy that is asked would say of `word`, a permission or an operation, at `path`, asked by `actor`.
    ///
    /// # Behaviour
    ///
    /// The policies in the order of [`policies`](Self::policies). All have to allow it. What a link leads to is not looked
    /// at. Paths in the answers are those of the namespace. Rules that hide stores have no answer where they forbid nothing.
    ///
    /// # Errors
    ///
    /// `invalid_argument` where `word` is neither.
    pub fn explain(&self, actor: Option<&str>, word: &str, path: &VfsPath) -> Result<Vec<Explanation>> {
        // A word that is none is refused whether there are policies or not.
        RuleSet::default().explain(actor, word, path)?;
        self.explained(path, |rules, path| rules.explain(actor, word, path))
    }

    /// Says what each policy that is asked would say of the command of `request`, asked by `actor`.
    ///
    /// # Behaviour
    ///
    /// As [`explain`](Self::explain), at the directory that the command runs in.
    ///
    /// # Errors
    ///
    /// Those of paths that do not fit into a mount.
    pub fn explain_command(&self, actor: Option<&str>, request: &ExecuteRequest) -> Result<Vec<Explanation>> {
        self.explained(&request.cwd, |rules, path| {
            Ok(vec![rules.explain_command(actor, &request.clone().cwd(path.clone()))])
        })
    }

    fn explained(
        &self,
        path: &VfsPath,
        explain: impl Fn(&RuleSet, &VfsPath) -> Result<Vec<Explanation>>,
    ) -> Result<Vec<Explanation>> {
        let mut explained = Vec::new();
        for policy in self.policies.iter().filter(|policy| self.concerns(policy, path)) {
            for mut explanation in explain(&policy.part, &policy.rebase.to_inner(path)?)? {
                // A guard does not allow what it does not forbid: it has no say in that.
                if policy.is_guard && explanation.effect == RuleEffect::Allow {
                    continue;
                }
                if policy.is_guard {
                    explanation.rule = None;
                }
                if policy.place == Place::Mount {
                    explanation.mount = Some(policy.rebase.outer().clone());
                }
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

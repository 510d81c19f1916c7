//! Visible entries of one directory of a walk, in path order.

use std::cmp::Ordering;
use std::sync::Arc;

use vfs_core::tree::{ChildKind, Directory, Listing};
use vfs_core::{Error, Problem, Result, VfsPath};

use crate::walk::ignore_rules::IgnoreRules;
use crate::walk::walk_options::{CHECK_EVERY, WalkControl};

/// The directory that a walk is in.
#[derive(Debug)]
pub(crate) struct DirContext {
    pub(crate) dir: Arc<dyn Directory>,
    pub(crate) path: VfsPath,
    /// Offset in `path` of the part below the start of the walk.
    pub(super) start: usize,
    pub(super) depth: u32,
    pub(super) rules: IgnoreRules,
    /// The real path of the directory, if it lies outside of the searched tree.
    pub(super) outside: Option<VfsPath>,
}

impl DirContext {
    /// Returns the path relative to the start of the walk.
    pub(crate) fn relative(&self) -> &str {
        self.path.as_str().get(self.start..).unwrap_or_default()
    }
}

/// A directory with its entries as steps.
#[derive(Debug)]
pub(crate) struct DirEntries {
    pub(crate) context: DirContext,
    pub(super) listing: Listing,
    pub(super) steps: Vec<WalkStep>,
    pub(super) problems: Vec<Problem>,
}

/// One step of a walk.
///
/// A directory is two steps: its entry, sorted as `name`, and its contents, sorted as `name/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkStep {
    pub(super) child: usize,
    pub(crate) kind: WalkStepKind,
}

/// The subject of a step of a walk: an entry, the content of a directory, or a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkStepKind {
    Entry,
    Descent,
    /// The kind of the entry could not be determined; the index is that of the problem in [`DirEntries`].
    Problem(usize),
}

/// The decision about an entry of a walk.
pub(crate) enum FilterDecision {
    Keep,
    /// The entry is a link, and links are skipped.
    SkipLink,
    /// The entry is irrelevant.
    Drop,
}

impl DirEntries {
    /// Returns the number of steps.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn step(&self, index: usize) -> WalkStep {
        self.steps[index]
    }

    pub(crate) fn problem(&self, index: usize) -> &Problem {
        &self.problems[index]
    }

    /// Returns the sort key of step `index` within the whole walk, compared as bytes.
    pub(crate) fn key(&self, index: usize) -> Arc<str> {
        let WalkStep { child, kind } = self.steps[index];
        let slash = if kind == WalkStepKind::Descent { "/" } else { "" };
        // Build the key in one allocation: growing a string contends with other threads that do the same.
        [self.context.path.as_str().trim_end_matches('/'), "/", self.listing.name(child), slash].concat().into()
    }

    /// Drops the entries that `filter_entry` does not keep. If it fails, the entry becomes a problem.
    ///
    /// # Errors
    ///
    /// The errors of the control's check.
    pub(crate) fn retain(
        &mut self,
        control: WalkControl<'_>,
        mut filter_entry: impl FnMut(WalkEntry<'_>) -> Result<FilterDecision>,
    ) -> Result<()> {
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut problems = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            if index % CHECK_EVERY == CHECK_EVERY - 1 {
                control.check()?;
            }
            if step.kind != WalkStepKind::Entry {
                steps.push(*step);
                continue;
            }
            let entry = WalkEntry { entries: self, child: step.child };
            match filter_entry(entry) {
                Ok(FilterDecision::Keep) => steps.push(*step),
                Ok(FilterDecision::Drop | FilterDecision::SkipLink) => {}
                Err(error) => {
                    steps.push(WalkStep { child: step.child, kind: WalkStepKind::Problem(problems.len()) });
                    problems.push(entry.problem(error));
                }
            }
        }
        (self.steps, self.problems) = (steps, problems);
        Ok(())
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkEntry<'a> {
    entries: &'a DirEntries,
    child: usize,
}

impl<'a> WalkEntry<'a> {
    pub(crate) fn of(entries: &'a DirEntries, step: WalkStep) -> Self {
        Self { entries, child: step.child }
    }

    /// Returns the context of the directory of the entry.
    pub(crate) fn context(self) -> &'a DirContext {
        &self.entries.context
    }

    /// Returns the directory of the entry.
    pub(crate) fn dir(self) -> &'a dyn Directory {
        &*self.entries.context.dir
    }

    pub(crate) fn name(self) -> &'a str {
        self.entries.listing.name(self.child)
    }

    pub(crate) fn kind(self) -> ChildKind {
        self.entries.listing.entry(self.child).1
    }

    pub(crate) fn path(self) -> Result<VfsPath> {
        self.context().path.child(self.name())
    }

    /// Returns `error` as a problem of this entry.
    pub(crate) fn problem(self, error: Error) -> Problem {
        problem_at(&self.context().path, self.name(), error)
    }
}

/// Compares `name` or `name/`, depending on the kind of step, as bytes.
pub(super) fn order(listing: &Listing, a: WalkStep, b: WalkStep) -> Ordering {
    let (a_name, b_name) = (listing.name(a.child).as_bytes(), listing.name(b.child).as_bytes());
    let common = a_name.len().min(b_name.len());
    let rest = |name: &[u8], step: WalkStep| {
        let slash = (step.kind == WalkStepKind::Descent).then_some(b'/');
        name.get(common).copied().or(slash)
    };
    // Beyond the common length one of the names has ended. Only a slash can follow there, and no name contains one.
    a_name[..common].cmp(&b_name[..common]).then_with(|| rest(a_name, a).cmp(&rest(b_name, b)))
}

pub(super) fn problem_at(path: &VfsPath, name: &str, error: Error) -> Problem {
    let path = format!("{}/{name}", path.as_str().trim_end_matches('/'));
    Problem::new(path.as_str(), &error.with_path_text(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_sort_as_their_paths_do() {
        let names = ["a", "a-", "a.b", "a0", "ab", "é"];
        let mut listing = Listing::default();
        names.iter().for_each(|name| listing.push(name, ChildKind::Directory));
        let steps: Vec<_> = (0..names.len())
            .flat_map(|child| [WalkStepKind::Entry, WalkStepKind::Descent].map(|kind| WalkStep { child, kind }))
            .collect();
        let text =
            |step: &WalkStep| names[step.child].to_owned() + if step.kind == WalkStepKind::Descent { "/" } else { "" };
        for a in &steps {
            for b in &steps {
                assert_eq!(order(&listing, *a, *b), text(a).cmp(&text(b)), "{} {}", text(a), text(b));
            }
        }
    }
}

//! Directory reader of a walk: lists, filters and sorts one directory at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

use vfs_core::search::{LinkMode, Skipped};
use vfs_core::tree::{ChildKind, Directory, Listing, Tree};
use vfs_core::{Problem, Result, VfsPath};

use crate::glob::HiddenEntryVisibility;
use crate::walk::dir_entries::{DirContext, DirEntries, WalkEntry, WalkStep, WalkStepKind, order, problem_at};
use crate::walk::ignore_rules::DirectoryIgnoreFiles;
use crate::walk::sequential_walk::{OutsideDirTracker, OutsideEntryDecision};
use crate::walk::visibility::PathBuffer;
use crate::walk::walk_findings::WalkFindings;
use crate::walk::walk_options::{CHECK_EVERY, DirectoryYieldMode, WalkControl, WalkOptions};

/// State that all directories of a walk share.
#[derive(Debug)]
pub(crate) struct SharedWalkState {
    /// Decides which links to follow; `None` if links are not followed.
    pub(crate) follow: Option<Box<OutsideDirTracker>>,
    /// Number of entries that were listed.
    listed: AtomicU64,
    max_entries: u64,
}

impl SharedWalkState {
    /// Creates the state of a walk that enters no directory once `max_entries` were listed.
    pub(crate) fn new(follow: Option<OutsideDirTracker>, max_entries: u64) -> Self {
        Self { follow: follow.map(Box::new), listed: AtomicU64::new(0), max_entries }
    }

    fn is_full(&self) -> bool {
        self.listed.load(atomic::Ordering::Relaxed) >= self.max_entries
    }

    fn count_listed(&self, listing: &Listing) {
        self.listed.fetch_add(listing.len() as u64, atomic::Ordering::Relaxed);
    }
}

/// Reads the directories of a walk.
pub(crate) struct DirReader<'a> {
    pub(crate) tree: &'a Arc<dyn Tree>,
    pub(crate) control: WalkControl<'a>,
    pub(crate) options: WalkOptions,
    pub(crate) state: &'a SharedWalkState,
}

/// The target of a step into a directory.
enum DescentTarget {
    /// A directory of the searched tree.
    Within,
    /// A directory outside of the searched tree, with its real path.
    Outside(VfsPath),
    /// No directory, or one that the walk enters under another path.
    Nowhere,
    /// A directory that the walk may enter under another path: too many entries precede it to determine that.
    TooMany,
}

impl DirReader<'_> {
    /// Reads the directory at which a walk starts: `dir` at `path`.
    ///
    /// # Errors
    ///
    /// The errors of listing the directory. An error below this directory becomes a problem of the result instead.
    pub(crate) fn start(
        &self,
        dir: Arc<dyn Directory>,
        path: &VfsPath,
        findings: &mut WalkFindings,
    ) -> Result<Option<DirEntries>> {
        let rules = self.options.visibility.rules_above(self.tree, path, &mut findings.problems);
        if self.options.max_depth == Some(0) {
            let listing = dir.list().map_err(|error| error.with_path(path))?;
            findings.too_deep = !listing.is_empty();
            return Ok(None);
        }
        let start = if path.is_root() { 1 } else { path.as_str().len() + 1 };
        self.open(DirContext { dir, path: path.clone(), start, depth: 1, rules, outside: None }, findings).map(Some)
    }

    /// Reads the directory that a step of `entries` leads to, if it leads to one. An error becomes a problem of that
    /// step.
    pub(crate) fn descend(
        &self,
        entries: &DirEntries,
        step: WalkStep,
        findings: &mut WalkFindings,
    ) -> Result<Option<DirEntries>> {
        let entry = WalkEntry::of(entries, step);
        self.control.check()?;
        let below = self.below(entry, findings);
        match below {
            Ok(below) => Ok(below),
            Err(error) => {
                self.control.check()?;
                findings.problems.push(entry.problem(error));
                Ok(None)
            }
        }
    }

    fn below(&self, entry: WalkEntry<'_>, findings: &mut WalkFindings) -> Result<Option<DirEntries>> {
        let (context, name) = (entry.context(), entry.name());
        let path = context.path.child(name)?;
        let outside = match self.descent(entry, &path)? {
            DescentTarget::Within => None,
            DescentTarget::Outside(real) => Some(real),
            DescentTarget::Nowhere => return Ok(None),
            DescentTarget::TooMany => {
                findings.too_many = true;
                return Ok(None);
            }
        };
        if self.state.is_full() {
            findings.too_many = true;
            return Ok(None);
        }
        let is_border = self.options.max_depth.is_some_and(|max| context.depth >= max);
        if is_border && findings.too_deep {
            return Ok(None);
        }
        let dir = context.dir.open_dir(name, &path)?;
        if is_border {
            findings.too_deep = !dir.list()?.is_empty();
            return Ok(None);
        }
        let (start, depth, rules) = (context.start, context.depth + 1, context.rules.clone());
        self.open(DirContext { dir, path, start, depth, rules, outside }, findings).map(Some)
    }

    /// Returns the target of the step at `entry`, whose path is `path`.
    fn descent(&self, entry: WalkEntry<'_>, path: &VfsPath) -> Result<DescentTarget> {
        let (context, name) = (entry.context(), entry.name());
        let real = match (entry.kind(), &context.outside) {
            // A link that cannot be followed was reported with its entry already.
            (ChildKind::Link, _) => match context.dir.follow_link(name) {
                Ok(ChildKind::Directory) => context.dir.resolve(name)?.path,
                _ => return Ok(DescentTarget::Nowhere),
            },
            (_, None) => return Ok(DescentTarget::Within),
            (_, Some(outside)) => outside.child(name)?,
        };
        let Some(follow) = &self.state.follow else { return Ok(DescentTarget::Nowhere) };
        if follow.is_within(&real) {
            return Ok(DescentTarget::Nowhere);
        }
        Ok(match follow.should_enter(&real, path, self.tree, self.control, self.options)? {
            OutsideEntryDecision::Yes => DescentTarget::Outside(real),
            OutsideEntryDecision::No => DescentTarget::Nowhere,
            OutsideEntryDecision::TooMany => DescentTarget::TooMany,
        })
    }

    /// Lists a directory and sorts its steps.
    fn open(&self, mut context: DirContext, findings: &mut WalkFindings) -> Result<DirEntries> {
        let names = self.control.filter.names_in(context.relative()).map(|mut names| {
            names.retain(|name| context.path.child(name).is_ok());
            names.sort_unstable();
            names.dedup();
            names
        });
        let listing = match &names {
            Some(names) => {
                // Ignore files are looked up with the other names, but only for their rules.
                let rules = DirectoryIgnoreFiles::NAMES.iter().filter(|_| self.options.visibility.applies_rules());
                let rules = rules.map(|name| (*name).to_owned()).filter(|name| !names.contains(name));
                context.dir.list_only(&names.iter().cloned().chain(rules).collect::<Vec<_>>())
            }
            None => context.dir.list(),
        };
        let mut listing = listing.map_err(|error| error.with_path(&context.path))?;
        self.state.count_listed(&listing);
        let problems = std::mem::take(&mut listing.problems);
        findings.problems.extend(problems.into_iter().map(|problem| locate_problem(&context.path, problem)));
        let visibility = self.options.visibility;
        let files = DirectoryIgnoreFiles::from_listing(&listing);
        if let Some(names) = &names {
            listing.retain(|name, _| names.iter().any(|other| other == name));
        }
        let (above, dir) = (&context.rules, &*context.dir);
        context.rules = visibility.rules_in(above, dir, &context.path, files, &mut findings.problems);
        let mut full = PathBuffer::below(&context.path);
        let mut checked = 0_usize;
        let mut stopped = None;
        let mut entry_only = HashSet::new();
        listing.retain(|name, kind| {
            checked += 1;
            if checked.is_multiple_of(CHECK_EVERY) && stopped.is_none() {
                stopped = self.control.check().err();
            }
            if stopped.is_some() {
                return false;
            }
            let requested =
                || self.control.filter.hidden_override(context.relative(), name).of_entry(self.may_descend(kind));
            let shown =
                visibility.visible_part(&context.rules, &mut full, (name, kind), requested, &mut findings.skipped);
            if shown == HiddenEntryVisibility::EntryOnly {
                entry_only.insert(name.to_owned());
            }
            shown != HiddenEntryVisibility::Hidden && can_be_named(&context.path, name, findings)
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        let steps = self.steps(&context, &listing, &entry_only, &mut findings.skipped);
        Ok(DirEntries { context, listing, steps, problems: Vec::new() })
    }

    /// Returns whether an entry of this kind may be a directory that the walk enters.
    fn may_descend(&self, kind: ChildKind) -> bool {
        match kind {
            ChildKind::Directory => true,
            ChildKind::Link => self.options.links == LinkMode::Follow,
            ChildKind::File | ChildKind::Other => false,
        }
    }

    /// Returns the sorted steps of a listing. Directories among `entry_only` are not entered, and count as hidden.
    fn steps(
        &self,
        context: &DirContext,
        listing: &Listing,
        entry_only: &HashSet<String>,
        skipped: &mut Skipped,
    ) -> Vec<WalkStep> {
        let mut steps = Vec::with_capacity(listing.len());
        for (index, (name, kind)) in listing.iter().enumerate() {
            let may_descend = self.may_descend(kind);
            if kind != ChildKind::Directory || self.options.directories == DirectoryYieldMode::Yielded {
                steps.push(WalkStep { child: index, kind: WalkStepKind::Entry });
            }
            if entry_only.contains(name) {
                let leads_to = || context.dir.follow_link(name);
                let is_directory =
                    may_descend && (kind == ChildKind::Directory || matches!(leads_to(), Ok(ChildKind::Directory)));
                skipped.hidden += u64::from(is_directory);
            } else if may_descend && self.control.filter.should_enter(context.relative(), name) {
                steps.push(WalkStep { child: index, kind: WalkStepKind::Descent });
            }
        }
        steps.sort_unstable_by(|a, b| order(listing, *a, *b));
        // If a directory changes while it is listed, a name may occur twice, but each step needs a key of its own.
        steps.dedup_by(|next, before| order(listing, *before, *next).is_eq());
        steps
    }
}

/// Returns whether `name` has a valid path; reports a problem if not.
fn can_be_named(path: &VfsPath, name: &str, findings: &mut WalkFindings) -> bool {
    let length = path.as_str().len() + 1 + name.len();
    let is_plain = name.len() <= VfsPath::MAX_COMPONENT && !name.starts_with('.') && !name.contains('\\');
    if is_plain && !name.is_empty() && length <= VfsPath::MAX_LEN {
        return true;
    }
    match path.child(name) {
        Ok(_) => true,
        Err(error) => {
            findings.too_deep |= length > VfsPath::MAX_LEN;
            findings.problems.push(problem_at(path, name, error));
            false
        }
    }
}

/// Completes the path of a listing's problem, which may consist of the name alone.
fn locate_problem(path: &VfsPath, mut problem: Problem) -> Problem {
    if !problem.path.starts_with('/') {
        problem.path = format!("{}/{}", path.as_str().trim_end_matches('/'), problem.path);
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;
    use crate::walk::testing::{EVERYWHERE, OPTIONS, root};

    #[test]
    fn a_name_that_is_listed_twice_is_one_entry() {
        let tree: Arc<dyn Tree> = Arc::new(TestTree::new([("/d/a", ""), ("/d/b/c", "")]).listing_twice());
        let (range, mut names) = (root(&tree), Vec::new());
        let reader =
            DirReader { tree: &tree, control: EVERYWHERE, options: OPTIONS, state: &SharedWalkState::new(None, 100) };
        let below =
            reader.descend(&range.entries, range.entries.step(0), &mut WalkFindings::default()).expect("it goes on");
        let below = below.expect("a level");
        (0..below.len()).for_each(|index| names.push(below.key(index)));
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["/d/a", "/d/b/"]);
    }
}

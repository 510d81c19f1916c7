//! The one rule of what a search shows: hidden names and ignore rules.

use vfs_core::tree::{ChildKind, Tree};
use vfs_core::{HiddenNames, Problem, Skipped, VfsPath};

use crate::glob::DotVisibility;
use crate::walk::ignore::{IgnoreFiles, IgnoreRules, IgnoreVerdict};

/// What a request asks to be shown beyond the rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visibility {
    /// Names that start with a dot.
    pub(crate) hidden: HiddenNames,
    /// What ignore files exclude.
    pub(crate) no_ignore: bool,
}

impl Visibility {
    /// Everything is shown: the rule of a listing.
    pub(crate) const ALL: Self = Self { hidden: HiddenNames::Include, no_ignore: true };

    /// The rules above `path`, which a walk starts at.
    pub(crate) fn rules_above<T: Tree>(self, tree: &T, path: &VfsPath, problems: &mut Vec<Problem>) -> IgnoreRules {
        if self.no_ignore { IgnoreRules::default() } else { IgnoreRules::load_above(tree, path, problems) }
    }

    /// The rules in the directory `dir` at `path`, which holds `files`.
    pub(crate) fn rules_in<T: Tree>(
        self,
        tree: &T,
        above: &IgnoreRules,
        dir: &T::Dir,
        path: &VfsPath,
        files: IgnoreFiles,
        problems: &mut Vec<Problem>,
    ) -> IgnoreRules {
        if self.no_ignore {
            return IgnoreRules::default();
        }
        above.extended_with(tree, dir, path, files, problems)
    }

    /// How much of the entry `name` of the directory `full` is shown; counts it where nothing is. `asked` tells how much of
    /// a name that starts with a dot the globs ask for.
    pub(crate) fn visible_part(
        self,
        rules: &IgnoreRules,
        full: &mut PathBuffer,
        (name, kind): (&str, ChildKind),
        asked: impl FnOnce() -> DotVisibility,
        skipped: &mut Skipped,
    ) -> DotVisibility {
        let verdict = if rules.is_empty() { IgnoreVerdict::NoMatch } else { rules.verdict(full.of(name), kind) };
        if verdict == IgnoreVerdict::Ignored {
            skipped.ignored += 1;
            return DotVisibility::Hidden;
        }
        if name == ".git" {
            match (self.hidden, self.no_ignore) {
                (HiddenNames::Skip, _) => skipped.hidden += 1,
                (_, false) => skipped.ignored += 1,
                (_, true) => {}
            }
            if self.hidden == HiddenNames::Skip || !self.no_ignore {
                return DotVisibility::Hidden;
            }
        }
        // As for ripgrep, a rule that asks for an entry by `!` shows it though its name starts with a dot; not if only the
        // pattern may ask for it.
        let has_queued_slices = verdict == IgnoreVerdict::Whitelisted && self.hidden != HiddenNames::Spelled;
        if self.hidden == HiddenNames::Include || has_queued_slices || !name.starts_with('.') {
            return DotVisibility::Full;
        }
        let shown = asked();
        skipped.hidden += u64::from(shown == DotVisibility::Hidden);
        shown
    }
}

/// The full paths of a directory's entries, one at a time in one buffer.
pub(crate) struct PathBuffer {
    text: String,
    directory: usize,
}

impl PathBuffer {
    /// Of the entries of the directory `path`.
    pub(crate) fn below(path: &VfsPath) -> Self {
        let directory = path.as_str().trim_end_matches('/');
        // With room for every name, as text that grows is waited for where other threads do the same.
        let mut text = String::with_capacity(directory.len() + 1 + VfsPath::MAX_COMPONENT);
        text.push_str(directory);
        text.push('/');
        Self { directory: text.len(), text }
    }

    fn of(&mut self, name: &str) -> &str {
        self.text.truncate(self.directory);
        self.text.push_str(name);
        &self.text
    }
}

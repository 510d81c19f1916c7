//! Visibility rule of searches: hidden names and ignore rules.

use std::sync::Arc;

use vfs_core::search::{HiddenNames, IgnoreMode, Skipped};
use vfs_core::tree::{ChildKind, Directory, Tree};
use vfs_core::{Problem, VfsPath};

use crate::glob::HiddenEntryVisibility;
use crate::walk::ignore_rules::{DirectoryIgnoreFiles, IgnoreRules, IgnoreVerdict};

/// The visibility settings of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisibilitySettings {
    /// Whether names that start with a dot are visible.
    pub(crate) hidden: HiddenNames,
    /// Whether ignore files apply.
    pub(crate) ignore: IgnoreMode,
}

impl VisibilitySettings {
    /// Everything is visible, as in a listing.
    pub(crate) const ALL: Self = Self { hidden: HiddenNames::Include, ignore: IgnoreMode::Disregard };

    /// Returns the rules of the directories above `path`, at which a walk starts.
    pub(crate) fn rules_above(self, tree: &Arc<dyn Tree>, path: &VfsPath, problems: &mut Vec<Problem>) -> IgnoreRules {
        if self.applies_rules() { IgnoreRules::load_above(tree, path, problems) } else { IgnoreRules::default() }
    }

    /// Returns whether ignore files apply.
    pub(crate) fn applies_rules(self) -> bool {
        self.ignore != IgnoreMode::Disregard
    }

    /// Returns the rules in the directory `dir` at `path`, which contains `files`.
    pub(crate) fn rules_in(
        self,
        above: &IgnoreRules,
        dir: &dyn Directory,
        path: &VfsPath,
        files: DirectoryIgnoreFiles,
        problems: &mut Vec<Problem>,
    ) -> IgnoreRules {
        if !self.applies_rules() {
            return IgnoreRules::default();
        }
        above.extended_with(dir, path, files, problems)
    }

    /// Returns how much of the entry `name` of the directory `full` is visible, and counts the entry as skipped if
    /// nothing is. `requested` returns how much of an entry with a leading dot the globs include.
    pub(crate) fn visible_part(
        self,
        rules: &IgnoreRules,
        full: &mut PathBuffer,
        (name, kind): (&str, ChildKind),
        requested: impl FnOnce() -> HiddenEntryVisibility,
        skipped: &mut Skipped,
    ) -> HiddenEntryVisibility {
        let verdict = if rules.is_empty() { IgnoreVerdict::NoMatch } else { rules.verdict(full.of(name), kind) };
        if verdict == IgnoreVerdict::Ignored {
            skipped.ignored += 1;
            return HiddenEntryVisibility::Hidden;
        }
        if name == ".git" {
            match (self.hidden, self.applies_rules()) {
                (HiddenNames::Skip, _) => skipped.hidden += 1,
                (_, true) => skipped.ignored += 1,
                (_, false) => {}
            }
            if self.hidden == HiddenNames::Skip || self.applies_rules() {
                return HiddenEntryVisibility::Hidden;
            }
        }
        // As in ripgrep, a `!` rule shows an entry although its name starts with a dot, unless only the pattern may
        // include hidden names.
        let is_whitelisted = verdict == IgnoreVerdict::Whitelisted && self.hidden != HiddenNames::Spelled;
        if self.hidden == HiddenNames::Include || is_whitelisted || !name.starts_with('.') {
            return HiddenEntryVisibility::Full;
        }
        let shown = requested();
        skipped.hidden += u64::from(shown == HiddenEntryVisibility::Hidden);
        shown
    }
}

/// The full paths of a directory's entries, built one at a time in one buffer.
pub(crate) struct PathBuffer {
    text: String,
    directory: usize,
}

impl PathBuffer {
    /// Creates the buffer for the entries of the directory `path`.
    pub(crate) fn below(path: &VfsPath) -> Self {
        let directory = path.as_str().trim_end_matches('/');
        // Reserve room for any name: growing a string contends with other threads that do the same.
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

//! Name-based file filter: the globs and file types of a request.

use ignore::types::Types;
use vfs_core::search::HiddenNames;
use vfs_core::{Error, ErrorKind, GrepRequest, Result};

use crate::glob::{GlobPattern, HiddenEntryVisibility};
use crate::query::file_types;

/// The globs and file types of a request.
pub(crate) struct FileFilter {
    globs: Vec<(GlobEffect, GlobPattern)>,
    types: Option<Types>,
    has_includes: bool,
    hidden: HiddenNames,
}

/// The effect of a glob on the files that it matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobEffect {
    Include,
    Exclude,
}

impl FileFilter {
    pub(crate) fn new(req: &GrepRequest) -> Result<Self> {
        let globs = req.glob.iter().map(|text| parse_glob(text, req.hidden)).collect::<Result<Vec<_>>>()?;
        let types = if req.file_types.is_empty() { None } else { Some(file_types::select(&req.file_types)?) };
        let has_includes = globs.iter().any(|(effect, _)| *effect == GlobEffect::Include);
        Ok(Self { globs, types, has_includes, hidden: req.hidden })
    }

    /// Returns whether the file `name` of the directory `relative` is searched.
    pub(crate) fn matches_file(&self, relative: &str, name: &str) -> bool {
        let last =
            self.globs.iter().rev().find(|(_, glob)| !glob.is_only_directories() && glob.matches_entry(relative, name));
        let included = last.map_or(!self.has_includes, |(effect, _)| *effect == GlobEffect::Include);
        included && self.types.as_ref().is_none_or(|types| types.matched(name, false).is_whitelist())
    }

    /// Returns the only relevant names in the directory `relative`, if the globs spell them out.
    pub(crate) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        if !self.has_includes {
            return None;
        }
        let names: Option<Vec<_>> = self.includes().map(|glob| glob.names_in(relative)).collect();
        names.map(|names| names.concat())
    }

    /// Returns how much of the entry `name` of the directory `relative`, a name with a leading dot, the globs include.
    pub(crate) fn hidden_override(&self, relative: &str, name: &str) -> HiddenEntryVisibility {
        if !self.has_includes && self.hidden == HiddenNames::Spelled {
            // Without globs, the result is that of the glob `*`.
            return HiddenEntryVisibility::ContentsOnly;
        }
        self.includes()
            .map(|glob| glob.hidden_override(relative, name))
            .fold(HiddenEntryVisibility::Hidden, HiddenEntryVisibility::or)
    }

    fn includes(&self) -> impl Iterator<Item = &GlobPattern> {
        self.globs.iter().filter(|(effect, _)| *effect == GlobEffect::Include).map(|(_, glob)| glob)
    }

    /// Returns whether the directory `name` of the directory `relative` can contain a file that is searched.
    pub(crate) fn should_enter(&self, relative: &str, name: &str) -> bool {
        if self.globs.is_empty() {
            return true;
        }
        let last = self.globs.iter().rev().find(|(_, glob)| glob.matches_entry(relative, name));
        if last.is_some_and(|(effect, _)| *effect == GlobEffect::Exclude) {
            return false;
        }
        !self.has_includes || self.includes().any(|glob| glob.reaches_entry(relative, name))
    }
}

/// Parses a glob. One that excludes matches hidden names whether or not it has literal dots.
fn parse_glob(text: &str, hidden: HiddenNames) -> Result<(GlobEffect, GlobPattern)> {
    let (effect, pattern) = match text.strip_prefix('!') {
        Some(pattern) => (GlobEffect::Exclude, GlobPattern::new(pattern)?),
        None => (GlobEffect::Include, GlobPattern::for_search(text, hidden)?),
    };
    if effect == GlobEffect::Include && pattern.is_only_directories() {
        return Err(only_directories());
    }
    Ok((effect, pattern))
}

/// Returns the error for a glob that can match no file.
pub(crate) fn only_directories() -> Error {
    let message =
        "Invalid glob pattern: the glob ends with '/' and matches directories only; write 'dir/**' for the files below";
    Error::new(ErrorKind::InvalidPattern, message).with_model_message(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(globs: &[&str]) -> FileFilter {
        let req = globs.iter().fold(GrepRequest::literal("x"), |req, glob| req.glob(*glob));
        FileFilter::new(&req).expect("valid globs")
    }

    #[test]
    fn the_last_glob_that_matches_decides() {
        for (globs, directory, name, expected) in [
            (&[][..], "", "a.rs", true),
            (&["*.rs"], "src", "a.rs", true),
            (&["*.rs"], "src", "a.py", false),
            (&["!*.rs"], "src", "a.rs", false),
            (&["!*.rs"], "src", "a.py", true),
            (&["*.rs", "!a.rs"], "src", "a.rs", false),
            (&["!a.rs", "*.rs"], "src", "a.rs", true),
            (&["src/*.rs"], "src", "a.rs", true),
            (&["src/*.rs"], "src/net", "a.rs", false),
            (&["*.rs", "*.py"], "", "a.py", true),
            (&["!src/"], "", "src", true),
        ] {
            assert_eq!(filter(globs).matches_file(directory, name), expected, "{globs:?} {directory}/{name}");
        }
    }

    #[test]
    fn directories_that_can_hold_nothing_are_not_entered() {
        for (globs, directory, name, expected) in [
            (&[][..], "", "src", true),
            (&["*.rs"], "", "src", true),
            (&["src/**"], "", "src", true),
            (&["src/**"], "", "docs", false),
            (&["src/*.rs"], "src", "net", false),
            (&["!target"], "", "target", false),
            (&["!target/"], "a", "target", false),
            (&["!target/**"], "target", "debug", false),
            (&["!target"], "", "src", true),
        ] {
            assert_eq!(filter(globs).should_enter(directory, name), expected, "{globs:?} {directory}/{name}");
        }
    }

    #[test]
    fn a_glob_that_can_match_no_file_is_refused() {
        let error = FileFilter::new(&GrepRequest::literal("x").glob("src/")).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidPattern);
    }
}

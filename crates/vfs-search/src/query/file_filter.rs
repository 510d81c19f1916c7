//! Which files a search opens, decided from their names alone.

use ignore::types::Types;
use vfs_core::{Error, ErrorKind, GrepRequest, HiddenNames, Result};

use crate::glob::{GlobPattern, Shown};
use crate::query::file_types;

/// The globs and file types of a request.
pub(crate) struct Filter {
    globs: Vec<(Effect, GlobPattern)>,
    types: Option<Types>,
    has_includes: bool,
    hidden: HiddenNames,
}

/// What a glob does with the files that it matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Include,
    Exclude,
}

impl Filter {
    pub(crate) fn new(req: &GrepRequest) -> Result<Self> {
        let globs = req.glob.iter().map(|text| parse(text, req.hidden)).collect::<Result<Vec<_>>>()?;
        let types = if req.file_types.is_empty() { None } else { Some(file_types::select(&req.file_types)?) };
        let has_includes = globs.iter().any(|(effect, _)| *effect == Effect::Include);
        Ok(Self { globs, types, has_includes, hidden: req.hidden })
    }

    /// Whether the file `name` of the directory `relative` is searched.
    pub(crate) fn opens(&self, relative: &str, name: &str) -> bool {
        let last =
            self.globs.iter().rev().find(|(_, glob)| !glob.is_only_directories() && glob.matches_entry(relative, name));
        let included = last.map_or(!self.has_includes, |(effect, _)| *effect == Effect::Include);
        included && self.types.as_ref().is_none_or(|types| types.matched(name, false).is_whitelist())
    }

    /// The only names in the directory `relative` that are of interest, where the globs spell them.
    pub(crate) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        if !self.has_includes {
            return None;
        }
        let names: Option<Vec<_>> = self.includes().map(|glob| glob.names_in(relative)).collect();
        names.map(|names| names.concat())
    }

    /// How much of the entry `name` of the directory `relative` the globs ask for, which starts with a dot.
    pub(crate) fn shows_dotted(&self, relative: &str, name: &str) -> Shown {
        if !self.has_includes && self.hidden == HiddenNames::Spelled {
            // As for the glob `*`.
            return Shown::Contents;
        }
        self.includes().map(|glob| glob.shows_dotted(relative, name)).fold(Shown::No, Shown::or)
    }

    fn includes(&self) -> impl Iterator<Item = &GlobPattern> {
        self.globs.iter().filter(|(effect, _)| *effect == Effect::Include).map(|(_, glob)| glob)
    }

    /// Whether the directory `name` of the directory `relative` can hold a file that is searched.
    pub(crate) fn enters(&self, relative: &str, name: &str) -> bool {
        if self.globs.is_empty() {
            return true;
        }
        let last = self.globs.iter().rev().find(|(_, glob)| glob.matches_entry(relative, name));
        if last.is_some_and(|(effect, _)| *effect == Effect::Exclude) {
            return false;
        }
        !self.has_includes || self.includes().any(|glob| glob.reaches_entry(relative, name))
    }
}

/// A glob that excludes does so whether or not it spells the dots of hidden names.
fn parse(text: &str, hidden: HiddenNames) -> Result<(Effect, GlobPattern)> {
    let (effect, pattern) = match text.strip_prefix('!') {
        Some(pattern) => (Effect::Exclude, GlobPattern::new(pattern)?),
        None => (Effect::Include, GlobPattern::for_search(text, hidden)?),
    };
    if effect == Effect::Include && pattern.is_only_directories() {
        return Err(only_directories());
    }
    Ok((effect, pattern))
}

/// The refusal of a glob for files that can match none.
pub(crate) fn only_directories() -> Error {
    let message =
        "Invalid glob pattern: it ends with '/' and so matches directories only; write 'dir/**' for the files below";
    Error::new(ErrorKind::InvalidPattern, message).with_model_message(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(globs: &[&str]) -> Filter {
        let req = globs.iter().fold(GrepRequest::literal("x"), |req, glob| req.glob(*glob));
        Filter::new(&req).expect("valid globs")
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
            assert_eq!(filter(globs).opens(directory, name), expected, "{globs:?} {directory}/{name}");
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
            assert_eq!(filter(globs).enters(directory, name), expected, "{globs:?} {directory}/{name}");
        }
    }

    #[test]
    fn a_glob_that_can_match_no_file_is_refused() {
        let error = Filter::new(&GrepRequest::literal("x").glob("src/")).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidPattern);
    }
}

//! Explicit-dot matcher: a leading dot of a name matches only a literal dot in the glob.

use super::compile::GlobTextMatcher;
use super::hidden_override::mark_leading_dot;
use super::parse::{GlobError, GlobPart};

/// Matches paths in which the leading dot of each name is replaced by a NUL, which occurs in neither globs nor paths.
///
/// Wildcards do not match a NUL, so only a literal dot at the start of a segment matches the replaced one.
#[derive(Debug, Clone)]
pub(super) struct ExplicitDotMatcher {
    matcher: GlobTextMatcher,
    subject: GlobMatchSubject,
}

/// The text that a glob is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GlobMatchSubject {
    /// The name of an entry, in any directory.
    Name,
    /// The path of an entry, relative to the start of the search.
    Path,
}

impl ExplicitDotMatcher {
    /// Compiles the `expansions` of a glob, which have no empty segments.
    pub(super) fn new(expansions: &[Vec<GlobPart>], subject: GlobMatchSubject) -> Result<Self, GlobError> {
        let mut marked = expansions.iter().map(|expansion| {
            let segments = expansion.split(|part| *part == GlobPart::Separator);
            let segments: Vec<_> =
                segments.map(|segment| mark_leading_dot(segment).map_or(segment.to_vec(), to_nul)).collect();
            segments.join(&GlobPart::Separator)
        });
        let whole = match (marked.len(), marked.next()) {
            (1, Some(expansion)) => expansion,
            (_, first) => vec![GlobPart::Alternatives(first.into_iter().chain(marked).collect())],
        };
        Ok(Self { matcher: GlobTextMatcher::new_marked(&whole)?, subject })
    }

    pub(super) fn subject(&self) -> GlobMatchSubject {
        self.subject
    }

    /// Returns whether the entry `name` of `directory` has a leading dot that this matcher has to check.
    pub(super) fn applies_to(&self, directory: &str, name: &str) -> bool {
        let is_hidden_path = || directory.starts_with('.') || directory.contains("/.");
        name.starts_with('.') || (self.subject == GlobMatchSubject::Path && is_hidden_path())
    }

    pub(super) fn matches(&self, directory: &str, name: &str) -> bool {
        let directories =
            directory.split('/').filter(|_| self.subject == GlobMatchSubject::Path && !directory.is_empty());
        let names: Vec<_> = directories.chain([name]).map(mark_name).collect();
        self.matcher.matches(&names.join("/"))
    }
}

fn mark_name(name: &str) -> String {
    name.strip_prefix('.').map_or_else(|| name.to_owned(), |rest| format!("\0{rest}"))
}

/// Returns a marked segment with NULs as marks.
fn to_nul(segment: Vec<GlobPart>) -> Vec<GlobPart> {
    let replace = |part| match part {
        GlobPart::Separator => GlobPart::Literal("\0".to_owned()),
        GlobPart::Alternatives(alternatives) => GlobPart::Alternatives(alternatives.into_iter().map(to_nul).collect()),
        part => part,
    };
    segment.into_iter().map(replace).collect()
}

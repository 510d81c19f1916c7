//! A matcher in which only a dot that the glob spells stands for the dot at the start of a name.

use super::compile::TextMatcher;
use super::hidden_override::mark;
use super::parse::{Mistake, Part};

/// Matches paths in which the dot at the start of a name is replaced by a NUL, which neither a glob nor a path holds.
///
/// Wildcards match no NUL, so that the replaced dot is matched only by one that is spelled at the start of a segment.
#[derive(Debug, Clone)]
pub(super) struct SpelledMatcher {
    matcher: TextMatcher,
    subject: Subject,
}

/// The text that a glob is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The name of an entry, wherever it is.
    Name,
    /// The path of an entry, relative to where the search starts.
    Path,
}

impl SpelledMatcher {
    /// Compiles the `spellings` of a glob, without empty segments.
    pub(super) fn new(spellings: &[Vec<Part>], subject: Subject) -> Result<Self, Mistake> {
        let mut marked = spellings.iter().map(|spelling| {
            let segments = spelling.split(|part| *part == Part::Separator);
            let segments: Vec<_> = segments.map(|segment| mark(segment).map_or(segment.to_vec(), to_nul)).collect();
            segments.join(&Part::Separator)
        });
        let whole = match (marked.len(), marked.next()) {
            (1, Some(spelling)) => spelling,
            (_, first) => vec![Part::Alternatives(first.into_iter().chain(marked).collect())],
        };
        Ok(Self { matcher: TextMatcher::marked(&whole)?, subject })
    }

    pub(super) fn subject(&self) -> Subject {
        self.subject
    }

    /// Whether the entry `name` of `directory` has a leading dot that this matcher has to look at.
    pub(super) fn is_concerned(&self, directory: &str, name: &str) -> bool {
        let is_hidden_path = || directory.starts_with('.') || directory.contains("/.");
        name.starts_with('.') || (self.subject == Subject::Path && is_hidden_path())
    }

    pub(super) fn matches(&self, directory: &str, name: &str) -> bool {
        let directories = directory.split('/').filter(|_| self.subject == Subject::Path && !directory.is_empty());
        let names: Vec<_> = directories.chain([name]).map(mark_name).collect();
        self.matcher.matches(&names.join("/"))
    }
}

fn mark_name(name: &str) -> String {
    name.strip_prefix('.').map_or_else(|| name.to_owned(), |rest| format!("\0{rest}"))
}

/// Returns a marked segment with NULs as marks.
fn to_nul(segment: Vec<Part>) -> Vec<Part> {
    let replace = |part| match part {
        Part::Separator => Part::Literal("\0".to_owned()),
        Part::Alternatives(alternatives) => Part::Alternatives(alternatives.into_iter().map(to_nul).collect()),
        part => part,
    };
    segment.into_iter().map(replace).collect()
}

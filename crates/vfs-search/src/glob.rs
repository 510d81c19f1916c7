//! Glob patterns, with one meaning for every backend.

mod brace_expansion;
mod compile;
mod explicit_dots;
mod hidden_override;
mod parse;
mod reachability;

use std::fmt;

use vfs_core::search::HiddenNames;
use vfs_core::{Error, ErrorKind, Result};

use self::brace_expansion::{expand_braces, fold_segments};
use self::compile::{GlobTextMatcher, SegmentMatcherCache};
use self::explicit_dots::{ExplicitDotMatcher, GlobMatchSubject};
use self::hidden_override::{HiddenOverrides, may_have_explicit_dot};
use self::parse::{GlobError, GlobPart, MAX_LEN};
use self::reachability::GlobReachability;

pub(crate) use self::hidden_override::HiddenEntryVisibility;
pub(crate) use self::parse::within_limits;

/// A compiled glob pattern.
///
/// # Behaviour
///
/// * A pattern without a `/` is matched against the name, at any depth. A pattern with a `/` is matched against the
///   path relative to the start of the search; a leading `/` or `./` anchors it there. A trailing `/` restricts the
///   pattern to directories. Empty components and `.` are ignored, also in braces.
/// * `?` is one character and `*` any number of them, but neither matches a `/`. `[abc]`, `[a-z]` and `[!a]` are one
///   character. `{a,b}` is either alternative, and may be nested. `**` as a whole segment is any number of
///   directories; elsewhere it is the same as `*`. `\` escapes a character.
/// * Matching is case-sensitive. A dot is an ordinary character here. A search leaves out names that start with a dot,
///   unless the pattern has a literal dot there, as `.env*` and `.github/**` do.
/// * Matching takes time linear in the length of the path.
///
/// ```
/// use vfs_search::GlobPattern;
///
/// let pattern = GlobPattern::new("src/**/*.{rs,toml}")?;
/// assert!(pattern.matches("src/net/tcp.rs"));
/// assert!(!pattern.matches("docs/net/tcp.rs"));
/// assert!(GlobPattern::new("*.rs")?.matches("src/net/tcp.rs"));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
pub struct GlobPattern {
    text: String,
    matcher: PathMatcher,
    hidden_overrides: HiddenOverrides,
    /// Matches names with a leading dot, for [`HiddenNames::Spelled`] only. Boxed to keep other patterns small.
    explicit_dots: Option<Box<ExplicitDotMatcher>>,
    only_directories: bool,
}

/// A matcher of names in any directory, or of paths below a literal base directory.
#[derive(Clone)]
enum PathMatcher {
    /// A name, in any directory.
    Name(GlobTextMatcher),
    /// A path below the directory `base`, whose names are literal in the pattern.
    Path { base: String, tail: TailMatcher, reach: GlobReachability },
}

/// Matcher of the path below a directory. Most patterns end in a name, which needs no regex over a whole path.
#[derive(Clone)]
enum TailMatcher {
    /// A name in the directory.
    Directly(GlobTextMatcher),
    /// A name in the directory, or anywhere below it.
    AtAnyDepth(GlobTextMatcher),
    /// A path relative to the directory.
    Path(GlobTextMatcher),
}

impl TailMatcher {
    /// Returns whether the entry `name` of the directory `relative` matches.
    fn matches(&self, relative: &str, name: &str) -> bool {
        match self {
            TailMatcher::Directly(matcher) => relative.is_empty() && matcher.matches(name),
            TailMatcher::AtAnyDepth(matcher) => matcher.matches(name),
            TailMatcher::Path(matcher) if relative.is_empty() => matcher.matches(name),
            TailMatcher::Path(matcher) => matcher.matches(&format!("{relative}/{name}")),
        }
    }
}

impl GlobPattern {
    /// Compiles `pattern`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidPattern`], with a message that starts with `Invalid glob pattern:` and describes the
    /// mistake: an empty pattern, a NUL, a `..` component, an unclosed `[` or `{`, a `}` alone, a range the wrong way
    /// round, a lone `\` at the end; more than 4,096 bytes, 1,000 alternatives or 10 nested braces.
    pub fn new(pattern: &str) -> Result<Self> {
        Self::for_search(pattern, HiddenNames::Skip)
    }

    /// Compiles `pattern` like [`GlobPattern::new`], for a search that includes these hidden names.
    pub(crate) fn for_search(pattern: &str, hidden: HiddenNames) -> Result<Self> {
        compile(pattern, hidden).map_err(|error| to_error(pattern, &error))
    }

    /// Returns whether the pattern matches `relative`, a path relative to the start of the search without a leading
    /// `/`.
    pub fn matches(&self, relative: &str) -> bool {
        match relative.rsplit_once('/') {
            Some((directory, name)) => self.matches_entry(directory, name),
            None => self.matches_entry("", relative),
        }
    }

    /// Returns whether an entry below the directory `relative` can match; `""` is the start of the search.
    pub fn reaches(&self, relative: &str) -> bool {
        match &self.matcher {
            PathMatcher::Name(_) => true,
            PathMatcher::Path { reach, .. } => reach.reaches(relative),
        }
    }

    /// Returns whether the pattern ends with a `/`, so that it matches directories only.
    pub fn is_only_directories(&self) -> bool {
        self.only_directories
    }

    /// Returns the only names in the directory `relative` that can contribute to a match, if they are literal in
    /// the pattern.
    pub(crate) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        match &self.matcher {
            PathMatcher::Name(_) => None,
            PathMatcher::Path { reach, .. } => reach.names_in(relative),
        }
    }

    /// Returns how much of the entry `name` of the directory `relative`, a name with a leading dot, is visible because
    /// that dot is literal in the pattern.
    pub(crate) fn hidden_override(&self, relative: &str, name: &str) -> HiddenEntryVisibility {
        if self.explicit_dots.as_ref().is_some_and(|explicit_dots| explicit_dots.subject() == GlobMatchSubject::Name) {
            return if self.matches_entry(relative, name) {
                HiddenEntryVisibility::Full
            } else {
                HiddenEntryVisibility::ContentsOnly
            };
        }
        match self.hidden_overrides.visibility_of(relative, name) {
            HiddenEntryVisibility::EntryOnly if !self.matches_entry(relative, name) => HiddenEntryVisibility::Hidden,
            shown => shown,
        }
    }

    /// Does the same as [`GlobPattern::reaches`], for the directory `name` of `directory`.
    pub(crate) fn reaches_entry(&self, directory: &str, name: &str) -> bool {
        match &self.matcher {
            PathMatcher::Name(_) => true,
            PathMatcher::Path { reach, .. } if reach.is_everywhere() => true,
            PathMatcher::Path { reach, .. } if directory.is_empty() => reach.reaches(name),
            PathMatcher::Path { reach, .. } => reach.reaches(&format!("{directory}/{name}")),
        }
    }

    /// Does the same as [`GlobPattern::matches`], for the entry `name` of `directory`. Joins the two only if
    /// necessary.
    pub(crate) fn matches_entry(&self, directory: &str, name: &str) -> bool {
        if let Some(explicit_dots) =
            self.explicit_dots.as_ref().filter(|explicit_dots| explicit_dots.applies_to(directory, name))
        {
            return explicit_dots.matches(directory, name);
        }
        match &self.matcher {
            PathMatcher::Name(matcher) => matcher.matches(name),
            PathMatcher::Path { base, tail, .. } => {
                relative_to(base, directory).is_some_and(|relative| tail.matches(relative, name))
            }
        }
    }
}

impl fmt::Debug for GlobPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GlobPattern").field(&self.text).finish()
    }
}

fn compile(text: &str, hidden: HiddenNames) -> Result<GlobPattern, GlobError> {
    if text.is_empty() {
        return Err(GlobError::new(0, "the pattern is empty; write '*' for every name"));
    }
    if text.len() > MAX_LEN {
        return Err(GlobError::new(MAX_LEN, format!("the pattern is longer than {MAX_LEN} bytes")));
    }
    if let Some(at) = text.find('\0') {
        return Err(GlobError::new(at, "the pattern contains a NUL character"));
    }
    let parts = parse::parse(text)?;
    if has_parent_component(&parts) {
        return Err(GlobError::new(0, "'..' is not allowed; set the search path instead"));
    }
    let expansions = expand_braces(&parts);
    if expansions.is_none() && may_have_explicit_dot(&parts) {
        let message =
            "the braces with '/' expand to too many paths, some of which start with a dot; use fewer alternatives";
        return Err(GlobError::new(0, message));
    }
    let is_expanded = expansions.is_some();
    let expanded = expansions.unwrap_or_else(|| vec![parts]);
    let only_directories = expanded.iter().all(|expansion| is_directory(expansion));
    let is_path = is_path(&expanded);
    // If only some alternatives are restricted to directories, those alternatives match nothing: each result would need
    // a check of its own for them.
    let mut effective: Vec<Vec<GlobPart>> = expanded
        .iter()
        .filter(|expansion| only_directories || !is_directory(expansion))
        .map(|expansion| fold_segments(expansion).join(&GlobPart::Separator))
        .filter(|expansion| !expansion.is_empty())
        .collect();
    let whole = match effective.as_slice() {
        [] => return Err(GlobError::new(0, "the pattern names nothing; write '*' for every name")),
        [expansion] => expansion.clone(),
        _ => vec![GlobPart::Alternatives(effective.clone())],
    };
    let subject = if is_path { GlobMatchSubject::Path } else { GlobMatchSubject::Name };
    let explicit_dots = match hidden {
        HiddenNames::Spelled => Some(Box::new(ExplicitDotMatcher::new(&effective, subject)?)),
        _ => None,
    };
    let segments = fold_segments(&whole);
    let name = match segments.as_slice() {
        [name] if !is_path => Some(*name),
        [[GlobPart::AnySegments], name] if !name.iter().any(GlobPart::spans_segments) => Some(*name),
        _ => None,
    };
    let mut segment_matchers = SegmentMatcherCache::default();
    let matcher = match name {
        Some(name) => {
            // The name may be in any directory.
            if !is_path {
                effective
                    .iter_mut()
                    .for_each(|name| drop(name.splice(..0, [GlobPart::AnySegments, GlobPart::Separator])));
            }
            PathMatcher::Name(if name == [GlobPart::AnySegments] {
                GlobTextMatcher::Any
            } else {
                GlobTextMatcher::new(name)?
            })
        }
        None => {
            let base = base(&segments);
            PathMatcher::Path {
                tail: compile_tail(&segments[base.len()..])?,
                base: base.join("/"),
                reach: GlobReachability::new(is_expanded.then_some(&effective), &mut segment_matchers)?,
            }
        }
    };
    let hidden_overrides =
        if is_expanded { HiddenOverrides::new(&effective, &mut segment_matchers)? } else { HiddenOverrides::default() };
    Ok(GlobPattern { text: text.to_owned(), matcher, hidden_overrides, explicit_dots, only_directories })
}

fn is_directory(expansion: &[GlobPart]) -> bool {
    expansion.last() == Some(&GlobPart::Separator)
}

/// Returns whether the pattern is a path: it has a separator other than at the end of all its expansions.
fn is_path(expansions: &[Vec<GlobPart>]) -> bool {
    let are_directories = expansions.iter().all(|expansion| is_directory(expansion));
    expansions.iter().any(|expansion| {
        let last = expansion.iter().rposition(|part| *part != GlobPart::Separator).filter(|_| are_directories);
        let end = last.map_or(expansion.len(), |last| last + 1);
        expansion[..end].iter().any(|part| part.spans_segments() && *part != GlobPart::AnySegments)
    })
}

/// Returns the leading segments that are plain text, apart from the last segment of the pattern.
fn base<'a>(segments: &[&'a [GlobPart]]) -> Vec<&'a str> {
    let before_last = segments.split_last().map_or(&[][..], |(_, before)| before);
    let literals = before_last.iter().map_while(|segment| match segment {
        [GlobPart::Literal(text)] => Some(text.as_str()),
        _ => None,
    });
    literals.collect()
}

fn compile_tail(segments: &[&[GlobPart]]) -> Result<TailMatcher, GlobError> {
    let is_name = |segment: &[GlobPart]| !segment.iter().any(GlobPart::spans_segments);
    Ok(match segments {
        [[GlobPart::AnySegments]] => TailMatcher::AtAnyDepth(GlobTextMatcher::Any),
        [name] if is_name(name) => TailMatcher::Directly(GlobTextMatcher::new(name)?),
        [[GlobPart::AnySegments], name] if is_name(name) => TailMatcher::AtAnyDepth(GlobTextMatcher::new(name)?),
        segments => TailMatcher::Path(GlobTextMatcher::new(&segments.join(&GlobPart::Separator))?),
    })
}

/// Returns `path` relative to `base`, if it equals `base` or lies below it.
fn relative_to<'a>(base: &str, path: &'a str) -> Option<&'a str> {
    match path.strip_prefix(base)? {
        rest if base.is_empty() || rest.is_empty() => Some(rest),
        rest => rest.strip_prefix('/'),
    }
}

/// Returns whether a component is `..`, including those in braces.
fn has_parent_component(parts: &[GlobPart]) -> bool {
    parts
        .split(|part| *part == GlobPart::Separator)
        .any(|segment| matches!(segment, [GlobPart::Literal(text)] if text == ".."))
        || parts.iter().any(|part| match part {
            GlobPart::Alternatives(alternatives) => {
                alternatives.iter().any(|alternative| has_parent_component(alternative))
            }
            _ => false,
        })
}

fn to_error(pattern: &str, error: &GlobError) -> Error {
    const MAX_EXCERPT_BYTES: usize = 200;
    let excerpt = &pattern[..pattern.floor_char_boundary(MAX_EXCERPT_BYTES)];
    let ellipsis = if excerpt.len() < pattern.len() { "…" } else { "" };
    let message = format!("Invalid glob pattern: {} (byte {} of '{excerpt}{ellipsis}')", error.message, error.at);
    Error::new(ErrorKind::InvalidPattern, message.clone()).with_model_message(message)
}

#[cfg(test)]
mod tests;

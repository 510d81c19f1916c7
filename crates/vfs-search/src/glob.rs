//! The one meaning of a glob, for every backend.

mod brace_expansion;
mod compile;
mod explicit_dots;
mod hidden_override;
mod parse;
mod reach;

use std::fmt;

use vfs_core::{Error, ErrorKind, HiddenNames, Result};

use self::brace_expansion::{expand_braces, fold_segments};
use self::compile::{SegmentMatchers, TextMatcher};
use self::explicit_dots::{ExplicitDotMatcher, MatchSubject};
use self::hidden_override::{HiddenOverrides, may_have_explicit_dot};
use self::parse::{GlobError, MAX_LEN, Part};
use self::reach::Reachability;

pub(crate) use self::hidden_override::DotVisibility;
pub(crate) use self::parse::within_limits;

/// A glob, ready to match.
///
/// # Behaviour
///
/// * Without a `/` it is matched against the name, at any depth. With a `/` it is matched against the path relative to
///   where the search starts; a leading `/` or `./` anchors it there. A trailing `/` means directories only. Empty
///   components and `.` stand for nothing, also in braces.
/// * `?` is one character and `*` any number of them, but no `/`. `[abc]`, `[a-z]` and `[!a]` are one character. `{a,b}`
///   is either, and may be nested. `**` as a whole segment is any directories; elsewhere it is `*`. `\` escapes.
/// * It tells upper from lower case. A dot is an ordinary character here. A search leaves out names that start with one,
///   unless the pattern spells it, as `.env*` and `.github/**` do.
/// * Matching takes time linear in the path.
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
    /// Matches names with a leading dot, for [`HiddenNames::Spelled`] alone. Boxed to keep other patterns small.
    explicit_dots: Option<Box<ExplicitDotMatcher>>,
    only_directories: bool,
}

#[derive(Clone)]
enum PathMatcher {
    /// A name, wherever it is.
    Name(TextMatcher),
    /// What is below the directory `base`, which the pattern spells.
    Path { base: String, tail: TailMatcher, reach: Reachability },
}

/// What is matched below a directory. Most patterns end in a name, which takes no expression over a whole path.
#[derive(Clone)]
enum TailMatcher {
    /// A name in it.
    Directly(TextMatcher),
    /// A name in it, or anywhere below it.
    AtAnyDepth(TextMatcher),
    /// A path relative to it.
    Path(TextMatcher),
}

impl TailMatcher {
    /// Whether the entry `name` of the directory `relative` matches.
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
    /// [`ErrorKind::InvalidPattern`], with a message that starts with `Invalid glob pattern:` and names the mistake: an
    /// empty pattern, a NUL, a `..` component, an unclosed `[` or `{`, a `}` alone, a range the wrong way round, a lone `\`
    /// at the end; more than 4,096 bytes, 1,000 alternatives or 10 nested braces.
    pub fn new(pattern: &str) -> Result<Self> {
        Self::for_search(pattern, HiddenNames::Skip)
    }

    /// As [`GlobPattern::new`], for a search that includes these hidden names.
    pub(crate) fn for_search(pattern: &str, hidden: HiddenNames) -> Result<Self> {
        compile(pattern, hidden).map_err(|error| to_error(pattern, &error))
    }

    /// Whether the pattern matches `relative`: a path relative to where the search starts, without a leading `/`.
    pub fn matches(&self, relative: &str) -> bool {
        match relative.rsplit_once('/') {
            Some((directory, name)) => self.matches_entry(directory, name),
            None => self.matches_entry("", relative),
        }
    }

    /// Whether something below the directory `relative` can match; `""` is where the search starts.
    pub fn reaches(&self, relative: &str) -> bool {
        match &self.matcher {
            PathMatcher::Name(_) => true,
            PathMatcher::Path { reach, .. } => reach.reaches(relative),
        }
    }

    /// Whether the pattern ends with a `/` and so means directories only.
    pub fn is_only_directories(&self) -> bool {
        self.only_directories
    }

    /// The only names in the directory `relative` that can have to do with a match, where the pattern spells them.
    pub(crate) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        match &self.matcher {
            PathMatcher::Name(_) => None,
            PathMatcher::Path { reach, .. } => reach.names_in(relative),
        }
    }

    /// How much is shown of the entry `name` of the directory `relative`, which starts with a dot, since the pattern spells
    /// that dot.
    pub(crate) fn hidden_override(&self, relative: &str, name: &str) -> DotVisibility {
        if self.explicit_dots.as_ref().is_some_and(|explicit_dots| explicit_dots.subject() == MatchSubject::Name) {
            return if self.matches_entry(relative, name) { DotVisibility::Full } else { DotVisibility::ContentsOnly };
        }
        match self.hidden_overrides.visibility_of(relative, name) {
            DotVisibility::EntryOnly if !self.matches_entry(relative, name) => DotVisibility::Hidden,
            shown => shown,
        }
    }

    /// As [`GlobPattern::reaches`], of the directory `name` of the directory `directory`.
    pub(crate) fn reaches_entry(&self, directory: &str, name: &str) -> bool {
        match &self.matcher {
            PathMatcher::Name(_) => true,
            PathMatcher::Path { reach, .. } if reach.is_everywhere() => true,
            PathMatcher::Path { reach, .. } if directory.is_empty() => reach.reaches(name),
            PathMatcher::Path { reach, .. } => reach.reaches(&format!("{directory}/{name}")),
        }
    }

    /// As [`GlobPattern::matches`], of the entry `name` of `directory`; joins the two only where that is needed.
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
        return Err(GlobError::new(0, "it is empty; write '*' for every name"));
    }
    if text.len() > MAX_LEN {
        return Err(GlobError::new(MAX_LEN, format!("it is longer than {MAX_LEN} bytes")));
    }
    if let Some(at) = text.find('\0') {
        return Err(GlobError::new(at, "it contains a NUL character"));
    }
    let parts = parse::parse(text)?;
    if has_parent_component(&parts) {
        return Err(GlobError::new(0, "'..' is not allowed; set the search path instead"));
    }
    let explicit_dots = expand_braces(&parts);
    if explicit_dots.is_none() && may_have_explicit_dot(&parts) {
        let what = "its braces with '/' stand for too many paths, of which some start with a dot; use fewer";
        return Err(GlobError::new(0, what));
    }
    let is_expanded = explicit_dots.is_some();
    let expanded = explicit_dots.unwrap_or_else(|| vec![parts]);
    let only_directories = expanded.iter().all(|expansion| is_directory(expansion));
    let is_path = is_path(&expanded);
    // Where some alternatives name directories only, those find nothing: what is found would have to be told apart.
    let mut effective: Vec<Vec<Part>> = expanded
        .iter()
        .filter(|expansion| only_directories || !is_directory(expansion))
        .map(|expansion| fold_segments(expansion).join(&Part::Separator))
        .filter(|expansion| !expansion.is_empty())
        .collect();
    let whole = match effective.as_slice() {
        [] => return Err(GlobError::new(0, "it names nothing; write '*' for every name")),
        [expansion] => expansion.clone(),
        _ => vec![Part::Alternatives(effective.clone())],
    };
    let subject = if is_path { MatchSubject::Path } else { MatchSubject::Name };
    let explicit_dots = match hidden {
        HiddenNames::Spelled => Some(Box::new(ExplicitDotMatcher::new(&effective, subject)?)),
        _ => None,
    };
    let segments = fold_segments(&whole);
    let name = match segments.as_slice() {
        [name] if !is_path => Some(*name),
        [[Part::AnySegments], name] if !name.iter().any(Part::spans_segments) => Some(*name),
        _ => None,
    };
    let mut segment_matchers = SegmentMatchers::default();
    let matcher = match name {
        Some(name) => {
            // Wherever the name is.
            if !is_path {
                effective.iter_mut().for_each(|name| drop(name.splice(..0, [Part::AnySegments, Part::Separator])));
            }
            PathMatcher::Name(if name == [Part::AnySegments] { TextMatcher::Any } else { TextMatcher::new(name)? })
        }
        None => {
            let base = base(&segments);
            PathMatcher::Path {
                tail: compile_tail(&segments[base.len()..])?,
                base: base.join("/"),
                reach: Reachability::new(is_expanded.then_some(&effective), &mut segment_matchers)?,
            }
        }
    };
    let hidden_overrides =
        if is_expanded { HiddenOverrides::new(&effective, &mut segment_matchers)? } else { HiddenOverrides::default() };
    Ok(GlobPattern { text: text.to_owned(), matcher, hidden_overrides, explicit_dots, only_directories })
}

fn is_directory(expansion: &[Part]) -> bool {
    expansion.last() == Some(&Part::Separator)
}

/// Whether a path is meant: there is a separator, beside those at the end of all spellings.
fn is_path(expansions: &[Vec<Part>]) -> bool {
    let are_directories = expansions.iter().all(|expansion| is_directory(expansion));
    expansions.iter().any(|expansion| {
        let last = expansion.iter().rposition(|part| *part != Part::Separator).filter(|_| are_directories);
        let end = last.map_or(expansion.len(), |last| last + 1);
        expansion[..end].iter().any(|part| part.spans_segments() && *part != Part::AnySegments)
    })
}

/// The segments that spell a directory: plain text, with something after it.
fn base<'a>(segments: &[&'a [Part]]) -> Vec<&'a str> {
    let before_last = segments.split_last().map_or(&[][..], |(_, before)| before);
    let explicit_dots = before_last.iter().map_while(|segment| match segment {
        [Part::Literal(text)] => Some(text.as_str()),
        _ => None,
    });
    explicit_dots.collect()
}

fn compile_tail(segments: &[&[Part]]) -> Result<TailMatcher, GlobError> {
    let is_name = |segment: &[Part]| !segment.iter().any(Part::spans_segments);
    Ok(match segments {
        [[Part::AnySegments]] => TailMatcher::AtAnyDepth(TextMatcher::Any),
        [name] if is_name(name) => TailMatcher::Directly(TextMatcher::new(name)?),
        [[Part::AnySegments], name] if is_name(name) => TailMatcher::AtAnyDepth(TextMatcher::new(name)?),
        segments => TailMatcher::Path(TextMatcher::new(&segments.join(&Part::Separator))?),
    })
}

/// `path` relative to `base`, if it is that or lies below it.
fn relative_to<'a>(base: &str, path: &'a str) -> Option<&'a str> {
    match path.strip_prefix(base)? {
        rest if base.is_empty() || rest.is_empty() => Some(rest),
        rest => rest.strip_prefix('/'),
    }
}

/// Whether a component is `..`, in braces too.
fn has_parent_component(parts: &[Part]) -> bool {
    parts.split(|part| *part == Part::Separator).any(|segment| matches!(segment, [Part::Literal(text)] if text == ".."))
        || parts.iter().any(|part| match part {
            Part::Alternatives(alternatives) => {
                alternatives.iter().any(|alternative| has_parent_component(alternative))
            }
            _ => false,
        })
}

fn to_error(pattern: &str, error: &GlobError) -> Error {
    const SHOWN: usize = 200;
    let shown = &pattern[..pattern.floor_char_boundary(SHOWN)];
    let more = if shown.len() < pattern.len() { "…" } else { "" };
    let message = format!("Invalid glob pattern: {} (byte {} of '{shown}{more}')", error.what, error.at);
    Error::new(ErrorKind::InvalidPattern, message.clone()).with_model_message(message)
}

#[cfg(test)]
mod tests;

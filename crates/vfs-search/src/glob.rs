//! The one meaning of a glob, for every backend.

mod brace_expansion;
mod compile;
mod explicit_dots;
mod hidden_override;
mod parse;
mod reach;

use std::fmt;

use vfs_core::{Error, ErrorKind, HiddenNames, Result};

use self::brace_expansion::{fold, spellings};
use self::compile::{SegmentMatchers, TextMatcher};
use self::explicit_dots::{SpelledMatcher, Subject};
use self::hidden_override::{Dots, may_spell_dots};
use self::parse::{MAX_LEN, Mistake, Part};
use self::reach::Reach;

pub(crate) use self::hidden_override::Shown;
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
    matcher: Matcher,
    dots: Dots,
    /// Matches names with a leading dot, for [`HiddenNames::Spelled`] alone. Boxed to keep other patterns small.
    spelled: Option<Box<SpelledMatcher>>,
    only_directories: bool,
}

#[derive(Clone)]
enum Matcher {
    /// A name, wherever it is.
    Name(TextMatcher),
    /// What is below the directory `base`, which the pattern spells.
    Path { base: String, below: Below, reach: Reach },
}

/// What is matched below a directory. Most patterns end in a name, which takes no expression over a whole path.
#[derive(Clone)]
enum Below {
    /// A name in it.
    Directly(TextMatcher),
    /// A name in it, or anywhere below it.
    AtAnyDepth(TextMatcher),
    /// A path relative to it.
    Path(TextMatcher),
}

impl Below {
    /// Whether the entry `name` of the directory `relative` matches.
    fn matches(&self, relative: &str, name: &str) -> bool {
        match self {
            Below::Directly(matcher) => relative.is_empty() && matcher.matches(name),
            Below::AtAnyDepth(matcher) => matcher.matches(name),
            Below::Path(matcher) if relative.is_empty() => matcher.matches(name),
            Below::Path(matcher) => matcher.matches(&format!("{relative}/{name}")),
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
        compile(pattern, hidden).map_err(|mistake| describe(pattern, &mistake))
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
            Matcher::Name(_) => true,
            Matcher::Path { reach, .. } => reach.reaches(relative),
        }
    }

    /// Whether the pattern ends with a `/` and so means directories only.
    pub fn is_only_directories(&self) -> bool {
        self.only_directories
    }

    /// The only names in the directory `relative` that can have to do with a match, where the pattern spells them.
    pub(crate) fn names_in(&self, relative: &str) -> Option<Vec<String>> {
        match &self.matcher {
            Matcher::Name(_) => None,
            Matcher::Path { reach, .. } => reach.names_in(relative),
        }
    }

    /// How much is shown of the entry `name` of the directory `relative`, which starts with a dot, since the pattern spells
    /// that dot.
    pub(crate) fn shows_dotted(&self, relative: &str, name: &str) -> Shown {
        if self.spelled.as_ref().is_some_and(|spelled| spelled.subject() == Subject::Name) {
            return if self.matches_entry(relative, name) { Shown::WithContents } else { Shown::Contents };
        }
        match self.dots.shows(relative, name) {
            Shown::Alone if !self.matches_entry(relative, name) => Shown::No,
            shown => shown,
        }
    }

    /// As [`GlobPattern::reaches`], of the directory `name` of the directory `directory`.
    pub(crate) fn reaches_entry(&self, directory: &str, name: &str) -> bool {
        match &self.matcher {
            Matcher::Name(_) => true,
            Matcher::Path { reach, .. } if reach.is_everywhere() => true,
            Matcher::Path { reach, .. } if directory.is_empty() => reach.reaches(name),
            Matcher::Path { reach, .. } => reach.reaches(&format!("{directory}/{name}")),
        }
    }

    /// As [`GlobPattern::matches`], of the entry `name` of `directory`; joins the two only where that is needed.
    pub(crate) fn matches_entry(&self, directory: &str, name: &str) -> bool {
        if let Some(spelled) = self.spelled.as_ref().filter(|spelled| spelled.is_concerned(directory, name)) {
            return spelled.matches(directory, name);
        }
        match &self.matcher {
            Matcher::Name(matcher) => matcher.matches(name),
            Matcher::Path { base, below, .. } => {
                relative_to(base, directory).is_some_and(|relative| below.matches(relative, name))
            }
        }
    }
}

impl fmt::Debug for GlobPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GlobPattern").field(&self.text).finish()
    }
}

fn compile(text: &str, hidden: HiddenNames) -> Result<GlobPattern, Mistake> {
    if text.is_empty() {
        return Err(Mistake::new(0, "it is empty; write '*' for every name"));
    }
    if text.len() > MAX_LEN {
        return Err(Mistake::new(MAX_LEN, format!("it is longer than {MAX_LEN} bytes")));
    }
    if let Some(at) = text.find('\0') {
        return Err(Mistake::new(at, "it contains a NUL character"));
    }
    let parts = parse::parse(text)?;
    if climbs(&parts) {
        return Err(Mistake::new(0, "'..' is not allowed; set the search path instead"));
    }
    let spelled = spellings(&parts);
    if spelled.is_none() && may_spell_dots(&parts) {
        let what = "its braces with '/' stand for too many paths, of which some start with a dot; use fewer";
        return Err(Mistake::new(0, what));
    }
    let is_spelled = spelled.is_some();
    let written = spelled.unwrap_or_else(|| vec![parts]);
    let only_directories = written.iter().all(|spelling| is_directory(spelling));
    let is_path = is_path(&written);
    // Where some alternatives name directories only, those find nothing: what is found would have to be told apart.
    let mut meant: Vec<Vec<Part>> = written
        .iter()
        .filter(|spelling| only_directories || !is_directory(spelling))
        .map(|spelling| fold(spelling).join(&Part::Separator))
        .filter(|spelling| !spelling.is_empty())
        .collect();
    let whole = match meant.as_slice() {
        [] => return Err(Mistake::new(0, "it names nothing; write '*' for every name")),
        [spelling] => spelling.clone(),
        _ => vec![Part::Alternatives(meant.clone())],
    };
    let subject = if is_path { Subject::Path } else { Subject::Name };
    let spelled = match hidden {
        HiddenNames::Spelled => Some(Box::new(SpelledMatcher::new(&meant, subject)?)),
        _ => None,
    };
    let segments = fold(&whole);
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
                meant.iter_mut().for_each(|name| drop(name.splice(..0, [Part::AnySegments, Part::Separator])));
            }
            Matcher::Name(if name == [Part::AnySegments] { TextMatcher::Any } else { TextMatcher::new(name)? })
        }
        None => {
            let base = base(&segments);
            Matcher::Path {
                below: below(&segments[base.len()..])?,
                base: base.join("/"),
                reach: Reach::new(is_spelled.then_some(&meant), &mut segment_matchers)?,
            }
        }
    };
    let dots = if is_spelled { Dots::new(&meant, &mut segment_matchers)? } else { Dots::default() };
    Ok(GlobPattern { text: text.to_owned(), matcher, dots, spelled, only_directories })
}

fn is_directory(spelling: &[Part]) -> bool {
    spelling.last() == Some(&Part::Separator)
}

/// Whether a path is meant: there is a separator, beside those at the end of all spellings.
fn is_path(spellings: &[Vec<Part>]) -> bool {
    let are_directories = spellings.iter().all(|spelling| is_directory(spelling));
    spellings.iter().any(|spelling| {
        let last = spelling.iter().rposition(|part| *part != Part::Separator).filter(|_| are_directories);
        let end = last.map_or(spelling.len(), |last| last + 1);
        spelling[..end].iter().any(|part| part.spans_segments() && *part != Part::AnySegments)
    })
}

/// The segments that spell a directory: plain text, with something after it.
fn base<'a>(segments: &[&'a [Part]]) -> Vec<&'a str> {
    let before_last = segments.split_last().map_or(&[][..], |(_, before)| before);
    let spelled = before_last.iter().map_while(|segment| match segment {
        [Part::Literal(text)] => Some(text.as_str()),
        _ => None,
    });
    spelled.collect()
}

fn below(segments: &[&[Part]]) -> Result<Below, Mistake> {
    let is_name = |segment: &[Part]| !segment.iter().any(Part::spans_segments);
    Ok(match segments {
        [[Part::AnySegments]] => Below::AtAnyDepth(TextMatcher::Any),
        [name] if is_name(name) => Below::Directly(TextMatcher::new(name)?),
        [[Part::AnySegments], name] if is_name(name) => Below::AtAnyDepth(TextMatcher::new(name)?),
        segments => Below::Path(TextMatcher::new(&segments.join(&Part::Separator))?),
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
fn climbs(parts: &[Part]) -> bool {
    parts.split(|part| *part == Part::Separator).any(|segment| matches!(segment, [Part::Literal(text)] if text == ".."))
        || parts.iter().any(|part| match part {
            Part::Alternatives(alternatives) => alternatives.iter().any(|alternative| climbs(alternative)),
            _ => false,
        })
}

fn describe(pattern: &str, mistake: &Mistake) -> Error {
    const SHOWN: usize = 200;
    let shown = &pattern[..pattern.floor_char_boundary(SHOWN)];
    let more = if shown.len() < pattern.len() { "…" } else { "" };
    let message = format!("Invalid glob pattern: {} (byte {} of '{shown}{more}')", mistake.what, mistake.at);
    Error::new(ErrorKind::InvalidPattern, message.clone()).with_model_message(message)
}

#[cfg(test)]
mod tests;

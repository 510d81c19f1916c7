//! Glob patterns over the paths that a rule covers.

use std::borrow::Cow;

use vfs_core::{Result, VfsPath};
use vfs_search::GlobPattern;

/// A glob that covers its matches and everything below them.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    text: String,
    exact: CompiledPattern,
    /// Matcher of the text in lower case, if that differs.
    folded: Option<CompiledPattern>,
}

/// Compiled pattern. Most patterns are literal and are only compared, since rules are evaluated before every operation.
#[derive(Debug, Clone)]
enum CompiledPattern {
    /// This relative path, literally.
    Path(String),
    /// This name, literally, at any depth.
    Name(String),
    Glob(GlobPattern),
}

/// Case sensitivity of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseSensitivity {
    Sensitive,
    Insensitive,
}

impl PathPattern {
    pub(crate) fn new(text: &str) -> Result<Self> {
        // `dir/**` covers the directory too, as `dir` alone covers everything below it.
        let bare = match text.strip_suffix("/**") {
            Some("") => "**",
            Some(directory) => directory,
            None => text.strip_suffix('/').filter(|bare| !bare.is_empty()).unwrap_or(text),
        };
        // A pattern written with a `/` is a whole path, even if the trimmed pattern has none.
        let is_path = text.contains('/') && !bare.contains('/') && bare != "**";
        let bare = if is_path { Cow::Owned(format!("/{bare}")) } else { Cow::Borrowed(bare) };
        let lower = bare.to_lowercase();
        let (exact, folded) =
            (CompiledPattern::new(&bare)?, (lower != bare).then(|| CompiledPattern::new(&lower)).transpose()?);
        Ok(Self { text: text.to_owned(), exact, folded })
    }

    /// Returns whether the pattern matches `path` or a directory above it.
    pub(crate) fn covers(&self, path: &VfsPath, case: CaseSensitivity) -> bool {
        if self.text == "/" || self.text == "/**" || self.text == "**" {
            return true;
        }
        // A pattern always covers its exact-case matches; case folding can only add matches.
        self.exact.covers(path.relative())
            || self.folded(path, case).is_some_and(|(matcher, lower)| matcher.covers(&lower))
    }

    /// Returns the matcher and the text of the case-insensitive match, if it can differ from the exact one.
    fn folded<'a>(&'a self, path: &'a VfsPath, case: CaseSensitivity) -> Option<(&'a CompiledPattern, Cow<'a, str>)> {
        if case == CaseSensitivity::Sensitive {
            return None;
        }
        let lower = in_lower_case(path.relative());
        match &self.folded {
            Some(folded) => Some((folded, lower)),
            None if matches!(lower, Cow::Owned(_)) => Some((&self.exact, lower)),
            None => None,
        }
    }

    /// Returns whether the pattern can cover `directory` or an entry below it.
    pub(crate) fn reaches(&self, directory: &VfsPath, case: CaseSensitivity) -> bool {
        if self.covers(directory, case) {
            return true;
        }
        self.exact.reaches(directory.relative())
            || self.folded(directory, case).is_some_and(|(matcher, lower)| matcher.reaches(&lower))
    }
}

impl CompiledPattern {
    fn new(text: &str) -> Result<Self> {
        let glob = GlobPattern::new(text)?;
        let path = text.strip_prefix('/').unwrap_or(text);
        let is_folded = VfsPath::parse(path).is_ok_and(|parsed| !parsed.is_root() && parsed.relative() == path);
        Ok(if !is_folded || text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            Self::Glob(glob)
        } else if text.contains('/') {
            Self::Path(path.to_owned())
        } else {
            Self::Name(path.to_owned())
        })
    }

    /// Returns whether this matches the relative path `text` or a directory above it.
    fn covers(&self, text: &str) -> bool {
        match self {
            CompiledPattern::Path(path) => is_at_or_below(text, path),
            CompiledPattern::Name(name) => text.split('/').any(|component| component == name),
            CompiledPattern::Glob(glob) => {
                let ends = text.match_indices('/').map(|(at, _)| at).chain([text.len()]);
                ends.filter(|end| *end > 0).any(|end| glob.matches(&text[..end]))
            }
        }
    }

    /// Returns whether an entry below the relative directory `text` can match.
    fn reaches(&self, text: &str) -> bool {
        match self {
            CompiledPattern::Path(path) => text.is_empty() || is_at_or_below(path, text),
            CompiledPattern::Name(_) => true,
            CompiledPattern::Glob(glob) => glob.reaches(text),
        }
    }
}

fn is_at_or_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns `text` in lower case, without a copy for the common path that has no upper case.
fn in_lower_case(text: &str) -> Cow<'_, str> {
    let is_lower = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_it_matches_and_all_below() {
        for (pattern, path, expected) in [
            ("/secrets", "/secrets", true),
            ("/secrets", "/secrets/a/b", true),
            ("/secrets", "/secretsx", false),
            ("/secrets", "/a/secrets", false),
            ("/secrets/", "/secrets/a", true),
            ("/secrets/**", "/secrets", true),
            ("/secrets/**", "/secrets/.hidden/x", true),
            ("/secrets/*", "/secrets", false),
            ("/secrets/*", "/secrets/a/b", true),
            (".env", "/.env", true),
            (".env", "/a/b/.env", true),
            (".env", "/a/.env/x", true),
            ("*.pem", "/a/key.pem", true),
            ("**/.git", "/a/.git/config", true),
            ("/**", "/", true),
            ("**", "/.env", true),
            ("/a/*/c", "/a/b/c/d", true),
            ("/a/*/c", "/a/b/d", false),
            ("public/**", "/public/x", true),
            ("public/**", "/secrets/public/x", false),
            ("public/", "/a/public", false),
            ("./public", "/public/x", true),
            ("a/b", "/a/b/c", true),
            ("a/b", "/a/bc", false),
            ("a/b", "/x/a/b", false),
            ("a//b", "/a/b", GlobPattern::new("a//b").expect("a valid pattern").matches("a/b")),
            (r"\.env", "/a/.env", true),
        ] {
            let pattern = PathPattern::new(pattern).expect("a valid pattern");
            let path = VfsPath::parse(path).expect("a valid path");
            assert_eq!(pattern.covers(&path, CaseSensitivity::Sensitive), expected, "{pattern:?} {path}");
        }
    }

    #[test]
    fn another_case_matches_if_it_is_enabled() {
        let pattern = PathPattern::new("/Secrets/[A-C]*.KEY").expect("a valid pattern");
        let path = VfsPath::parse("/sEcrets/b.key").expect("a valid path");
        assert!(pattern.covers(&path, CaseSensitivity::Insensitive));
        assert!(!pattern.covers(&path, CaseSensitivity::Sensitive));
        let pattern = PathPattern::new("/data/[!a-z]*").expect("a valid pattern");
        assert!(pattern.covers(&VfsPath::parse("/data/Secret").expect("a valid path"), CaseSensitivity::Insensitive));
    }

    #[test]
    fn a_pattern_reaches_the_directories_on_the_way() {
        for (pattern, directory, expected) in [
            ("/data/public/**", "/", true),
            ("/data/public/**", "/data", true),
            ("/data/public/**", "/other", false),
            ("/data/public/**", "/data/public/x", true),
            ("*.md", "/any/where", true),
        ] {
            let pattern = PathPattern::new(pattern).expect("a valid pattern");
            let directory = VfsPath::parse(directory).expect("a valid path");
            assert_eq!(pattern.reaches(&directory, CaseSensitivity::Sensitive), expected, "{pattern:?} {directory}");
        }
    }
}

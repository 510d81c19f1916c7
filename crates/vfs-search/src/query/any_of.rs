//! Combination of several patterns into one that matches any of them.

use vfs_core::{Error, ErrorKind, Pattern, Result};

use crate::query::regex::{check_regex, escape_trailing_comment, literal_lines};

/// Returns a pattern that matches wherever one of `patterns` matches.
///
/// # Behaviour
///
/// A single pattern is returned as it is; a carriage return at the end of a literal is found only then. If one of
/// several literals holds a line break, the search has to be multiline.
///
/// # Errors
///
/// `invalid_argument` if there is no pattern, or if one of several is empty; `invalid_pattern` if one of several is
/// malformed.
///
/// ```
/// use vfs_core::Pattern;
///
/// let pattern = vfs_search::any_of(vec![Pattern::Literal("a.b".into()), Pattern::Regex("c|d".into())])?;
/// assert_eq!(pattern, Pattern::Regex(r"(?:a\.b)|(?:c|d)".into()));
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub fn any_of(mut patterns: Vec<Pattern>) -> Result<Pattern> {
    if patterns.len() <= 1 {
        return patterns.pop().ok_or_else(|| Error::invalid_argument("a search needs a pattern"));
    }
    let groups = patterns.iter().map(to_group).collect::<Result<Vec<_>>>()?;
    Ok(Pattern::Regex(groups.join("|")))
}

fn to_group(pattern: &Pattern) -> Result<String> {
    let expression = match pattern {
        pattern if pattern.as_str().is_empty() => {
            return Err(Error::invalid_argument("`pattern` must not be empty"));
        }
        Pattern::Literal(text) => literal_lines(text),
        Pattern::Regex(regex) => {
            // Check the expression alone: `a)|(b` is malformed, but the group around it would be valid.
            check_regex(regex)?;
            escape_trailing_comment(regex.clone())
        }
        _ => return Err(Error::new(ErrorKind::Unsupported, "this kind of pattern is not supported")),
    };
    Ok(format!("(?:{expression})"))
}

#[cfg(test)]
mod tests {
    use vfs_core::{CaseMode, ErrorKind, GrepRequest};

    use super::*;
    use crate::query::regex::compile;

    fn literals(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::Literal((*text).into())).collect()
    }

    fn regexes(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::Regex((*text).into())).collect()
    }

    #[test]
    fn several_patterns_match_where_one_of_them_does() {
        let plain = |request: GrepRequest| request;
        let word: fn(GrepRequest) -> GrepRequest = GrepRequest::whole_word;
        let multiline: fn(GrepRequest) -> GrepRequest = GrepRequest::multiline;
        for (patterns, option, text, expected) in [
            (literals(&["a.c", "x|y"]), plain as fn(_) -> _, "abc x", false),
            (literals(&["a.c", "x|y"]), plain, "-x|y-", true),
            (literals(&["a\nb", "z"]), multiline, "a\r\nb", true),
            (literals(&["a\nb", "z"]), multiline, "a b", false),
            (literals(&["a", "ab"]), word, "ab", true),
            (literals(&["a", "ab"]), word, "abc", false),
            (regexes(&["^a|b$", "c"]), plain, "xb\r", true),
            (regexes(&["^a|b$", "c"]), plain, "bx a", false),
            (regexes(&["(?i)a", "b"]), plain, "B", false),
            (regexes(&["(?x) a # first", "#b"]), plain, "#b", true),
            (regexes(&["(?x) a # first", "#b"]), plain, "a", true),
            (literals(&["a", "B"]), |request| request.case(CaseMode::Smart), "A b", false),
            (literals(&["a", "b"]), |request| request.case(CaseMode::Smart), "B", true),
        ] {
            let pattern = any_of(patterns).expect("valid patterns");
            let request = option(GrepRequest::new(pattern));
            let compiled = compile(&request).expect("a valid pattern");
            let found = grep_matcher::Matcher::is_match(&compiled.matcher, text.as_bytes()).expect("cannot fail");
            assert_eq!(found, expected, "{request:?} {text:?}");
        }
    }

    #[test]
    fn each_of_several_patterns_has_to_be_one_by_itself() {
        for (patterns, kind) in [
            (regexes(&["a)|(?:b", "c"]), ErrorKind::InvalidPattern),
            (regexes(&["c", "("]), ErrorKind::InvalidPattern),
            (literals(&["a", ""]), ErrorKind::InvalidArgument),
            (literals(&[]), ErrorKind::InvalidArgument),
        ] {
            assert_eq!(any_of(patterns.clone()).expect_err("refused").kind(), kind, "{patterns:?}");
        }
        let error = any_of(regexes(&["x", r"\p{Nope}"])).expect_err("there is no such class");
        assert!(error.message().contains("byte 0"), "{error}");
        assert_eq!(any_of(regexes(&["("])).expect("left to the search"), Pattern::Regex("(".into()));
    }
}

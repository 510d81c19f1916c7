//! Pattern compilation: checks and limits of an expression, and its matcher.

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcherBuilder;
use regex_syntax::ast::{self, AssertionKind, Ast};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind};
use vfs_core::search::{MatchBoundary, MultilineMode};
use vfs_core::{CaseMode, Error, ErrorKind, GrepRequest, Pattern, Result};

use crate::query::max_read_past_match::{max_match_len, max_read_past_match};
use crate::query::pattern_matcher::{CarriageReturnMode, PatternMatcher};

/// Maximum length of a pattern in bytes.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// Maximum nesting of groups.
const MAX_GROUP_NESTING: u32 = 100;

/// Maximum number of places to which counted repetitions may expand.
const MAX_EXPANSION: u64 = 10_000;

/// Maximum size of a compiled expression in bytes.
const SIZE_LIMIT: usize = 10 << 20;

/// Maximum size of the matching cache in bytes, for each worker and direction.
const CACHE_LIMIT: usize = 16 << 20;

/// A matcher, with the costs that its pattern implies.
#[derive(Debug, Clone)]
pub(crate) struct CompiledGrepPattern {
    pub(crate) matcher: PatternMatcher,
    pub(crate) multiline: bool,
    /// Number of places to which the counted repetitions expand, a measure of the work for each byte.
    pub(crate) expansion: u64,
    /// Maximum number of bytes after a match that the engine reads.
    pub(crate) max_read_past_match: usize,
}

/// Compiles the pattern of `req`.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] for an empty pattern, and [`ErrorKind::InvalidPattern`].
pub(crate) fn compile(req: &GrepRequest) -> Result<CompiledGrepPattern> {
    let text = req.pattern.as_str();
    if text.is_empty() {
        return Err(Error::invalid_argument("`pattern` must not be empty"));
    }
    if text.len() > MAX_PATTERN_BYTES {
        return Err(invalid_pattern_of(
            &req.pattern,
            &format!("the pattern is {} bytes long; at most {MAX_PATTERN_BYTES} are allowed", text.len()),
        ));
    }
    if let Some(matcher) = literal_matcher(req) {
        return Ok(CompiledGrepPattern { matcher, multiline: false, expansion: 0, max_read_past_match: 0 });
    }
    let whole_word = req.boundary == MatchBoundary::Word;
    let spans_lines = req.span == MultilineMode::MultiLine;
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .word(whole_word)
        .case_insensitive(req.case == CaseMode::Insensitive)
        .case_smart(req.case == CaseMode::Smart)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(CACHE_LIMIT)
        .nest_limit(MAX_GROUP_NESTING * 2);
    // The engine looks no further than the length of a literal, whether or not case is ignored.
    let (mut expansion, mut max_read_past_match) = (0, Some(text.len()));
    let (expression, multiline) = match &req.pattern {
        Pattern::Regex(regex) => {
            let checked = check_expression(regex, spans_lines)?;
            expansion = checked.expansion;
            max_read_past_match = if whole_word { checked.max_match_len } else { checked.max_read_past_match };
            (checked.expression, spans_lines)
        }
        Pattern::Literal(text) if text.contains('\n') => (literal_lines(text), true),
        Pattern::Literal(text) => {
            builder.fixed_strings(true);
            (text.clone(), spans_lines)
        }
        _ => return Err(Error::new(ErrorKind::Unsupported, "this kind of pattern is not supported")),
    };
    if multiline {
        builder.dot_matches_new_line(spans_lines);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    let regex = builder.build(&expression).map_err(|error| match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => invalid_pattern_of(
            &req.pattern,
            "the pattern matches a line break; use a multiline search, or remove the '\\n'",
        ),
        _ => invalid_pattern_of(
            &req.pattern,
            &format!("the compiled pattern is over {SIZE_LIMIT} bytes; simplify the pattern"),
        ),
    })?;
    // A literal that contains a `\r` asks for that byte. A multiline search whose expression cannot match a line break
    // still goes line by line.
    let is_by_line = !multiline || regex.non_matching_bytes().is_some_and(|bytes| bytes.contains(b'\n'));
    let carriage_return = match (&req.pattern, is_by_line) {
        (Pattern::Literal(_), _) => CarriageReturnMode::Text,
        (_, true) => CarriageReturnMode::EndsLineOrHaystack,
        (_, false) => CarriageReturnMode::EndsLine,
    };
    let matcher = PatternMatcher::new(regex, carriage_return);
    Ok(CompiledGrepPattern {
        matcher,
        multiline: !is_by_line,
        expansion,
        max_read_past_match: max_read_past_match.unwrap_or(usize::MAX),
    })
}

/// Returns a matcher for a pattern that is one line of literal text.
fn literal_matcher(req: &GrepRequest) -> Option<PatternMatcher> {
    let text = match &req.pattern {
        Pattern::Literal(text) => text,
        // An expression without metacharacters is literal text. A `\r` is different: it has a meaning of its own in an
        // expression.
        Pattern::Regex(regex) if !regex.contains('\r') && regex_syntax::escape(regex) == *regex => regex,
        _ => return None,
    };
    let is_exact = match req.case {
        CaseMode::Sensitive => true,
        CaseMode::Smart => text.chars().any(char::is_uppercase),
        _ => false,
    };
    let is_within_line = req.span == MultilineMode::SingleLine && !text.contains('\n');
    (is_exact && req.boundary == MatchBoundary::Anywhere && is_within_line)
        .then(|| PatternMatcher::literal(text.as_bytes()))
}

/// Returns the expression for a literal of several lines. Its line breaks also match `\r\n`, since a read does not
/// show the difference.
///
/// A `\r\n` in the literal matches only itself.
pub(crate) fn literal_lines(text: &str) -> String {
    let mut expression = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let Some(content) = line.strip_suffix('\n') else {
            expression.push_str(&regex_syntax::escape(line));
            break;
        };
        expression.push_str(&regex_syntax::escape(content));
        expression.push_str(if content.ends_with('\r') { "\\n" } else { "\\r?\\n" });
    }
    expression
}

/// A valid expression within the limits.
struct CheckedRegex {
    expression: String,
    expansion: u64,
    /// Maximum number of bytes read past a match, and maximum length of a match, in bytes; `None` if there is no bound.
    max_read_past_match: Option<usize>,
    max_match_len: Option<usize>,
}

/// Checks `regex`, and rewrites each `$` to match before `\r\n` as well as before `\n`.
fn check_expression(regex: &str, multiline: bool) -> Result<CheckedRegex> {
    let ast = parse(regex)?;
    let hir = TranslatorBuilder::new()
        .utf8(false)
        .multi_line(true)
        .dot_matches_new_line(multiline)
        .build()
        .translate(regex, &ast)
        .map_err(|error| syntax_error(regex, &error.kind().to_string(), error.span()))?;
    let expansion = expansion(&hir, InRepetition::No);
    if expansion > MAX_EXPANSION {
        return Err(invalid_regex(&format!(
            "the counted repetitions expand to {expansion} places; at most {MAX_EXPANSION} are allowed"
        )));
    }
    let (max_read_past_match, max_match_len) = (max_read_past_match(&hir), max_match_len(&hir));
    Ok(CheckedRegex { expression: rewrite_end_anchors(regex, &ast), expansion, max_read_past_match, max_match_len })
}

/// Returns the expression that a search for `regex` compiles, in which each `$` matches before `\r\n` as well as
/// before `\n`. Returns `None` if `regex` is not valid.
///
/// Code that derives the literals of a match has to use this expression, since a match may contain a `\r` where
/// `regex` has none.
pub(crate) fn effective_expression(regex: &str) -> Option<String> {
    let ast = parser().parse(regex).ok()?;
    Some(rewrite_end_anchors(regex, &ast))
}

/// Rewrites each `$` of `regex`, whose syntax tree is `ast`.
///
/// The engine's own mode for `\r\n` would let `^` match after a lone `\r`, which ends no line here.
fn rewrite_end_anchors(regex: &str, ast: &Ast) -> String {
    let ends = match ast::visit(ast, EndAnchors(Vec::new())) {
        Ok(ends) => ends,
        Err(never) => match never {},
    };
    let mut expression = String::with_capacity(regex.len() + ends.len() * 8);
    let mut done = 0;
    for at in ends {
        expression.push_str(&regex[done..at]);
        expression.push_str("(?:\\r?$)");
        done = at + 1;
    }
    expression.push_str(&regex[done..]);
    // The matcher wraps the expression in a group.
    escape_trailing_comment(expression)
}

/// Returns `expression` in a form that can be wrapped in a group, so that the group's end does not become part of a
/// comment.
pub(crate) fn escape_trailing_comment(mut expression: String) -> String {
    if expression.contains('#') && !is_group(&expression, "") && is_group(&expression, "\n") {
        expression.push('\n');
    }
    expression
}

/// Returns whether `expression` followed by `end` is valid inside a group, at the maximum nesting of the matcher.
fn is_group(expression: &str, end: &str) -> bool {
    let mut parser = ast::parse::ParserBuilder::new().nest_limit(MAX_GROUP_NESTING * 2).build();
    parser.parse(&format!("(?:{expression}{end})")).is_ok()
}

/// Whether an expression is inside a counted repetition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InRepetition {
    Yes,
    No,
}

/// Returns the approximate number of states to which the counted repetitions of `hir` expand: the product along their nesting,
/// summed over siblings. Parts that no count repeats are not counted. The parser bounds the depth.
fn expansion(hir: &Hir, in_repetition: InRepetition) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(expansion(part, in_repetition)));
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min).max(1));
            let inner = if times > 1 { InRepetition::Yes } else { in_repetition };
            times.saturating_mul(expansion(&repetition.sub, inner))
        }
        HirKind::Capture(capture) => expansion(&capture.sub, in_repetition),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
        _ if in_repetition == InRepetition::No => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => 1,
    }
}

/// Rejects a string that is not a valid regex by itself. The error describes the mistake and its position.
pub(crate) fn check_regex(regex: &str) -> Result<()> {
    check_expression(regex, true).map(drop)
}

/// Parses `regex`. The error describes the mistake and its position.
fn parse(regex: &str) -> Result<Ast> {
    parser().parse(regex).map_err(|error| syntax_error(regex, &error.kind().to_string(), error.span()))
}

fn parser() -> ast::parse::Parser {
    ast::parse::ParserBuilder::new().nest_limit(MAX_GROUP_NESTING).build()
}

/// The positions of `$` in an expression.
struct EndAnchors(Vec<usize>);

impl ast::Visitor for EndAnchors {
    type Output = Vec<usize>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Vec<usize>, Self::Err> {
        Ok(self.0)
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        if let Ast::Assertion(assertion) = ast
            && assertion.kind == AssertionKind::EndLine
        {
            self.0.push(assertion.span.start.offset);
        }
        Ok(())
    }
}

fn syntax_error(regex: &str, mistake: &str, span: &ast::Span) -> Error {
    const EXCERPT_BYTES: usize = 40;
    let (start, end) = (span.start.offset.min(regex.len()), span.end.offset.min(regex.len()));
    let from = regex.floor_char_boundary(start.saturating_sub(EXCERPT_BYTES));
    let to = regex.ceil_char_boundary((end.min(start + EXCERPT_BYTES) + EXCERPT_BYTES).min(regex.len()));
    invalid_regex(&format!("{mistake}, at byte {start}, near '{}'", &regex[from..to]))
}

fn invalid_regex(reason: &str) -> Error {
    invalid_pattern(format!("Invalid regex pattern: {reason}"))
}

/// Returns the error for an invalid pattern of any kind.
fn invalid_pattern_of(pattern: &Pattern, reason: &str) -> Error {
    match pattern {
        Pattern::Regex(_) => invalid_regex(reason),
        _ => invalid_pattern(format!("Invalid pattern: {reason}")),
    }
}

fn invalid_pattern(message: String) -> Error {
    Error::new(ErrorKind::InvalidPattern, message.clone()).with_model_message(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(req: &GrepRequest, text: &str) -> bool {
        compile(req).expect("a valid pattern").matcher.is_match(text.as_bytes()).expect("cannot fail")
    }

    #[test]
    fn options_change_what_matches() {
        for (req, text, expected) in [
            (GrepRequest::literal("a.c"), "abc", false),
            (GrepRequest::literal("a.c"), "xa.cx", true),
            (GrepRequest::regex("a.c"), "abc", true),
            (GrepRequest::literal("abc").case(CaseMode::Insensitive), "ABC", true),
            (GrepRequest::literal("abc").case(CaseMode::Smart), "ABC", true),
            (GrepRequest::literal("aBc").case(CaseMode::Smart), "abc", false),
            (GrepRequest::literal("ab").whole_word(), "abc", false),
            (GrepRequest::literal("ab").whole_word(), "x ab.", true),
            (GrepRequest::regex("a.b").multiline(), "a\nb", true),
            (GrepRequest::regex("^b$").multiline(), "a\nb\nc", true),
            (GrepRequest::literal("a\nb"), "a\r\nb", true),
            (GrepRequest::literal("a\nb"), "a\nb", true),
            (GrepRequest::literal("a\r\nb"), "a\r\nb", true),
            (GrepRequest::literal("a\r\nb"), "a\nb", false),
            (GrepRequest::literal("a\nb\r\nc"), "a\r\nb\r\nc", true),
            (GrepRequest::literal("a\nb\r\nc"), "a\r\nb\nc", false),
            (GrepRequest::literal("a\nb\r"), "a\nb", false),
            (GrepRequest::literal("\n"), "\r\n", true),
            (GrepRequest::literal("\r"), "a\r", true),
            (GrepRequest::regex("[^a]"), "a\r", false),
            (GrepRequest::regex("[^a]"), "a\rb", true),
            (GrepRequest::regex(r"\s$"), "a\r", false),
            (GrepRequest::regex(r"\s$"), "a \r", true),
            (GrepRequest::regex("^$"), "\r", true),
            (GrepRequest::regex("a*$"), "b\r", true),
            (GrepRequest::regex("[^a]").multiline(), "a\r", true),
            (GrepRequest::regex("[^a\\n]").multiline(), "a\r\na", false),
            (GrepRequest::regex("foo$"), "foo\r", true),
            (GrepRequest::regex("(foo|bar)$"), "bar\r", true),
            (GrepRequest::regex(r"foo\$"), "foo$", true),
            (GrepRequest::regex("[$]"), "a$", true),
            (GrepRequest::regex("(?x) foo $ # end"), "foo\r", true),
            (GrepRequest::regex("^b"), "a\rb", false),
            (GrepRequest::regex("é$"), "é\r", true),
        ] {
            assert_eq!(finds(&req, text), expected, "{req:?} {text:?}");
        }
    }

    #[test]
    fn the_error_for_an_invalid_pattern_starts_with_the_words_of_the_documentation() {
        let nested = format!("{}a{}", "(".repeat(3000), ")".repeat(3000));
        for regex in [
            "(unclosed",
            "[z-a]",
            "a{2,1}",
            r"\",
            r"\p{Nonsense}",
            "(?<name",
            r"(?=look)",
            "*",
            "a**{99999}{99999}{99999}",
            r"foo\nbar",
            r"(\w{1000}){1000}",
            "((((a{10}){10}){10}){10}){10}",
            "(a{100}){101}",
            "a{5000}b*(c{0,5001}|d)",
            "(?:){4000000000}(a{65536}){65537}",
            &nested,
            &"a".repeat(MAX_PATTERN_BYTES + 1),
        ] {
            let error = compile(&GrepRequest::regex(regex)).expect_err(&regex[..regex.len().min(40)]);
            assert_eq!(error.kind(), ErrorKind::InvalidPattern);
            assert!(error.message().starts_with("Invalid regex pattern:"), "{error}");
            assert!(error.for_model().starts_with("Invalid regex pattern:"), "{}", error.for_model());
            assert!(error.for_model().len() < 2048);
        }
    }

    #[test]
    fn a_literal_that_is_too_long_is_not_called_a_regex() {
        let error = compile(&GrepRequest::literal("a".repeat(MAX_PATTERN_BYTES + 1))).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidPattern);
        assert!(error.for_model().starts_with("Invalid pattern: "), "{}", error.for_model());
    }

    #[test]
    fn an_expression_of_the_maximum_nesting_is_accepted() {
        let deep = |inner: &str| format!("{}{inner}{}", "(".repeat(99), ")".repeat(99));
        for (regex, text) in [
            (deep("#a"), "#a"),
            (deep("#a$"), "#a\r"),
            (format!("(?x){} # end", deep("a")), "a"),
            (format!("{}(?x) # end", deep("a")), "a"),
        ] {
            assert!(finds(&GrepRequest::regex(&*regex), text), "{regex}");
            assert!(finds(&GrepRequest::regex(&*regex).whole_word(), text), "{regex}");
            assert!(!finds(&GrepRequest::regex(&*regex), "b"), "{regex}");
        }
    }

    #[test]
    fn counted_repetitions_are_expanded() {
        for (regex, expected) in [
            ("a long text", 0),
            ("a*b+c?[d-f]", 0),
            ("a{10}", 10),
            ("a{2,}", 2),
            ("x(ab){3,7}[c-d]{2}", 16),
            ("((a{10}){10}){10}", 1000),
            (r"(\w{2}-){5}|z{3}", 18),
            ("(a{100}){100}", 10_000),
        ] {
            let expansion = compile(&GrepRequest::regex(regex)).expect("a valid pattern").expansion;
            assert_eq!(expansion, expected, "{regex}");
        }
    }

    #[test]
    fn a_line_break_without_multiline_is_refused_with_a_hint() {
        let error = compile(&GrepRequest::regex(r"a\nb")).expect_err("refused");
        assert!(error.message().contains("multiline"), "{error}");
    }

    #[test]
    fn an_empty_pattern_is_an_invalid_argument() {
        let error = compile(&GrepRequest::literal("")).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

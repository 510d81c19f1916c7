//! Wildcard patterns over command lines.

use vfs_core::{Error, ErrorKind, ExecuteRequest, Result};

use super::command_line::CommandLine;
use super::simple_command::{CommandArgument, SimpleCommand};

/// Pattern of a command in a rule: words with wildcards.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    /// Names and value patterns of variables that the request passes.
    variables: Vec<(String, WildcardWord)>,
    words: Vec<WildcardWord>,
    /// Whether the pattern ends with a `*` as a word, for any number of further words.
    takes_rest: bool,
}

/// A word with wildcards: `*` is any text, `?` one character, `\` takes the next character as it is.
#[derive(Debug, Clone)]
struct WildcardWord(Vec<WildcardPiece>);

/// One element of a word with wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WildcardPiece {
    Any,
    One,
    Exactly(char),
}

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN: usize = 1_000;

impl CommandPattern {
    pub(crate) fn new(text: &str) -> Result<Self> {
        let invalid = |message: String| Error::new(ErrorKind::InvalidPattern, message);
        if text.len() > MAX_PATTERN {
            return Err(invalid(format!("a command of a rule is longer than {MAX_PATTERN} bytes")));
        }
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return Err(invalid(
                "a command of a rule is empty; write its words, such as 'git status' or 'ls *'".into(),
            ));
        }
        let mut variables = Vec::new();
        while let Some((name, value)) = words.first().and_then(|word| word.split_once('=')) {
            if !is_name(name) {
                break;
            }
            variables.push((name.to_owned(), WildcardWord::new(value)));
            words.remove(0);
        }
        let takes_rest = words.last() == Some(&"*");
        if takes_rest {
            words.pop();
        }
        if words.is_empty() && takes_rest {
            // A `*` alone matches any command, so it stays the name.
            words.push("*");
        }
        Ok(Self { variables, words: words.into_iter().map(WildcardWord::new).collect(), takes_rest })
    }

    /// Returns whether `command` matches for every expansion of its globs, and no variable is passed to it that the pattern does
    /// not list.
    fn is(&self, command: &SimpleCommand, passed: &[(String, String)]) -> bool {
        let is_written = |(name, value): &(String, String)| {
            self.variables.iter().any(|(written, wild)| written == name && wild.matches(value))
        };
        let Some((name, words)) = self.words.split_first() else { return false };
        let arguments = &command.arguments;
        let fits = arguments.len() == words.len() || (self.takes_rest && arguments.len() > words.len());
        // A glob expands to any number of words, so only the trailing `*` can match it.
        let are_same =
            words.iter().zip(arguments).all(|(wild, word)| word.literal().is_some_and(|text| wild.matches(text)));
        fits && name.matches(&command.name) && are_same && passed.iter().all(is_written)
    }

    /// Returns whether `command` may match, or may run a matching command from its arguments: the name occurs, whatever its
    /// directory and letter case, and the other words follow in this order, with any words between them.
    fn may_be(&self, command: &SimpleCommand, passed: &[(String, String)]) -> bool {
        let is_passed = |(name, wild): &(String, WildcardWord)| {
            passed.iter().any(|(set, value)| set == name && wild.matches(value))
        };
        if !self.variables.iter().all(is_passed) {
            return false;
        }
        let Some((name, words)) = self.words.split_first() else { return true };
        let is_named = |text: &str| {
            let file = text.rsplit('/').next().unwrap_or(text);
            [text, file].iter().any(|text| name.matches(text) || name.matches(&text.to_lowercase()))
        };
        let mut rest = &command.arguments[..];
        if !is_named(&command.name) {
            let run = rest.iter().position(|word| word.literal().is_none_or(is_named));
            let Some(place) = run.filter(|_| command.runs_others) else { return false };
            rest = after(rest, place);
        }
        words.iter().all(|wild| {
            let found = rest.iter().position(|word| match word {
                CommandArgument::Literal(text) => wild.matches(text),
                CommandArgument::Glob(beginning) => wild.may_begin_with(beginning),
            });
            found.map(|place| rest = after(rest, place)).is_some()
        })
    }
}

/// The words after that at `place`; a glob may become several words.
fn after(words: &[CommandArgument], place: usize) -> &[CommandArgument] {
    &words[place + usize::from(words[place].literal().is_some())..]
}

impl WildcardWord {
    fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut characters = text.chars();
        while let Some(next) = characters.next() {
            pieces.push(match next {
                '*' => WildcardPiece::Any,
                '?' => WildcardPiece::One,
                '\\' => WildcardPiece::Exactly(characters.next().unwrap_or('\\')),
                other => WildcardPiece::Exactly(other),
            });
        }
        pieces.dedup_by(|next, before| *next == WildcardPiece::Any && *before == WildcardPiece::Any);
        Self(pieces)
    }

    /// Returns whether the pattern may match a text that begins with `beginning`.
    fn may_begin_with(&self, beginning: &str) -> bool {
        let mut pieces = self.0.iter();
        beginning.chars().all(|is| match pieces.as_slice().first() {
            Some(WildcardPiece::Any) => true,
            Some(WildcardPiece::One) => pieces.next().is_some(),
            Some(WildcardPiece::Exactly(expected)) => pieces.next().is_some() && *expected == is,
            None => false,
        })
    }

    fn matches(&self, text: &str) -> bool {
        let characters: Vec<char> = text.chars().collect();
        let (mut piece, mut at) = (0, 0);
        // The position at which to resume with one character more for the last star.
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (self.0.get(piece), characters.get(at)) {
                (None, None) => return true,
                (Some(WildcardPiece::Any), _) => {
                    again = Some((piece + 1, at));
                    piece += 1;
                }
                (Some(WildcardPiece::One), Some(_)) => (piece, at) = (piece + 1, at + 1),
                (Some(WildcardPiece::Exactly(expected)), Some(is)) if expected == is => {
                    (piece, at) = (piece + 1, at + 1)
                }
                _ => {
                    let Some((after, taken)) = again.filter(|(_, taken)| *taken < characters.len()) else {
                        return false;
                    };
                    again = Some((after, taken + 1));
                    (piece, at) = (after, taken + 1);
                }
            }
        }
    }
}

/// Parsed form of a request to run a command line.
#[derive(Debug)]
pub(crate) struct RequestedCommand {
    line: CommandLine,
    not_understood: Option<&'static str>,
    /// The variables that the request passes.
    passed: Vec<(String, String)>,
}

impl RequestedCommand {
    pub(crate) fn new(request: &ExecuteRequest) -> Self {
        let passed: Vec<_> = request.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let (line, not_understood) = CommandLine::read(&request.command);
        let is_deciding = passed.iter().any(|(name, _)| decides_what_runs(name));
        let deciding =
            is_deciding.then_some("a variable that is passed decides what a shell or the system's loader runs");
        Self { line, not_understood: not_understood.or(deciding), passed }
    }

    /// Returns why the command line is not understood, if it is not.
    pub(crate) fn not_understood(&self) -> Option<&'static str> {
        self.not_understood
    }

    /// Returns whether the line is understood, and each of its commands matches one of `patterns`.
    pub(crate) fn is_all(&self, patterns: &[CommandPattern]) -> bool {
        let is_one = |command| patterns.iter().any(|pattern| pattern.is(command, &self.passed));
        self.not_understood.is_none() && self.line.commands().iter().all(is_one)
    }

    /// Returns whether a command in the understood part of the line may match one of `patterns`.
    pub(crate) fn may_have(&self, patterns: &[CommandPattern]) -> bool {
        let may_be_one = |command| patterns.iter().any(|pattern| pattern.may_be(command, &self.passed));
        self.line.commands().iter().any(may_be_one)
    }
}

/// Returns whether the variable `name` makes a shell or a program loader run other code, or find other programs.
fn decides_what_runs(name: &str) -> bool {
    const NAMES: [&str; 5] = ["IFS", "PATH", "PROMPT_COMMAND", "PS4", "SHELLOPTS"];
    NAMES.contains(&name) || ["BASH", "DYLD_", "LD_"].iter().any(|prefix| name.starts_with(prefix))
}

fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    !text.is_empty() && text.chars().all(is_letter) && !text.starts_with(|first: char| first.is_ascii_digit())
}

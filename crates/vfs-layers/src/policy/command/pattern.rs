//! The commands that a rule is about.

use vfs_core::{Error, ErrorKind, ExecuteRequest, Result};

use super::quoting::is_name;
use super::variables::{declaration, is_run};
use super::{CommandAssignment, CommandLine, CommandWord, SimpleCommand};

/// A command as a rule writes it: words with wildcards.
#[derive(Debug, Clone)]
pub(in crate::policy) struct CommandPattern {
    /// Variables that have to be set: their names and what they are set to.
    assignments: Vec<(String, Wild)>,
    words: Vec<Wild>,
    /// Whether it ends with a `*` of its own, for any number of further words.
    takes_rest: bool,
}

/// A word with wildcards: `*` is any text, `?` one character, `\` takes the next character as it is.
#[derive(Debug, Clone)]
struct Wild(Vec<Piece>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Any,
    One,
    Exactly(char),
}

/// The longest pattern.
const MAX_PATTERN: usize = 1_000;

impl CommandPattern {
    pub(in crate::policy) fn new(text: &str) -> Result<Self> {
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
        let mut assignments = Vec::new();
        while let Some((name, value)) = words.first().and_then(|word| word.split_once('=')) {
            if !is_name(name) {
                break;
            }
            assignments.push((name.to_owned(), Wild::new(value)));
            words.remove(0);
        }
        let takes_rest = words.last() == Some(&"*");
        if takes_rest {
            words.pop();
        }
        if words.is_empty() && takes_rest {
            // A star alone is any command, so there is a name.
            words.push("*");
        }
        Ok(Self { assignments, words: words.into_iter().map(Wild::new).collect(), takes_rest })
    }

    /// Whether `command` is certainly one of these and sets no variable that is not written here; `passed` are set for it
    /// too.
    fn is(&self, command: &SimpleCommand, passed: &[CommandAssignment]) -> bool {
        let Self { assignments, words, takes_rest } = self;
        let mut set = command.assignments.iter().chain(passed);
        let are_written =
            set.all(|set| assignments.iter().any(|(name, value)| *name == set.name && value.is(&set.value)));
        let fits = command.words.len() == words.len() || (*takes_rest && command.words.len() > words.len());
        let is_known = command.words.first().is_none_or(|name| name.literal().is_some());
        let are_same = words.iter().zip(&command.words).all(|(wild, word)| match word {
            CommandWord::Literal(text) => wild.matches(text),
            // It may become several words.
            CommandWord::Dynamic(_) => false,
        });
        let is_something = !command.words.is_empty() || !command.assignments.is_empty();
        is_something && (!words.is_empty() || command.words.is_empty()) && are_written && fits && is_known && are_same
    }

    /// Whether `command` may be one of these: its name is, and the other words are there in this order, whatever stands
    /// between them.
    fn may_be(&self, command: &SimpleCommand, passed: &[CommandAssignment]) -> bool {
        let all_set = || command.assignments.iter().chain(passed);
        // A command of which nothing is known may set all of them.
        let is_unknown = command.words.first().is_some_and(|name| name.literal().is_none());
        let are_set = self.assignments.iter().all(|(name, value)| {
            all_set().any(|set| set.name == *name && (set.value.literal().is_none() || value.is(&set.value)))
                || exports(command).any(|word| match declaration(word) {
                    Some((set, _)) => set == name,
                    None => word.literal().is_none(),
                })
                || is_unknown
        });
        if !are_set {
            return false;
        }
        let Some((name, others)) = self.words.split_first() else { return true };
        let Some(first) = command.words.first() else { return false };
        let is_named = match first {
            CommandWord::Literal(text) => {
                let file = text.rsplit('/').next().unwrap_or(text);
                // Some file systems take letters of another case for the same.
                [text.as_str(), file].into_iter().any(|text| name.matches(text) || name.matches(&text.to_lowercase()))
            }
            // It may become all the words of the pattern.
            CommandWord::Dynamic(_) => return true,
        };
        let mut words = command.words[1..].iter();
        is_named
            && others.iter().all(|wild| {
                words.clone().any(|word| word.literal().is_none())
                    || words.any(|word| word.literal().is_some_and(|text| wild.matches(text)))
            })
    }
}

/// The words of a builtin that sets variables.
fn exports(command: &SimpleCommand) -> impl Iterator<Item = &CommandWord> {
    let sets = matches!(command.name(), Some("export" | "declare" | "typeset" | "readonly" | "local"));
    command.words.iter().filter(move |_| sets)
}

impl Wild {
    fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut characters = text.chars();
        while let Some(next) = characters.next() {
            pieces.push(match next {
                '*' => Piece::Any,
                '?' => Piece::One,
                '\\' => Piece::Exactly(characters.next().unwrap_or('\\')),
                other => Piece::Exactly(other),
            });
        }
        pieces.dedup_by(|next, before| *next == Piece::Any && *before == Piece::Any);
        Self(pieces)
    }

    /// Whether it is certainly `word`.
    fn is(&self, word: &CommandWord) -> bool {
        match word {
            CommandWord::Literal(text) => self.matches(text),
            CommandWord::Dynamic(_) => self.0 == [Piece::Any],
        }
    }

    fn matches(&self, text: &str) -> bool {
        let characters: Vec<char> = text.chars().collect();
        let (mut piece, mut at) = (0, 0);
        // Where to go on after the last star took one character more.
        let mut again: Option<(usize, usize)> = None;
        loop {
            match (self.0.get(piece), characters.get(at)) {
                (None, None) => return true,
                (Some(Piece::Any), _) => {
                    again = Some((piece + 1, at));
                    piece += 1;
                }
                (Some(Piece::One), Some(_)) => (piece, at) = (piece + 1, at + 1),
                (Some(Piece::Exactly(expected)), Some(is)) if expected == is => (piece, at) = (piece + 1, at + 1),
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

/// A request to run a command line, as rules look at it.
#[derive(Debug)]
pub(in crate::policy) struct Asked {
    line: Result<CommandLine>,
    passed: Vec<CommandAssignment>,
}

impl Asked {
    pub(in crate::policy) fn new(request: &ExecuteRequest) -> Self {
        let passed = request
            .env
            .iter()
            .map(|(name, value)| CommandAssignment { name: name.clone(), value: CommandWord::Literal(value.clone()) });
        let passed: Vec<_> = passed.collect();
        let mut line = CommandLine::parse(&request.command);
        if let Ok(line) = &mut line {
            let run = passed.iter().filter(|set| is_run(&set.name, &set.value));
            line.commands.extend(run.map(|set| SimpleCommand::unknown(&set.name)));
        }
        Self { line, passed }
    }

    /// Whether every command of it is certainly one of `patterns`.
    pub(in crate::policy) fn is_all(&self, patterns: &[CommandPattern]) -> bool {
        let Ok(line) = &self.line else { return false };
        let is_one = |command| patterns.iter().any(|pattern| pattern.is(command, &self.passed));
        line.doubts().is_empty() && !line.commands().is_empty() && line.commands().iter().all(is_one)
    }

    /// Whether a command of it may be one of `patterns`.
    pub(in crate::policy) fn may_have(&self, patterns: &[CommandPattern]) -> bool {
        let Ok(line) = &self.line else { return true };
        let mut commands = line.commands().iter().chain(line.possible_commands());
        commands.any(|command| patterns.iter().any(|pattern| pattern.may_be(command, &self.passed)))
    }
}

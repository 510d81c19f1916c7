//! A text that is read, and what was found in it so far.

use super::variables::is_run;
use super::{CommandAssignment, CommandLine, CommandRedirect, CommandWord, SimpleCommand};

/// What was read, or why nothing certain can be said.
pub(super) type Read<T> = Result<T, &'static str>;

/// All that one command line holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) possible: Vec<SimpleCommand>,
    pub(super) doubts: Vec<&'static str>,
    /// How many bytes of text were read, those of texts in texts again.
    pub(super) read: usize,
    /// How many programs that run something unseen are around this.
    pub(super) runners: usize,
    /// Whether this is the end of a line of which all ends are looked at.
    pub(super) is_end_of_line: bool,
}

/// Most commands of one line.
const MAX_COMMANDS: usize = 20_000;

/// Most bytes that are read for one line.
const MAX_READ: usize = 4 << 20;

impl Found {
    /// Finds the commands of `text`, which stands `depth` deep in other texts and constructs.
    pub(super) fn script(&mut self, text: &str, depth: usize) -> Read<()> {
        self.enter(text.len(), depth)?;
        let mut source = Source::new(text, depth, self);
        source.whole_script()?;
        let raw = source.raw;
        // A text has lines of its own.
        let was_end = std::mem::take(&mut self.is_end_of_line);
        self.runners += usize::from(was_end);
        let added = raw.into_iter().try_for_each(|command| self.add(command, depth));
        self.runners -= usize::from(was_end);
        self.is_end_of_line = was_end;
        added
    }

    /// Finds the commands in the expansions of `text`, the body of a here-document.
    pub(super) fn expansions(&mut self, text: &str, depth: usize) -> Read<bool> {
        self.enter(text.len(), depth)?;
        let mut source = Source::new(text, depth, self);
        let is_literal = source.expansions_only()?;
        let raw = source.raw;
        for command in raw {
            self.add(command, depth)?;
        }
        Ok(is_literal)
    }

    /// Counts `bytes` that are read `depth` deep, and refuses where that is too much.
    pub(super) fn enter(&mut self, bytes: usize, depth: usize) -> Read<()> {
        self.read = self.read.saturating_add(bytes);
        if depth > CommandLine::MAX_DEPTH {
            return Err("it nests too deep");
        }
        if self.read > MAX_READ {
            return Err("it holds too many texts in texts");
        }
        Ok(())
    }

    /// Adds a command, and those that it is told to run.
    pub(super) fn add(&mut self, command: Raw, depth: usize) -> Read<()> {
        if self.commands.len() + self.possible.len() > MAX_COMMANDS {
            return Err("it holds too many commands");
        }
        let Raw { assignments, words, redirects, input } = command;
        for CommandAssignment { name, value } in &assignments {
            if is_run(name, value) {
                self.add_unknown(name);
            }
        }
        let simple = SimpleCommand { assignments, words, redirects };
        self.commands.push(simple.clone());
        self.told_to_run(&simple, &input, depth)
    }

    /// Adds a command of which nothing is known.
    pub(super) fn add_unknown(&mut self, written: &str) {
        self.commands.push(SimpleCommand::unknown(written));
    }

    pub(super) fn doubt(&mut self, reason: &'static str) {
        if !self.doubts.contains(&reason) {
            self.doubts.push(reason);
        }
    }
}

/// A simple command as it was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Raw {
    pub(super) assignments: Vec<CommandAssignment>,
    pub(super) words: Vec<CommandWord>,
    pub(super) redirects: Vec<CommandRedirect>,
    pub(super) input: Input,
}

/// What a command reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Input {
    /// Nobody can say.
    #[default]
    Unknown,
    /// A file with a name.
    File,
    /// The here-document that begins at this place, whose body is still to come.
    Body(usize),
    /// This text.
    Text(String),
}

/// A here-document whose body is still to come.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) delimiter: String,
    pub(super) strips_tabs: bool,
    pub(super) expands: bool,
    /// Which command reads it, unless that reads something else by then.
    pub(super) command: usize,
    /// Where it begins.
    pub(super) place: usize,
}

/// A word as it was read.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// Its value, or, where it is dynamic, how it is written.
    pub(super) text: String,
    pub(super) is_dynamic: bool,
    /// Whether nothing in it is quoted, so that it may be a reserved word.
    pub(super) is_plain: bool,
    /// Where an assignment's `=` stands in the text.
    pub(super) equals: Option<usize>,
    /// Whether it begins like an assignment to an element whose `]=` is not in it.
    pub(super) is_cut: bool,
}

impl Word {
    pub(super) fn is(&self, reserved: &str) -> bool {
        self.is_plain && !self.is_dynamic && self.text == reserved
    }
}

impl From<Word> for CommandWord {
    fn from(word: Word) -> Self {
        if word.is_dynamic { Self::Dynamic(word.text) } else { Self::Literal(word.text) }
    }
}

/// A text and how far it was read.
pub(super) struct Source<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) found: &'t mut Found,
    /// Commands whose here-documents may still be to come.
    pub(super) raw: Vec<Raw>,
    pub(super) pending: Vec<Pending>,
    /// How many substitutions are around this.
    pub(super) substitutions: usize,
}

impl<'t> Source<'t> {
    fn new(text: &'t str, depth: usize, found: &'t mut Found) -> Self {
        Self { text, at: 0, depth, found, raw: Vec::new(), pending: Vec::new(), substitutions: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn sees(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads `text` where it is next.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let is_next = self.sees(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Reads what `inner` reads, one level deeper.
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= CommandLine::MAX_DEPTH {
            return Err("it nests too deep");
        }
        self.depth += 1;
        let read = inner(self);
        self.depth -= 1;
        read
    }

    /// Skips blanks and continued lines, and a comment that begins here.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            if self.takes(" ") || self.takes("\t") || self.takes("\\\n") {
                continue;
            }
            break;
        }
        if self.sees("#") {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }
}

//! Programs and builtins that run what they are told in their words.

use super::list::hides_a_command;
use super::options::{Options, options};
use super::source::{Found, Input, Raw, Read};
use super::{CommandAssignment, CommandWord, SimpleCommand};
use crate::policy::command::quoting::is_name;

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"];

/// Programs that run a command which they are given, of which it is not looked at how.
const RUNNERS: [&str; 38] = [
    "at",
    "batch",
    "bwrap",
    "chroot",
    "chrt",
    "dbus-run-session",
    "entr",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "ionice",
    "ltrace",
    "nsenter",
    "parallel",
    "perf",
    "pkexec",
    "proot",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "ssh",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "taskset",
    "tmux",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xterm",
    "xvfb-run",
];

/// Builtins that take the names of variables, in which a command may stand.
const NAMING: [&str; 14] = [
    "declare", "export", "getopts", "let", "local", "printf", "read", "readonly", "test", "typeset", "unset", "wait",
    "[", "[[",
];

impl Found {
    /// Adds the commands that `command` is told to run.
    pub(super) fn told_to_run(&mut self, command: &SimpleCommand, input: &Input, depth: usize) -> Read<()> {
        let Some(name) = command.name() else { return Ok(()) };
        let name = name.rsplit('/').next().unwrap_or(name);
        let words = &command.words[1..];
        match name {
            "eval" => return self.text_of(words, depth),
            "trap" => return self.trapped(words, depth),
            "alias" if words.iter().any(|word| word.literal().is_none_or(|text| text.contains('='))) => {
                self.add_unknown(name);
            }
            "source" | "." if words.first().is_some_and(|file| file.literal().is_none_or(is_descriptor)) => {
                self.add_unknown(name);
            }
            "hash" | "enable" if has_flag(words, "pf") => self.add_unknown(name),
            "bind" | "complete" | "compgen" | "mapfile" | "readarray" if has_flag(words, "CFWx") => {
                self.add_unknown(name);
            }
            "find" => return self.found_files(words, depth),
            _ if SHELLS.contains(&name) => return self.shell(words, input, depth),
            _ if RUNNERS.contains(&name) => return self.runner(words, depth),
            _ => {}
        }
        if NAMING.contains(&name) && words.iter().any(|word| word.literal().is_some_and(hides_a_command)) {
            self.add_unknown(name);
        }
        match options(name) {
            // It only says what it would run.
            Some(_) if name == "command" && words.first().is_some_and(says_only) => Ok(()),
            Some(options) => self.runs(name, &options, command, input, depth),
            None => Ok(()),
        }
    }

    /// Adds the command that a program runs which is known.
    fn runs(
        &mut self,
        name: &str,
        options: &Options,
        command: &SimpleCommand,
        input: &Input,
        depth: usize,
    ) -> Read<()> {
        let words = &command.words[1..];
        let Some(mut at) = options.end(words) else {
            self.add_unknown(name);
            return Ok(());
        };
        let mut assignments = command.assignments.clone();
        if options.assigns {
            let given = words.get(at..).unwrap_or_default().iter().map_while(assignment);
            assignments.extend(given);
            at += assignments.len() - command.assignments.len();
        }
        at += options.operands;
        let mut words = words.get(at..).unwrap_or_default().to_vec();
        if words.is_empty() {
            return Ok(());
        }
        if name == "xargs" {
            given(&mut words, &command.words[1..=at]);
        }
        // What a program reads from its own input it takes from that of the command.
        let input = if name == "xargs" { Input::Unknown } else { input.clone() };
        self.nested(Raw { assignments, words, redirects: Vec::new(), input }, depth)
    }

    fn nested(&mut self, raw: Raw, depth: usize) -> Read<()> {
        // The words are looked at once more.
        self.enter(raw.words.len() * 16, depth + 1)?;
        self.add(raw, depth + 1)
    }

    /// Adds the commands of a text that is put together from words.
    fn text_of(&mut self, words: &[CommandWord], depth: usize) -> Read<()> {
        let words = words.strip_prefix(&[CommandWord::Literal("--".to_owned())]).unwrap_or(words);
        match words.iter().map(CommandWord::literal).collect::<Option<Vec<_>>>() {
            Some(words) => self.script(&words.join(" "), depth + 1),
            None => {
                self.add_unknown("eval");
                Ok(())
            }
        }
    }

    fn trapped(&mut self, words: &[CommandWord], depth: usize) -> Read<()> {
        let words = words.strip_prefix(&[CommandWord::Literal("--".to_owned())]).unwrap_or(words);
        match words.first() {
            Some(CommandWord::Literal(text)) if text.starts_with('-') => Ok(()),
            Some(CommandWord::Literal(text)) => self.script(text, depth + 1),
            Some(CommandWord::Dynamic(written)) => {
                self.add_unknown(written);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Adds what a shell is told with `-c`, or reads from a here-document.
    fn shell(&mut self, words: &[CommandWord], input: &Input, depth: usize) -> Read<()> {
        let mut words = words.iter();
        let (mut has_text, mut reads) = (false, false);
        let operand = loop {
            let Some(word) = words.next() else { break None };
            let Some(text) = word.literal() else { break Some(word) };
            if text == "--" || text == "-" {
                break words.next();
            }
            if let Some(long) = text.strip_prefix("--") {
                if matches!(long, "rcfile" | "init-file") {
                    words.next();
                }
            } else if let Some(letters) = text.strip_prefix(['-', '+']) {
                has_text |= text.starts_with('-') && letters.contains('c');
                reads |= letters.contains('s');
                if letters.contains(['o', 'O']) {
                    words.next();
                }
            } else {
                break Some(word);
            }
        };
        let operand = operand.filter(|operand| has_text || operand.literal().is_none_or(|file| !is_descriptor(file)));
        match (operand, input) {
            (Some(CommandWord::Literal(text)), _) if has_text => self.script(text, depth + 1),
            // A file with a name is a program like any other: what is in it is not looked at.
            (Some(CommandWord::Literal(_)), _) if !reads => Ok(()),
            (None, _) if has_text => Ok(()),
            (_, Input::Text(text)) if reads || operand.is_none() => self.script(text, depth + 1),
            (None, Input::File) => Ok(()),
            _ => {
                self.add_unknown("the commands of a shell");
                Ok(())
            }
        }
    }

    /// Adds what `find` runs for what it finds.
    fn found_files(&mut self, words: &[CommandWord], depth: usize) -> Read<()> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !matches!(word.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
                continue;
            }
            let ends = |word: &&CommandWord| !matches!(word.literal(), Some(";" | "+"));
            let command: Vec<_> = words.by_ref().take_while(ends).map(|word| replaced(word, "{}")).collect();
            if !command.is_empty() {
                self.nested(Raw { words: command, ..Raw::default() }, depth)?;
            }
        }
        Ok(())
    }

    /// Adds what a program may run of which it is not looked at how it takes its words: any of them may be the first of a
    /// command, or the text of one.
    fn runner(&mut self, words: &[CommandWord], depth: usize) -> Read<()> {
        // The first one looks at all ends of the line, those after another one too.
        if self.is_end_of_line {
            return Ok(());
        }
        if words.len() > 256 || self.runners > 2 {
            self.add_unknown("a command in a command");
            return Ok(());
        }
        for (at, word) in words.iter().enumerate() {
            let mut inner = Self { read: self.read, runners: self.runners + 1, ..Self::default() };
            let is_text = |text: &str| text.contains([' ', '\t', '\n', ';', '&', '|', '`', '$', '(']);
            let read = match word.literal() {
                Some(text) if is_text(text) => inner.script(text, depth + 1),
                Some(text) if text.starts_with('-') => continue,
                _ => {
                    inner.is_end_of_line = true;
                    inner.nested(Raw { words: words[at..].to_vec(), ..Raw::default() }, depth)
                }
            };
            self.read = inner.read;
            self.possible.append(&mut inner.commands);
            self.possible.append(&mut inner.possible);
            if self.possible.len() > 10_000 {
                return Err("it holds too many commands");
            }
            if read.is_err() {
                self.possible.push(SimpleCommand::unknown("a text that cannot be taken apart"));
            }
        }
        Ok(())
    }
}

/// Whether `word` makes `command` say what it would run, and run nothing.
fn says_only(word: &CommandWord) -> bool {
    matches!(word.literal(), Some("-v" | "-V"))
}

/// Whether a file may be something that is already open.
fn is_descriptor(file: &str) -> bool {
    let mut parts = file.split('/');
    (file.starts_with('/') || file.contains("..")) && parts.any(|part| matches!(part, "dev" | "proc"))
}

/// Whether one of `words` is an option with one of `letters`, or may become one.
fn has_flag(words: &[CommandWord], letters: &str) -> bool {
    words.iter().any(|word| match word.literal() {
        Some(text) => text.starts_with('-') && text.contains(|letter| letters.contains(letter)),
        None => true,
    })
}

fn assignment(word: &CommandWord) -> Option<CommandAssignment> {
    let (CommandWord::Literal(text) | CommandWord::Dynamic(text)) = word;
    let (name, value) = text.split_once('=').filter(|(name, _)| is_name(name))?;
    let value = value.to_owned();
    let value = match word {
        CommandWord::Literal(_) => CommandWord::Literal(value),
        CommandWord::Dynamic(_) => CommandWord::Dynamic(value),
    };
    Some(CommandAssignment { name: name.to_owned(), value })
}

fn replaced(word: &CommandWord, mark: &str) -> CommandWord {
    match word.literal() {
        Some(text) if text.contains(mark) => CommandWord::Dynamic(text.to_owned()),
        _ => word.clone(),
    }
}

/// Puts what `xargs` reads into the command that it runs, or behind it.
fn given(words: &mut Vec<CommandWord>, options: &[CommandWord]) {
    let mut options = options.iter().filter_map(CommandWord::literal);
    let mut mark = None;
    while let Some(option) = options.next() {
        if let Some(attached) = option.strip_prefix("-I") {
            mark = if attached.is_empty() { options.next() } else { Some(attached) };
        } else if option.contains('I') || option.starts_with("--replace") {
            // Which mark is replaced is not looked at: it may be in any word.
            mark = Some("");
        }
    }
    match mark {
        Some(mark) => words.iter_mut().for_each(|word| *word = replaced(word, mark)),
        None => words.push(CommandWord::Dynamic("...".to_owned())),
    }
}

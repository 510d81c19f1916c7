//! Programs and builtins that run what they are told in their words.

use super::options::{Options, options};
use super::quoting::is_name;
use super::source::{Found, Input, Raw, Read};
use super::variables::written;
use super::{CommandAssignment, CommandWord, SimpleCommand};

const SHELLS: [&str; 12] = ["sh", "bash", "dash", "ash", "hush", "zsh", "ksh", "mksh", "oksh", "posh", "rbash", "yash"];

/// Long options of shells, and how many words they take. Bash takes them after a single dash too.
const LONG: [(&str, usize); 10] = [
    ("login", 0),
    ("noediting", 0),
    ("noprofile", 0),
    ("norc", 0),
    ("posix", 0),
    ("restricted", 0),
    ("verbose", 0),
    ("version", 0),
    ("init-file", 1),
    ("rcfile", 1),
];

/// Programs that run a command which they are given, of which it is not looked at how.
const RUNNERS: [&str; 64] = [
    "at",
    "batch",
    "bwrap",
    "capsh",
    "cgexec",
    "choom",
    "chpst",
    "chroot",
    "chrt",
    "cpulimit",
    "csh",
    "dbus-launch",
    "dbus-run-session",
    "eatmydata",
    "entr",
    "expect",
    "fakeroot",
    "faketime",
    "firejail",
    "fish",
    "gdb",
    "hyperfine",
    "i386",
    "linux32",
    "linux64",
    "ltrace",
    "mosh",
    "newgrp",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "rsh",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "sg",
    "softlimit",
    "ssh",
    "sshpass",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "tcsh",
    "tmux",
    "torsocks",
    "uname26",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "x86_64",
    "xinit",
    "xterm",
    "xvfb-run",
];

/// Those of them that read commands, unless they are given more than so many words that are no options.
const LISTENING: [(&str, usize); 15] = [
    ("at", usize::MAX),
    ("batch", usize::MAX),
    ("chroot", 1),
    ("csh", 0),
    ("fakeroot", 0),
    ("fish", 0),
    ("nsenter", 0),
    ("parallel", 0),
    ("rsh", 1),
    ("runuser", 1),
    ("setarch", 1),
    ("ssh", 1),
    ("su", 1),
    ("tcsh", 0),
    ("unshare", 0),
];

/// Options of `set`, after which a line means something else than what is read here.
const CHANGING: [&str; 2] = ["histexpand", "keyword"];

impl Found {
    /// Adds the commands that `command` is told to run.
    pub(super) fn told_to_run(&mut self, command: &SimpleCommand, input: &Input, depth: usize) -> Read<()> {
        let Some(name) = command.name() else { return Ok(()) };
        // Some file systems take letters of another case for the same.
        let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        let (name, words) = (name.as_str(), &command.words[1..]);
        match name {
            "eval" => return self.text_of(words, depth),
            "trap" => return self.trapped(words, depth),
            "alias" if words.iter().any(|word| word.literal().is_none_or(|text| text.contains('='))) => {
                self.add_unknown(name);
            }
            "source" | "." if words.first().is_some_and(|file| file.literal().is_none_or(is_descriptor)) => {
                self.add_unknown(name);
            }
            "fc" => self.add_unknown(name),
            "hash" | "enable" if has_flag(words, "pf") => self.add_unknown(name),
            "jobs" if has_flag(words, "x") => self.add_unknown(name),
            "set" | "shopt" if changes(words) => self.add_unknown(name),
            "bind" | "complete" | "compgen" | "mapfile" | "readarray" if has_flag(words, "CFWx") => {
                self.add_unknown(name);
            }
            "find" => return self.found_files(words, depth),
            _ if SHELLS.contains(&name) => return self.shell(words, input, depth),
            _ if RUNNERS.contains(&name) || is_loader(name) => return self.runner(name, words, input, depth),
            _ => self.names(name, &command.words),
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
        let Some(first) = words.first() else { return Ok(()) };
        if written(first).starts_with('-') || written(first).contains('=') {
            // It is an option where options go on after an operand, or a variable with a name that no shell can set.
            self.add_unknown(name);
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
            Some(CommandWord::Literal(text)) if matches!(text.as_str(), "-" | "-l" | "-p") => Ok(()),
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
            let Some(letters) = text.strip_prefix(['-', '+']) else { break Some(word) };
            let long = LONG.iter().find(|(long, _)| letters.trim_start_matches('-') == *long);
            let given = match long {
                Some((_, given)) if text.starts_with("--") => *given,
                // What else is long is not known; after a single dash, it may be letters as well.
                _ if long.is_some() || text.starts_with("--") || letters.contains(['H', 'k']) => {
                    return self.shell_unseen();
                }
                _ => letters.matches(['o', 'O']).count(),
            };
            if !text.starts_with("--") {
                has_text |= letters.contains('c');
                reads |= letters.contains('s');
            }
            for word in words.by_ref().take(given) {
                // A file that is run first, or the name of an option.
                if word.literal().is_none_or(|text| is_descriptor(text) || CHANGING.contains(&text)) {
                    return self.shell_unseen();
                }
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
            _ => self.shell_unseen(),
        }
    }

    fn shell_unseen(&mut self) -> Read<()> {
        self.add_unknown("the commands of a shell");
        Ok(())
    }

    /// Adds what `find` runs for what it finds.
    fn found_files(&mut self, words: &[CommandWord], depth: usize) -> Read<()> {
        if words.iter().any(may_be_expression) {
            self.add_unknown("find");
        }
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !matches!(word.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
                continue;
            }
            let mut command: Vec<CommandWord> = Vec::new();
            for word in words.by_ref() {
                let is_after_files = command.last().is_some_and(|last| written(last) == "{}");
                match word.literal() {
                    Some(";") => break,
                    Some("+") if is_after_files => break,
                    _ => command.push(replaced(word, "{}")),
                }
            }
            if !command.is_empty() {
                self.nested(Raw { words: command, ..Raw::default() }, depth)?;
            }
        }
        Ok(())
    }

    /// Adds what a program may run of which it is not looked at how it takes its words: any of them may be the first of a
    /// command, or the text of one, or be followed by one after a `=` or a blank.
    fn runner(&mut self, name: &str, words: &[CommandWord], input: &Input, depth: usize) -> Read<()> {
        self.doubt("a program runs commands, and it is not looked at where they stand");
        // The first one looks at all ends of the line, those after another one too.
        if self.is_end_of_line {
            return Ok(());
        }
        if words.len() > 256 || self.runners > 2 {
            self.add_unknown("a command in a command");
            return Ok(());
        }
        let operands = words.iter().filter(|word| !written(word).starts_with('-')).count();
        match input {
            Input::Text(text) => self.perhaps(|inner| inner.script(text, depth + 1))?,
            Input::File => {}
            _ if LISTENING.iter().any(|(listening, most)| *listening == name && operands <= *most) => {
                self.possible.push(SimpleCommand::unknown("what it reads"));
            }
            _ => {}
        }
        for (at, word) in words.iter().enumerate() {
            let is_text = |text: &str| text.contains([' ', '\t', '\n', ';', '&', '|', '`', '$', '(']);
            let text = word.literal().unwrap_or_default();
            if let Some((_, value)) = text.split_once(['=', ' ']) {
                self.perhaps(|inner| inner.script(value, depth + 1))?;
            }
            if is_text(text) {
                self.perhaps(|inner| inner.script(text, depth + 1))?;
            } else if !text.starts_with('-') {
                self.perhaps(|inner| {
                    inner.is_end_of_line = true;
                    inner.nested(Raw { words: words[at..].to_vec(), ..Raw::default() }, depth)
                })?;
            }
        }
        Ok(())
    }

    /// Adds what `finds` finds to what may be run.
    fn perhaps(&mut self, finds: impl FnOnce(&mut Self) -> Read<()>) -> Read<()> {
        let mut inner = Self { read: self.read, runners: self.runners + 1, ..Self::default() };
        let read = finds(&mut inner);
        self.read = inner.read;
        self.possible.append(&mut inner.commands);
        self.possible.append(&mut inner.possible);
        if self.possible.len() > 10_000 {
            return Err("it holds too many commands");
        }
        if read.is_err() {
            self.possible.push(SimpleCommand::unknown("a text that cannot be taken apart"));
        }
        Ok(())
    }
}

/// Whether it is what starts programs, which can be called like a program itself.
fn is_loader(name: &str) -> bool {
    ["ld-linux", "ld-musl", "ld.so"].iter().any(|loader| name.starts_with(loader))
}

/// Whether `set` is told to read lines in another way.
fn changes(words: &[CommandWord]) -> bool {
    let mut words = words.iter().take_while(|word| word.literal() != Some("--"));
    let is_changing = |word: &CommandWord| word.literal().is_none_or(|text| CHANGING.contains(&text));
    words.any(|word| is_changing(word) || has_flag(std::slice::from_ref(word), "Hk"))
}

/// Whether a word of `find` may become an option that runs something: it is not known, and not just a file by a pattern.
fn may_be_expression(word: &CommandWord) -> bool {
    let text = written(word).trim_start_matches("~/");
    let is_file = text.starts_with(|first: char| first.is_alphanumeric() || "./_".contains(first));
    word.literal().is_none() && (!is_file || text.contains(['$', '`', '{', '<', '>']))
}

/// Whether `word` makes `command` say what it would run, and run nothing.
fn says_only(word: &CommandWord) -> bool {
    matches!(word.literal(), Some("-v" | "-V"))
}

/// Whether a file may be something that is already open.
pub(super) fn is_descriptor(file: &str) -> bool {
    let mut parts = file.split('/');
    let is_elsewhere = file.starts_with('/') || file.contains("..");
    let is_open = |part: &str| matches!(part, "stdin" | "fd") || (is_elsewhere && matches!(part, "dev" | "proc"));
    file != "/dev/null" && parts.any(is_open)
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
        } else if let Some(attached) = option.strip_prefix("--replace") {
            mark = attached.strip_prefix('=').filter(|mark| !mark.is_empty()).or(Some("{}"));
        } else if option.contains('I') {
            // Which mark is replaced is not looked at: it may be in any word.
            mark = Some("");
        }
    }
    match mark {
        Some(mark) => words.iter_mut().for_each(|word| *word = replaced(word, mark)),
        None => words.push(CommandWord::Dynamic("...".to_owned())),
    }
}

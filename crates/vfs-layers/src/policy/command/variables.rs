//! Variables that shells and their builtins set, and those whose values are run.

use super::options::READ;
use super::quoting::is_name;
use super::source::Found;
use super::{CommandAssignment, CommandWord, SimpleCommand};

pub(super) const ARITHMETIC: &str = "arithmetic with variables may run what stands in their values";

/// Variables whose values have commands in them, or are the files that a shell runs first.
const TELLING: [&str; 9] = ["PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3", "PS4", "MAILPATH", "BASH_ENV", "ENV"];

/// Builtins that take the names of variables, in whose indexes a command may stand.
const NAMING: [&str; 16] = [
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
    "[",
    "[[",
];

/// Comparisons of numbers, which may be expressions.
const COMPARING: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Found {
    /// Adds that a variable is set to what is not known. Programs look at those in capitals and at proxies; of others only
    /// rules that deny are told, so that one that allows need not write what every loop goes over.
    pub(super) fn sets(&mut self, name: &str) {
        let name = name.split('[').next().unwrap_or(name);
        if !is_name(name) {
            return;
        }
        let value = CommandWord::Dynamic("...".to_owned());
        if is_run(name, &value) {
            self.add_unknown(name);
        }
        let assignments = vec![CommandAssignment { name: name.to_owned(), value }];
        let command = SimpleCommand { assignments, ..SimpleCommand::default() };
        let is_looked_at = name.contains(|letter: char| letter.is_ascii_uppercase()) || name.ends_with("_proxy");
        let list = if is_looked_at { &mut self.commands } else { &mut self.possible };
        list.push(command);
    }

    /// Adds what a builtin does with the variables that its words name; the first of `words` is the builtin's own.
    pub(super) fn names(&mut self, name: &str, words: &[CommandWord]) {
        // Behind `&&` in `[[` stands what another shell takes for a command, so that the end says what it is.
        let is_double = words.last().and_then(CommandWord::literal) == Some("]]");
        if is_double || matches!(name, "[" | "[[" | "test") {
            self.tested(is_double, words);
        } else if !NAMING.contains(&name) {
            return;
        }
        let words = &words[1..];
        let is_known = match name {
            "read" => self.read(words),
            "printf" => self.printed(words),
            "getopts" => words.first().is_none_or(is_one) && self.set_by(words.get(1..2).unwrap_or_default()),
            "mapfile" | "readarray" => self.set_by(words),
            "wait" => self.waited(words),
            "declare" | "export" | "local" | "readonly" | "typeset" | "unset" => self.declared(words),
            "let" => {
                self.doubt(ARITHMETIC);
                true
            }
            _ => true,
        };
        if !is_known || words.iter().filter_map(CommandWord::literal).any(hides_a_command) {
            self.add_unknown(name);
        }
    }

    /// Adds that what `words` name is set; whether that is all.
    fn set_by(&mut self, words: &[CommandWord]) -> bool {
        words.iter().filter_map(CommandWord::literal).for_each(|name| self.sets(name));
        words.iter().all(|word| word.literal().is_some())
    }

    /// Adds that what stands in one word with an option of this letter is set.
    fn set_by_option(&mut self, letter: char, words: &[CommandWord]) {
        let options = words.iter().filter_map(|word| word.literal()?.strip_prefix('-')?.split_once(letter));
        options.for_each(|(_, name)| self.sets(name));
    }

    fn read(&mut self, words: &[CommandWord]) -> bool {
        let Some((options, names)) = READ.end(words).and_then(|end| words.split_at_checked(end)) else { return false };
        self.set_by_option('a', options);
        self.set_by(names) && options.iter().all(is_one)
    }

    fn printed(&mut self, words: &[CommandWord]) -> bool {
        match words {
            [CommandWord::Literal(option), name, rest @ ..] if option == "-v" => {
                self.set_by(std::slice::from_ref(name)) && self.printed(rest)
            }
            [CommandWord::Literal(option), rest @ ..] if option.starts_with("-v") => {
                self.set_by_option('v', &words[..1]);
                self.printed(rest)
            }
            [format, ..] if may_be_option(format) => {
                self.doubt("a format may be an option that names a variable");
                true
            }
            _ => true,
        }
    }

    fn waited(&mut self, words: &[CommandWord]) -> bool {
        self.set_by_option('p', words);
        let is_known = self.set_by(words) || words.iter().all(|word| word.literal().is_some() || is_number(word));
        let has_name =
            words.iter().filter_map(CommandWord::literal).any(|text| text.starts_with('-') && text.contains('p'));
        if !is_known {
            self.doubt("what is waited for may be an option that names a variable");
        }
        is_known || !has_name
    }

    /// Looks at what is declared or exported; whether all of it has a name that is written out, and is set under no other.
    fn declared(&mut self, words: &[CommandWord]) -> bool {
        for (name, value) in words.iter().filter_map(declaration) {
            if is_run(name, &value) {
                self.add_unknown(name);
            }
        }
        let has_flag = |flag: char| {
            let mut flags = words.iter().filter_map(|word| word.literal()?.strip_prefix('-'));
            flags.any(|flags| flags.contains(flag))
        };
        if has_flag('i') {
            self.doubt(ARITHMETIC);
        }
        !has_flag('n') && words.iter().all(|word| word.literal().is_some() || declaration(word).is_some())
    }

    /// Looks at what a test may take for the name of a variable, or for a number that is an expression.
    fn tested(&mut self, is_double: bool, words: &[CommandWord]) {
        let is_open = |word: &CommandWord| word.literal().is_none() && !is_number(word);
        let may_name = |word: &CommandWord| word.literal().is_none_or(|text| matches!(text, "-v" | "-R"));
        let names = words.windows(2).any(|pair| may_name(&pair[0]) && is_open(&pair[1]));
        let compares = words.iter().filter_map(CommandWord::literal).any(|text| COMPARING.contains(&text));
        // Only `[[` leaves its words as they are.
        let is_split = !is_double && words.iter().any(|word| is_open(word) && !is_one(word));
        if names || is_split || (compares && words.iter().any(is_open)) {
            self.doubt("a test may run what stands in the index of an element");
        }
        if (names || compares) && words.iter().any(|word| is_open(word) && prints_an_index(written(word))) {
            self.add_unknown("a test");
        }
    }
}

/// Whether a variable that is set to `value` has a shell run something.
pub(super) fn is_run(name: &str, value: &CommandWord) -> bool {
    // The body of a function.
    if name.starts_with("BASH_FUNC_") {
        return true;
    }
    let Some(text) = value.literal() else { return TELLING.contains(&name) };
    let has_command = text.contains("$(") || text.contains('`');
    match name {
        "PROMPT_COMMAND" | "BASH_ENV" => !text.is_empty(),
        // Programs call the place so where they run, and that is no path; shells that people type into read it as a file.
        "ENV" => has_command || text.contains(['/', '$']),
        _ => has_command && TELLING.contains(&name),
    }
}

/// The variable and the value of a word that declares one.
pub(super) fn declaration(word: &CommandWord) -> Option<(&str, CommandWord)> {
    let (target, value) = written(word).split_once('=')?;
    let target = target.trim_end_matches('+');
    let name = match target.split_once('[') {
        Some((name, index)) => Some(name).filter(|_| !index.contains(['$', '`'])),
        None => Some(target),
    };
    let value = value.to_owned();
    let value = match word {
        CommandWord::Literal(_) => CommandWord::Literal(value),
        CommandWord::Dynamic(_) => CommandWord::Dynamic(value),
    };
    name.filter(|name| is_name(name)).map(|name| (name, value))
}

/// Whether `text`, as the name of an element of an array, has a command in it.
pub(super) fn hides_a_command(text: &str) -> bool {
    index(text).is_some_and(|index| index.contains("$(") || index.contains('`') || index.contains("${"))
}

/// Whether `text`, which is expanded once before it is the name of an element, has a command in it after that.
pub(super) fn keeps_a_command(text: &str) -> bool {
    index(text).is_some_and(|index| {
        index.contains("\\$(") || index.contains("\\`") || (index.contains('\'') && hides_a_command(text))
    })
}

/// Whether the index of an element in `text` is what a command prints: that is expanded once more.
pub(super) fn prints_an_index(text: &str) -> bool {
    let prints = |index: &str| index.match_indices("$(").any(|(at, _)| !index[at..].starts_with("$(("));
    index(text).is_some_and(|index| index.contains('`') || prints(index))
}

/// What follows the first `[` that may begin an index, which is one behind a name.
fn index(text: &str) -> Option<&str> {
    let ends_name = |before: &str| before.ends_with(|last: char| last == '_' || last.is_ascii_alphanumeric());
    let (at, _) = text.match_indices('[').find(|(at, _)| ends_name(&text[..*at]))?;
    Some(&text[at + 1..])
}

/// What a word is, or how it is written.
pub(super) fn written(word: &CommandWord) -> &str {
    let (CommandWord::Literal(text) | CommandWord::Dynamic(text)) = word;
    text
}

/// Whether it stays one word: it is known, or in double quotes and no list.
fn is_one(word: &CommandWord) -> bool {
    let quoted = written(word).strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    word.literal().is_some() || quoted.is_some_and(|text| !text.contains(['"', '@']))
}

/// Whether it becomes a number, whatever happens.
fn is_number(word: &CommandWord) -> bool {
    matches!(written(word).trim_matches('"'), "$#" | "$?" | "$$" | "$!") && word.literal().is_none()
}

/// Whether it is not known, and may begin with a dash.
fn may_be_option(word: &CommandWord) -> bool {
    let begins_plainly =
        |text: &str| text.starts_with(|first: char| first.is_alphanumeric() || "%/._:".contains(first));
    word.literal().is_none() && !begins_plainly(written(word).trim_start_matches('"'))
}

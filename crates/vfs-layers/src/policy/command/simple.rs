//! Simple commands: assignments, words, redirections.

use super::quoting::{is_meta, is_name};
use super::source::{Input, Pending, Raw, Read, Source, Word};
use super::{CommandAssignment, CommandRedirect, CommandWord};

/// Redirections, longer ones before what they begin with.
const OPERATORS: [&str; 13] = ["&>>", "<<<", "<<-", "&>", ">>", ">|", ">&", "<<", "<&", "<>", ">", "<", ""];

const SPLIT: &str = "a redirection stands on two lines";

/// Words that begin a construct, where they are not behind a redirection or an assignment.
const RESERVED: [&str; 12] =
    ["!", "{", "time", "if", "while", "until", "for", "select", "case", "function", "coproc", "in"];

/// Variables that say what is run, and when.
const TELLING: [&str; 7] = ["PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "BASH_ENV", "ENV"];

impl Source<'_> {
    /// Reads a simple command, which begins at `begun`, and of which the first word may have been read already.
    pub(super) fn simple(&mut self, begun: usize, first: Option<Word>) -> Read<()> {
        let mut raw = Raw::default();
        let index = self.raw.len();
        // Its place is kept, for those that stand in it come first.
        self.raw.push(Raw::default());
        let mut waiting = Vec::new();
        // To a shell that does not know `&>`, it ends a command, and what follows is another.
        let mut others: Vec<Raw> = Vec::new();
        let mut next = first;
        if next.is_some() && self.is_split_descriptor(begun) {
            return Err(SPLIT);
        }
        loop {
            let start = self.at;
            let word = match next.take() {
                Some(word) => word,
                None => {
                    self.skip_blanks();
                    if self.begins_redirect() {
                        let redirect = self.redirect(index, &mut waiting)?;
                        if redirect.operator.starts_with('&') {
                            others.push(Raw::default());
                        }
                        raw.input = input_of(&redirect, raw.input);
                        raw.redirects.push(redirect);
                        self.refuse_lines(start, &waiting)?;
                        continue;
                    }
                    let word = self.word()?;
                    self.refuse_lines(start, &waiting)?;
                    match word {
                        Some(_) if self.is_split_descriptor(start) => return Err(SPLIT),
                        Some(word) => word,
                        None if self.sees("(") => return Err("a parenthesis stands where it does not belong"),
                        None => break,
                    }
                }
            };
            if let Some(other) = others.last_mut() {
                self.take_word(other, word.clone())?;
            }
            self.take_word(&mut raw, word)?;
        }
        if raw.words.is_empty() && raw.assignments.is_empty() && raw.redirects.is_empty() {
            return Err("there is something that does not belong there");
        }
        self.raw[index] = raw;
        self.pending.append(&mut waiting);
        self.raw.extend(others.into_iter().filter(|other| !other.words.is_empty() || !other.assignments.is_empty()));
        Ok(())
    }

    /// Refuses a word of several lines after the beginning of a here-document: where that goes on, shells do not agree.
    fn refuse_lines(&self, start: usize, waiting: &[Pending]) -> Read<()> {
        if waiting.is_empty() || !self.text[start..self.at].contains('\n') {
            return Ok(());
        }
        Err("shells do not agree about a here-document before lines in a word")
    }

    fn take_word(&mut self, raw: &mut Raw, word: Word) -> Read<()> {
        if raw.words.is_empty() {
            // `time` with options of its own is a program.
            let is_program = word.is("time") && raw.redirects.is_empty() && raw.assignments.is_empty();
            if RESERVED.iter().any(|reserved| word.is(reserved)) && !is_program {
                return Err("shells do not agree about a reserved word after something else");
            }
            if let Some(equals) = word.equals {
                raw.assignments.push(self.assignment(&word, equals)?);
                return Ok(());
            }
            if word.is_cut {
                return Err("an assignment to an element is not taken apart");
            }
        }
        if self.sees("(") {
            // `declare a=(...)` and the like; what else a parenthesis does in a word, shells do not agree about.
            let equals = word.equals.filter(|_| word.text.ends_with('='));
            let equals = equals.ok_or("a parenthesis stands where it does not belong")?;
            raw.assignments.push(self.assignment(&word, equals)?);
            raw.words.push(CommandWord::Dynamic(word.text));
            return Ok(());
        }
        raw.words.push(word.into());
        Ok(())
    }

    pub(super) fn assignment(&mut self, word: &Word, equals: usize) -> Read<CommandAssignment> {
        let (target, value) = (&word.text[..equals], &word.text[equals + 1..]);
        let target = target.trim_end_matches('+');
        let (name, element) = target.split_once('[').map_or((target, None), |(name, rest)| (name, Some(rest)));
        if element.is_some() {
            self.found.doubt("the index of an element may run a command");
        }
        self.suspect(word);
        let mut value = match word.is_dynamic {
            true => CommandWord::Dynamic(value.to_owned()),
            false => CommandWord::Literal(value.to_owned()),
        };
        if self.takes("(") {
            self.elements()?;
            value = CommandWord::Dynamic("(...)".to_owned());
        }
        self.told(name, &value);
        Ok(CommandAssignment { name: name.to_owned(), value })
    }

    /// Takes note of a variable whose value is run.
    fn told(&mut self, name: &str, value: &CommandWord) {
        let hides = |text: &str| name == "PROMPT_COMMAND" || text.contains("$(") || text.contains('`');
        if TELLING.contains(&name) && value.literal().is_none_or(hides) {
            self.found.add_unknown(name);
        }
    }

    /// Reads the elements of `(...)` after its parenthesis.
    fn elements(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            if self.takes(")") {
                return Ok(());
            }
            if self.takes("\n") {
                continue;
            }
            let word = self.word()?.ok_or("a list of elements is not closed")?;
            self.suspect(&word);
        }
    }

    /// Reads redirections and nothing else: what may follow a construct.
    pub(super) fn redirects_only(&mut self) -> Read<()> {
        let mut waiting = Vec::new();
        loop {
            self.skip_blanks();
            if !self.begins_redirect() {
                break;
            }
            // Who in the construct reads a here-document is not looked at.
            let redirect = self.redirect(usize::MAX, &mut waiting)?;
            if redirect.operator.starts_with('&') {
                return Err("shells do not agree about '&>' after a construct");
            }
        }
        if self.peek().is_some_and(|next| !is_meta(next)) {
            let at = self.at;
            // The words that close a construct around this one may follow at once.
            let word = self.word()?;
            if !word.is_some_and(|word| word.is_plain && !word.is_dynamic && is_closing(&word.text)) {
                return Err("there is something after a construct that does not belong there");
            }
            self.at = at;
        }
        if !waiting.is_empty() {
            self.found.doubt("a here-document is read by a construct");
            self.pending.append(&mut waiting);
        }
        Ok(())
    }

    /// Whether a redirection is next, with or without a number or a name.
    pub(super) fn begins_redirect(&self) -> bool {
        let rest = self.rest();
        let digits = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
        let named = self.named_descriptor();
        let rest = &rest[digits.max(named)..];
        let is_substitution = digits == 0 && (rest.starts_with("<(") || rest.starts_with(">("));
        !is_substitution && (rest.starts_with(['<', '>']) || (digits == 0 && named == 0 && rest.starts_with("&>")))
    }

    /// Whether what was read since `start` may be the descriptor of a redirection that stands on two lines.
    fn is_split_descriptor(&self, start: usize) -> bool {
        self.rest().starts_with(['<', '>']) && self.text[start..self.at].contains("\\\n")
    }

    /// How long a `{name}` is that stands before a redirection.
    fn named_descriptor(&self) -> usize {
        let Some(rest) = self.rest().strip_prefix('{') else { return 0 };
        let name = rest.find(|next: char| next != '_' && !next.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let is_named = is_name(&rest[..name]) && (rest[name..].starts_with("}<") || rest[name..].starts_with("}>"));
        if is_named { name + 2 } else { 0 }
    }

    fn redirect(&mut self, command: usize, waiting: &mut Vec<Pending>) -> Read<CommandRedirect> {
        let named = self.named_descriptor();
        self.at += named;
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
        }
        let operator = OPERATORS.into_iter().find(|operator| self.takes(operator)).unwrap_or_default();
        self.skip_blanks();
        let start = self.at;
        let word = self.word()?.ok_or("a redirection has no target")?;
        if operator == "<<" || operator == "<<-" {
            let written = &self.text[start..self.at];
            let (expands, strips_tabs) = (word.is_plain, operator == "<<-");
            if written.contains(['$', '`', '(', '\n']) || (word.is_dynamic && !expands) {
                return Err("the end of a here-document is not known");
            }
            let delimiter = word.text.clone();
            waiting.push(Pending { delimiter, strips_tabs, expands, command });
        }
        Ok(CommandRedirect { operator, target: word.into() })
    }
}

fn is_closing(word: &str) -> bool {
    ["then", "do", "done", "fi", "elif", "else", "esac", "}"].contains(&word)
}

/// What a command reads that has `redirect`, after what it read before.
fn input_of(redirect: &CommandRedirect, before: Input) -> Input {
    match (redirect.operator, &redirect.target) {
        ("<", CommandWord::Literal(_)) => Input::File,
        ("<<<", CommandWord::Literal(text)) => Input::Text(text.clone()),
        ("<" | "<<<" | "<&" | "<>" | "<<" | "<<-", _) => Input::Unknown,
        _ => before,
    }
}

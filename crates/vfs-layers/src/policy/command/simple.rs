//! Simple commands: assignments, words, redirections.

use super::programs::is_descriptor;
use super::quoting::{is_meta, is_name};
use super::source::{Input, Pending, Raw, Read, Source, Word};
use super::variables::prints_an_index;
use super::{CommandAssignment, CommandRedirect, CommandWord};

/// Redirections, longer ones before what they begin with.
const OPERATORS: [&str; 13] = ["&>>", "<<<", "<<-", "&>", ">>", ">|", ">&", "<<", "<&", "<>", ">", "<", ""];

const SPLIT: &str = "a redirection stands on two lines";

const SEVERAL: &str = "shells do not agree about '&>' beside a descriptor of more than a digit";

/// Words that begin a construct, where they are not behind a redirection or an assignment.
const RESERVED: [&str; 12] =
    ["!", "{", "time", "if", "while", "until", "for", "select", "case", "function", "coproc", "in"];

impl<'t> Source<'t> {
    /// Reads a simple command, which begins at `begun`, and of which the first word may have been read already.
    pub(super) fn simple(&mut self, begun: usize, first: Option<Word>) -> Read<()> {
        let mut raw = Raw::default();
        let index = self.raw.len();
        // Its place is kept, for those that stand in it come first.
        self.raw.push(Raw::default());
        let mut waiting = Vec::new();
        // To a shell that does not know `&>`, it ends a command, and what follows is another. One that does not know `{name}`
        // or descriptors of several digits takes them for words.
        let mut others: Vec<Raw> = Vec::new();
        let mut has_word = false;
        let mut next = first;
        if next.is_some() {
            self.refuse_odd_descriptor(begun)?;
        }
        loop {
            let start = self.at;
            let word = match next.take() {
                Some(word) => word,
                None => {
                    self.skip_blanks();
                    if self.begins_redirect() {
                        let descriptor = self.descriptor();
                        let place = self.at;
                        if descriptor.len() > 1 {
                            if others.is_empty() {
                                others.push(Raw { input: Input::Unknown, ..raw.clone() });
                            } else if !has_word {
                                return Err(SEVERAL);
                            }
                            has_word = true;
                            let word = CommandWord::Literal(descriptor.to_owned());
                            others.iter_mut().for_each(|other| other.words.push(word.clone()));
                        }
                        let redirect = self.redirect(index, &mut waiting)?;
                        if redirect.operator.starts_with('&') {
                            if has_word {
                                return Err(SEVERAL);
                            }
                            others.push(Raw::default());
                        }
                        raw.input = input_of(&redirect, descriptor, place, raw.input);
                        raw.redirects.push(redirect);
                        self.refuse_lines(start, &waiting)?;
                        continue;
                    }
                    let word = self.word()?;
                    self.refuse_lines(start, &waiting)?;
                    match word {
                        Some(word) => {
                            self.refuse_odd_descriptor(start)?;
                            word
                        }
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
        if prints_an_index(&word.text[..equals]) {
            self.found.add_unknown("the index of an element");
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
        Ok(CommandAssignment { name: name.to_owned(), value })
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
            self.descriptor();
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

    /// Refuses a word since `start` that is the descriptor of a redirection after it: on two lines, or an element.
    fn refuse_odd_descriptor(&self, start: usize) -> Read<()> {
        let word = self.text[start..self.at].trim_start();
        if !self.rest().starts_with(['<', '>']) {
            Ok(())
        } else if word.contains("\\\n") {
            Err(SPLIT)
        } else if word.starts_with('{') && word.ends_with("]}") {
            Err("shells do not agree about an element before a redirection")
        } else {
            Ok(())
        }
    }

    /// How long a `{name}` is that stands before a redirection.
    fn named_descriptor(&self) -> usize {
        let Some(rest) = self.rest().strip_prefix('{') else { return 0 };
        let name = rest.find(|next: char| next != '_' && !next.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let is_named = is_name(&rest[..name]) && (rest[name..].starts_with("}<") || rest[name..].starts_with("}>"));
        if is_named { name + 2 } else { 0 }
    }

    /// Reads the number or the `{name}` of a redirection, where it has one.
    fn descriptor(&mut self) -> &'t str {
        let rest = self.rest();
        let named = self.named_descriptor();
        if named > 0 {
            self.found.sets(&rest[1..named - 1]);
        }
        let digits = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
        self.at += named.max(digits);
        &rest[..named.max(digits)]
    }

    /// Reads a redirection after its descriptor.
    fn redirect(&mut self, command: usize, waiting: &mut Vec<Pending>) -> Read<CommandRedirect> {
        let place = self.at;
        let operator = OPERATORS.into_iter().find(|operator| self.takes(operator)).unwrap_or_default();
        if self.sees("\\\n") {
            return Err(SPLIT);
        }
        self.skip_blanks();
        let start = self.at;
        let word = self.word()?.ok_or("a redirection has no target")?;
        if operator == "<<<" {
            self.suspect(&word);
        }
        if operator == "<<" || operator == "<<-" {
            let written = &self.text[start..self.at];
            let (expands, strips_tabs) = (word.is_plain, operator == "<<-");
            if written.contains(['$', '`', '(', '\n']) || (word.is_dynamic && !expands) {
                return Err("the end of a here-document is not known");
            }
            let delimiter = word.text.clone();
            waiting.push(Pending { delimiter, strips_tabs, expands, command, place });
        }
        Ok(CommandRedirect { operator, target: word.into() })
    }
}

fn is_closing(word: &str) -> bool {
    ["then", "do", "done", "fi", "elif", "else", "esac", "}"].contains(&word)
}

/// What a command reads that has `redirect` for `descriptor` at `place`, after what it read before.
fn input_of(redirect: &CommandRedirect, descriptor: &str, place: usize, before: Input) -> Input {
    let is_input = match descriptor {
        "" => redirect.operator.starts_with('<'),
        number => number.bytes().all(|digit| digit == b'0'),
    };
    match (redirect.operator, &redirect.target) {
        _ if !is_input => before,
        ("<", CommandWord::Literal(file)) if !is_descriptor(file) => Input::File,
        ("<<<", CommandWord::Literal(text)) => Input::Text(text.clone()),
        ("<<" | "<<-", _) => Input::Body(place),
        _ => Input::Unknown,
    }
}

//! Lists of commands, and the constructs that hold lists.

use super::CommandWord;
use super::expansion::is_odd_arithmetic;
use super::source::{Input, Raw, Read, Source, Word};
use super::variables::{hides_a_command, keeps_a_command, prints_an_index};

/// What ends a list, beside the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Parenthesis,
    /// One of these reserved words.
    Words(&'static [&'static str]),
    /// What ends a clause of a `case`.
    Clause,
}

/// Reserved words that only end or go on with something.
const CLOSING: [&str; 8] = ["then", "do", "done", "fi", "elif", "else", "esac", "}"];

impl Source<'_> {
    pub(super) fn whole_script(&mut self) -> Read<()> {
        self.list(End::Text)?;
        self.bodies()
    }

    pub(super) fn list_until_parenthesis(&mut self) -> Read<()> {
        self.list(End::Parenthesis).map(drop)
    }

    /// Reads a list; which word ended it.
    fn list(&mut self, end: End) -> Read<&'static str> {
        loop {
            self.skip_blanks();
            let Some(next) = self.peek() else {
                return if end == End::Text { Ok("") } else { Err("something is not closed") };
            };
            match next {
                '\n' => {
                    self.at += 1;
                    self.bodies()?;
                }
                ';' if self.sees(";;") || self.sees(";&") => {
                    return if end == End::Clause { Ok("") } else { Err("there is a ';;' outside of a case") };
                }
                '&' if self.is_split_operator() => return Err("an operator stands on two lines"),
                ';' | '&' | '|' if !self.sees("&>") => self.at += 1,
                ')' if end == End::Parenthesis => {
                    self.at += 1;
                    return Ok("");
                }
                ')' => return Err("there is a parenthesis that closes nothing"),
                _ => {
                    if let Some(word) = self.command(end)? {
                        return Ok(word);
                    }
                }
            }
        }
    }

    /// Whether `&>` is next, on two lines.
    fn is_split_operator(&self) -> bool {
        self.rest().strip_prefix("&\\\n").is_some_and(|rest| rest.trim_start_matches("\\\n").starts_with('>'))
    }

    /// Reads one command; or, where a reserved word ends the list, which one.
    fn command(&mut self, end: End) -> Read<Option<&'static str>> {
        if self.sees("(") {
            self.subshell()?;
            return self.redirects_only().map(|()| None);
        }
        let start = self.at;
        let word = if self.begins_redirect() { None } else { self.word()? };
        let Some(word) = word else { return self.simple(start, None).map(|()| None) };
        if word.is_plain && !word.is_dynamic {
            let words: &'static [&'static str] = match end {
                End::Words(words) => words,
                End::Clause => &["esac"],
                _ => &[],
            };
            if let Some(ending) = words.iter().find(|ending| word.is(ending)) {
                return Ok(Some(ending));
            }
            if CLOSING.contains(&word.text.as_str()) {
                return Err("a reserved word stands where it does not belong");
            }
            if self.construct(&word)? {
                return Ok(None);
            }
        }
        if word.equals.is_none() && self.is_function()? {
            return self.deeper(Self::body).map(|()| None);
        }
        self.simple(start, Some(word)).map(|()| None)
    }

    /// Reads a subshell. Two parentheses are arithmetic to some shells, and a subshell in a subshell to others.
    pub(super) fn subshell(&mut self) -> Read<()> {
        let start = self.at;
        self.at += 1;
        self.deeper(Self::until_parenthesis)?;
        let text = &self.text[start..self.at];
        if is_odd_arithmetic(text) {
            return Err("shells do not agree about what is quoted in ((...))");
        }
        if text.starts_with("((") && prints_an_index(text) {
            self.found.add_unknown("the index of an element");
        }
        Ok(())
    }

    /// Reads what begins with the reserved word `word`; whether it is one. `[[` is none here: to a shell that does not know
    /// it, it is a command like any other, and what comes after `||` or in parentheses another.
    fn construct(&mut self, word: &Word) -> Read<bool> {
        match word.text.as_str() {
            "!" if self.sees("(") => return Err("shells do not agree about '!('"),
            "!" => return Ok(true),
            "{" => self.deeper(|source| source.list(End::Words(&["}"])))?,
            "if" => self.deeper(Self::condition)?,
            "while" | "until" => self.deeper(|source| {
                source.list(End::Words(&["do"]))?;
                source.list(End::Words(&["done"]))
            })?,
            "for" | "select" => self.deeper(Self::repeated)?,
            "case" => self.deeper(Self::case)?,
            "function" => return self.named_function().map(|()| true),
            "coproc" => return self.coprocess().map(|()| true),
            "time" => return self.timed(),
            _ => return Ok(false),
        };
        self.redirects_only()?;
        Ok(true)
    }

    fn condition(&mut self) -> Read<&'static str> {
        self.list(End::Words(&["then"]))?;
        loop {
            match self.list(End::Words(&["elif", "else", "fi"]))? {
                "elif" => drop(self.list(End::Words(&["then"]))?),
                "else" => return self.list(End::Words(&["fi"])),
                ending => return Ok(ending),
            }
        }
    }

    /// Reads what is timed, up to the command; false where `time` is a program with options of its own.
    fn timed(&mut self) -> Read<bool> {
        let at = self.at;
        loop {
            self.skip_blanks();
            if !self.sees("-") {
                self.part(Raw { words: vec![CommandWord::Literal("time".to_owned())], ..Raw::default() });
                return Ok(true);
            }
            if !self.word()?.is_some_and(|word| word.is("-p") || word.is("--")) {
                self.at = at;
                return Ok(false);
            }
        }
    }

    /// Reads a `for` or `select` after that word.
    fn repeated(&mut self) -> Read<&'static str> {
        self.skip_blanks();
        if self.takes("((") {
            self.loop_arithmetic()?;
        } else {
            let variable = self.word()?.ok_or("a loop has no variable")?;
            if variable.is_dynamic {
                return Err("the variable of a loop is not known");
            }
            self.found.sets(&variable.text);
            self.skip_lines()?;
            let at = self.at;
            if self.word()?.is_some_and(|word| word.is("in")) {
                self.values()?;
            } else {
                self.at = at;
            }
        }
        self.skip_separators()?;
        match self.word()? {
            Some(word) if word.is("do") => self.list(End::Words(&["done"])),
            Some(word) if word.is("{") => self.list(End::Words(&["}"])),
            _ => Err("a loop has no body"),
        }
    }

    /// Reads the values of a loop up to the end of the line.
    fn values(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            match self.word()? {
                Some(word) => self.suspect(&word),
                None if matches!(self.peek(), Some(';' | '\n')) => return Ok(()),
                None => return Err("there is something in the values of a loop that does not belong there"),
            }
        }
    }

    /// Reads the three parts of `for ((a; b; c))`.
    fn loop_arithmetic(&mut self) -> Read<()> {
        let end = self.rest().find("))").ok_or("arithmetic is not closed")?;
        let parts = &self.rest()[..end];
        if parts.contains(['$', '`', '\'', '"', '\\', '#', '\n', '(', ')']) {
            return Err("there is something in the arithmetic of a loop that is not taken apart");
        }
        if parts.contains(|next: char| next == '_' || next.is_alphabetic()) {
            self.found.doubt("arithmetic with variables may run what stands in their values");
        }
        self.at += end + 2;
        Ok(())
    }

    fn case(&mut self) -> Read<&'static str> {
        self.skip_blanks();
        self.word()?.ok_or("a case has no word")?;
        self.skip_lines()?;
        if !self.word()?.is_some_and(|word| word.is("in")) {
            return Err("a case has no 'in'");
        }
        loop {
            self.skip_lines()?;
            let at = self.at;
            let has_parenthesis = self.takes("(");
            self.skip_blanks();
            let word = self.word()?.ok_or("a case has a clause without a pattern")?;
            if word.is("esac") && !has_parenthesis {
                return Ok("esac");
            }
            self.patterns()?;
            if self.list(End::Clause)? == "esac" {
                return Ok("esac");
            }
            let is_separated = [";;&", ";;", ";&"].iter().any(|separator| self.takes(separator));
            if !is_separated || self.at == at {
                return Err("a case has a clause that does not end");
            }
        }
    }

    /// Reads the rest of the patterns of a clause.
    fn patterns(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            if self.takes(")") {
                return Ok(());
            }
            if !self.takes("|") {
                return Err("a case has a pattern that does not end");
            }
            self.skip_blanks();
            self.word()?.ok_or("a case has an empty pattern")?;
        }
    }

    fn part(&mut self, part: Raw) {
        if !part.words.is_empty() || !part.assignments.is_empty() {
            self.raw.push(part);
        }
    }

    /// Whether what is next makes a function of the word before.
    fn is_function(&mut self) -> Read<bool> {
        let at = self.at;
        self.skip_blanks();
        if !self.takes("(") {
            self.at = at;
            return Ok(false);
        }
        self.skip_blanks();
        if self.takes(")") { Ok(true) } else { Err("a parenthesis stands where it does not belong") }
    }

    fn named_function(&mut self) -> Read<()> {
        self.skip_blanks();
        self.word()?.ok_or("a function has no name")?;
        self.is_function()?;
        self.deeper(Self::body)
    }

    /// Reads the body of a function.
    fn body(&mut self) -> Read<()> {
        self.skip_lines()?;
        if !self.begins_construct() {
            return Err("shells do not agree about a function without braces");
        }
        self.command(End::Text).map(drop)
    }

    /// Reads what is run beside, which may have a name before it.
    fn coprocess(&mut self) -> Read<()> {
        self.skip_blanks();
        let at = self.at;
        if !self.begins_construct() {
            let name = self.word()?;
            self.skip_blanks();
            match name {
                // What is a name to one shell is a command to another.
                Some(name) if self.begins_construct() => {
                    self.found.sets(&name.text);
                    self.part(Raw { words: vec![name.into()], ..Raw::default() });
                }
                _ => self.at = at,
            }
        }
        self.deeper(|source| source.command(End::Text)).map(drop)
    }

    /// Whether a construct, and not a simple command, is next.
    fn begins_construct(&self) -> bool {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let end = rest.find(|next: char| next.is_whitespace() || ";&|()<>".contains(next)).unwrap_or(rest.len());
        rest.starts_with('(') || ["{", "if", "while", "until", "for", "select", "case"].contains(&&rest[..end])
    }

    /// Skips blanks, comments and ends of lines.
    fn skip_lines(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            if !self.takes("\n") {
                return Ok(());
            }
            self.bodies()?;
        }
    }

    fn skip_separators(&mut self) -> Read<()> {
        self.skip_lines()?;
        if self.sees(";") && !self.sees(";;") {
            self.at += 1;
        }
        self.skip_lines()
    }

    /// Reads the bodies of the here-documents that are to come: a line has ended.
    pub(super) fn bodies(&mut self) -> Read<()> {
        for pending in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                if self.rest().is_empty() {
                    break;
                }
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                self.at += line.len();
                let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
                if line.trim_end_matches('\n') == pending.delimiter {
                    break;
                }
                // Bash ends it there, for the sake of old scripts, and goes on behind the delimiter.
                if self.substitutions > 0 && line.starts_with(&pending.delimiter) && line.contains(')') {
                    return Err("shells do not agree about where a here-document in a substitution ends");
                }
                body.push_str(line);
            }
            if pending.expands && body.contains("\\\n") {
                return Err("shells do not agree about a continued line in a here-document");
            }
            let is_literal = !pending.expands || self.found.expansions(&body, self.depth + 1)?;
            let reader = self.raw.get_mut(pending.command).filter(|raw| raw.input == Input::Body(pending.place));
            if let Some(raw) = reader.filter(|_| is_literal) {
                raw.input = Input::Text(body);
            }
        }
        Ok(())
    }

    /// A word whose value runs what is in it where it is used as a number.
    pub(super) fn suspect(&mut self, word: &Word) {
        let hides = if word.is_dynamic { keeps_a_command } else { hides_a_command };
        if hides(&word.text) {
            self.found.add_unknown(&word.text);
        }
    }
}

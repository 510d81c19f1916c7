//! Expansions, and the commands in them.

use super::quoting::is_name;
use super::source::{Read, Source};
use super::variables::{ARITHMETIC, keeps_a_command, prints_an_index};

impl Source<'_> {
    /// Reads what begins with a dollar; whether it is an expansion, and not just a dollar.
    pub(super) fn dollar(&mut self) -> Read<bool> {
        self.at += 1;
        if self.sees("\\\n") {
            return Err("a dollar is continued on the next line");
        }
        if self.sees("((") && self.is_arithmetic() {
            self.at += 2;
            self.deeper(Self::arithmetic)?;
            return Ok(true);
        }
        if self.sees("(") {
            let start = self.at;
            self.at += 1;
            self.deeper(Self::substituted)?;
            if is_odd_arithmetic(&self.text[start..self.at]) {
                return Err("shells do not agree about what is quoted in $((...))");
            }
            return Ok(true);
        }
        if self.takes("{") {
            self.deeper(Self::braced)?;
            return Ok(true);
        }
        if self.sees("[") {
            return Err("shells do not agree about $[");
        }
        let rest = self.rest();
        let name = rest.find(|next: char| next != '_' && !next.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if is_name(&rest[..name]) {
            self.at += name;
            return Ok(true);
        }
        let is_special = rest.starts_with(|next: char| "@*#?-$!".contains(next) || next.is_ascii_digit());
        self.at += usize::from(is_special);
        Ok(is_special)
    }

    /// Whether the parenthesis after the one that is next closes right before another: then it is arithmetic, and a
    /// command otherwise.
    fn is_arithmetic(&self) -> bool {
        let mut open = 0_usize;
        let inner = &self.rest()[1..];
        for (at, next) in inner.char_indices() {
            match next {
                '(' => open += 1,
                ')' if open == 1 => return inner[at + 1..].starts_with(')'),
                ')' => open -= 1,
                _ => {}
            }
        }
        false
    }

    /// Reads arithmetic up to its two parentheses.
    pub(super) fn arithmetic(&mut self) -> Read<()> {
        let (start, mut open) = (self.at, 0_usize);
        loop {
            match self.peek().ok_or("arithmetic is not closed")? {
                ')' if open == 0 => {
                    if prints_an_index(&self.text[start..self.at]) {
                        self.found.add_unknown("the index of an element");
                    }
                    return if self.takes("))") { Ok(()) } else { Err("arithmetic is not closed") };
                }
                ')' => {
                    open -= 1;
                    self.at += 1;
                }
                '(' => {
                    open += 1;
                    self.at += 1;
                }
                '$' => {
                    self.found.doubt(ARITHMETIC);
                    self.dollar()?;
                }
                '`' => {
                    self.found.doubt(ARITHMETIC);
                    self.backquoted(false)?;
                }
                '\'' | '"' | '\\' | '#' | ';' | '\n' => {
                    return Err("there is something in arithmetic that does not belong there");
                }
                next => {
                    if next == '_' || next.is_alphabetic() {
                        self.found.doubt(ARITHMETIC);
                    }
                    self.at += next.len_utf8();
                }
            }
        }
    }

    /// Reads `${...}` after its brace.
    fn braced(&mut self) -> Read<()> {
        match self.peek() {
            Some(' ' | '\t' | '\n' | '|' | '(') => return Err("shells do not agree about a command in ${...}"),
            Some('!') => self.found.doubt("a variable that is named by another may name a command"),
            _ => {}
        }
        let start = self.at;
        loop {
            match self.peek().ok_or("an expansion is not closed")? {
                '}' => {
                    let inner = &self.text[start..self.at];
                    self.at += 1;
                    self.assigned(inner);
                    if inner.ends_with("@P") {
                        self.found.add_unknown("${...@P}");
                    }
                    if inner.contains('[')
                        || inner.split_once(':').is_some_and(|(_, rest)| !rest.starts_with(['-', '=', '?', '+']))
                    {
                        self.found.doubt(ARITHMETIC);
                    }
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    if self.next() == Some('}') {
                        return Err("shells do not agree about an escaped brace in ${...}");
                    }
                }
                '\'' => return Err("shells do not agree about single quotes in ${...}"),
                '"' => self.quoted_in_braces()?,
                '$' => drop(self.dollar()?),
                '`' => self.backquoted(false)?,
                '<' | '>' if self.rest()[1..].starts_with('(') => {
                    return Err("shells do not agree about a process substitution in ${...}");
                }
                other => self.at += other.len_utf8(),
            }
        }
    }

    /// Takes note of a variable that `inner`, which stands in `${...}`, sets, and of a command that it hides.
    fn assigned(&mut self, inner: &str) {
        let target = inner.strip_prefix('!').unwrap_or(inner);
        let end = target.find(|next: char| next != '_' && !next.is_ascii_alphanumeric()).unwrap_or(target.len());
        let (name, rest) = target.split_at(end);
        let is_element = rest.starts_with('[');
        // Where the index of an element ends is not looked at.
        let is_set = rest.starts_with('=') || rest.starts_with(":=") || (is_element && rest.contains('='));
        if is_set && inner.starts_with('!') {
            self.found.add_unknown("${!...=...}");
        } else if is_set {
            self.found.sets(name);
        }
        if (is_element && prints_an_index(target)) || (is_set && keeps_a_command(inner)) {
            self.found.add_unknown("the index of an element");
        }
    }

    fn quoted_in_braces(&mut self) -> Read<()> {
        self.at += 1;
        loop {
            match self.peek().ok_or("a quote is not closed")? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '$' => drop(self.dollar()?),
                '}' | '\\' | '`' | '\'' => return Err("shells do not agree about what is quoted in ${...}"),
                other => self.at += other.len_utf8(),
            }
        }
    }

    /// Reads a command in backquotes.
    pub(super) fn backquoted(&mut self, in_double_quotes: bool) -> Read<()> {
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.next().ok_or("a backquote is not closed")? {
                '`' => break,
                '\\' => match self.next().ok_or("a backquote is not closed")? {
                    escaped @ ('$' | '`' | '\\') => inner.push(escaped),
                    '"' if in_double_quotes => inner.push('"'),
                    // The line goes on, whatever it is quoted with in there.
                    '\n' => {}
                    other => inner.extend(['\\', other]),
                },
                other => inner.push(other),
            }
        }
        self.found.script(&inner, self.depth + 1)
    }

    /// Reads a command in a word, up to the parenthesis that closes it.
    pub(super) fn substituted(&mut self) -> Read<()> {
        let (start, waits) = (self.at, !self.pending.is_empty());
        self.substitutions += 1;
        self.until_parenthesis()?;
        self.substitutions -= 1;
        if waits && self.text[start..self.at].contains('\n') {
            return Err("shells do not agree about a here-document before lines in a word");
        }
        Ok(())
    }

    /// Reads a command up to the parenthesis that closes it.
    pub(super) fn until_parenthesis(&mut self) -> Read<()> {
        let waiting = self.pending.len();
        self.list_until_parenthesis()?;
        if self.pending.len() > waiting {
            return Err("a here-document does not end in the command that it is in");
        }
        Ok(())
    }

    /// Reads a text in which only expansions count; whether there are none.
    pub(super) fn expansions_only(&mut self) -> Read<bool> {
        let mut is_literal = true;
        while let Some(next) = self.peek() {
            match next {
                '\\' => {
                    self.at += 1;
                    is_literal &= !matches!(self.next(), Some('$' | '`' | '\\' | '\n'));
                }
                '$' => is_literal &= !self.dollar()?,
                '`' => {
                    self.backquoted(true)?;
                    is_literal = false;
                }
                other => self.at += other.len_utf8(),
            }
        }
        Ok(is_literal)
    }
}

/// Whether `text`, from one parenthesis to another, is arithmetic to some shells and has something in it that is read in
/// another way there.
pub(super) fn is_odd_arithmetic(text: &str) -> bool {
    let has_two = text.starts_with("((") || text.starts_with("(\\\n");
    has_two && (text.contains(['\'', '#', '\\']) || text.contains("<<"))
}

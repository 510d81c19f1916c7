//! Words: quotes, and what they come to.

use super::source::{Read, Source, Word};

/// Ends a word unless it is quoted.
pub(super) fn is_meta(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

pub(super) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && characters.all(|character| character == '_' || character.is_ascii_alphanumeric())
}

/// A word that is being read.
#[derive(Debug, Default)]
struct Reading {
    value: String,
    is_dynamic: bool,
    is_quoted: bool,
    /// Where the first unquoted `=` stands, in the value and in what is written.
    equals: Option<(usize, usize)>,
    /// An unquoted `[`, and an unquoted `{` with what braces need.
    has_bracket: bool,
    braces: usize,
    has_list: bool,
}

impl Source<'_> {
    /// Reads a word; none where none is next.
    pub(super) fn word(&mut self) -> Read<Option<Word>> {
        let start = self.at;
        let mut word = Reading::default();
        while let Some(next) = self.peek() {
            match next {
                '<' | '>' if self.rest()[1..].starts_with('(') => {
                    self.at += 2;
                    self.deeper(Self::substituted)?;
                    word.is_dynamic = true;
                }
                next if is_meta(next) => break,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(escaped) => word.quoted(escaped),
                        None => word.quoted('\\'),
                    }
                }
                '\'' => {
                    word.is_quoted = true;
                    word.value.push_str(self.single_quoted()?);
                }
                '"' => self.double_quoted(&mut word)?,
                '$' => self.dollar_in_word(&mut word)?,
                '`' => {
                    self.backquoted(false)?;
                    word.is_dynamic = true;
                }
                _ => {
                    self.at += next.len_utf8();
                    word.unquoted(next, self.at - next.len_utf8() - start, self.peek());
                }
            }
        }
        if self.at == start {
            return Ok(None);
        }
        Ok(Some(word.read(&self.text[start..self.at])))
    }

    fn dollar_in_word(&mut self, word: &mut Reading) -> Read<()> {
        if self.takes("$'") {
            word.is_quoted = true;
            return self.escapes(word);
        }
        if self.sees("$\"") {
            // A shell without translations leaves out the dollar, one that knows of none keeps it.
            word.is_dynamic = true;
            self.at += 1;
            return self.double_quoted(word);
        }
        if self.dollar()? {
            word.is_dynamic = true;
        } else {
            word.value.push('$');
        }
        Ok(())
    }

    /// Reads what stands in single quotes.
    fn single_quoted(&mut self) -> Read<&str> {
        self.at += 1;
        let rest = self.rest();
        let end = rest.find('\'').ok_or("a quote is not closed")?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn double_quoted(&mut self, word: &mut Reading) -> Read<()> {
        word.is_quoted = true;
        self.at += 1;
        loop {
            match self.peek().ok_or("a quote is not closed")? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => word.value.push(escaped),
                        Some(other) => word.value.extend(['\\', other]),
                        None => return Err("a quote is not closed"),
                    }
                }
                '$' => {
                    if self.dollar()? {
                        word.is_dynamic = true;
                    } else {
                        word.value.push('$');
                    }
                }
                '`' => {
                    self.backquoted(true)?;
                    word.is_dynamic = true;
                }
                other => {
                    self.at += other.len_utf8();
                    word.value.push(other);
                }
            }
        }
    }

    /// Reads what stands in `$'`, after that.
    fn escapes(&mut self, word: &mut Reading) -> Read<()> {
        loop {
            match self.next().ok_or("a quote is not closed")? {
                '\'' => return Ok(()),
                '\\' => match self.next().ok_or("a quote is not closed")? {
                    // Shells without these quotes end them here.
                    '\'' => return Err("shells do not agree about an escaped quote in $'...'"),
                    'n' => word.value.push('\n'),
                    't' => word.value.push('\t'),
                    'r' => word.value.push('\r'),
                    'a' => word.value.push('\x07'),
                    'b' => word.value.push('\x08'),
                    'e' | 'E' => word.value.push('\x1b'),
                    'f' => word.value.push('\x0c'),
                    'v' => word.value.push('\x0b'),
                    same @ ('\\' | '"' | '?') => word.value.push(same),
                    'x' => self.number(word, 16, 2)?,
                    'u' => self.number(word, 16, 4)?,
                    'U' => self.number(word, 16, 8)?,
                    '0'..='7' => {
                        self.at -= 1;
                        self.number(word, 8, 3)?;
                    }
                    _ => return Err("there is an escape in $'...' that shells do not agree about"),
                },
                other => word.value.push(other),
            }
        }
    }

    fn number(&mut self, word: &mut Reading, radix: u32, most: usize) -> Read<()> {
        let digits = self.rest().chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
        let number = u32::from_str_radix(&self.rest()[..digits], radix);
        self.at += digits;
        // Bytes above ASCII may be parts of a character.
        let character = number.ok().filter(|number| most >= 4 || *number < 0x80).and_then(char::from_u32);
        match character.filter(|character| *character != '\0') {
            Some(character) => word.value.push(character),
            None => word.is_dynamic = true,
        }
        Ok(())
    }
}

impl Reading {
    fn quoted(&mut self, character: char) {
        self.is_quoted = true;
        self.value.push(character);
    }

    /// Takes a character that stands `place` bytes after the beginning of the word.
    fn unquoted(&mut self, character: char, place: usize, next: Option<char>) {
        match character {
            '*' | '?' => self.is_dynamic = true,
            '[' => self.has_bracket = true,
            ']' if self.has_bracket => self.is_dynamic = true,
            '{' => self.braces += 1,
            ',' if self.braces > 0 => self.has_list = true,
            '.' if self.braces > 0 && next == Some('.') => self.has_list = true,
            '}' if self.braces > 0 && self.has_list => self.is_dynamic = true,
            '~' if place == 0 || self.value.ends_with(['=', ':']) => self.is_dynamic = true,
            '=' if self.equals.is_none() && !self.is_quoted => self.equals = Some((self.value.len(), place)),
            _ => {}
        }
        self.value.push(character);
    }

    fn read(self, written: &str) -> Word {
        let (text, equals) = match self.is_dynamic {
            true => (written.to_owned(), self.equals.map(|(_, place)| place)),
            false => (self.value, self.equals.map(|(place, _)| place)),
        };
        let equals = equals.filter(|equals| is_target(&text[..*equals]));
        let begins_element = written.split_once('[').is_some_and(|(name, _)| is_name(name));
        Word {
            is_cut: begins_element && equals.is_none(),
            is_plain: !self.is_quoted,
            is_dynamic: self.is_dynamic,
            equals,
            text,
        }
    }
}

/// Whether `text`, which is before a `=`, is a variable or a whole element of one.
fn is_target(text: &str) -> bool {
    let target = text.strip_suffix('+').unwrap_or(text);
    let element = target.split_once('[').is_some_and(|(name, rest)| is_name(name) && rest.ends_with(']'));
    is_name(target) || element
}

//! The text that something was read from, to say where in it a fault stands.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, ConfigErrorKind, Position};
use crate::mask::masked;
use crate::{parse, suggest};

/// A text, and the file that it is from.
#[derive(Clone)]
pub(crate) struct Source {
    file: Option<PathBuf>,
    text: Arc<str>,
}

/// Without the text, which may hold the password of a store.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Source {
    pub(crate) fn new(file: Option<PathBuf>, text: &str) -> Self {
        Self { file, text: Arc::from(text) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// An error about what stands at `span`.
    pub(crate) fn error(&self, kind: ConfigErrorKind, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        let mut error = ConfigError::new(kind, message);
        error.file.clone_from(&self.file);
        error.position = Some(self.position(span.start));
        error.key = self.key(&span).map(|key| masked(&key));
        error
    }

    /// A fault that the parser found. Of an unknown key or word, the nearest known one is named, or all that can stand there.
    pub(crate) fn fault(&self, kind: ConfigErrorKind, fault: &toml::de::Error) -> ConfigError {
        let message = fault.message().split_whitespace().collect::<Vec<_>>().join(" ");
        let span = fault.span().unwrap_or_default();
        let more = match self.key(&span) {
            Some(key) if message.starts_with("unknown field ") => parse::keys_beside(&key),
            _ => &[],
        };
        let message = match message.as_str() {
            "missing field `default`" => format!("{message}: the table [default] says what is at '/'"),
            _ => suggest::reword(&message, more).unwrap_or(message),
        };
        self.error(kind, span, message)
    }

    fn position(&self, offset: usize) -> Position {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// Returns the innermost key that `range` is in, or in the value of; none for an empty range, which is that of the whole file.
    /// Only errors ask, so the text is parsed again.
    fn key(&self, range: &Range<usize>) -> Option<String> {
        if range.is_empty() {
            return None;
        }
        let document = DeTable::parse(&self.text).ok()?;
        let mut found = None;
        key_in_table(document.get_ref(), range, &mut String::new(), &mut found);
        found.map(|(_, key)| key)
    }
}

/// The length of what was found to hold the range, and the keys that lead to it.
type Found = Option<(usize, String)>;

fn key_in_table(table: &DeTable<'_>, range: &Range<usize>, prefix: &mut String, found: &mut Found) {
    for (key, value) in table {
        let length = prefix.len();
        if length > 0 {
            prefix.push('.');
        }
        prefix.push_str(key.get_ref());
        note(key.span(), range, prefix, found);
        note(value.span(), range, prefix, found);
        key_in_value(value.get_ref(), range, prefix, found);
        prefix.truncate(length);
    }
}

fn key_in_value(value: &DeValue<'_>, range: &Range<usize>, prefix: &mut String, found: &mut Found) {
    match value {
        DeValue::Table(table) => key_in_table(table, range, prefix, found),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let length = prefix.len();
                prefix.push_str(&format!("[{index}]"));
                note(item.span(), range, prefix, found);
                key_in_value(item.get_ref(), range, prefix, found);
                prefix.truncate(length);
            }
        }
        _ => {}
    }
}

/// Remembers `key` where it is closer around the range than what was found before; of two alike, the one further in.
fn note(span: Range<usize>, range: &Range<usize>, key: &str, found: &mut Found) {
    let length = span.end.saturating_sub(span.start);
    if span.contains(&range.start)
        && range.end <= span.end
        && found.as_ref().is_none_or(|(shortest, _)| length <= *shortest)
    {
        *found = Some((length, key.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_line_column_and_key() {
        let text = "a = 1\n[b]\nc = { d = [1, { 'é' = 2 }] }\n[[e]]\nf = 1\n[[e]]\nf = 'x'\n";
        let source = Source::new(None, text);
        for (mark, line, column, key) in
            [("1\n", 1, 5, "a"), ("d =", 3, 7, "b.c.d"), ("2 }", 3, 23, "b.c.d[1].é"), ("'x'", 7, 5, "e[1].f")]
        {
            let offset = text.find(mark).expect("it is there");
            let error = source.error(ConfigErrorKind::Invalid, offset..offset + 1, "wrong");
            let position = error.position.expect("a position");
            assert_eq!((position.line, position.column, error.key.as_deref()), (line, column, Some(key)), "{mark}");
        }
    }
}

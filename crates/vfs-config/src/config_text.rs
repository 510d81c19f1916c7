//! Configuration text with its file name, for errors with line, column and key.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, ConfigErrorKind, Position};
use crate::redaction::redact_urls;

/// The text of a configuration or rules file.
#[derive(Clone)]
pub(crate) struct ConfigText {
    file: Option<PathBuf>,
    text: Arc<str>,
}

/// Omits the text, which may contain the password of a store.
impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigText").field("file", &self.file).finish_non_exhaustive()
    }
}

impl ConfigText {
    pub(crate) fn new(file: Option<PathBuf>, text: &str) -> Self {
        Self { file, text: Arc::from(text) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Creates an error about the setting at `span`.
    pub(crate) fn error(&self, kind: ConfigErrorKind, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        let mut error = ConfigError::new(kind, message);
        error.file.clone_from(&self.file);
        error.position = Some(self.position(span.start));
        error.key = self.key(&span).map(|key| redact_urls(&key));
        error
    }

    fn position(&self, offset: usize) -> Position {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// Returns the innermost key whose name or value contains `range`, or `None` for an empty range, which stands for the whole
    /// file. The text is parsed again, because only errors need the key.
    pub(crate) fn key(&self, range: &Range<usize>) -> Option<String> {
        if range.is_empty() {
            return None;
        }
        let document = DeTable::parse(&self.text).ok()?;
        let mut innermost = None;
        find_key_in_table(document.get_ref(), range, &mut String::new(), &mut innermost);
        innermost.map(|(_, key)| key)
    }
}

/// The length of the smallest span that contains the range, and the full name of its key.
type InnermostKey = Option<(usize, String)>;

fn find_key_in_table(table: &DeTable<'_>, range: &Range<usize>, prefix: &mut String, innermost: &mut InnermostKey) {
    for (key, value) in table {
        let length = prefix.len();
        if length > 0 {
            prefix.push('.');
        }
        prefix.push_str(key.get_ref());
        update_innermost(key.span(), range, prefix, innermost);
        update_innermost(value.span(), range, prefix, innermost);
        find_key_in_value(value.get_ref(), range, prefix, innermost);
        prefix.truncate(length);
    }
}

fn find_key_in_value(value: &DeValue<'_>, range: &Range<usize>, prefix: &mut String, innermost: &mut InnermostKey) {
    match value {
        DeValue::Table(table) => find_key_in_table(table, range, prefix, innermost),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let length = prefix.len();
                prefix.push_str(&format!("[{index}]"));
                update_innermost(item.span(), range, prefix, innermost);
                find_key_in_value(item.get_ref(), range, prefix, innermost);
                prefix.truncate(length);
            }
        }
        _ => {}
    }
}

/// Replaces `innermost` by `key` if its span contains the range and is not longer. Of two equal spans, the later one is further in.
fn update_innermost(span: Range<usize>, range: &Range<usize>, key: &str, innermost: &mut InnermostKey) {
    let length = span.end.saturating_sub(span.start);
    if span.contains(&range.start)
        && range.end <= span.end
        && innermost.as_ref().is_none_or(|(shortest, _)| length <= *shortest)
    {
        *innermost = Some((length, key.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_line_the_column_and_the_key_of_its_span() {
        let text = "a = 1\n[b]\nc = { d = [1, { 'é' = 2 }] }\n[[e]]\nf = 1\n[[e]]\nf = 'x'\n";
        let source = ConfigText::new(None, text);
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

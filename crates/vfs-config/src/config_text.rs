//! Configuration text with its file name, for errors with line, column and key.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};
use vfs_core::{Backend as _, ErrorKind, OpContext};

use crate::error::{ConfigError, ConfigErrorKind, Position};
use crate::host_paths::open_parent;
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
    /// Maximum length of a file in bytes, 1 MiB.
    pub(crate) const MAX_LEN: u64 = 1 << 20;

    pub(crate) fn new(file: Option<PathBuf>, text: &str) -> Self {
        Self { file, text: Arc::from(text) }
    }

    /// Reads the text of the file `path`.
    pub(crate) async fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |message: &str| ConfigError::new(ConfigErrorKind::Unreadable, message).in_file(path);
        let failed = |error: vfs_core::Error| {
            let reason = match error.kind() {
                ErrorKind::NotFound => "the file does not exist; create it, or name another one",
                ErrorKind::IsADirectory => "it is a directory; name a file",
                ErrorKind::PermissionDenied => "permission denied; make it readable, or name another one",
                _ => error.message(),
            };
            let mut unreadable = unreadable(&format!("the file cannot be read: {reason}"));
            unreadable.cause = Some(error);
            unreadable
        };
        let (files, name) = open_parent(path).map_err(failed)?;
        let cx = OpContext::new();
        let download = files.download_files(&cx, vec![name]).await.pop();
        let content = match download.map(|download| (download.content, download.cause)) {
            Some((Some(content), _)) => content,
            Some((None, Some(cause))) => return Err(failed(cause)),
            Some((None, None)) | None => return Err(unreadable("the file cannot be read")),
        };
        if content.len() as u64 > Self::MAX_LEN {
            return Err(unreadable("the file is longer than 1 MiB; a configuration is shorter"));
        }
        let text = std::str::from_utf8(&content).map_err(|_| unreadable("the file is not UTF-8; save it as UTF-8"))?;
        Ok(Self::new(Some(path.to_owned()), text.trim_start_matches('\u{feff}')))
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

//! Changes of the text of a file that lose no change of another caller.

use vfs_core::error::ErrorDetail;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::text::Encoding;
use vfs_core::{
    Content, EditRequest, EditResult, Error, ErrorKind, ReadRequest, Version, VfsPath, WriteMode, WriteRequest,
    WriteResult, edit, text,
};

use crate::action::CallScope;

/// Maximum number of attempts to insert. If one fails, the file was changed by another caller, so that some caller always succeeds.
const MAX_ATTEMPTS: u32 = 100;

/// Maximum number of occurrences of a text whose lines are looked for.
const MAX_OCCURRENCES: usize = 1_000;

/// Why a text was not inserted.
#[derive(Debug)]
pub(crate) enum InsertError {
    /// The backend refused or failed.
    Backend(Error),
    /// There is no such line; the last line after which text can be inserted is `last`.
    NoSuchLine { last: u64 },
}

/// What an edit has replaced.
#[derive(Debug)]
pub(crate) struct ReplacedText {
    pub(crate) result: EditResult,
    /// The content after the edit, with the number of lines before the replaced text; `None` if another caller changed the file at
    /// the same time.
    pub(crate) content: Option<(String, u64)>,
}

/// Replaces the text of `path` by what `insert` makes of it with the line break of the file. If another caller changes the file
/// meanwhile, its new text is changed instead.
pub(crate) async fn insert(
    scope: &CallScope<'_>,
    path: &VfsPath,
    insert: impl Fn(&str, &str) -> Result<String, InsertError> + Send,
) -> Result<(WriteResult, String), InsertError> {
    let mut attempt = 1;
    loop {
        let file = TextFile::read(scope, path).await.map_err(InsertError::Backend)?;
        let changed = insert(&file.text, line_break(&file.text))?;
        let encoded = text::encode(&changed, file.encoding).ok_or_else(|| {
            let message = format!("the encoding {} of the file lacks a character of the text", file.encoding);
            InsertError::Backend(Error::invalid_argument(message))
        })?;
        let request = WriteRequest::new(path.clone(), encoded).mode(WriteMode::IfVersion(file.version));
        match request.send(scope.backend, scope.cx).await {
            Ok(result) => return Ok((result, changed)),
            Err(error) if attempt < MAX_ATTEMPTS && is_overtaken(&error) => attempt += 1,
            Err(error) => return Err(InsertError::Backend(error)),
        }
    }
}

/// Makes an edit of one replacement.
///
/// The backend applies the edit to the content that the file then has. The content that is shown was read before; if it leads to
/// another size, it is not shown.
pub(crate) async fn replace(scope: &CallScope<'_>, request: &EditRequest) -> Result<ReplacedText, Error> {
    let before = TextFile::read(scope, &request.path).await;
    let result = request.clone().send(scope.backend, scope.cx).await?;
    let content = before.ok().and_then(|before| before.edited(request, result.size));
    Ok(ReplacedText { result, content })
}

/// Returns the line in which each occurrence of `old` begins, those that overlap included, or `None` if the file cannot be read or has
/// none.
pub(crate) async fn lines_of(scope: &CallScope<'_>, path: &VfsPath, old: &str) -> Option<Vec<u64>> {
    let file = TextFile::read(scope, path).await.ok()?;
    let lines = occurrence_lines(&file.text, old);
    // An edit takes the two line endings for the same.
    let lf = |text: &str| text.replace("\r\n", "\n");
    let lines = if lines.is_empty() { occurrence_lines(&lf(&file.text), &lf(old)) } else { lines };
    (!lines.is_empty()).then_some(lines)
}

fn occurrence_lines(text: &str, old: &str) -> Vec<u64> {
    let (mut lines, mut line, mut counted, mut from) = (Vec::new(), 1, 0, 0);
    while lines.len() < MAX_OCCURRENCES
        && let Some(at) = text.get(from..).and_then(|rest| rest.find(old))
    {
        let at = from + at;
        line += text[counted..at].matches('\n').count() as u64;
        lines.push(line);
        counted = at;
        from = text.ceil_char_boundary(at + 1);
    }
    lines
}

/// Returns the offset of the line with the index `line`, after a byte order mark, or `None` if `text` has fewer lines.
pub(crate) fn line_start(text: &str, line: u64) -> Option<usize> {
    match line.checked_sub(1) {
        None => Some(if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 }),
        Some(before) => {
            let (at, _) = text.match_indices('\n').nth(usize::try_from(before).ok()?)?;
            Some(at + 1)
        }
    }
}

/// Returns whether another caller has changed the file.
fn is_overtaken(error: &Error) -> bool {
    // The first attempt of an operation that is sent again was made, so that another one would make the change twice.
    error.kind() == ErrorKind::Conflict && error.detail() != Some(&ErrorDetail::OperationIdReused)
}

/// Returns `\r\n` if all lines of `text` end with it.
fn line_break(text: &str) -> &'static str {
    let breaks = text.matches('\n').count();
    if breaks > 0 && text.matches("\r\n").count() == breaks { "\r\n" } else { "\n" }
}

/// The whole text of a file.
struct TextFile {
    bytes: Vec<u8>,
    text: String,
    encoding: Encoding,
    version: Version,
}

impl TextFile {
    async fn read(scope: &CallScope<'_>, path: &VfsPath) -> Result<Self, Error> {
        let max_bytes = scope.backend.capabilities(path).max_file_size;
        let request = ReadRequest::new(path.clone()).raw().max_bytes(max_bytes);
        let result = request.send(scope.backend, scope.cx).await?;
        if result.truncated.is_some() {
            return Err(Error::at(ErrorKind::TooLarge, path));
        }
        let bytes = match result.content {
            Content::Text(text) => text.into_bytes(),
            Content::Binary { bytes, .. } => bytes.into(),
        };
        let encoding = if bytes.is_empty() { Some(Encoding::Utf8) } else { result.encoding };
        let decoded = encoding.and_then(|encoding| Some((encoding, text::decode(&bytes, encoding)?)));
        // Text that would not be encoded as it was is not changed.
        let decoded = decoded.filter(|(encoding, text)| text::encode(text, *encoding).as_ref() == Some(&bytes));
        let (encoding, text) = decoded.ok_or_else(|| Error::new(ErrorKind::NotText, "the content is not text"))?;
        Ok(Self { bytes, text, encoding, version: result.version })
    }

    /// Returns the content after the edit `request`, with the number of lines before the replaced text, if it has `size` bytes.
    fn edited(&self, request: &EditRequest, size: u64) -> Option<(String, u64)> {
        let edited = edit::apply(&self.bytes, &request.replacements, u64::MAX).ok()?.content;
        let content = text::decode(&edited, self.encoding).filter(|_| edited.len() as u64 == size)?;
        let old = &request.replacements.first()?.old;
        let lf = |text: &str| text.replace("\r\n", "\n");
        let before = |text: &str, old: &str| Some(text[..text.find(old)?].matches('\n').count() as u64);
        let line = before(&self.text, old).or_else(|| before(&lf(&self.text), &lf(old)))?;
        Some((content, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_may_overlap_and_share_a_line() {
        for (text, old, expected) in [
            ("aaa\nb\naa\n", "aa", &[1, 1, 3][..]),
            ("a\na\na\n", "a\na", &[1, 2]),
            ("éé", "é", &[1, 1]),
            ("a", "b", &[]),
        ] {
            assert_eq!(occurrence_lines(text, old), expected, "{old:?} in {text:?}");
        }
    }
}

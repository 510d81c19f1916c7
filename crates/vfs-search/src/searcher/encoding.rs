//! Encoding detection: binary files, and byte order marks that require transcoding.

/// Number of bytes of a file that are checked for NUL bytes; later ones count as text.
pub(crate) const BINARY_WINDOW: usize = 1 << 20;

pub(crate) const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns whether a search treats a file that begins with `content` as binary: there is a NUL in its first mebibyte,
/// and no byte order mark of UTF-16.
pub fn is_binary(content: &[u8]) -> bool {
    !has_utf16_mark(content) && memchr::memchr(0, &content[..content.len().min(BINARY_WINDOW)]).is_some()
}

/// Returns whether content that begins with `head` is transcoded to UTF-8 before it is searched: it starts with the
/// byte order mark of UTF-16, possibly after one of UTF-8, which is removed first.
pub(crate) fn is_transcoded(head: &[u8]) -> bool {
    has_utf16_mark(head.strip_prefix(UTF8_MARK).unwrap_or(head))
}

fn has_utf16_mark(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff")
}

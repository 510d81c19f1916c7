//! Binary detection, and the byte order marks that decide how a file is decoded.

/// How much of a file is looked at for NUL bytes; those beyond are text.
pub(crate) const BINARY_WINDOW: usize = 1 << 20;

pub(crate) const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a search takes a file that begins with `content` for binary: there is a NUL in its first mebibyte, and no byte
/// order mark of UTF-16.
pub fn is_binary(content: &[u8]) -> bool {
    !has_utf16_mark(content) && memchr::memchr(0, &content[..content.len().min(BINARY_WINDOW)]).is_some()
}

/// Whether a content that begins with `head` is made UTF-8 before it is searched: it has the byte order mark of UTF-16, if
/// only behind one of UTF-8, which is taken off first.
pub(crate) fn is_transcoded(head: &[u8]) -> bool {
    has_utf16_mark(head.strip_prefix(UTF8_MARK).unwrap_or(head))
}

fn has_utf16_mark(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff")
}

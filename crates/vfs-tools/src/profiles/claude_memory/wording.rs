//! Result texts, and where a text is inserted.

use vfs_core::{FileInfo, VfsPath};

use crate::text_file_edit::{InsertError, line_start};

/// Returns the header and the first line of a listing.
pub(super) fn listing_header(path: &VfsPath) -> String {
    format!("Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:\n0B\t{path}")
}

/// Returns the line of an entry of a listing.
pub(super) fn listing_line(entry: &FileInfo) -> String {
    format!("{}\t{}{}", size(entry.size), entry.path, if entry.is_dir { "/" } else { "" })
}

/// Returns a size such as `1.5K`; whole numbers have no fraction.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "K", "M", "G"];
    let unit = (bytes.checked_ilog2().unwrap_or_default() as usize / 10).min(UNITS.len() - 1);
    let size = bytes as f64 / f64::from(1_u32 << (10 * unit));
    if size.fract() == 0.0 { format!("{size:.0}{}", UNITS[unit]) } else { format!("{size:.1}{}", UNITS[unit]) }
}

/// Inserts `text`, without the line breaks at its end, after `line` lines. A line break at the end of a file begins no line, and the
/// result always ends with one.
pub(super) fn insert_after(content: &str, line_break: &str, line: i64, text: &str) -> Result<String, InsertError> {
    let body = content.strip_suffix(line_break).unwrap_or(content);
    let lines = if content.is_empty() { 0 } else { body.matches('\n').count() as u64 + 1 };
    let index = u64::try_from(line).ok().filter(|index| *index <= lines);
    let index = index.ok_or(InsertError::NoSuchLine { last: lines })?;
    let crlf;
    let text = match line_break {
        "\r\n" => {
            crlf = text.replace("\r\n", "\n").trim_end_matches('\n').replace('\n', "\r\n");
            crlf.as_str()
        }
        _ => text.trim_end_matches('\n'),
    };
    let mut changed = match line_start(body, index).filter(|_| index < lines) {
        Some(at) => format!("{}{text}{line_break}{}", &body[..at], &body[at..]),
        None if lines == 0 => text.to_owned(),
        None => format!("{body}{line_break}{text}"),
    };
    if !changed.ends_with('\n') {
        changed.push_str(line_break);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_reference() {
        for (bytes, expected) in [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1536, "1.5K"),
            (2142, "2.1K"),
            (1 << 20, "1M"),
            (5 << 30, "5G"),
            (3 << 40, "3072G"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn lines_are_inserted_as_in_the_reference() {
        for (content, line, text, expected) in [
            ("", 0, "x", Some("x\n")),
            ("", 1, "x", None),
            ("a\nb\n", 0, "x\n\n", Some("x\na\nb\n")),
            ("a\nb\n", 1, "x\ny", Some("a\nx\ny\nb\n")),
            ("a\nb\n", 2, "x", Some("a\nb\nx\n")),
            ("a\nb\n", 3, "x", None),
            ("a\nb\n", -1, "x", None),
            ("a\nb", 2, "x", Some("a\nb\nx\n")),
            ("a\nb", 1, "x", Some("a\nx\nb\n")),
            ("a\n\n", 2, "x", Some("a\n\nx\n")),
            ("\n", 1, "x", Some("\nx\n")),
            ("a\n", 1, "", Some("a\n")),
        ] {
            let inserted = insert_after(content, "\n", line, text).ok();
            assert_eq!(inserted.as_deref(), expected, "{content:?} {line} {text:?}");
        }
        let inserted = insert_after("a\r\nb\r\n", "\r\n", 1, "x\ny\r\n").expect("there is such a line");
        assert_eq!(inserted, "a\r\nx\r\ny\r\nb\r\n");
    }
}

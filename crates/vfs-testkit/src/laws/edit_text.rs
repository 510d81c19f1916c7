//! Line endings, marks, encodings and bytes, which an edit preserves.

use vfs_core::text::Encoding;
use vfs_core::{EditRequest, ErrorKind, ReadRequest};

use super::LawResult;
use crate::target::Target;

laws! { "edit" in Semantics:
    "E7" Nothing text_that_a_read_returned_can_be_edited,
    "E7" Nothing an_edit_of_a_crlf_file_keeps_crlf,
    "E7" Nothing an_old_with_crlf_is_found_where_lines_end_otherwise,
    "E17" Nothing new_text_gets_the_line_endings_of_the_file in Storage,
    "E17" Nothing exact_bytes_are_written_by_request in Storage,
    "E8" Nothing an_edit_of_a_mixed_file_keeps_the_ending_of_each_line,
    "E9" Nothing an_edit_keeps_the_byte_order_mark_and_the_end_of_the_file in Storage,
    "E9" Nothing an_edit_keeps_utf_16,
    "E10" Nothing an_edit_keeps_the_bytes_that_are_not_text_or_refuses in Storage,
}

/// Edits a file with the content `content`, and returns the new content.
async fn edited(t: &Target, content: &[u8], old: &str, new: &str) -> vfs_core::Result<Vec<u8>> {
    t.put("/a.txt", content.to_vec()).await?;
    t.edit(EditRequest::new(t.path("/a.txt"), old, new)).await?;
    Ok(t.bytes("/a.txt").await?.to_vec())
}

async fn text_that_a_read_returned_can_be_edited(t: &Target) -> LawResult {
    for content in ["a\r\nb\r\nc\r\n", "a\nb\r\nc\n", "a\u{2028}b\rc\n", "\u{feff}a\nb\n", "a\u{c}\nb\u{85}c"] {
        t.put("/a.txt", content).await?;
        let window = t.read(ReadRequest::new(t.path("/a.txt")).limit(2)).await?;
        let shown = window.content.as_text().expect("it is text");
        t.edit(EditRequest::new(t.path("/a.txt"), shown, "new")).await?;
        let rest = &content[shown.len()..];
        let after = t.text("/a.txt").await?;
        assert!(after.trim_start_matches('\u{feff}') == format!("new{rest}"), "{content:?} became {after:?}");
    }
    Ok(())
}

async fn an_edit_of_a_crlf_file_keeps_crlf(t: &Target) -> LawResult {
    for (content, old, new, expected) in [
        ("a\r\nb\r\nc\r\n", "b", "x", "a\r\nx\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc", "b\n", "", "a\r\nc"),
    ] {
        let after = edited(t, content.as_bytes(), old, new).await?;
        assert_eq!(String::from_utf8_lossy(&after), expected, "{content:?}: {old:?} to {new:?}");
    }
    Ok(())
}

async fn an_old_with_crlf_is_found_where_lines_end_otherwise(t: &Target) -> LawResult {
    for (content, old, new, expected) in [
        ("a\nb\nc\n", "a\r\nb\r\n", "x\n", "x\nc\n"),
        ("a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\nc\n"),
        ("a\nb\r\nc\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\r\nc\n"),
    ] {
        let after = edited(t, content.as_bytes(), old, new).await?;
        assert_eq!(String::from_utf8_lossy(&after), expected, "{content:?}: {old:?} to {new:?}");
    }
    Ok(())
}

/// For each case: the content, the old text, the new text, the content after the edit, and the content after an edit
/// with exact line endings.
const NEW_TEXT: [(&str, &str, &str, &str, &str); 8] = [
    ("a\nb\n", "b", "x\r\ny", "a\nx\ny\n", "a\nx\r\ny\n"),
    ("a\nb\n", "a\nb", "x\r\ny", "x\ny\n", "x\r\ny\n"),
    ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", "a\r\nx\ny\r\n"),
    ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\r\ny\r\n", "x\ny\r\n"),
    ("a\nb\r\nc", "c", "x\r\ny", "a\nb\r\nx\r\ny", "a\nb\r\nx\r\ny"),
    ("a\nb\r\n", "b\r\n", "x\ny\n", "a\nx\ny\n", "a\nx\ny\n"),
    ("no line end", "no", "a\r\nb\n", "a\r\nb\n line end", "a\r\nb\n line end"),
    ("lone\rreturn", "lone", "a\r\nb", "a\r\nb\rreturn", "a\r\nb\rreturn"),
];

async fn new_text_gets_the_line_endings_of_the_file(t: &Target) -> LawResult {
    for (content, old, new, expected, _) in NEW_TEXT {
        let after = edited(t, content.as_bytes(), old, new).await?;
        assert_eq!(String::from_utf8_lossy(&after), expected, "{content:?}: {old:?} to {new:?}");
    }
    for (content, old, new) in
        [("a\nb\n", "a\n", "a\r\n"), ("a\r\nb\r\n", "a\r\n", "a\n"), ("a\r\nb\r\n", "a\n", "a\r\n")]
    {
        let error = t.refused(edited(t, content.as_bytes(), old, new).await, ErrorKind::InvalidArgument);
        assert!(error.for_model().contains("exact"), "{}", error.for_model());
        assert_eq!(t.text("/a.txt").await?, content);
    }
    Ok(())
}

async fn exact_bytes_are_written_by_request(t: &Target) -> LawResult {
    for (content, old, new, _, expected) in NEW_TEXT {
        t.put("/a.txt", content).await?;
        t.edit(EditRequest::new(t.path("/a.txt"), old, new).exact_line_endings()).await?;
        assert_eq!(t.text("/a.txt").await?, expected, "{content:?}: {old:?} to {new:?}");
    }
    t.put("/a.txt", "a\nb\n").await?;
    t.edit(EditRequest::new(t.path("/a.txt"), "\n", "\r\n").replace_all().exact_line_endings()).await?;
    assert_eq!(t.text("/a.txt").await?, "a\r\nb\r\n");
    Ok(())
}

async fn an_edit_of_a_mixed_file_keeps_the_ending_of_each_line(t: &Target) -> LawResult {
    for (content, old, new, expected) in [
        ("a\r\nb\nc\r\nd\n", "b", "x", "a\r\nx\nc\r\nd\n"),
        ("a\r\nb\nc\r\nd\n", "c", "x", "a\r\nb\nx\r\nd\n"),
        ("a\r\nb\nc\r\nd\n", "a\nb\nc\n", "1\n2\n3\n", "1\r\n2\n3\r\nd\n"),
        ("lone\rreturn\nb\r\n", "return", "x", "lone\rx\nb\r\n"),
        ("lone\rreturn\nb\r\n", "b", "x", "lone\rreturn\nx\r\n"),
    ] {
        let after = edited(t, content.as_bytes(), old, new).await?;
        assert_eq!(String::from_utf8_lossy(&after), expected, "{content:?}: {old:?} to {new:?}");
    }
    Ok(())
}

async fn an_edit_keeps_the_byte_order_mark_and_the_end_of_the_file(t: &Target) -> LawResult {
    for (content, old, new, expected) in [
        ("\u{feff}first\nsecond\n", "first", "1st", "\u{feff}1st\nsecond\n"),
        ("\u{feff}first\nsecond\n", "second", "2nd", "\u{feff}first\n2nd\n"),
        ("no line end", "end", "feed", "no line feed"),
        ("a\nno line end", "a\n", "b\n", "b\nno line end"),
        ("line end\n", "end", "feed", "line feed\n"),
        ("two line ends\n\n", "two", "2", "2 line ends\n\n"),
    ] {
        let after = edited(t, content.as_bytes(), old, new).await?;
        assert_eq!(String::from_utf8_lossy(&after), expected, "{content:?}: {old:?} to {new:?}");
    }
    Ok(())
}

async fn an_edit_keeps_utf_16(t: &Target) -> LawResult {
    let encode = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    for (bytes, encoding) in
        [(u16::to_le_bytes as fn(u16) -> [u8; 2], Encoding::Utf16Le), (u16::to_be_bytes, Encoding::Utf16Be)]
    {
        let after = edited(t, &encode("ein\r\nzwei 😀\r\n", bytes), "zwei 😀\n", "zwölf\n").await?;
        assert_eq!(after, encode("ein\r\nzwölf\r\n", bytes));
        assert_eq!(t.read(ReadRequest::new(t.path("/a.txt"))).await?.encoding, Some(encoding));
    }
    Ok(())
}

async fn an_edit_keeps_the_bytes_that_are_not_text_or_refuses(t: &Target) -> LawResult {
    for (before, after) in [
        (&b"caf\xe9\nneedle\n\xff\xfe"[..], &b"caf\xe9\nthread\n\xff\xfe"[..]),
        (b"\0\x01needle\0\n", b"\0\x01thread\0\n"),
        (b"needle \xed\xa0\x80", b"thread \xed\xa0\x80"),
    ] {
        match edited(t, before, "needle", "thread").await {
            Ok(content) => assert_eq!(content, after),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotText);
                t.assert_fit_to_be_shown(&error);
                assert_eq!(t.bytes("/a.txt").await?, before);
            }
        }
    }
    Ok(())
}

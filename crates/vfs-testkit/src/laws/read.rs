//! Results of reads: bytes, text, encodings, binary content.

use vfs_core::text::{Encoding, LineEnding};
use vfs_core::{Content, ErrorKind, GrepRequest, ReadRequest, format};

use super::LawResult;
use crate::target::Target;

laws! { "read" in Semantics:
    "R1" Nothing a_whole_read_is_the_file_exactly in Smoke,
    "R2" Nothing lines_end_at_a_line_feed_and_nowhere_else in Storage,
    "R3" Nothing read_and_grep_count_lines_alike,
    "R8" Nothing text_is_decoded_and_its_encoding_named,
    "R9" Nothing the_line_ending_is_reported,
    "R10" Nothing binary_content_comes_as_bytes_with_its_type in Storage,
    "R11" Nothing a_missing_file_is_not_found in Storage,
    "R12" Nothing an_empty_file_is_read_and_shown_by_the_reminder in Storage,
    "R13" Nothing a_numbered_rendering_is_that_of_cat,
    "R14" Nothing the_result_describes_the_file in Wrapper,
}

async fn a_whole_read_is_the_file_exactly(t: &Target) -> LawResult {
    for content in [
        "one\n",
        "no end",
        "\n",
        "\n\n\n",
        "a\r\nb\r\n",
        "a\r\nb\nc\r\n",
        "lone\rreturn",
        "\u{feff}marked\n",
        "form\u{c}feed\u{b}tab\u{85}next\u{2028}line\n",
        "tab\tand  spaces \n",
        "日本語 😀 e\u{301}\n",
        "$1 \\1 \\n %s {} \u{1b}[0m\n",
    ] {
        t.put("/a.txt", content).await?;
        assert_eq!(t.text("/a.txt").await?, content);
        assert_eq!(t.bytes("/a.txt").await?, content);
    }
    Ok(())
}

async fn lines_end_at_a_line_feed_and_nowhere_else(t: &Target) -> LawResult {
    for (content, lines) in [
        ("", 0),
        ("a", 1),
        ("a\n", 1),
        ("a\nb", 2),
        ("a\nb\n", 2),
        ("\n", 1),
        ("\n\n", 2),
        ("a\r\nb\r\n", 2),
        ("a\rb\rc", 1),
        ("a\u{c}b\u{b}c\u{85}d\u{2028}e\u{2029}f\n", 1),
    ] {
        t.put("/a.txt", content).await?;
        let result = t.read(ReadRequest::new(t.path("/a.txt"))).await?;
        assert_eq!((result.total_lines, result.start_line, result.end_line), (Some(lines), 1, lines), "{content:?}");
        assert_eq!((result.truncated, result.next_offset, result.next_byte), (None, None, None), "{content:?}");
    }
    Ok(())
}

async fn read_and_grep_count_lines_alike(t: &Target) -> LawResult {
    t.put("/a.txt", "one\u{c}\nneedle\u{2028}two\n\u{85}\u{b}\r\nthree\rneedle\r\n\nneedle").await?;
    let result = t.grep(GrepRequest::literal("needle")).await?;
    assert_eq!(result.matches.iter().map(|hit| hit.line).collect::<Vec<_>>(), [2, 4, 6]);
    for hit in result.matches {
        let window = t.read(ReadRequest::new(hit.path).lines(hit.line - 1, 1)).await?;
        assert_eq!(window.content.as_text().map(|text| text.trim_end_matches(['\r', '\n'])), Some(hit.text.as_str()));
        assert_eq!((window.start_line, window.end_line), (hit.line, hit.line));
    }
    Ok(())
}

fn utf16(text: &str, bytes: impl Fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
}

async fn text_is_decoded_and_its_encoding_named(t: &Target) -> LawResult {
    let text = "Grüße aus Köln,\nschöne Häuser 😀\n";
    for (bytes, encoding) in [
        (text.as_bytes().to_vec(), Encoding::Utf8),
        (utf16(text, u16::to_le_bytes), Encoding::Utf16Le),
        (utf16(text, u16::to_be_bytes), Encoding::Utf16Be),
    ] {
        t.put("/a.txt", bytes).await?;
        let result = t.read(ReadRequest::new(t.path("/a.txt"))).await?;
        assert_eq!((result.content.as_text(), result.encoding), (Some(text), Some(encoding)));
        assert_eq!(result.total_lines, Some(2));
    }
    t.put("/a.txt", "\u{feff}marked").await?;
    assert_eq!(t.read(ReadRequest::new(t.path("/a.txt"))).await?.encoding, Some(Encoding::Utf8Bom));
    let latin1: Vec<u8> = "Die Häuser in Köln sind schön und groß.\n".repeat(20).chars().map(|c| c as u8).collect();
    t.put("/a.txt", latin1).await?;
    let result = t.read(ReadRequest::new(t.path("/a.txt"))).await?;
    assert!(matches!(result.encoding, Some(Encoding::Legacy(_))), "{:?}", result.encoding);
    assert!(result.content.as_text().is_some_and(|text| text.starts_with("Die Häuser in Köln")));
    Ok(())
}

async fn the_line_ending_is_reported(t: &Target) -> LawResult {
    for (content, expected) in [
        ("", LineEnding::None),
        ("one line", LineEnding::None),
        ("lone\rreturn", LineEnding::None),
        ("a\nb", LineEnding::Lf),
        ("a\r\nb\r\n", LineEnding::Crlf),
        ("a\r\nb\n", LineEnding::Mixed),
    ] {
        t.put("/a.txt", content).await?;
        let result = t.read(ReadRequest::new(t.path("/a.txt"))).await?;
        assert_eq!(result.line_ending, expected, "{content:?}");
    }
    Ok(())
}

async fn binary_content_comes_as_bytes_with_its_type(t: &Target) -> LawResult {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89".as_slice();
    for (path, bytes, expected) in [
        ("/a.png", png, "image/png"),
        ("/named-wrongly.txt", png, "image/png"),
        ("/a.zip", b"PK\x03\x04\x14\0\0\0\x08\0\0\0", "application/zip"),
        ("/a.bin", b"\0\x01\x02\x03nothing found\0\xff", "application/octet-stream"),
    ] {
        t.put(path, bytes.to_vec()).await?;
        let result = t.read(ReadRequest::new(t.path(path))).await?;
        let Content::Binary { bytes: read, mime_type } = &result.content else { panic!("{path} was read as text") };
        assert_eq!((&read[..], mime_type.as_str()), (bytes, expected));
        assert_eq!((result.start_line, result.end_line, result.encoding), (0, 0, None));
        let of_lines = t.read(ReadRequest::new(t.path(path)).lines(500, 1)).await?;
        assert_eq!(of_lines.content, result.content, "{path} has no lines to skip");
    }
    Ok(())
}

async fn a_missing_file_is_not_found(t: &Target) -> LawResult {
    let error = t.refused(t.read(ReadRequest::new(t.path("/missing.txt"))).await, ErrorKind::NotFound);
    assert_eq!(error.for_model(), format!("Error: File '{}' not found", t.path("/missing.txt")));
    Ok(())
}

async fn an_empty_file_is_read_and_shown_by_the_reminder(t: &Target) -> LawResult {
    t.put("/empty", "").await?;
    for request in [ReadRequest::new(t.path("/empty")), ReadRequest::new(t.path("/empty")).limit(10)] {
        let result = t.read(request).await?;
        assert_eq!((result.content.as_bytes(), result.size, result.truncated), (&b""[..], 0, None));
        assert_eq!(format::numbered(&result), "System reminder: File exists but has empty contents");
    }
    Ok(())
}

async fn a_numbered_rendering_is_that_of_cat(t: &Target) -> LawResult {
    t.put("/a.txt", format!("one\ntwo\r\n\n{}\n", "x".repeat(5001))).await?;
    let result = t.read(ReadRequest::new(t.path("/a.txt"))).await?;
    let long = "x".repeat(5000);
    let expected = ["     1\tone", "     2\ttwo", "     3\t", &format!("     4\t{long}"), "   4.1\tx"];
    assert_eq!(format::numbered(&result).lines().collect::<Vec<_>>(), expected);
    let window = t.read(ReadRequest::new(t.path("/a.txt")).lines(1, 1)).await?;
    assert_eq!(format::numbered(&window).lines().next(), Some("     2\ttwo"));
    Ok(())
}

async fn the_result_describes_the_file(t: &Target) -> LawResult {
    let version = t.put("/d/a.txt", "one\ntwo\n").await?;
    let result = t.read(ReadRequest::new(t.path("/d/a.txt")).limit(1)).await?;
    assert_eq!((result.path, result.size, result.version), (t.path("/d/a.txt"), 8, version));
    assert_eq!((result.bytes.start, result.bytes.end), (0, Some(4)));
    Ok(())
}

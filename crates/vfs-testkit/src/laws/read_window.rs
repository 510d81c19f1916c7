//! Windows of a file, by lines and by bytes, and their bounds.

use vfs_core::error::ErrorDetail;
use vfs_core::text::Encoding;
use vfs_core::{Content, ErrorKind, ReadRequest, Result, TruncationReason, WriteMode, WriteRequest};

use super::LawResult;
use super::law_helpers::ends;
use crate::target::Target;

laws! { "read" in Storage:
    "R4" Nothing a_window_skips_and_takes_lines in Wrapper,
    "R4" Nothing windows_one_after_the_other_are_the_file,
    "R5" Nothing an_offset_past_the_end_is_refused_with_the_number_of_lines,
    "R6" Nothing a_limit_of_zero_is_empty_and_truncated in Semantics,
    "R6" Nothing the_greatest_limit_is_all_of_it in Semantics,
    "R7" Nothing a_range_of_bytes_is_those_bytes in Wrapper,
    "R7" Nothing a_range_and_lines_at_once_are_refused in Semantics,
    "R15" Nothing a_bounded_read_continues_at_the_returned_position,
    "R15" Nothing a_huge_line_is_cut_with_the_position_to_continue,
    "R15" Nothing a_read_without_limits_is_bounded,
    "R16" Nothing a_raw_window_has_the_bytes_of_its_lines in Wrapper,
}

async fn a_window_skips_and_takes_lines(t: &Target) -> LawResult {
    t.put("/a.txt", "1\n2\n3\n4\n5").await?;
    for (offset, limit, text, first, last, next) in [
        (0, 2, "1\n2\n", 1, 2, Some(2)),
        (1, 2, "2\n3\n", 2, 3, Some(3)),
        (3, 1, "4\n", 4, 4, Some(4)),
        (3, 2, "4\n5", 4, 5, None),
        (4, 1, "5", 5, 5, None),
        (4, 100, "5", 5, 5, None),
        (0, 5, "1\n2\n3\n4\n5", 1, 5, None),
    ] {
        let result = t.read(ReadRequest::new(t.path("/a.txt")).lines(offset, limit)).await?;
        let what = format!("offset {offset} limit {limit}");
        assert_eq!(result.content.as_text(), Some(text), "{what}");
        assert_eq!((result.start_line, result.end_line, result.next_offset), (first, last, next), "{what}");
        assert_eq!(result.truncated, next.map(|_| TruncationReason::Limit), "{what}");
        assert!(result.total_lines.is_none_or(|total| total == 5), "{what}");
    }
    Ok(())
}

async fn windows_one_after_the_other_are_the_file(t: &Target) -> LawResult {
    for content in ["", "a", "a\n", "a\nb\n", "a\r\n\r\nb\n\nc", "\n\n\n\n\n", "é\nü\u{2028}\n\u{feff}\n"] {
        t.put("/a.txt", content).await?;
        for limit in 1..4 {
            let (mut text, mut offset) = (String::new(), Some(0));
            while let Some(skip) = offset {
                let result = t.read(ReadRequest::new(t.path("/a.txt")).lines(skip, limit)).await?;
                text.push_str(result.content.as_text().expect("it is text"));
                assert!(result.next_offset.is_none_or(|next| next == skip + limit), "{content:?} {skip} {limit}");
                offset = result.next_offset;
            }
            assert_eq!(text, content, "in windows of {limit}");
        }
    }
    Ok(())
}

async fn an_offset_past_the_end_is_refused_with_the_number_of_lines(t: &Target) -> LawResult {
    t.put("/a.txt", "one\ntwo\nthree\n").await?;
    for offset in [3, 4, 1_000_000, u64::MAX] {
        let result = t.read(ReadRequest::new(t.path("/a.txt")).offset(offset)).await;
        let error = t.refused(result, ErrorKind::InvalidArgument);
        assert_eq!(error.detail(), Some(&ErrorDetail::OffsetOutOfRange { total_lines: 3 }), "{offset}");
        assert!(error.for_model().contains('3'), "{}", error.for_model());
    }
    Ok(())
}

async fn a_limit_of_zero_is_empty_and_truncated(t: &Target) -> LawResult {
    t.put("/a.txt", "one\ntwo\n").await?;
    let result = t.read(ReadRequest::new(t.path("/a.txt")).lines(1, 0)).await?;
    assert_eq!((result.content.as_text(), result.truncated), (Some(""), Some(TruncationReason::Limit)));
    assert_eq!((result.start_line, result.end_line, result.next_offset), (2, 1, Some(1)));
    Ok(())
}

async fn the_greatest_limit_is_all_of_it(t: &Target) -> LawResult {
    t.put("/a.txt", "one\ntwo\n").await?;
    for request in [
        ReadRequest::new(t.path("/a.txt")).lines(1, u64::MAX),
        ReadRequest::new(t.path("/a.txt")).lines(1, u64::MAX).max_bytes(u64::MAX),
        ReadRequest::new(t.path("/a.txt")).bytes(4, Some(u64::MAX)),
        ReadRequest::new(t.path("/a.txt")).bytes(4, None).max_bytes(u64::MAX),
    ] {
        let result = t.read(request).await?;
        assert_eq!((result.content.as_text(), result.truncated), (Some("two\n"), None));
    }
    Ok(())
}

async fn a_range_of_bytes_is_those_bytes(t: &Target) -> LawResult {
    let content = "one\ntwö\nthree";
    t.put("/a.txt", content).await?;
    for (start, end, expected) in
        [(0, Some(3), "one"), (4, Some(9), "twö\n"), (9, None, "three"), (9, Some(99), "three"), (3, Some(3), "")]
    {
        let result = t.read(ReadRequest::new(t.path("/a.txt")).bytes(start, end)).await?;
        assert_eq!(result.content.as_bytes(), expected.as_bytes(), "{start} {end:?}");
        assert_eq!((result.start_line, result.end_line, result.size), (0, 0, 14));
        let stop = end.unwrap_or(14).min(14);
        assert_eq!(result.next_byte, (stop < 14).then_some(stop), "{start} {end:?}");
    }
    let half = t.read(ReadRequest::new(t.path("/a.txt")).bytes(0, Some(7))).await?;
    assert_eq!(half.content.as_bytes(), &content.as_bytes()[..7], "half a character is given as it is");
    assert!(matches!(half.content, Content::Binary { .. }));
    Ok(())
}

async fn a_range_and_lines_at_once_are_refused(t: &Target) -> LawResult {
    t.put("/a.txt", "one\ntwo\n").await?;
    let request = || ReadRequest::new(t.path("/a.txt"));
    for request in [request().bytes(0, None).offset(1), request().bytes(0, None).limit(1), request().bytes(3, Some(2))]
    {
        t.refused(t.read(request).await, ErrorKind::InvalidArgument);
    }
    Ok(())
}

/// Reads all of a file in steps of at most `max_bytes`, each of which continues where the previous result ended.
async fn read_on(t: &Target, path: &str, max_bytes: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut request = ReadRequest::new(t.path(path)).max_bytes(max_bytes);
    loop {
        let result = t.read(request).await?;
        let bytes = result.content.as_bytes();
        assert!(bytes.len() as u64 <= max_bytes, "{} bytes where {max_bytes} were allowed", bytes.len());
        content.extend_from_slice(bytes);
        let next = ReadRequest::new(t.path(path)).max_bytes(max_bytes);
        request = match (result.next_byte, result.next_offset) {
            (None, None) => return Ok(content),
            (Some(byte), _) => next.bytes(byte, None),
            (None, Some(line)) => next.offset(line),
        };
        assert!(result.truncated.is_some(), "there is more, so the result has the reason for its end");
        assert!(!bytes.is_empty(), "each step gets further");
    }
}

async fn a_bounded_read_continues_at_the_returned_position(t: &Target) -> LawResult {
    for content in ["one\ntwo\nthree\n", "a line of twenty-one\nand another\n", "\n\n\n\n\n\n\n\n\n\n\n\n"] {
        t.put("/a.txt", content).await?;
        for max_bytes in [4, 7, 10, 100] {
            let read = read_on(t, "/a.txt", max_bytes).await?;
            assert_eq!(String::from_utf8_lossy(&read), content, "in steps of {max_bytes} bytes");
        }
    }
    Ok(())
}

async fn a_huge_line_is_cut_with_the_position_to_continue(t: &Target) -> LawResult {
    let content = "x".repeat(1_000_000);
    t.put("/a.txt", content.clone()).await?;
    let result = t.read(ReadRequest::new(t.path("/a.txt")).limit(1).max_bytes(1000)).await?;
    assert_eq!(result.content.as_text().map(str::len), Some(1000));
    assert_eq!((result.truncated, result.next_byte), (Some(TruncationReason::LongLine), Some(1000)));
    assert_eq!((result.start_line, result.end_line), (1, 1));
    assert_eq!(read_on(t, "/a.txt", 300_000).await?, content.as_bytes());
    Ok(())
}

async fn a_read_without_limits_is_bounded(t: &Target) -> LawResult {
    let line = format!("{}\n", "y".repeat(1023));
    t.put("/big.txt", line.repeat(15 << 10)).await?;
    let whole = t.read(ReadRequest::new(t.path("/big.txt"))).await?;
    assert_eq!((whole.truncated, whole.content.as_bytes().len()), (None, 15 << 20));
    t.write(WriteRequest::new(t.path("/big.txt"), line.repeat(2 << 10)).mode(WriteMode::Append)).await?;
    let bounded = ends("a bounded read", t.read(ReadRequest::new(t.path("/big.txt")))).await?;
    assert!(bounded.content.as_bytes().len() as u64 <= ReadRequest::DEFAULT_MAX_BYTES);
    assert_eq!((bounded.truncated, bounded.next_offset), (Some(TruncationReason::MaxBytes), Some(16 << 10)));
    Ok(())
}

async fn a_raw_window_has_the_bytes_of_its_lines(t: &Target) -> LawResult {
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let lines = [utf16("\u{feff}one\r\n"), utf16("zwei\r\n"), utf16("drei")];
    t.put("/wide", lines.concat()).await?;
    t.put("/plain", "one\r\ntwo\n").await?;
    for (path, offset, limit, bytes, encoding) in [
        ("/wide", 0, 1, lines[0].clone(), Encoding::Utf16Le),
        ("/wide", 1, 1, lines[1].clone(), Encoding::Utf16Le),
        ("/wide", 0, 9, lines.concat(), Encoding::Utf16Le),
        ("/wide", 0, 0, Vec::new(), Encoding::Utf16Le),
        ("/plain", 0, 1, b"one\r\n".to_vec(), Encoding::Utf8),
        ("/plain", 1, 9, b"two\n".to_vec(), Encoding::Utf8),
    ] {
        let window = t.read(ReadRequest::new(t.path(path)).lines(offset, limit).raw()).await?;
        let what = format!("{path}, offset {offset} limit {limit}");
        assert!(matches!(window.content, Content::Binary { .. }), "{what}");
        assert_eq!((window.content.as_bytes(), window.encoding), (&bytes[..], Some(encoding)), "{what}");
        assert_eq!(window.bytes.end, Some(window.bytes.start + bytes.len() as u64), "{what}");
    }
    Ok(())
}

//! Windows of random texts against a naive model, and chains of windows against the whole.

use proptest::prelude::*;
use vfs_core::error::ErrorDetail;
use vfs_core::window::ByteRange;
use vfs_core::{ReadRequest, ReadResult, TruncationReason, Version, VfsPath, text, window};

fn read(content: &str, request: &ReadRequest) -> vfs_core::Result<ReadResult> {
    window::read_bytes(&content.to_owned().into(), request, Version::new("v"))
}

fn request() -> ReadRequest {
    ReadRequest::new(VfsPath::root())
}

fn lines(offset: u64, limit: Option<u64>, max_bytes: Option<u64>) -> ReadRequest {
    let mut request = request().offset(offset);
    (request.limit, request.max_bytes) = (limit, max_bytes);
    request
}

/// What a window should hold.
#[derive(Debug, PartialEq)]
struct Model {
    text: String,
    start: usize,
    lines: u64,
    truncated: Option<TruncationReason>,
}

/// The window by splitting the whole text; `Err` has the line count where `offset` is past the end.
fn model(content: &str, offset: u64, limit: u64, max_bytes: usize) -> Result<Model, u64> {
    let all: Vec<&str> = content.split_inclusive('\n').collect();
    if offset > 0 && offset >= all.len() as u64 {
        return Err(all.len() as u64);
    }
    let (skipped, rest) = all.split_at(offset as usize);
    let start = skipped.concat().len();
    let (mut text, mut lines, mut truncated) = (String::new(), 0, None);
    for line in rest {
        if lines == limit {
            truncated = Some(TruncationReason::Limit);
        } else if text.len() + line.len() <= max_bytes {
            text.push_str(line);
            lines += 1;
            continue;
        } else if lines > 0 {
            truncated = Some(TruncationReason::MaxBytes);
        } else {
            let first = line.chars().next().map_or(0, char::len_utf8);
            let length = line.floor_char_boundary(max_bytes).max(first);
            (text, lines) = (line[..length].to_owned(), 1);
            let is_all = start + length == content.len();
            truncated = (!is_all).then_some(TruncationReason::LongLine);
        }
        break;
    }
    Ok(Model { text, start, lines, truncated })
}

fn check(content: &str, request: &ReadRequest) -> Result<(), TestCaseError> {
    let max = request.max_bytes.unwrap_or(ReadRequest::DEFAULT_MAX_BYTES) as usize;
    let expected = model(content, request.offset, request.limit.unwrap_or(u64::MAX), max);
    match (read(content, request), expected) {
        (Ok(result), Ok(expected)) => {
            let text = result.content.as_text().unwrap_or_default().to_owned();
            let end = expected.start + text.len();
            prop_assert_eq!(result.bytes, ByteRange { start: expected.start as u64, end: Some(end as u64) });
            prop_assert_eq!(result.start_line, request.offset + 1);
            prop_assert_eq!(result.end_line, request.offset + expected.lines);
            let found = Model { text, start: expected.start, lines: expected.lines, truncated: result.truncated };
            prop_assert_eq!(found, expected);
        }
        (Err(error), Err(total_lines)) => {
            prop_assert_eq!(error.detail(), Some(&ErrorDetail::OffsetOutOfRange { total_lines }));
        }
        (found, expected) => prop_assert!(false, "{:?} instead of {:?}", found, expected),
    }
    Ok(())
}

/// Reads on and on as the results say, and returns all that was read.
fn chained(content: &str, limit: Option<u64>, max_bytes: u64) -> Vec<u8> {
    let mut all = Vec::new();
    let mut next = lines(0, limit, Some(max_bytes));
    loop {
        let result = read(content, &next).expect("a result that names what follows is right");
        all.extend_from_slice(result.content.as_bytes());
        next = match (result.next_byte, result.next_offset) {
            (Some(start), _) => request().bytes(start, None).max_bytes(max_bytes),
            (None, Some(offset)) => lines(offset, limit, Some(max_bytes)),
            (None, None) => return all,
        };
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "bcd", "é", "€", "😀", "\n", "\r\n", "\r", "\u{2028}"]), 0..60)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_window_equals_the_naive_model(
        content in texts(),
        offset in 0..20_u64,
        limit in prop::option::of(0..10_u64),
        max_bytes in prop::option::of(1..30_u64),
    ) {
        check(&content, &lines(offset, limit, max_bytes))?;
    }

    #[test]
    fn windows_in_a_chain_are_the_file(content in texts(), limit in prop::option::of(1..5_u64), max_bytes in 1..12_u64) {
        prop_assert_eq!(chained(&content, limit, max_bytes), content.as_bytes());
    }
}

#[test]
fn windows_of_a_large_file_equal_the_naive_model() {
    let content: String = (0..120_000).map(|line| format!("line {line} {}\n", "é".repeat(line % 40))).collect();
    assert!(content.len() > 3 << 20);
    for offset in [0, 1, 9_999, 60_000, 119_999, 120_000, u64::MAX] {
        for limit in [None, Some(0), Some(1), Some(5_000), Some(u64::MAX)] {
            for max_bytes in [None, Some(7), Some(300_000)] {
                let request = lines(offset, limit, max_bytes);
                check(&content, &request).unwrap_or_else(|error| panic!("{request:?}: {error}"));
            }
        }
    }
}

#[test]
fn a_large_utf16_file_is_cut_at_lines() {
    let content: String = (0..100_000).map(|line| format!("Zeile {line} Ċ\n")).collect();
    for encoding in ["utf-16le", "utf-16be"] {
        let encoding = vfs_core::text::Encoding::from_name(encoding).expect("known");
        let bytes = text::encode(&content, encoding).expect("encodes");
        let window = request().lines(70_000, 2);
        let result = window::read(&mut &bytes[..], &window, Version::new("v")).expect("reads");
        assert_eq!(result.content.as_text(), Some("Zeile 70000 Ċ\nZeile 70001 Ċ\n"));
        assert_eq!(result.encoding, Some(encoding));
    }
}

//! Tests of windows: equal results for small and large files, and the documented behaviour.

use proptest::prelude::*;

use super::block_reader::{MemoryBlockReader, SourceBlockReader};
use super::content_source::BLOCK_BYTES;
use super::*;
use crate::error::{ErrorDetail, ErrorKind};
use crate::path::VfsPath;
use crate::requests::{ByteRange, Content, Encoding, LineEnding, TruncationReason};

fn request() -> ReadRequest {
    ReadRequest::new(VfsPath::parse("/f").expect("valid"))
}

fn read_of(content: &[u8], request: &ReadRequest) -> Result<ReadResult> {
    read_bytes(&Bytes::copy_from_slice(content), request, Version::new("v"))
}

/// A source that gives a few bytes at a time and says any size.
struct Trickle<'a> {
    content: &'a [u8],
    says: u64,
    step: usize,
}

impl ContentSource for Trickle<'_> {
    fn size(&self) -> u64 {
        self.says
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut room = buffer.len().min(self.step);
        if offset + room as u64 == self.says {
            // Stopping there would mean that the file ends there.
            room = buffer.len().min(room + 1);
        }
        (&mut &*self.content).read_at(offset, &mut buffer[..room])
    }
}

/// A source that never ends.
struct Endless;

impl ContentSource for Endless {
    fn size(&self) -> u64 {
        0
    }

    fn read_at(&mut self, _: u64, buffer: &mut [u8]) -> Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

#[test]
fn windows_of_lines() {
    let text = "one\ntwo\r\nthree";
    for (request, expected, lines, total, next, truncated, ending) in [
        (request(), text, (1, 3), Some(3), None, None, LineEnding::Mixed),
        (request().lines(0, 1), "one\n", (1, 1), Some(3), Some(1), Some(TruncationReason::Limit), LineEnding::Lf),
        (request().lines(1, 1), "two\r\n", (2, 2), Some(3), Some(2), Some(TruncationReason::Limit), LineEnding::Crlf),
        (request().lines(2, 9), "three", (3, 3), Some(3), None, None, LineEnding::None),
        (request().lines(1, 0), "", (2, 1), Some(3), Some(1), Some(TruncationReason::Limit), LineEnding::None),
        (
            request().max_bytes(9),
            "one\ntwo\r\n",
            (1, 2),
            Some(3),
            Some(2),
            Some(TruncationReason::MaxBytes),
            LineEnding::Mixed,
        ),
        (request().max_bytes(8), "one\n", (1, 1), Some(3), Some(1), Some(TruncationReason::MaxBytes), LineEnding::Lf),
        (
            request().offset(2).limit(u64::MAX).max_bytes(u64::MAX),
            "three",
            (3, 3),
            Some(3),
            None,
            None,
            LineEnding::None,
        ),
    ] {
        let result = read_of(text.as_bytes(), &request).expect("reads");
        assert_eq!(result.content, Content::Text(expected.into()), "{request:?}");
        assert_eq!((result.start_line, result.end_line), lines, "{request:?}");
        assert_eq!((result.total_lines, result.next_offset, result.truncated), (total, next, truncated), "{request:?}");
        assert_eq!((result.line_ending, result.size), (ending, 14), "{request:?}");
        assert_eq!((result.next_byte, result.encoding), (None, Some(Encoding::Utf8)), "{request:?}");
    }
}

#[test]
fn a_line_that_does_not_fit_is_cut_after_a_whole_character() {
    for (text, max, expected, next_byte, next_offset) in [
        ("aé€x\nend\n", 2, "a", 1, Some(1)),
        ("aé€x\nend\n", 3, "aé", 3, Some(1)),
        ("€€\n", 1, "€", 3, None),
        ("a\r\nb", 2, "a\r", 2, Some(1)),
    ] {
        let result = read_of(text.as_bytes(), &request().max_bytes(max)).expect("reads");
        assert_eq!(result.content.as_text(), Some(expected), "{text:?} {max}");
        assert_eq!((result.next_byte, result.next_offset), (Some(next_byte), next_offset), "{text:?} {max}");
        assert_eq!(result.truncated, Some(TruncationReason::LongLine));
        assert_eq!((result.start_line, result.end_line), (1, 1));
    }
}

#[test]
fn an_empty_file_has_no_lines() {
    for limit in [None, Some(0), Some(1)] {
        let result = read_of(b"", &ReadRequest { limit, ..request() }).expect("reads");
        assert_eq!(result.content, Content::Text(String::new()));
        assert_eq!((result.start_line, result.end_line, result.total_lines), (1, 0, Some(0)));
        assert_eq!((result.truncated, result.next_offset, result.size), (None, None, 0));
    }
    let mark_only = read_of(b"\xFF\xFE", &request()).expect("reads");
    assert_eq!((mark_only.content.as_text(), mark_only.total_lines), (Some(""), Some(0)));
}

#[test]
fn past_the_end_names_the_line_count() {
    for (content, offset, total_lines) in
        [("", 1, 0), ("a", 1, 1), ("a\n", 1, 1), ("a\nb", 2, 2), ("a\nb\n", 2, 2), ("a\nb\n", u64::MAX, 2)]
    {
        for limit in [None, Some(0), Some(u64::MAX)] {
            let error =
                read_of(content.as_bytes(), &ReadRequest { limit, ..request().offset(offset) }).expect_err(content);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert_eq!(error.detail(), Some(&ErrorDetail::OffsetOutOfRange { total_lines }));
            assert_eq!(error.path(), Some("/f"));
            let words = format!("Error: Line offset {offset} exceeds file length ({total_lines} lines)");
            assert_eq!(error.for_model(), words);
        }
    }
}

#[test]
fn arguments_that_contradict_are_refused() {
    for request in [
        request().bytes(0, None).offset(1),
        request().bytes(0, None).limit(1),
        request().bytes(2, Some(1)),
        request().bytes(4, None),
        request().bytes(u64::MAX, None),
        request().max_bytes(0),
        request().bytes(0, None).max_bytes(0),
    ] {
        let error = read_of(b"abc", &request).expect_err("refused");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some("/f")), "{request:?}");
        let error = read(&mut &b"abc"[..], &request, Version::new("v")).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{request:?}");
    }
}

#[test]
fn ranges_of_bytes() {
    let content = "aé€\0\n".as_bytes();
    for (request, expected, next_byte, truncated) in [
        (request().bytes(0, None), content, None, None),
        (request().bytes(8, None), b"", None, None),
        (request().bytes(0, Some(3)), "aé".as_bytes(), Some(3), None),
        (request().bytes(1, Some(2)), b"\xC3", Some(2), None),
        (request().bytes(0, Some(u64::MAX)).max_bytes(2), b"a", Some(1), Some(TruncationReason::MaxBytes)),
        (request().bytes(1, None).max_bytes(1), b"\xC3", Some(2), Some(TruncationReason::MaxBytes)),
        (request().bytes(6, Some(7)), b"\0", Some(7), None),
    ] {
        let result = read_of(content, &request).expect("reads");
        assert_eq!(result.content.as_bytes(), expected, "{request:?}");
        assert_eq!(result.content.as_text().is_some(), std::str::from_utf8(expected).is_ok(), "{request:?}");
        assert_eq!((result.next_byte, result.truncated), (next_byte, truncated), "{request:?}");
        assert_eq!((result.start_line, result.end_line, result.size), (0, 0, 8), "{request:?}");
        let start = request.bytes.expect("a range").start;
        assert_eq!(result.bytes, ByteRange { start, end: Some(start + expected.len() as u64) }, "{request:?}");
    }
}

#[test]
fn binary_content_is_bytes_with_a_type() {
    let png = [b"\x89PNG\r\n\x1a\n", &[0; 100][..]].concat();
    let result = read_of(&png, &request().limit(1).max_bytes(10)).expect("reads");
    let Content::Binary { bytes, mime_type } = &result.content else { panic!("a picture is not text") };
    assert_eq!((bytes.as_ref(), mime_type.as_str()), (&png[..10], "image/png"));
    assert_eq!((result.next_byte, result.truncated), (Some(10), Some(TruncationReason::MaxBytes)));
    assert_eq!((result.start_line, result.encoding, result.total_lines), (0, None, None));
    for lines in [request().offset(1), request().lines(500, 0)] {
        assert_eq!(read_of(&png, &lines.max_bytes(10)), Ok(result.clone()), "there are no lines to skip");
    }
}

#[test]
fn other_encodings_are_decoded_and_named() {
    let utf16: Vec<u8> =
        [b"\xFF\xFE".to_vec(), "ä\nbö\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    let result = read_of(&utf16, &request().lines(1, 1)).expect("reads");
    assert_eq!((result.content.as_text(), result.encoding), (Some("bö\r\n"), Some(Encoding::Utf16Le)));
    assert_eq!((result.bytes, result.total_lines), (ByteRange { start: 6, end: Some(14) }, Some(2)));
    let latin = read_of(b"caf\xE9\nna\xEFve\n", &request().offset(1)).expect("reads");
    assert_eq!((latin.content.as_text(), latin.encoding), (Some("naïve\n"), Encoding::from_name("windows-1252")));
    let marked = read_of(b"\xEF\xBB\xBFa", &request()).expect("reads");
    assert_eq!((marked.content.as_text(), marked.encoding), (Some("\u{FEFF}a"), Some(Encoding::Utf8Bom)));
}

#[test]
fn a_bad_byte_deep_in_a_large_file_is_never_replaced() {
    let mut content = b"plain\n".repeat(300_000);
    content.extend_from_slice(b"caf\xE9 cr\xE8me\nlast \xFF\x01\x02\x03\x04\n");
    let legacy = read_of(&content, &request().lines(300_000, 1)).expect("reads");
    assert_eq!(
        (legacy.content.as_text(), legacy.encoding),
        (Some("café crème\n"), Encoding::from_name("windows-1252"))
    );
    let binary = read_of(&content, &request().lines(300_001, 1)).expect("reads");
    assert_eq!(binary.content.as_bytes(), b"last \xFF\x01\x02\x03\x04\n");
    assert_eq!((binary.content.as_text(), binary.encoding), (None, None));
}

#[test]
fn a_file_that_says_zero_is_read_to_its_end_within_a_bound() {
    let content = "cpu 1\n".repeat(400_000);
    for length in [12, content.len()] {
        let mut source = Trickle { content: &content.as_bytes()[..length], says: 0, step: 4_000 };
        let result = read(&mut source, &request(), Version::new("v")).expect("reads");
        assert_eq!((result.content.as_text(), result.size), (Some(&content[..length]), length as u64));
        let range = read(&mut source, &request().bytes(6, Some(9)), Version::new("v")).expect("reads");
        assert_eq!(range.content.as_text(), Some("cpu"));
    }
    let window = read(&mut Endless, &request().max_bytes(10), Version::new("v")).expect("bounded by the window");
    assert_eq!((window.content.as_text(), window.truncated), (Some("xxxxxxxxxx"), Some(TruncationReason::LongLine)));
    let error = read(&mut Endless, &request().offset(1), Version::new("v")).expect_err("bounded by the scan");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(prop::sample::select(vec!["a", "bc", "é", "€", "😀", "\n", "\r\n", "\r"]), 0..40)
        .prop_map(|parts| parts.concat());
    (text, 0..3).prop_map(|(text, encoding)| {
        let encoding = [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be][encoding as usize];
        crate::text::encode(&text, encoding).expect("holds every character")
    })
}

/// Some megabytes of lines, of which some end at the boundaries of blocks, just before or after them, or nowhere near.
fn long_texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (1..200_usize, 1..2_000_usize).prop_map(|(length, times)| format!("{}\n", "x".repeat(length)).repeat(times)),
        (BLOCK_BYTES - 2..BLOCK_BYTES + 2).prop_map(|length| format!("{}\r\n", "é".repeat(length / 2))),
        Just("\n".repeat(BLOCK_BYTES)),
        Just("y".repeat(2 * BLOCK_BYTES)),
    ];
    let encoding = prop::sample::select(vec![Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be]);
    (prop::collection::vec(piece, 8..16), encoding).prop_map(|(pieces, encoding)| {
        let mut content = crate::text::encode(&pieces.concat(), encoding).expect("holds every character");
        content.resize(content.len().max(SMALL_SOURCE_BYTES + 2), b' ');
        content
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn an_index_never_changes_a_window(content in long_texts(), offsets in prop::collection::vec(0..120_u64, 1..20)) {
        let total = memchr::memchr_iter(b'\n', &content).count() as u64;
        let mut index = LineIndex::new();
        for offset in offsets {
            // Any line, and some past the end.
            let request = request().lines(offset * total / 100, 3).max_bytes(1 << 19);
            let plain = read(&mut content.as_slice(), &request, Version::new("v"));
            let indexed = read_indexed(&mut content.as_slice(), &mut index, &request, Version::new("v"));
            prop_assert_eq!(indexed, plain);
        }
    }
}

/// A source that counts the bytes read from it.
struct Counting<'a> {
    content: &'a [u8],
    calls: u64,
    read: u64,
}

impl ContentSource for Counting<'_> {
    fn size(&self) -> u64 {
        self.content.size()
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let count = self.content.read_at(offset, buffer)?;
        self.calls += 1;
        self.read += count as u64;
        Ok(count)
    }
}

#[test]
fn a_small_file_is_read_in_one_go() {
    let content = "a line\n".repeat(600);
    for request in [request(), request().lines(3, 2), request().lines(599, 9), request().bytes(7, None)] {
        let mut source = Counting { content: content.as_bytes(), calls: 0, read: 0 };
        read(&mut source, &request, Version::new("v")).expect("reads");
        assert_eq!((source.calls, source.read <= 4_200), (1, true), "{request:?}");
    }
}

#[test]
fn a_read_starts_at_the_nearest_indexed_position() {
    let content = "a line of a huge file\n".repeat(500_000).into_bytes();
    let mut index = LineIndex::new();
    let mut cost = |offset| {
        let mut source = Counting { content: &content, calls: 0, read: 0 };
        let request = request().lines(offset, 100);
        read_indexed(&mut source, &mut index, &request, Version::new("v")).expect("reads");
        source.read
    };
    assert!(cost(0) < 2 * BLOCK_BYTES as u64, "the rest of the file is not read for a window at its beginning");
    assert!(cost(400_000) > 8_000_000, "the index is still empty");
    for offset in [400_000, 400_100, 300_000, 10, 409_000] {
        assert!(cost(offset) < 4 * BLOCK_BYTES as u64, "{offset}");
    }
}

#[test]
fn small_files_and_files_with_a_wrong_size_are_not_indexed() {
    let content = "cpu 1\n".repeat(400_000);
    for (content, says) in [(&content[..60_000], 60_000), (&content, 0)] {
        let mut source = Trickle { content: content.as_bytes(), says, step: 1 << 16 };
        let mut index = LineIndex::new();
        read_indexed(&mut source, &mut index, &request().lines(9_000, 1), Version::new("v")).expect("reads");
        assert_eq!(index.reach(), 0);
    }
}

proptest! {
    #[test]
    fn every_way_to_a_file_gives_the_same_window(
        content in texts(),
        offset in 0..12_u64,
        limit in prop::option::of(0..8_u64),
        max_bytes in prop::option::of(1..20_u64),
        step in 1..9_usize,
        says in 0..3_usize,
    ) {
        let request = ReadRequest { offset, limit, max_bytes, ..request() };
        let version = || Version::new("v");
        let expected = read_of(&content, &request);
        let says = [0, 7, content.len()][says] as u64;
        let mut source = Trickle { content: &content, says, step };
        prop_assert_eq!(&read(&mut source, &request, version()), &expected);
        let without_total = |result: Result<ReadResult>| {
            result.map(|result| ReadResult { total_lines: None, size: 0, ..result }).map_err(|error| error.for_model())
        };
        let in_memory = line_window::read_large(&mut MemoryBlockReader(&content), None, &request, version());
        prop_assert_eq!(without_total(in_memory), without_total(expected.clone()));
        let buffered = line_window::read_large(&mut SourceBlockReader::new(&mut source), None, &request, version());
        prop_assert_eq!(without_total(buffered), without_total(expected));
    }
}

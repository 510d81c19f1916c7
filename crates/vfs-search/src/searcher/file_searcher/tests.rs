//! Tests of long files, and of files that exceed the limits of a search.

use bytes::Bytes;
use vfs_core::{GrepOutput, GrepRequest, Pattern};

use super::*;
use crate::searcher::encoding::BINARY_WINDOW;

struct Collected(Vec<SearchItem>);

impl ItemSink for Collected {
    fn put(&mut self, item: SearchItem) -> std::ops::ControlFlow<()> {
        self.0.push(item);
        std::ops::ControlFlow::Continue(())
    }
}

/// Repeats the same line.
struct RepeatedLineReader {
    line: Vec<u8>,
    at: usize,
}

impl Read for RepeatedLineReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.line.len() - self.at);
        buffer[..length].copy_from_slice(&self.line[self.at..self.at + length]);
        self.at = (self.at + length) % self.line.len();
        Ok(length)
    }
}

fn search(req: &GrepRequest, opened: SearchableContent) -> Vec<SearchItem> {
    search_for(&CompiledGrepRequest::new(req).expect("a valid request"), opened)
}

fn search_for(query: &CompiledGrepRequest, opened: SearchableContent) -> Vec<SearchItem> {
    let mut items = Collected(Vec::new());
    let mut searcher = FileSearcher::new(query);
    searcher.search(query, Ok(opened), &|| VfsPath::parse("/f"), &mut items, &|| false);
    items.0
}

fn problem(items: &[SearchItem]) -> Option<ErrorKind> {
    items.iter().find_map(|item| if let SearchItem::Problem(problem) = item { Some(problem.code) } else { None })
}

#[test]
fn a_file_that_far_exceeds_its_stated_size_is_not_read_to_its_end() {
    let mut line = vec![b'x'; 64 << 10];
    line.push(b'\n');
    let more = MAX_EXCESS_BYTES * 2;
    for (size, expected) in [(0, Some(ErrorKind::TooLarge)), (more, None)] {
        let again = RepeatedLineReader { line: line.clone(), at: 0 };
        let reader = again.take(more);
        assert_eq!(problem(&search(&GrepRequest::literal("hit"), SearchableContent::reader(reader, size))), expected);
    }
}

#[test]
fn a_line_that_is_too_long_for_a_heavy_expression_is_a_problem_in_bytes_and_in_readers() {
    let text = [vec![b'a'; 200 << 10], b"\n".to_vec()].concat();
    for (regex, expected) in [("b{10000}", Some(ErrorKind::TooLarge)), ("b{100}", None)] {
        for req in [GrepRequest::regex(regex), GrepRequest::regex(regex).multiline()] {
            let (bytes, size) = (Bytes::from(text.clone()), text.len() as u64);
            let reader = io::Cursor::new(text.clone());
            for opened in [SearchableContent::from(bytes), SearchableContent::reader(reader, size)] {
                assert_eq!(problem(&search(&req, opened)), expected, "{regex}");
            }
        }
    }
}

#[test]
fn a_literal_is_found_in_a_long_file_as_in_a_short_one() {
    // Lines of all lengths, one of them longer than several reads, so that matches lie on every kind of border.
    let line = |at: usize| match at {
        700 => "y".repeat(900 << 10) + " hit in a long line " + &"y".repeat(300 << 10),
        3000 => "a hit beyond the window for \0".to_owned(),
        at if at.is_multiple_of(97) => format!("{} hit {at} hit\r", "x".repeat(at % 1000)),
        at => "z".repeat(at * 31 % 3000),
    };
    for last in ["", "\n", "\nhit at the end"] {
        let text = (0..4000).map(line).collect::<Vec<_>>().join("\n") + last;
        assert!(text.len() > 4 * BINARY_WINDOW);
        let limited = GrepRequest::literal("hit").limit_per_file(30);
        let requests = [
            GrepRequest::literal("hit"),
            GrepRequest::literal("hit").output(GrepOutput::Counts),
            GrepRequest::literal("hit").output(GrepOutput::Files),
            GrepRequest::literal("nowhere"),
            limited,
        ];
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{text}");
            for req in &requests {
                let whole = search(req, SearchableContent::from(Bytes::from(text.clone())));
                let read = search(req, SearchableContent::reader(io::Cursor::new(text.clone()), text.len() as u64));
                assert_eq!(format!("{read:?}"), format!("{whole:?}"), "{req:?}");
                // This variant of the pattern is not searched as a literal.
                let mut other = req.clone();
                other.pattern = Pattern::Regex(format!("{}|no such text", req.pattern.as_str()));
                let by_expression =
                    search(&other, SearchableContent::reader(io::Cursor::new(text.clone()), text.len() as u64));
                assert_eq!(format!("{read:?}"), format!("{by_expression:?}"), "{req:?}");
                let is_found = whole.iter().any(|item| matches!(item, SearchItem::Match(_) | SearchItem::File(_)));
                assert_eq!(is_found, req.pattern.as_str() == "hit", "{req:?}");
            }
        }
    }
}

#[test]
fn a_long_file_is_not_read_further_once_the_search_is_interrupted() {
    let query = CompiledGrepRequest::new(&GrepRequest::literal("hit")).expect("a valid request");
    let mut items = Collected(Vec::new());
    let looks = std::cell::Cell::new(0);
    let is_interrupted = || {
        looks.set(looks.get() + 1);
        looks.get() > 30
    };
    let line = b"a line without it, of some length\n".to_vec();
    let opened = SearchableContent::reader(RepeatedLineReader { line, at: 0 }.take(1 << 40), 1 << 40);
    FileSearcher::new(&query).search(&query, Ok(opened), &|| VfsPath::parse("/f"), &mut items, &is_interrupted);
    assert_eq!(looks.get(), 31);
    assert!(items.0.is_empty());
}

#[test]
fn a_line_that_is_too_long_for_a_literal_is_a_problem() {
    let limit = CompiledGrepRequest::new(&GrepRequest::literal("hit")).expect("a valid request").heap_limit as u64;
    let endless = || io::Cursor::new("hit\n").chain(io::repeat(b'x').take(limit + (1 << 20)));
    let items = search(&GrepRequest::literal("hit"), SearchableContent::reader(endless(), limit + (2 << 20)));
    assert_eq!(items.iter().filter(|item| matches!(item, SearchItem::Match(_))).count(), 1);
    assert_eq!(problem(&items), Some(ErrorKind::TooLarge));
}

#[test]
fn a_slow_search_within_one_line_ends_once_it_is_interrupted() {
    let text = Bytes::from("a".repeat(64 << 10));
    let all = GrepRequest::regex("[ab]*c|a");
    let spanning = GrepRequest::regex(r"[ab\n]*c|a").multiline();
    let counts = spanning.clone().output(GrepOutput::Counts);
    // A case in which the `\r` of a line ending is matched and skipped.
    let endings = Bytes::from("\r\n".repeat(32 << 10));
    let endings = (GrepRequest::regex(r"[^b]*b|\r").multiline(), endings);
    // A case with many matches, none of which causes a rescan.
    let lines = Bytes::from("\n".repeat(64 << 10));
    let [empty, short, words] = [r"^", r"a\n?", r"\b|\n{0}$"].map(|regex| GrepRequest::regex(regex).multiline());
    let count = empty.clone().output(GrepOutput::Counts);
    let quick =
        [(empty, lines.clone()), (count, lines), (short, text.clone()), (words, Bytes::from("a ".repeat(32 << 10)))];
    for (req, text) in [(all, text.clone()), (spanning, text.clone()), (counts, text), endings].into_iter().chain(quick)
    {
        let query = CompiledGrepRequest::new(&req).expect("a valid request");
        let mut items = Collected(Vec::new());
        let looks = std::cell::Cell::new(0);
        let is_interrupted = || {
            looks.set(looks.get() + 1);
            looks.get() > 10
        };
        let opened = SearchableContent::from(text);
        FileSearcher::new(&query).search(&query, Ok(opened), &|| VfsPath::parse("/f"), &mut items, &is_interrupted);
        assert_eq!(looks.get(), 11, "{req:?}");
        assert!(items.0.is_empty(), "{req:?}");
    }
}

#[test]
fn a_multiline_search_for_files_ends_at_the_first_match() {
    let req = GrepRequest::regex(r"[ab\n]*c|a").multiline().output(GrepOutput::Files);
    let query = CompiledGrepRequest::new(&req).expect("a valid request");
    let mut items = Collected(Vec::new());
    let looks = std::cell::Cell::new(0);
    let is_interrupted = || {
        looks.set(looks.get() + 1);
        false
    };
    let opened = SearchableContent::from(Bytes::from("a".repeat(64 << 10)));
    FileSearcher::new(&query).search(&query, Ok(opened), &|| VfsPath::parse("/f"), &mut items, &is_interrupted);
    assert!(matches!(&items.0[..], [SearchItem::File(_), SearchItem::Done { searched: true, .. }]), "{:?}", items.0);
    assert!((1..=2).contains(&looks.get()), "one match was looked for: {}", looks.get());
}

#[test]
fn lines_of_context_do_not_count_for_the_length_of_a_line() {
    // An expression so heavy that a line may have only some 100 KB.
    let heavy = || GrepRequest::regex("x{10000}|hit");
    let limit = CompiledGrepRequest::new(&heavy()).expect("a valid request").heap_limit;
    let text = format!("{}\n", "y".repeat(8 << 10)).repeat(100) + "hit\n";
    assert!(text.len() > 4 * limit);
    let long = format!("{}\nhit\n", "y".repeat(limit + 1));
    let lends = |text: &str| {
        let reader = SearchableContent::reader(io::Cursor::new(text.to_owned()), text.len() as u64);
        [SearchableContent::from(Bytes::from(text.to_owned())), reader]
    };
    for (before, after) in [(90, 0), (90, 90), (0, 1), (10_000, 0)] {
        let mut query = CompiledGrepRequest::new(&heavy().context(before, after)).expect("a valid request");
        for opened in lends(&text) {
            let items = search_for(&query, opened);
            assert_eq!(problem(&items), None, "{before} {after}");
            let lines =
                items.iter().filter(|item| matches!(item, SearchItem::Before(_) | SearchItem::Match(_))).count();
            assert_eq!(lines, before.min(100) as usize + 1);
        }
        for opened in lends(&long) {
            let items = search_for(&query, opened);
            let message =
                items.iter().find_map(|item| if let SearchItem::Problem(it) = item { Some(&it.message) } else { None });
            let expected = format!("a line of over {limit} bytes");
            assert!(message.is_some_and(|message| message.contains(&expected)), "{message:?}");
        }
        // A character of UTF-16 is two bytes, and counts as one character.
        let wide = format!("\u{feff}{}\nhit\n", "y".repeat(limit * 2 / 3));
        let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let items = search_for(&query, SearchableContent::from(Bytes::from(wide)));
        assert_eq!(
            (problem(&items), items.iter().filter(|item| matches!(item, SearchItem::Match(_))).count()),
            (None, 1)
        );
        // If the context is too long, not all of it is buffered, and the error says so.
        query.context_limit = 64 << 10;
        for opened in lends(&text).into_iter().filter(|_| before > 0) {
            let items = search_for(&query, opened);
            let message =
                items.iter().find_map(|item| if let SearchItem::Problem(it) = item { Some(&it.message) } else { None });
            let expected = "ask for fewer lines of context";
            assert!(message.is_some_and(|message| message.contains(expected)), "{message:?}");
        }
    }
}

//! The native tool `read`: ranges, definitions, and what a page says of itself.

use std::iter;

use serde_json::json;
use vfs_core::{Backend as _, OpContext, VfsPath, WriteMode, WriteRequest};

use crate::native_tools::{call, continuation, run, text, tools_over};

#[test]
fn a_read_says_and_remembers_only_what_it_shows() {
    let lines = "x\n".repeat(9_000);
    let (_, tools) = tools_over(&[("/a", &lines)]);
    let page = text(&tools, "read", &json!({ "path": "/a", "lines": "1-" }));
    let shown = page.lines().filter(|line| line.ends_with("\tx")).count();
    assert!(page.starts_with(&format!("/a 1-{shown} ")) && page.contains(&format!("more: lines=\"{}-\"", shown + 1)));
    let known = text(&tools, "read", &json!({ "path": "/a", "lines": [1, shown] }));
    assert!(known.contains(" is unchanged since you read it"), "{known}");
}

#[test]
fn a_long_path_takes_no_bytes_from_the_pages_of_a_long_line() {
    let path = format!("/{}", vec!["p".repeat(99); 5].join("/"));
    let line: String = (0..2_000).map(|number| format!("{number} ")).collect();
    let (_, tools) = tools_over(&[(&path, &line)]);
    let tools = tools.max_characters(2_000);
    let first = text(&tools, "read", &json!({ "path": path }));
    let mut whole = first.lines().nth(1).and_then(|line| line.split_once('\t')).expect("a numbered line").1.to_owned();
    let mut bytes = continuation(&first, "bytes=\"");
    while let Some(range) = bytes {
        let page = text(&tools, "read", &json!({ "path": path, "bytes": range }));
        whole.push_str(page.lines().nth(1).expect("a part of the line"));
        bytes = continuation(&page, "more: bytes=\"");
    }
    assert_eq!(whole, line);
}

#[test]
fn a_line_that_is_longer_as_text_than_in_its_file_is_said_to_be_cut() {
    let (files, tools) = tools_over(&[]);
    let tools = tools.max_characters(2_000);
    for (text, end) in [
        ("文".repeat(345), "[line cut]\n[line 1 is too long to be shown]"),
        ("a".repeat(500) + "\nnext\n", "[line 1 is too long to be shown; more: lines=\"2-\"]"),
        ("文".repeat(150_000) + "\nnext\n", "[line 1 is too long to be shown; more: lines=\"2-\"]"),
        ("文".repeat(345) + "\nnext\n", "[line cut]\n[line 1 is too long to be shown; more: lines=\"2-\"]"),
    ] {
        let content: Vec<u8> = iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let request = WriteRequest::new(VfsPath::parse("/a").expect("a path"), content).mode(WriteMode::Overwrite);
        run(files.write(&OpContext::new(), request)).expect("it is written");
        let page = call(&tools, "read", &json!({ "path": "/a" }));
        assert!(page.is_truncated && page.to_text().ends_with(end), "{}", page.to_text());
    }
}

#[test]
fn a_read_takes_the_range_parameters_of_other_tools() {
    for (arguments, expected) in [
        (json!({ "offset": 2, "limit": 2 }), "2\t2\n3\t3\n[2 lines more: lines=\"4-\"]"),
        (json!({ "start_line": 4 }), "4\t4\n5\t5"),
        (json!({ "start_line": 4, "end_line": 4 }), "4\t4\n[1 line more: lines=\"5-\"]"),
        (json!({ "limit": 1 }), "1\t1\n[4 lines more: lines=\"2-\"]"),
        (json!({ "offset": 0, "limit": 0 }), "1\t1\n2\t2\n3\t3\n4\t4\n5\t5"),
        (json!({ "offset": 4, "end_line": -1 }), "4\t4\n5\t5"),
        (json!({ "start_line": 5, "end_line": 2 }), "5\t5"),
        (json!({ "offset": i64::MAX, "limit": i64::MAX, "lines": "5" }), "5\t5"),
        (json!({ "lines": [2, 3] }), "2\t2\n3\t3\n[2 lines more: lines=\"4-\"]"),
        (json!({ "lines": [4, -1], "limit": 1 }), "4\t4\n5\t5"),
    ] {
        let (_, tools) = tools_over(&[("/a", "1\n2\n3\n4\n5\n")]);
        let mut arguments = arguments;
        arguments["path"] = "/a".into();
        let shown = text(&tools, "read", &arguments);
        assert_eq!(shown.split_once('\n').map(|(_, lines)| lines), Some(expected), "{arguments}: {shown}");
    }
    let (_, tools) = tools_over(&[("/a", "1\n")]);
    let noted = text(&tools, "read", &json!({ "path": "/a", "offset": {}, "limit": "some" }));
    let notes = "\n[`offset` is not a parameter and was ignored]\n[`limit` is not a parameter and was ignored]";
    assert!(noted.contains("1\t1") && noted.ends_with(notes), "{noted}");
}

#[test]
fn a_symbol_may_be_qualified_by_its_owner() {
    let code = "impl One {\n    fn new() {}\n}\nimpl<T> Two<T> {\n    fn new() {}\n}\nfn parse_all() {}\n";
    let (_, tools) = tools_over(&[("/a.rs", code), ("/a.go", "func (s *One) New() {}\nfunc (s *Two) New() {}\n")]);
    for (path, symbol, shown, left_out) in [
        ("/a.rs", "Two::new", "5\t", Some("2\t")),
        ("/a.rs", "Two.new", "5\t", Some("2\t")),
        ("/a.rs", "Two<u8>::new", "5\t", Some("2\t")),
        ("/a.rs", "new", "2\t", None),
        ("/a.rs", "Three::new", "2\t", None),
        ("/a.go", "Two.New", "2\t", Some("1\t")),
    ] {
        let words = text(&tools, "read", &json!({ "path": path, "symbol": symbol }));
        let has = |start: &str| words.lines().any(|line| line.starts_with(start));
        assert!(has(shown) && !left_out.is_some_and(has), "{path} {symbol}: {words}");
    }
    let missing = text(&tools, "read", &json!({ "path": "/a.rs", "symbol": "parse" }));
    assert!(missing.contains("near it: parse_all"), "{missing}");
}

//! Requests as JSON: defaults of omitted fields, and invalid requests.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vfs_core::edit::Replacement;
use vfs_core::multi_modal::MultiModalReadRequest;
use vfs_core::search::{HiddenNames, IgnoreMode, InvertMatch, MatchBoundary, MultilineMode};
use vfs_core::shell::TerminalSize;
use vfs_core::window::ByteRange;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, ExecuteRequest, FileUploadRequest, GlobRequest, GrepRequest, LsRequest,
    ReadRequest, RenameRequest, StatRequest, VfsPath, WriteRequest,
};

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("valid")
}

#[track_caller]
fn check<T: DeserializeOwned + PartialEq + Debug>(minimal: Value, expected: T) {
    let read = serde_json::from_value::<T>(minimal.clone()).expect("what is left out has a default");
    assert_eq!(read, expected, "{minimal}");
    let mut unknown = minimal.clone();
    unknown["no_such_field"] = json!(1);
    assert!(serde_json::from_value::<T>(unknown).is_err(), "an unknown field is refused beside {minimal}");
    for required in minimal.as_object().expect("an object").keys() {
        let mut missing = minimal.clone();
        missing.as_object_mut().expect("an object").remove(required);
        assert!(serde_json::from_value::<T>(missing).is_err(), "{required} is required in {minimal}");
    }
}

#[test]
fn omitted_fields_have_defaults_and_unknown_fields_are_errors() {
    check(json!({"path": "/a"}), StatRequest::new(path("/a")));
    check(json!({"path": "/a"}), ReadRequest::new(path("/a")));
    check(json!({"path": "a//b/", "content": "x"}), WriteRequest::new(path("/a/b"), "x"));
    check(json!({"path": "/a", "content_base64": "/w=="}), WriteRequest::new(path("/a"), &b"\xFF"[..]));
    check(json!({"path": "/a"}), DeleteRequest::new(path("/a")));
    check(json!({"from": "/a", "to": "/b"}), RenameRequest::new(path("/a"), path("/b")));
    check(json!({"from": "/a", "to": "/b"}), CopyRequest::new(path("/a"), path("/b")));
    check(json!({"pattern": "*.rs"}), GlobRequest::new("*.rs"));
    check(json!({"pattern": "x"}), GrepRequest::literal("x"));
    check(json!({"pattern": {"regex": "x+"}}), GrepRequest::regex("x+"));
    check(json!({"path": "/a", "content": "x"}), FileUploadRequest::new(path("/a"), "x"));
    check(json!({"command": "ls"}), ExecuteRequest::new("ls"));
    check(json!({"read": {"path": "/a"}}), MultiModalReadRequest::new(ReadRequest::new(path("/a"))));
    assert_eq!(serde_json::from_value::<LsRequest>(json!({})).ok(), Some(LsRequest::new(VfsPath::root())));
    assert!(serde_json::from_value::<LsRequest>(json!({"paths": "/"})).is_err());
}

#[test]
fn null_is_the_default() {
    #[track_caller]
    fn check<T: DeserializeOwned + PartialEq + Debug>(minimal: Value, optional: &[&str]) {
        let expected = serde_json::from_value::<T>(minimal.clone()).expect("valid");
        let mut all = minimal;
        for field in optional {
            all[field] = Value::Null;
        }
        assert_eq!(serde_json::from_value::<T>(all.clone()).expect("null is a default"), expected, "{all}");
    }
    let path = json!({"path": "/a"});
    check::<ReadRequest>(path.clone(), &["offset", "limit", "bytes", "max_bytes"]);
    check::<WriteRequest>(json!({"path": "/a", "content": "x"}), &["content_base64", "mode", "modified_at"]);
    let edit = &["replacements", "replace_all", "line_endings", "expected_version", "mode", "diff"];
    check::<EditRequest>(json!({"path": "/a", "old": "x", "new": "y"}), edit);
    check::<DeleteRequest>(path, &["recursive", "expected_version", "scope"]);
    check::<RenameRequest>(json!({"from": "/a", "to": "/b"}), &["mode"]);
    check::<CopyRequest>(json!({"from": "/a", "to": "/b"}), &["mode"]);
    check::<LsRequest>(json!({}), &["path", "recursive", "max_depth", "limit"]);
    check::<GlobRequest>(json!({"pattern": "*"}), &["path", "kinds", "hidden", "no_ignore", "links", "limit"]);
    let grep = [
        ["path", "glob", "file_types", "case", "whole_word", "multiline", "invert"],
        ["before", "after", "output", "limit", "limit_per_file", "hidden", "no_ignore"],
        ["binary", "links", "max_file_size", "max_line_bytes", "max_result_bytes", "path", "glob"],
    ];
    check::<GrepRequest>(json!({"pattern": "x"}), &grep.concat());
    let execute = ["cwd", "env", "base_env", "timeout", "stdin", "max_output_bytes", "full_output", "terminal", "run"];
    check::<ExecuteRequest>(json!({"command": "x"}), &execute);
    assert!(serde_json::from_value::<ReadRequest>(json!({"path": null})).is_err(), "a path is required");
}

#[test]
fn whole_numbers_may_have_a_decimal_point() {
    let read = |value: Value| serde_json::from_value::<ReadRequest>(value);
    let expected = ReadRequest::new(path("/a")).lines(2, 100);
    assert_eq!(read(json!({"path": "/a", "offset": 2.0, "limit": 1e2})).expect("whole"), expected);
    assert_eq!(
        serde_json::from_str::<ReadRequest>(r#"{"path": "/a", "offset": 2.0, "limit": 100}"#).expect("whole"),
        expected
    );
    let bytes = read(json!({"path": "/a", "bytes": {"start": 1.0, "end": 3.0}})).expect("whole");
    assert_eq!(bytes.bytes, Some(ByteRange { start: 1, end: Some(3) }));
    for number in [json!(1.5), json!(-1), json!(-1.0), json!(1e300), json!("1"), json!(true)] {
        let error = read(json!({"path": "/a", "offset": number})).expect_err("not a whole number").to_string();
        assert!(error.contains("expected a whole number, 0 or more"), "{number}: {error}");
    }
    let error =
        serde_json::from_value::<GrepRequest>(json!({"pattern": "x", "before": 1_u64 << 40})).expect_err("too large");
    assert!(error.to_string().contains("too large"), "{error}");
    assert!(read(json!({"path": "/a", "bytes": {"start": null}})).is_err(), "the start is required");
    let execute = json!({"command": "x", "terminal": {"rows": 50.0, "columns": null}});
    let execute = serde_json::from_value::<ExecuteRequest>(execute).expect("a terminal");
    assert_eq!(execute.terminal, Some(TerminalSize { rows: 50, columns: 80 }));
    let largest = json!({"path": "/a", "offset": u64::MAX});
    assert_eq!(read(largest).expect("as it is written").offset, u64::MAX);
}

#[test]
fn two_valued_modes_of_searches_are_truth_values_in_every_combination() {
    for bits in 0..16 {
        let [word, multiline, invert, no_ignore] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let modes = [("whole_word", word), ("multiline", multiline), ("invert", invert), ("no_ignore", no_ignore)];
        let mut json = json!({"pattern": "x"});
        for (field, on) in modes {
            json[field] = json!(on);
        }
        let grep = serde_json::from_value::<GrepRequest>(json).expect("valid");
        assert_eq!(grep.boundary, if word { MatchBoundary::Word } else { MatchBoundary::Anywhere });
        assert_eq!(grep.span, if multiline { MultilineMode::MultiLine } else { MultilineMode::SingleLine });
        assert_eq!(grep.invert, if invert { InvertMatch::Yes } else { InvertMatch::No });
        assert_eq!(grep.ignore, if no_ignore { IgnoreMode::Disregard } else { IgnoreMode::Apply });
        let json = serde_json::to_value(grep).expect("JSON");
        for (field, on) in modes {
            assert_eq!(json[field], json!(on), "{field}");
        }
    }
    for json in [json!("true"), json!(1), json!([])] {
        let error =
            serde_json::from_value::<GrepRequest>(json!({"pattern": "x", "invert": json})).expect_err("no mode");
        assert!(error.to_string().contains("expected a boolean"), "{error}");
    }
}

#[test]
fn hidden_names_are_a_truth_value_or_a_word() {
    for (json, expected) in [
        (json!(false), HiddenNames::Skip),
        (json!(true), HiddenNames::Include),
        (json!("spelled"), HiddenNames::Spelled),
    ] {
        let glob = serde_json::from_value::<GlobRequest>(json!({"pattern": "*", "hidden": json})).expect("valid");
        let grep = serde_json::from_value::<GrepRequest>(json!({"pattern": "x", "hidden": json})).expect("valid");
        assert_eq!((glob.hidden, grep.hidden), (expected, expected));
        assert_eq!(serde_json::to_value(glob).expect("JSON")["hidden"], json);
    }
    for json in [json!("all"), json!(1), json!([])] {
        let error =
            serde_json::from_value::<GlobRequest>(json!({"pattern": "*", "hidden": json})).expect_err("invalid");
        assert!(error.to_string().contains("\"spelled\""), "{error}");
    }
}

#[test]
fn an_edit_is_one_replacement_or_a_list() {
    let expected = EditRequest::new(path("/a"), "x", "y");
    for (json, expected) in [
        (json!({"path": "/a", "old": "x", "new": "y"}), expected.clone()),
        (json!({"path": "/a", "old_string": "x", "new_string": "y"}), expected.clone()),
        (json!({"path": "/a", "replacements": [{"old": "x", "new": "y"}]}), expected.clone()),
        (json!({"path": "/a", "old": "x", "new": "y", "replace_all": true}), expected.replace_all()),
        (
            json!({"path": "/a", "replacements": [{"old": "x", "new": "y", "occurrences": "all"}]}),
            EditRequest::list(path("/a"), vec![Replacement::new("x", "y").all()]),
        ),
        (
            json!({"path": "/a", "old": "x", "new": "y", "line_endings": "exact"}),
            EditRequest::new(path("/a"), "x", "y").exact_line_endings(),
        ),
        (
            json!({"path": "/a", "replacements": [{"old": "x", "new": "y", "line_endings": "match"}]}),
            EditRequest::new(path("/a"), "x", "y"),
        ),
    ] {
        assert_eq!(serde_json::from_value::<EditRequest>(json.clone()).ok(), Some(expected), "{json}");
    }
    for json in [
        json!({"path": "/a", "old": "x"}),
        json!({"path": "/a", "new": "x"}),
        json!({"path": "/a", "replace_all": true}),
        json!({"path": "/a", "line_endings": "exact"}),
        json!({"path": "/a", "old": "x", "new": "y", "line_endings": "crlf"}),
        json!({"path": "/a", "old": "x", "new": "y", "replacements": [{"old": "x", "new": "y"}]}),
        json!({"path": "/a", "old": "x", "new": "y", "all": true}),
        json!({"path": "/a", "replacements": [{"old": "x", "new": "y", "all": true}]}),
    ] {
        assert!(serde_json::from_value::<EditRequest>(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    fn refused<T: DeserializeOwned>(minimal: &Value, fields: &[&str]) {
        for field in fields {
            for number in ["-1", "1e30", "1000000000000000000000000000000", "1.5", "\"1\""] {
                let mut json = minimal.clone();
                json[field] = serde_json::from_str(number).expect("JSON");
                assert!(serde_json::from_value::<T>(json).is_err(), "{field}: {number}");
            }
            let mut json = minimal.clone();
            json[field] = json!(u32::MAX);
            assert!(serde_json::from_value::<T>(json).is_ok(), "{field} is a number");
        }
    }
    refused::<ReadRequest>(&json!({"path": "/a"}), &["offset", "limit", "max_bytes"]);
    refused::<LsRequest>(&json!({}), &["max_depth", "limit"]);
    refused::<GlobRequest>(&json!({"pattern": "*"}), &["limit"]);
    refused::<GrepRequest>(
        &json!({"pattern": "x"}),
        &["before", "after", "limit", "limit_per_file", "max_file_size", "max_line_bytes", "max_result_bytes"],
    );
    refused::<ExecuteRequest>(&json!({"command": "x"}), &["max_output_bytes"]);
    for range in [json!({"start": -1}), json!({"start": 0, "end": 1e30}), json!({"end": 1}), json!([0, -1])] {
        let json = json!({"path": "/a", "bytes": range});
        assert!(serde_json::from_value::<ReadRequest>(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn text_that_cannot_be_stored_is_an_error() {
    for json in [
        r#"{"path": "/\ud800", "content": "x"}"#,
        r#"{"path": "/a", "content": "\ud800"}"#,
        r#"{"path": "/a/../b", "content": "x"}"#,
        r#"{"path": "/a", "content_base64": "%"}"#,
        r#"{"path": "/a", "content": "x", "content_base64": "eA=="}"#,
        r#"{"path": "/a"}"#,
    ] {
        assert!(serde_json::from_str::<WriteRequest>(json).is_err(), "{json}");
    }
}

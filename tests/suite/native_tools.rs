//! The native tools: pages, summaries, suggestions, and what is offered.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use vfs_core::operation::OperationClass;
use vfs_core::{Backend, BackendExt as _, ErrorKind, Layer as _, OpContext};
use vfs_layers::ReadOnly;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_tools::{FailureKind, Profile, SchemaForm, ToolOutcome, ToolSet};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    Runtime::new().expect("a runtime can be built").block_on(work)
}

/// Creates files with these paths and contents, and the tools over them.
pub(crate) fn tools_over(files: &[(&str, &str)]) -> (Arc<MemoryBackend>, ToolSet) {
    let backend = Arc::new(MemoryBackend::new());
    run(async {
        for (path, content) in files {
            backend.create_text(path, content).await.expect("it is written");
        }
    });
    let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&backend), Profile::Native);
    (backend, tools)
}

pub(crate) fn call(tools: &ToolSet, name: &str, arguments: &Value) -> ToolOutcome {
    run(tools.call(&OpContext::new(), name, arguments))
}

pub(crate) fn text(tools: &ToolSet, name: &str, arguments: &Value) -> String {
    call(tools, name, arguments).to_text()
}

#[test]
fn steps_of_one_call_are_refused_if_no_step_sees_those_before_it() {
    let tools = ToolSet::new(Arc::new(StateBackend::pure(FilesState::new())), Profile::Native);
    let steps = json!([{ "from": "/a", "to": "/x" }, { "from": "/b", "to": "/x" }]);
    let outcome = call(&tools, "manage", &json!({ "move": steps }));
    assert_eq!(outcome.failure, Some(FailureKind::Backend(ErrorKind::Unsupported)), "{}", outcome.to_text());
}

#[test]
fn fields_of_a_list_that_may_be_left_out_are_not_taken_for_it() {
    let (files, tools) = tools_over(&[("/a", "a\n")]);
    let words = text(&tools, "manage", &json!({ "operation": "copy", "from": "/a", "to": "/b" }));
    assert!(words.starts_with("Error: give at least one of `move`, `copy` and `delete`"), "{words}");
    assert_eq!(run(files.read_text("/a")).expect("it is there"), "a\n");
}

#[test]
fn a_line_of_a_megabyte_is_cut_by_every_view() {
    let line = format!("function f() {{ {} }}\n", "x".repeat(1 << 20));
    let (_, tools) = tools_over(&[("/min.js", &line), ("/bom", "\u{feff}")]);
    for arguments in [json!({ "symbol": "f" }), json!({ "outline": true }), json!({}), json!({ "bytes": "5-" })] {
        let mut arguments = arguments;
        arguments["path"] = "/min.js".into();
        let outcome = call(&tools, "read", &arguments);
        assert!(
            outcome.failure.is_none() && outcome.to_text().len() <= 20_200,
            "{arguments}: {}",
            outcome.to_text().len()
        );
    }
    let found = call(&tools, "search", &json!({ "pattern": "}" }));
    let words = found.to_text();
    assert!(words.len() <= 1_000 && found.is_truncated, "{words}");
    // The way is named, and leads to the match and to the rest of the definition.
    let range = continuation(&words, "[line cut; match at bytes=\"").expect("a range");
    let rest = text(&tools, "read", &json!({ "path": "/min.js", "bytes": range }));
    assert!(rest.ends_with("\n}\n") || rest.ends_with("\n}"), "{rest}");
    let definition = call(&tools, "read", &json!({ "path": "/min.js", "symbol": "f" }));
    assert!(definition.is_truncated && definition.to_text().ends_with(" [line cut]\n[line 1 is cut: lines=\"1\"]"));
    assert!(text(&tools, "read", &json!({ "path": "/bom" })).ends_with(" is empty"));
}

#[test]
fn long_paths_and_many_steps_exceed_neither_a_failure_nor_a_result() {
    let long = format!("/{}", vec!["x".repeat(200); 18].join("/"));
    let names: Vec<String> = (0..300).map(|number| format!("/{}{number}", "d".repeat(60))).collect();
    let mut contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    contents.push((&long, "x\n"));
    let (_, tools) = tools_over(&contents);
    let missing = format!("{long}y");
    for (name, arguments) in [
        ("read", json!({ "path": missing })),
        (
            "edit",
            json!({ "edits": [{ "path": missing, "old": "x", "new": "y" }, { "path": "/a", "old": "x", "new": "y" }] }),
        ),
        ("write", json!({ "path": long, "content": "" })),
        ("list", json!({ "path": long })),
        ("search", json!({ "path": missing, "pattern": "x" })),
        ("read", json!({ "path": long, "symbol": "x".repeat(100_000) })),
        (
            "manage",
            json!({ "delete": names[..100].iter().map(String::as_str).chain(["/missing"]).collect::<Vec<_>>() }),
        ),
    ] {
        let outcome = call(&tools, name, &arguments);
        let length = outcome.to_text().chars().count();
        assert!(outcome.failure.is_some() && length <= 2_000, "{name}: {length}");
    }
    let deleted = call(&tools, "manage", &json!({ "delete": names[100..] }));
    assert!(deleted.failure.is_none() && deleted.to_text().len() <= 8_100, "{}", deleted.to_text().len());
    assert!(deleted.to_text().ends_with(" more"), "{}", deleted.to_text());
}

#[test]
fn a_search_in_one_file_shows_its_first_page() {
    let lines = "needle\n".repeat(150);
    let (_, tools) = tools_over(&[("/a.c", &lines)]);
    let page = text(&tools, "search", &json!({ "pattern": "needle" }));
    assert!(
        page.starts_with("matching lines 1 to 100\n/a.c\n1: needle\n") && page.ends_with("\n[more: skip=100]"),
        "{page}"
    );
}

#[test]
fn context_of_long_lines_does_not_hold_up_a_page() {
    let mut content = String::new();
    for number in 0..200 {
        content.push_str(&format!("{} {}\n", if number % 25 == 24 { "needle" } else { "hay" }, "x".repeat(390)));
    }
    let (_, tools) = tools_over(&[("/a", &content)]);
    let (mut found, mut skip) = (Vec::new(), Some(String::from("0")));
    for _ in 0..20 {
        let Some(at) = skip else { break };
        let page = text(&tools, "search", &json!({ "pattern": "needle", "context": 20, "skip": at }));
        let matches = page.lines().filter_map(|line| line.split_once(": needle")?.0.parse::<u64>().ok());
        found.extend(matches);
        skip = continuation(&page, "more: skip=");
    }
    assert_eq!(found, (1..=8).map(|number| number * 25).collect::<Vec<_>>());
}

#[test]
fn a_definition_is_shown_before_the_first_match_in_it() {
    let code = "impl A {\n    fn m() {\n        x();\n        x();\n    }\n    const C: u8 = x();\n}\nx();\n";
    let (_, tools) = tools_over(&[("/a.rs", code)]);
    let shown = text(&tools, "search", &json!({ "pattern": "x()" }));
    let lines: Vec<_> = shown.lines().skip(2).collect();
    let expected =
        ["2= fn m()", "3:         x();", "4:         x();", "1= impl A", "6:     const C: u8 = x();", "--", "8: x();"];
    assert_eq!(lines, expected, "{shown}");
}

#[test]
fn definitions_for_which_there_is_no_room_are_counted() {
    let name = "x".repeat(100);
    let code: String = (0..90).map(|number| format!("fn f{number}_{name}() {{\n    needle();\n}}\n")).collect();
    let (_, tools) = tools_over(&[("/a.rs", &code)]);
    let shown = text(&tools, "search", &json!({ "pattern": "needle" }));
    let lines = |part: &str| shown.lines().filter(|line| line.contains(part)).count();
    assert!(shown.len() <= 8_300, "{}", shown.len());
    assert_eq!(lines(": "), 90, "{shown}");
    let left_out = 90 - lines("= fn f");
    assert!(
        left_out < 90 && shown.ends_with(&format!("\n[{left_out} definitions left out, `--` in their place]")),
        "{shown}"
    );
}

#[test]
fn files_without_definitions_do_not_take_the_place_of_those_with_some() {
    let names: Vec<String> = (0..45).map(|number| format!("/{number}.txt")).collect();
    let mut contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle\n")).collect();
    contents.push(("/z.rs", "fn last() {\n    needle();\n}\n"));
    let (_, tools) = tools_over(&contents);
    let shown = text(&tools, "search", &json!({ "pattern": "needle" }));
    assert!(shown.starts_with("46 matching lines\n") && shown.ends_with("\n1= fn last()\n2:     needle();"), "{shown}");
}

#[test]
fn hidden_and_ignored_files_are_shown_only_if_asked_for() {
    let files = [("/.env", "needle\n"), ("/.gitignore", "out\n"), ("/out", "needle\n"), ("/a", "needle\n")];
    let (_, tools) = tools_over(&files);
    for (name, arguments, without) in [
        ("list", json!({}), "1 file below / (without 2 hidden, 1 ignored)\na"),
        ("search", json!({ "pattern": "needle", "show": "files" }), "1 file (without 2 hidden, 1 ignored)\n/a"),
    ] {
        assert_eq!(text(&tools, name, &arguments), without, "{name}");
        let mut arguments = arguments;
        arguments["hidden"] = true.into();
        let shown = text(&tools, name, &arguments);
        assert!(shown.contains(".env\n") && shown.ends_with("out") && !shown.contains("without"), "{name}: {shown}");
    }
}

#[test]
fn a_literal_pattern_that_looks_like_an_expression_is_named_as_literal() {
    let (_, tools) = tools_over(&[("/a", "run(x)\n")]);
    for (pattern, hint) in [
        ("run|stop", "as a regular expression (regex=true) it has 1 matching line in 1 file."),
        ("run(&|stop(", "for a regular expression set regex=true."),
    ] {
        let shown = text(&tools, "search", &json!({ "pattern": pattern }));
        assert!(shown.ends_with(&format!("\nThe pattern is literal text; {hint}")), "{shown}");
    }
    let without = text(&tools, "search", &json!({ "pattern": "gone|away" }));
    assert_eq!(without, "no matches in 1 file below /", "neither is it found as an expression");
    for (arguments, is_of_expression) in [
        (json!({ "pattern": "run(", "regex": true }), true),
        (json!({ "pattern": "run", "glob": "[", "regex": true }), false),
    ] {
        let refused = text(&tools, "search", &arguments);
        let has_note = refused.contains("leave out `regex` if the pattern is literal text");
        assert_eq!((refused.starts_with("Invalid "), has_note), (true, is_of_expression), "{refused}");
    }
}

#[test]
fn only_a_pattern_whose_case_is_ignored_gets_the_advice_to_heed_it() {
    let lines = "42 answer Answer\n".repeat(60);
    let (_, tools) = tools_over(&[("/a", &lines), ("/b", &lines)]);
    for (pattern, is_advised) in [("answer", true), ("Answer", false), ("42", false)] {
        let summary = text(&tools, "search", &json!({ "pattern": pattern }));
        assert_eq!(summary.contains("case='sensitive'"), is_advised, "{summary}");
    }
}

#[test]
fn a_search_takes_the_output_modes_of_other_tools() {
    let (_, tools) = tools_over(&[("/a", "needle\nneedle\n")]);
    for (mode, shown) in [
        ("content", "2 matching lines\n/a\n1: needle\n2: needle"),
        ("files_with_matches", "1 file\n/a"),
        ("count", "1 file\n/a: 2"),
        ("files", "1 file\n/a"),
    ] {
        assert_eq!(text(&tools, "search", &json!({ "pattern": "needle", "output_mode": mode })), shown);
    }
}

#[test]
fn a_page_of_code_keeps_room_for_definitions_and_a_page_of_text_does_not() {
    let name = "x".repeat(100);
    let code: String =
        (0..60).map(|number| format!("fn f{number}_{name}() {{\n    needle(\"{name}\");\n}}\n")).collect();
    let (_, tools) = tools_over(&[("/a.rs", &code), ("/a.txt", &code)]);
    let page = |path: &str| text(&tools, "search", &json!({ "pattern": "needle", "path": path, "skip": 0 }));
    let count = |page: &str, part: &str| page.lines().filter(|line| line.contains(part)).count();
    let (code, plain) = (page("/a.rs"), page("/a.txt"));
    assert!(code.len() <= 8_300 && plain.len() <= 8_300, "{} {}", code.len(), plain.len());
    assert!(count(&code, "= fn f") >= 15, "{code}");
    assert!(count(&plain, ": ") > count(&code, ": ") + 8, "{plain}");
}

/// Returns what follows `before` in the last line of a result, up to the next quote, bracket or its end.
pub(crate) fn continuation(text: &str, before: &str) -> Option<String> {
    let rest = text.lines().last()?.split_once(before)?.1;
    Some(rest.split(['"', ']']).next().unwrap_or(rest).to_owned())
}

#[test]
fn pages_put_together_are_the_whole() {
    let names: Vec<String> =
        (0..130).map(|number| format!("/many/{number:03}/x{}.txt", "n".repeat(number % 40))).collect();
    let long: String = (0..3_000).map(|number| format!("{number} {}\n", "x".repeat(number % 90))).collect();
    let mut contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle 1\nneedle 2\n")).collect();
    contents.push(("/long", &long));
    let line = "é".repeat(30_000);
    contents.push(("/line", &line));
    let breaks = "\n".repeat(60_000);
    contents.push(("/breaks", &breaks));
    let (_, tools) = tools_over(&contents);
    for limit in [1, 7, 50, 10_000] {
        let (mut listed, mut found, mut skip) = (Vec::new(), Vec::new(), Some(String::from("0")));
        while let Some(at) = skip {
            let page = text(&tools, "list", &json!({ "path": "/many", "limit": limit, "skip": at }));
            listed
                .extend(page.lines().skip(1).filter(|line| !line.starts_with('[')).map(|line| format!("/many/{line}")));
            skip = continuation(&page, "more: skip=");
        }
        assert_eq!(listed, names, "list in pages of {limit}");
        skip = Some(String::from("0"));
        while let Some(at) = skip {
            let page = text(&tools, "search", &json!({ "pattern": "needle", "limit": limit, "skip": at }));
            found.extend(page.lines().filter(|line| line.contains(": needle")).map(str::to_owned));
            skip = continuation(&page, "more: skip=");
        }
        assert_eq!(found.len(), 260, "search in pages of {limit}");
        assert!(found.chunks(2).all(|pair| pair == ["1: needle 1", "2: needle 2"]), "{found:?}");
    }
    let (mut read, mut lines) = (String::new(), Some(String::from("1-")));
    while let Some(range) = lines {
        let page = text(&tools, "read", &json!({ "path": "/long", "lines": range }));
        for line in page.lines().skip(1).filter(|line| !line.starts_with('[')) {
            read.push_str(line.split_once('\t').expect("a numbered line").1);
            read.push('\n');
        }
        lines = continuation(&page, "more: lines=\"");
    }
    assert_eq!(read, long);
    let (mut count, mut lines) = (0, Some(String::from("1-")));
    while let Some(range) = lines {
        let page = text(&tools, "read", &json!({ "path": "/breaks", "lines": range }));
        assert!(page.len() <= 20_200, "{}", page.len());
        count += page.lines().filter(|line| line.ends_with('\t')).count();
        lines = continuation(&page, "more: lines=\"");
    }
    assert_eq!(count, 60_000);
    let middle = text(&tools, "read", &json!({ "path": "/line", "bytes": "1-4" }));
    assert!(middle.starts_with("/line bytes 2-3 of 60000 @") && middle.contains("\né\n"), "{middle}");
    let first = text(&tools, "read", &json!({ "path": "/line" }));
    let mut whole = first.lines().nth(1).and_then(|line| line.split_once('\t')).expect("a numbered line").1.to_owned();
    let mut bytes = continuation(&first, "bytes=\"");
    assert!(bytes.is_some(), "{}", first.lines().last().unwrap_or_default());
    while let Some(range) = bytes {
        let page = text(&tools, "read", &json!({ "path": "/line", "bytes": range }));
        whole.push_str(page.lines().nth(1).expect("a part of the line"));
        bytes = continuation(&page, "more: bytes=\"");
    }
    assert_eq!(whole, line);
}

#[test]
fn long_results_are_summarised_within_the_budget() {
    let names: Vec<String> = (0..3_000).map(|number| format!("/d{}/{number:04}.txt", number % 7)).collect();
    let contents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle in a line\n")).collect();
    let (_, tools) = tools_over(&contents);
    for (name, arguments, header) in [
        ("list", json!({}), "3000 files below /; by directory"),
        (
            "search",
            json!({ "pattern": "needle" }),
            "3000 matching lines in 3000 files, too many to show; by directory below /",
        ),
        (
            "search",
            json!({ "pattern": "needle", "show": "files" }),
            "3000 matching lines in 3000 files, too many to show; by directory below /",
        ),
        (
            "edit",
            json!({ "path": "/**/*.txt", "old": "needle", "new": "pin", "dry_run": true }),
            "Error: '/**/*.txt': the call has over 1000 files",
        ),
        (
            "edit",
            json!({ "path": "/d0/*.txt", "old": "needle", "new": "pin", "dry_run": true }),
            "429 places in 429 files would change:",
        ),
        ("edit", json!({ "path": "/d0/*.txt", "old": "needle", "new": "pin" }), "429 places in 429 files:"),
    ] {
        let outcome = call(&tools, name, &arguments);
        let text = outcome.to_text();
        assert!(text.starts_with(header), "{name} {arguments}: {text}");
        assert!(text.len() <= 8_300, "{name} {arguments}: {}", text.len());
    }
    let summary = text(&tools, "search", &json!({ "pattern": "needle" }));
    assert!(summary.contains("\nd1/  429 in 429 files\n"), "{summary}");
}

#[test]
fn a_command_shows_the_start_and_the_end_of_a_long_output() {
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let tools = ToolSet::new(Arc::new(VirtualShell::new(files, VirtualShellConfig::new())), Profile::Native);
    for (command, failure, shown) in [
        ("echo one; echo two >&2", None, "one\ntwo\n[exit 0]"),
        ("exit 3", Some(FailureKind::Command), "[exit 3]"),
        ("true", None, "[exit 0]"),
    ] {
        let outcome = call(&tools, "run", &json!({ "cmd": command }));
        assert_eq!((outcome.failure, outcome.to_text().as_str()), (failure, shown), "{command}");
    }
    let outcome = call(&tools, "run", &json!({ "command": "for i in $(seq 1 2000); do echo line $i; done" }));
    let shown = outcome.to_text();
    assert!(outcome.is_truncated && shown.len() <= 8_300, "{}", shown.len());
    assert!(shown.starts_with("line 1\n") && shown.ends_with("\nline 2000\n[exit 0]"), "{shown}");
    let counts: Vec<usize> =
        shown.lines().filter_map(|line| line.strip_prefix("[... ")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(counts, [2_000 - shown.lines().filter(|line| line.starts_with("line ")).count()]);
}

#[test]
fn the_declarations_of_all_tools_take_at_most_8_kb() {
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let tools = ToolSet::new(Arc::new(VirtualShell::new(files, VirtualShellConfig::new())), Profile::Native);
    assert!(tools.get("run").is_some(), "no tool is left out");
    let size = tools.to_anthropic(SchemaForm::Plain).to_string().len();
    assert!(size <= 8_000, "{size}");
}

#[test]
fn an_effect_names_the_files_of_the_call() {
    let (_, tools) = tools_over(&[]);
    for (name, arguments, class, paths) in [
        ("read", json!({ "path": "a" }), OperationClass::Read, &["/a"][..]),
        ("list", json!({}), OperationClass::Read, &["/"]),
        (
            "edit",
            json!({ "path": "/a", "edits": [{ "old": "x", "new": "y" }, { "path": "/b", "old": "x", "new": "y" }] }),
            OperationClass::Write,
            &["/a", "/b"],
        ),
        (
            "edit",
            json!({ "path": "/a", "edits": [{ "path": "", "old": "x", "new": "y" }] }),
            OperationClass::Write,
            &["/a"],
        ),
        ("edit", json!({ "path": "/a", "file_path": "/b", "old": "x", "new": "y" }), OperationClass::Write, &["/a"]),
        ("edit", json!({ "path": "/src/*/*.rs", "old": "x", "new": "y" }), OperationClass::Write, &["/src"]),
        ("edit", json!({ "path": "/secret\\s/*", "old": "x", "new": "y" }), OperationClass::Write, &["/"]),
        ("edit", json!({ "path": "/a", "old": "x", "new": "y", "dry_run": true }), OperationClass::Read, &["/a"]),
        (
            "manage",
            json!({ "move": { "from": "/a", "to": "/b" }, "delete": ["/c"] }),
            OperationClass::Write,
            &["/a", "/b", "/c"],
        ),
    ] {
        let effect = tools.get(name).expect("a tool").effect(&arguments).expect("valid arguments");
        let named: Vec<_> = effect.paths.iter().map(|path| path.as_str()).collect();
        assert_eq!((effect.class, named.as_slice()), (class, paths), "{name} {arguments}");
    }
}

#[test]
fn names_like_a_missing_one_are_suggested() {
    let (_, tools) = tools_over(&[("/fs/namespace.c", ""), ("/fs/file.c", "")]);
    for (name, arguments) in [
        ("read", json!({ "path": "/fs/namespac.c" })),
        ("edit", json!({ "path": "/fs/namespac.c", "old": "x", "new": "y" })),
        ("search", json!({ "path": "/fs/namespac.c", "pattern": "x" })),
        ("manage", json!({ "delete": "/fs/namespac.c" })),
    ] {
        let words = text(&tools, name, &arguments);
        assert_eq!(words, "Error: File '/fs/namespac.c' not found; near it: /fs/namespace.c", "{name}");
    }
}

#[test]
fn a_read_only_backend_offers_no_tool_that_changes_files() {
    let tools = ToolSet::new(ReadOnly.layer(Arc::new(MemoryBackend::new())), Profile::Native);
    let names: Vec<_> = tools.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["list", "search", "read"]);
    let named = tools.tools().iter().any(|tool| tool.description().contains("edit"));
    assert!(!named, "no description names a tool that is not offered");
}

//! Random trees, pages and budgets: the pages of a result put together are the whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use vfs_core::OpContext;
use vfs_memory::MemoryBackend;
use vfs_tools::{Profile, ToolSet};

use crate::native_tools::{continuation, run, text, tools_over};
use crate::tool_results::shell_tools;

/// Maximum number of pages, beyond any of these trees: a page without progress fails in place of an endless test.
const MAX_PAGES: usize = 5_000;

/// The lines of each file. The first is never blank, as some profiles say that a blank file is empty.
type Files = BTreeMap<String, Vec<String>>;

/// Returns at most `max_files` files of at most `max_lines` lines.
fn files(max_files: usize, max_lines: usize) -> impl Strategy<Value = Files> {
    let line = prop_oneof!["[a-zé ]{0,40}", "[a-z]{0,20}needle[a-zé ]{0,20}", "fn [a-z]{1,8}_needle\\(\\) \\{"];
    let lines = ("[a-z]{1,9}", vec(line, 0..max_lines)).prop_map(|(first, mut lines)| {
        lines.insert(0, first);
        lines
    });
    btree_map("/[ab]/[cd]{1,3}[0-9]{1,2}\\.(rs|txt)", lines, 1..=max_files)
}

/// Returns the tools of `profile` over `files`, with at most `budget` characters a result.
fn tools_of(files: &Files, profile: Profile, budget: usize) -> ToolSet {
    let contents: Vec<_> = files.iter().map(|(path, lines)| (path.as_str(), lines.join("\n") + "\n")).collect();
    let contents: Vec<_> = contents.iter().map(|(path, content)| (*path, content.as_str())).collect();
    let (files, _) = tools_over(&contents);
    ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile).max_characters(budget)
}

/// Returns the lines with `needle` as `PATH:NUMBER`.
fn expected_matches(files: &Files) -> Vec<String> {
    let matches = files.iter().flat_map(|(path, lines)| {
        let numbered = lines.iter().zip(1..).filter(|(line, _)| line.contains("needle"));
        numbered.map(move |(_, number)| format!("{path}:{number}"))
    });
    matches.collect()
}

/// Calls a native tool with `skip` until no page follows.
fn pages(tools: &ToolSet, name: &str, mut arguments: Value) -> Vec<String> {
    let (mut pages, mut skip) = (Vec::new(), Some("0".to_owned()));
    while let Some(at) = skip.take() {
        assert!(pages.len() < MAX_PAGES, "{name} {arguments}");
        arguments["skip"] = at.into();
        let page = text(tools, name, &arguments);
        skip = continuation(&page, "more: skip=");
        pages.push(page);
    }
    pages
}

/// Calls the tool `name` for the lines from `first` on, which `arguments` asks for, until all `total` lines were shown.
fn read_in_pages(tools: &ToolSet, name: &str, total: usize, arguments: impl Fn(usize) -> Value) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while lines.len() < total {
        let page = text(tools, name, &arguments(lines.len()));
        let before = lines.len();
        if page.starts_with("@@ lines ") {
            // deepagents 0.7 has the numbers in its first line only.
            lines.extend(page.split('\n').skip(1).map(str::to_owned));
        } else {
            for (number, line) in page.lines().filter_map(|line| line.split_once('\t')) {
                assert_eq!(number.trim().parse(), Ok(lines.len() + 1), "{page}");
                lines.push(line.to_owned());
            }
        }
        assert!(lines.len() > before, "{page}");
    }
    lines
}

/// Returns the lines of a file, by reads of `limit` lines that begin where the page before says to go on.
fn read_by_continuations(tools: &ToolSet, path: &str, limit: u64) -> Vec<String> {
    let (mut lines, mut next) = (Vec::new(), Some("1-".to_owned()));
    while let Some(from) = next {
        let from: u64 = from.trim_end_matches('-').parse().expect("a number");
        let page = text(tools, "read", &json!({ "path": path, "lines": [from, from + limit - 1] }));
        let before = lines.len();
        for (number, line) in page.lines().skip(1).filter_map(|line| line.split_once('\t')) {
            assert_eq!(number.parse(), Ok(lines.len() + 1), "{page}");
            lines.push(line.to_owned());
        }
        assert!(lines.len() > before, "{page}");
        next = continuation(&page, "more: lines=\"");
    }
    lines
}

/// Returns the lines of a file, by views that begin where the one before says to go on.
fn view_by_continuations(tools: &ToolSet, path: &str) -> Vec<String> {
    let (mut lines, mut range) = (Vec::new(), json!([1, -1]));
    loop {
        let view = json!({ "command": "view", "path": path, "view_range": range });
        let page = text(tools, tools.tools()[0].name(), &view);
        let before = lines.len();
        for (number, line) in page.lines().filter_map(|line| line.split_once('\t')) {
            assert_eq!(number.trim().parse(), Ok(lines.len() + 1), "{page}");
            lines.push(line.to_owned());
        }
        assert!(lines.len() > before, "{page}");
        let Some((_, next)) = page.split_once("[truncated: continue with view_range ") else { return lines };
        range = serde_json::from_str(next.strip_suffix(']').expect("the note is the last line")).expect("a range");
    }
}

/// Returns where eino finds `needle`, by pages of at most `limit` lines.
fn find_in_pages(tools: &ToolSet, limit: u64) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let arguments =
            json!({ "pattern": "needle", "output_mode": "content", "offset": found.len(), "head_limit": limit });
        let outcome = run(tools.call(&OpContext::new(), "grep", &arguments));
        let page = outcome.to_text();
        let before = found.len();
        let matches = page.lines().filter(|line| line.starts_with('/'));
        found.extend(matches.filter_map(|line| line.match_indices(':').nth(1).map(|(at, _)| line[..at].to_owned())));
        let names_next = page.contains(&format!("offset {} ", found.len()));
        assert_eq!(outcome.is_truncated, names_next, "{page}");
        if found.len() == before {
            return found;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_native_tools_put_together_are_the_whole(files in files(24, 80), limit in 1..40_u64, budget in 2_000..9_000_usize) {
        let tools = tools_of(&files, Profile::Native, budget);
        let items = |pages: Vec<String>| -> Vec<String> {
            let lines = pages.iter().flat_map(|page| page.lines().skip(1));
            lines.filter(|line| !line.starts_with('[')).map(str::to_owned).collect()
        };
        let listed = items(pages(&tools, "list", json!({ "limit": limit })));
        let paths: Vec<_> = files.keys().map(|path| path.trim_start_matches('/').to_owned()).collect();
        prop_assert_eq!(listed, paths.clone());
        let matching = items(pages(&tools, "list", json!({ "match": "**/*.rs", "limit": limit })));
        prop_assert_eq!(matching, paths.into_iter().filter(|path| path.ends_with(".rs")).collect::<Vec<_>>());
        let mut found = Vec::new();
        for page in pages(&tools, "search", json!({ "pattern": "needle", "limit": limit })) {
            let mut path = "";
            for line in page.lines() {
                match line.split_once(": ") {
                    _ if line.starts_with('/') => path = line,
                    Some((number, _)) if number.parse::<u64>().is_ok() => found.push(format!("{path}:{number}")),
                    _ => {}
                }
            }
        }
        prop_assert_eq!(found, expected_matches(&files));
        for limit in [limit, u64::from(u32::MAX)] {
            // Tools that have shown a page say that it is unchanged.
            let tools = tools_of(&files, Profile::Native, budget);
            for (path, expected) in &files {
                prop_assert_eq!(&read_by_continuations(&tools, path, limit), expected);
            }
        }
    }

    #[test]
    fn pages_of_other_profiles_put_together_are_the_whole(files in files(5, 300), limit in 1..300_u64, budget in 2_000..9_000_usize) {
        use Profile::{ClaudeMemory, ClaudeTextEditor, Deepagents, DeepagentsClassic, DeepagentsJs, Eino, EinoZh};
        for (profile, first) in [(DeepagentsClassic, 0), (Deepagents, 0), (DeepagentsJs, 0), (Eino, 1), (EinoZh, 1)] {
            let tools = tools_of(&files, profile, budget);
            for (path, expected) in &files {
                let window = |read: usize| json!({ "file_path": path, "offset": read + first, "limit": limit });
                prop_assert_eq!(&read_in_pages(&tools, "read_file", expected.len(), window), expected);
            }
        }
        for profile in [Eino, EinoZh] {
            let mut found = find_in_pages(&tools_of(&files, profile, budget), limit);
            // eino sorts by the names of the files.
            found.sort();
            let mut expected = expected_matches(&files);
            expected.sort();
            prop_assert_eq!(found, expected);
        }
        let memories: Files = files.iter().map(|(path, lines)| (format!("/memories{path}"), lines.clone())).collect();
        for profile in [ClaudeTextEditor, ClaudeMemory] {
            let tools = tools_of(&memories, profile, budget);
            for (path, lines) in &memories {
                // The line break at the end of the file begins an empty last line.
                let expected: Vec<_> = lines.iter().cloned().chain([String::new()]).collect();
                prop_assert_eq!(view_by_continuations(&tools, path), expected);
            }
        }
    }

    #[test]
    fn pages_of_the_output_of_a_command_put_together_are_the_whole(lines in 1..600_u64, budget in 2_000..9_000_usize) {
        let output = run(async {
            let (tools, cx) = (shell_tools(Profile::Native).max_characters(budget), OpContext::new());
            let command = format!("for i in $(seq {lines}); do echo line $i of é; done");
            let started = tools.call(&cx, "run", &json!({ "command": command, "background": true })).await.to_text();
            let id = started.strip_prefix("job ").and_then(|rest| rest.split_once(" runs")).expect("a job").0.to_owned();
            let (mut output, mut from) = (String::new(), 0.to_string());
            for _ in 0..MAX_PAGES {
                let page = tools.call(&cx, "job", &json!({ "id": id, "wait": 60, "from": from })).await.to_text();
                let (shown, end) = page.rsplit_once('[').expect("a last line");
                output.push_str(if end.contains("the line goes on") { shown.trim_end_matches('\n') } else { shown });
                match continuation(&page, "from=") {
                    Some(next) => from = next,
                    None => break,
                }
            }
            output
        });
        prop_assert_eq!(output, (1..=lines).map(|line| format!("line {line} of é\n")).collect::<String>());
    }
}

//! Tools of each profile over every backend: a script of calls, and what a model sees.
//!
//! A golden file has a call in each line that begins with `>>> `, and below it the text for the model, after a line `!!! KIND` if the
//! call fails. The same texts are expected on every backend.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use vfs_core::operation::{OperationClass, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt as _, Error, ErrorKind, Interceptor, Layer as _, OpContext, Result, VfsPath, WriteRequest,
};
use vfs_layers::ReadOnly;
use vfs_memory::MemoryBackend;
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
use vfs_store::{SqliteConfig, SqliteStore, StoreBackend};
use vfs_testkit::Target;
use vfs_tools::{FailureKind, Profile, SchemaForm, ToolOutcome, ToolSet};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

/// Profiles with the calls and texts of their golden files.
const GOLDEN: [(Profile, &str); 8] = [
    (Profile::Native, include_str!("tools/native.txt")),
    (Profile::DeepagentsClassic, include_str!("tools/deepagents_classic.txt")),
    (Profile::Deepagents, include_str!("tools/deepagents.txt")),
    (Profile::DeepagentsJs, include_str!("tools/deepagents_js.txt")),
    (Profile::Eino, include_str!("tools/eino.txt")),
    (Profile::EinoZh, include_str!("tools/eino_zh.txt")),
    (Profile::ClaudeTextEditor, include_str!("tools/claude_text_editor.txt")),
    (Profile::ClaudeMemory, include_str!("tools/claude_memory.txt")),
];

/// Profiles of other systems, whose tools have the same names and parameters.
const OF_OTHERS: [Profile; 5] =
    [Profile::DeepagentsClassic, Profile::Deepagents, Profile::DeepagentsJs, Profile::Eino, Profile::EinoZh];

/// A PNG image of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

/// Creates the files below `/w` of the golden files, in the directory `base`.
pub(crate) async fn create_files(files: &dyn Backend, base: &VfsPath) {
    let numbered: String = (1..=250).map(|number| format!("line {number}\n")).collect();
    let contents: [(&str, &[u8]); 9] = [
        ("/w/README.md", b"# Demo\n\nA small tree.\n"),
        ("/w/src/main.rs", b"fn main() {\n    run();\n}\n\nfn run() {\n    println!(\"it's on\");\n}\n"),
        ("/w/src/lib/util.rs", b"pub fn twice(n: u32) -> u32 {\n    n * 2 // run\n}\n"),
        ("/w/notes/crlf.txt", b"one\r\ntwo\r\n"),
        ("/w/notes/empty.txt", b""),
        ("/w/notes/it's.txt", b"quoted\n"),
        ("/w/notes/numbered.txt", numbered.as_bytes()),
        ("/w/.hidden/run.txt", b"run\n"),
        ("/w/data/pixel.png", PIXEL),
    ];
    for (at, content) in contents {
        let request = WriteRequest::new(base.join(at.trim_start_matches('/')).expect("a valid path"), content.to_vec());
        let written = files.write(&OpContext::new(), request).await;
        written.unwrap_or_else(|error| panic!("{files}: {error}"));
    }
}

/// Performs the calls of `golden` in the directory `base`, and returns it with what the model sees now.
async fn performed(tools: &ToolSet, base: &VfsPath, golden: &str) -> String {
    let base = base.as_str().trim_end_matches('/');
    let mut actual = String::new();
    for call in golden.lines().filter_map(|line| line.strip_prefix(">>> ")) {
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        let arguments = arguments.replace("\"/w", &format!("\"{base}/w"));
        let arguments: Value = serde_json::from_str(&arguments).expect("JSON arguments");
        let outcome = tools.call(&OpContext::new(), name, &arguments).await;
        // Writing to a string cannot fail.
        let text = masked(&shown(&outcome).replace(&format!("{base}/w"), "/w"));
        let _ = write!(actual, ">>> {call}\n{text}\n");
    }
    actual
}

/// Returns `text` without the short versions of files, which each backend makes in its own way.
fn masked(text: &str) -> String {
    let mut parts = text.split('@');
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_version = part.len() >= 4 && part.as_bytes()[..4].iter().all(u8::is_ascii_hexdigit);
        masked.push_str(if is_version { "@...." } else { "@" });
        masked.push_str(if is_version { &part[4..] } else { part });
    }
    masked
}

fn shown(outcome: &ToolOutcome) -> String {
    let text = outcome.to_text();
    assert!(outcome.failure.is_none() || text.chars().count() <= 2_000, "{text}");
    let kind = match outcome.failure {
        None => return text,
        Some(FailureKind::Backend(kind)) => kind.code().to_owned(),
        Some(kind) => format!("{kind:?}"),
    };
    format!("!!! {kind}\n{text}")
}

fn differing(name: &str, golden: &str, actual: &str) -> Option<String> {
    if golden == actual {
        return None;
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.txt"));
    fs::write(&path, actual).expect("the directory is ours");
    let difference = golden.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    Some(format!("{name}: the texts differ at {difference:?}; the actual ones are in {}", path.display()))
}

/// Every backend in this process, SQLite, and files behind a shell.
fn targets() -> Vec<(&'static str, Target)> {
    let store = run(SqliteStore::open(SqliteConfig::in_memory())).expect("the store opens");
    let directory = tempfile::tempdir().expect("a directory can be made");
    let remote = SandboxBackend::new(
        LocalProcess::new(),
        RemoteConfig::new(directory.path().to_str().expect("its name is UTF-8")),
    );
    let mut targets: Vec<_> =
        vfs_tests::targets().into_iter().map(|factory| (factory.name, (factory.make)())).collect();
    targets.push(("sqlite", Target::new(Arc::new(StoreBackend::new(store)))));
    targets.push(("remote", Target::new(Arc::new(remote)).with_guard(directory)));
    targets
}

#[test]
fn each_profile_shows_the_same_on_every_backend() {
    let mut differences = Vec::new();
    for (profile, golden) in GOLDEN {
        for (name, target) in targets() {
            let backend = Arc::clone(&target.backend);
            // The place of the memory is fixed, so that it runs where the test may use it.
            let (files_at, base) = match profile {
                Profile::ClaudeMemory if target.base.is_root() || target.base == memories() => {
                    (memories(), VfsPath::root())
                }
                Profile::ClaudeMemory => continue,
                _ => (target.base.clone(), target.base.clone()),
            };
            let actual = run(async {
                create_files(&*backend, &files_at).await;
                performed(&ToolSet::new(Arc::clone(&backend), profile), &base, golden).await
            });
            differences.extend(differing(&format!("{}-{name}", profile.name()), golden, &actual));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn memories() -> VfsPath {
    VfsPath::parse("/memories").expect("a valid path")
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    Runtime::new().expect("a runtime can be built").block_on(work)
}

fn memory_tools(profile: Profile) -> ToolSet {
    let files = Arc::new(MemoryBackend::new());
    run(create_files(&*files, &VfsPath::root()));
    ToolSet::new(files, profile)
}

/// Returns the `offset` of the first line of a file.
fn first_offset(profile: Profile) -> u64 {
    u64::from(matches!(profile, Profile::Eino | Profile::EinoZh))
}

#[test]
fn pages_put_together_are_the_whole_file() {
    let whole: Vec<String> = (1..=250).map(|number| format!("line {number}")).collect();
    for profile in OF_OTHERS {
        let tools = memory_tools(profile);
        for limit in [1, 99, 100, 250, 1000] {
            let first = first_offset(profile);
            let (mut lines, mut offset) = (Vec::new(), first);
            while offset < first + 250 {
                let arguments = json!({ "file_path": "/w/notes/numbered.txt", "offset": offset, "limit": limit });
                let outcome = run(tools.call(&OpContext::new(), "read_file", &arguments));
                assert_eq!(outcome.is_truncated, offset + limit < first + 250, "{arguments}");
                let text = outcome.to_text();
                lines.extend(
                    text.lines()
                        .filter_map(|line| line.find("line ").map(|at| line[at..].to_owned()))
                        .filter(|line| !line.contains('@')),
                );
                offset += limit;
            }
            assert_eq!(lines, whole, "{profile:?} in pages of {limit}");
        }
    }
}

#[test]
fn no_argument_makes_a_tool_fail_without_words() {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("x".repeat(1 << 16)),
        json!("\u{0}\u{202e}/../.."),
        json!([[[]]]),
        json!({ "a": { "b": [1, "2", null] } }),
        json!("[1, {\"a\": 2}]"),
    ];
    for profile in Profile::ALL {
        let tools = memory_tools(*profile);
        for tool in tools.tools() {
            let schema = tool.input_schema(SchemaForm::Plain);
            let names: Vec<&String> = schema["properties"].as_object().expect("an object").keys().collect();
            for (name, value) in names.iter().flat_map(|name| values.iter().map(move |value| (*name, value))) {
                let mut arguments: serde_json::Map<_, _> =
                    names.iter().map(|name| ((*name).clone(), json!("/w/src/main.rs"))).collect();
                arguments.insert(name.clone(), value.clone());
                let outcome = run(tool.call(&OpContext::new(), &arguments.into()));
                let text = outcome.to_text();
                let is_short = outcome.failure.is_none() || text.chars().count() <= 2_000;
                assert!(!text.is_empty() && is_short, "{}: {name}: {text}", tool.name());
            }
        }
    }
}

#[test]
fn long_results_are_cut_and_say_so() {
    let files = Arc::new(MemoryBackend::new());
    let names: Vec<String> = (0..6_000).map(|number| format!("/many/{number:015}.txt")).collect();
    run(async {
        for name in &names {
            files
                .create_text(name, "needle in a long line of text that is shown with its path\n")
                .await
                .expect("it is written");
        }
        files.create_text("/lines", &"\n".repeat(60_000)).await.expect("it is written");
        files
            .create_text("/numbers", &(0..40_000).map(|number| format!("{number}\n")).collect::<String>())
            .await
            .expect("it is written");
        files.create_text("/long", &format!("{}\nnext\n", "x".repeat(200_000))).await.expect("it is written");
    });
    for profile in OF_OTHERS {
        let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile);
        for (name, arguments) in [
            ("ls", json!({ "path": "/many" })),
            ("glob", json!({ "pattern": "**/*.txt" })),
            ("grep", json!({ "pattern": "needle", "max_count": 100_000 })),
            ("grep", json!({ "pattern": "needle", "output_mode": "content", "max_count": 100_000 })),
            ("read_file", json!({ "path": "/numbers", "limit": 100_000 })),
            ("read_file", json!({ "path": "/long" })),
        ] {
            let outcome = run(tools.call(&OpContext::new(), name, &arguments));
            let (text, characters) = (outcome.to_text(), outcome.to_text().chars().count());
            assert!(outcome.is_truncated && outcome.failure.is_none(), "{profile:?} {name} {arguments}");
            // These two do not count what is around the paths of a list.
            let is_longer = matches!(profile, Profile::DeepagentsClassic | Profile::DeepagentsJs);
            let max = if is_longer { 100_000 } else { 80_100 };
            assert!((70_000..=max).contains(&characters), "{profile:?} {name} {arguments}: {characters}");
            let signs = ["truncated", "stopped early", "next offset", "已截断"];
            assert!(signs.iter().any(|sign| text.contains(sign)), "{profile:?} {name}");
        }
        let (mut lines, mut offset) = (Vec::new(), Some(first_offset(profile)));
        while let Some(from) = offset {
            let arguments = json!({ "path": "/numbers", "limit": 100_000, "offset": from });
            let text = run(tools.call(&OpContext::new(), "read_file", &arguments)).to_text();
            let next = text.lines().find_map(|line| line.split_once("offset "));
            offset = next.map(|(_, rest)| {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().expect("a number")
            });
            let shown = text.lines().filter(|line| !line.contains("offset") && !line.starts_with("@@"));
            lines.extend(shown.map(|line| line.rsplit('\t').next().unwrap_or_default().to_owned()));
        }
        assert!(
            lines.iter().map(String::as_str).eq((0..40_000)
                .map(|number| number.to_string())
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str))
        );
    }
}

#[test]
fn a_search_of_eino_comes_in_pages() {
    let files = Arc::new(MemoryBackend::new());
    run(async {
        let text = "needle in a long line\n".repeat(9_000);
        files
            .create_text("/long.txt", &format!("stitch {}\nstitch\n", "x".repeat(2_000)))
            .await
            .expect("it is written");
        files.create_text("/lines.txt", &text).await.expect("it is written");
    });
    for (profile, budget) in [(Profile::Eino, 80_000), (Profile::EinoZh, 80_000), (Profile::Eino, 9_000)] {
        let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), profile).max_characters(budget);
        let (mut shown, mut is_truncated) = (Vec::new(), true);
        while is_truncated {
            let arguments = json!({ "pattern": "needle", "output_mode": "content", "offset": shown.len() });
            let outcome = run(tools.call(&OpContext::new(), "grep", &arguments));
            let text = outcome.to_text();
            shown.extend(text.lines().filter_map(|line| line.strip_prefix("/lines.txt:")).map(str::to_owned));
            is_truncated = outcome.is_truncated;
            let next = format!("offset {}", shown.len());
            assert_eq!(text.lines().last().is_some_and(|line| line.contains(&next)), is_truncated, "{profile:?}");
        }
        let numbered = (1..=9_000).map(|number| format!("{number}:needle in a long line"));
        assert!(shown.into_iter().eq(numbered), "{profile:?}");
        // A line that fills a page by itself is cut, so that the next page begins after it.
        let stitches = json!({ "pattern": "stitch", "output_mode": "content" });
        let page = run(tools.max_characters(2_000).call(&OpContext::new(), "grep", &stitches)).to_text();
        assert!(page.starts_with("/long.txt:1:stitch x") && page.contains("x [line cut]\n["), "{profile:?}: {page}");
        assert!(page.lines().last().is_some_and(|line| line.contains("offset 1 ")), "{profile:?}: {page}");
    }
}

/// Fails every operation with a message that is too long for a model.
#[derive(Debug)]
struct FailsAtLength;

impl Interceptor for FailsAtLength {
    fn name(&self) -> &'static str {
        "fails-at-length"
    }

    async fn call<Q: UnaryRequest>(&self, _: &dyn Backend, _: &OpContext, _: Q) -> Result<Q::Output> {
        Err(Error::new(ErrorKind::Internal, "no luck ".repeat(10_000)))
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, _: OpContext, _: StreamCall<Q>) -> ResultStream<Q::Output> {
        Error::new(ErrorKind::Internal, "no luck ".repeat(10_000)).into_stream()
    }
}

#[test]
fn a_backend_that_fails_gives_a_short_text() {
    for profile in Profile::ALL {
        let files: Arc<dyn Backend> =
            Arc::new(VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new()));
        let tools = ToolSet::new(Arc::new(FailsAtLength).layer(files), *profile);
        for tool in tools.tools() {
            let parameters = tool.input_schema(SchemaForm::Plain);
            let required = parameters["required"].as_array().into_iter().flatten();
            let long = format!("/{}", "x/".repeat(2_000));
            let arguments = required.map(|name| (name.as_str().expect("a name").to_owned(), json!(long))).collect();
            let outcome = run(tool.call(&OpContext::new(), &Value::Object(arguments)));
            let text = outcome.to_text();
            assert!(outcome.failure.is_some(), "{profile:?} {}: {text}", tool.name());
            assert!((1..=2_000).contains(&text.chars().count()), "{profile:?} {}: {text}", tool.name());
        }
    }
}

#[test]
fn entries_that_cannot_be_read_are_noted() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    std::os::unix::fs::symlink("missing", directory.path().join("dangling")).expect("a link can be made");
    let files = vfs_local::LocalBackend::open(directory.path()).expect("the root can be opened");
    let outcome =
        run(ToolSet::new(Arc::new(files), Profile::Deepagents).call(&OpContext::new(), "ls", &json!({ "path": "/" })));
    assert!(outcome.is_truncated, "{}", outcome.to_text());
    assert!(outcome.to_text().starts_with("No files found\n[1 entry with problems, such as '/dangling': "));
}

#[test]
fn parallel_edits_of_one_file_lose_nothing() {
    for name in ["memory", "state-session", "local", "composite-local", "overlay", "checkpoints"] {
        let target = (vfs_tests::target(name).make)();
        let lines: String = (0..64).map(|number| format!("old {number};\n")).collect();
        run(async {
            target.backend.create_text("/w/list.txt", &lines).await.expect("it is written");
            let tools = ToolSet::new(Arc::clone(&target.backend), Profile::Deepagents);
            let edits = (0..64).map(|number| {
                let (old, new) = (format!("old {number};"), format!("new {number};"));
                let arguments = json!({ "file_path": "/w/list.txt", "old_string": old, "new_string": new });
                let tools = &tools;
                async move { tools.call(&OpContext::new(), "edit_file", &arguments).await }
            });
            for outcome in join_all(edits).await {
                assert_eq!(outcome.failure, None, "{name}: {}", outcome.to_text());
            }
            assert_eq!(
                target.backend.read_text("/w/list.txt").await.expect("it is there"),
                lines.replace("old", "new")
            );
        });
    }
}

#[test]
fn only_what_a_backend_can_serve_is_offered() {
    let names = |backend: Arc<dyn Backend>| -> Vec<&str> {
        let tools = ToolSet::new(backend, Profile::Deepagents);
        tools.tools().iter().map(|tool| tool.name()).collect()
    };
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    assert_eq!(names(ReadOnly.layer(Arc::clone(&files))), ["ls", "read_file", "glob", "grep"]);
    let all = ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute"];
    assert_eq!(names(Arc::new(VirtualShell::new(files, VirtualShellConfig::new()))), all);
    let unknown = run(memory_tools(Profile::Deepagents).call(&OpContext::new(), "move_file", &json!({})));
    assert_eq!(unknown.failure, Some(FailureKind::UnknownTool));
    assert!(unknown.to_text().ends_with("the tools are ls, read_file, write_file, edit_file, delete, glob, grep"));
    for profile in Profile::ALL {
        let read_only = ToolSet::new(ReadOnly.layer(Arc::new(MemoryBackend::new())), *profile);
        for tool in read_only.tools() {
            let is_named = ["write_file", "edit_file", "execute"].iter().any(|name| tool.description().contains(name));
            assert!(!is_named, "{profile:?} {}: {}", tool.name(), tool.description());
        }
    }
}

/// Calls `execute` over a shell, and compares the outcomes.
fn check_commands(profile: Profile, calls: impl IntoIterator<Item = (Value, Option<FailureKind>, &'static str)>) {
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
    let tools = ToolSet::new(Arc::new(VirtualShell::new(files, VirtualShellConfig::new())), profile);
    for (arguments, failure, text) in calls {
        let outcome = run(tools.call(&OpContext::new(), "execute", &arguments));
        assert_eq!((outcome.failure, outcome.to_text().as_str()), (failure, text), "{profile:?} {arguments}");
    }
}

#[test]
fn a_command_shows_its_output_and_how_it_ended() {
    for profile in [Profile::DeepagentsClassic, Profile::Deepagents] {
        check_commands(
            profile,
            [
                (
                    json!({ "command": "echo one; echo two >&2" }),
                    None,
                    "one\ntwo\n\n[Command succeeded with exit code 0]",
                ),
                (json!({ "cmd": "exit 3" }), Some(FailureKind::Command), "\n[Command failed with exit code 3]"),
                (
                    json!({ "command": "true", "timeout": 3601 }),
                    Some(FailureKind::InvalidArguments),
                    "Error: `timeout` has to be a whole number from 0 to 3600; got 3601",
                ),
            ],
        );
    }
    for profile in [Profile::Eino, Profile::EinoZh] {
        check_commands(
            profile,
            [
                (json!({ "command": "echo one; echo two >&2" }), None, "one\ntwo\n"),
                (json!({ "command": "true" }), None, "[Command executed successfully with no output]"),
                (json!({ "cmd": "exit 3" }), Some(FailureKind::Command), "\n[Command failed with exit code 3]"),
                (
                    json!({ "command": "echo one; exit 3" }),
                    Some(FailureKind::Command),
                    "one\n\n[Command failed with exit code 3]",
                ),
                (
                    json!({ "command": " " }),
                    Some(FailureKind::Backend(ErrorKind::InvalidArgument)),
                    "command is required",
                ),
            ],
        );
    }
}

#[test]
fn an_effect_is_known_before_the_call() {
    let tools = memory_tools(Profile::Deepagents);
    for (name, arguments, class, path) in [
        ("read_file", json!({ "path": "w/a" }), OperationClass::Read, "/w/a"),
        ("write_file", json!({ "file_path": "/w/a", "content": "" }), OperationClass::Write, "/w/a"),
        ("delete", json!({ "file_path": "/w" }), OperationClass::Write, "/w"),
    ] {
        let effect = tools.get(name).expect("a tool").effect(&arguments).expect("valid arguments");
        assert_eq!((effect.class, effect.paths[0].as_str()), (class, path));
    }
    assert!(tools.get("delete").expect("a tool").effect(&json!({})).is_err());
    assert_eq!(
        run(tools.call(&OpContext::new(), "read_file", &json!({ "path": "/w/a" }))).failure,
        Some(FailureKind::Backend(ErrorKind::NotFound))
    );
}

#[test]
fn declarations_have_the_form_of_each_service_and_are_short() {
    for profile in Profile::ALL {
        let tools = memory_tools(*profile);
        let (openai, gemini) = (tools.to_openai(SchemaForm::Strict), tools.to_gemini());
        assert_eq!((&openai[0]["type"], &openai[0]["function"]["strict"]), (&json!("function"), &json!(true)));
        assert_eq!(openai[0]["function"]["parameters"]["additionalProperties"], json!(false));
        assert_eq!(gemini[0]["functionDeclarations"][0]["name"], json!(tools.tools()[0].name()));
        assert_eq!(gemini[0]["functionDeclarations"][0]["parametersJsonSchema"]["type"], json!("object"));
        let size = tools.to_anthropic(SchemaForm::Plain).to_string().len();
        assert!(size <= 8_000, "{profile:?}: {size}");
    }
}

#[test]
fn every_profile_has_a_golden_file() {
    assert_eq!(GOLDEN.map(|(profile, _)| profile), Profile::ALL);
}

//! The loop of an agent, offline: a script in the place of a model calls the native tools on the source of this project.
//!
//! `cargo run -p agent-vfs --example agent_loop --features tools`
//!
//! The model looks around, changes a name in several files, meets a change by somebody else, and reads a long result in pages. The files on
//! the disk stay as they are: an overlay keeps the changes.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use agent_vfs::tools::{Profile, SchemaForm, ToolCall, ToolSet};
use agent_vfs::{BackendExt, LocalBackend, OpContext, OverlayBackend};
use serde_json::{Value, json};

/// What a model answers with: the calls of one turn, or that it is done.
enum Turn {
    Calls(Vec<(&'static str, Value)>),
    Done(&'static str),
}

/// A script in the place of a model. It sees only what a model would see: the texts of the last results.
struct ScriptedModel {
    step: usize,
    page: usize,
}

const FILE: &str = "/crates/vfs-core/src/requests/read.rs";

impl ScriptedModel {
    fn answer(&mut self, results: &[String]) -> Turn {
        let last = results.last().map(String::as_str).unwrap_or_default();
        self.step += 1;
        Turn::Calls(match self.step {
            // It looks around: a summary of the tree, and where the name is. Calls that only read are made in parallel.
            1 => vec![
                ("list", json!({ "path": "/crates", "depth": 1 })),
                ("search", json!({ "pattern": "DEFAULT_MAX_BYTES", "word": true, "glob": "crates/vfs-core/**" })),
            ],
            2 => vec![
                ("read", json!({ "path": FILE, "outline": true })),
                ("read", json!({ "path": FILE, "symbol": "ReadRequest" })),
            ],
            // It renames the constant in every file of the crate, in one call.
            3 => vec![(
                "edit",
                json!({ "path": "/crates/vfs-core/**/*.rs", "old": "DEFAULT_MAX_BYTES", "new": "MAX_BYTES" }),
            )],
            4 => vec![("read", json!({ "path": FILE, "lines": "1-12" }))],
            // Meanwhile somebody else has changed the file: the edit is refused, with what to do.
            5 => vec![("edit", json!({ "path": FILE, "old": "//! Requests", "new": "//! All requests" }))],
            6 => {
                assert!(last.contains("has changed since you saw it"), "{last}");
                vec![("read", json!({ "path": FILE, "lines": "1-4" }))]
            }
            7 => {
                let header = last.lines().find_map(|line| line.strip_prefix("1\t")).unwrap_or_default();
                vec![("edit", json!({ "path": FILE, "old": header, "new": format!("{header} Reviewed.") }))]
            }
            // A long result comes as counts by directory, and in pages if it asks for them.
            8 => vec![("search", json!({ "pattern": "pub fn", "path": "/crates/vfs-core/src" }))],
            9 => {
                vec![("search", json!({ "pattern": "pub fn", "path": "/crates/vfs-core/src", "limit": 60, "skip": 0 }))]
            }
            _ => match last.rsplit_once("[more: skip=") {
                Some((_, next)) if self.page < 3 => {
                    self.page += 1;
                    let skip = next.trim_end_matches(']');
                    vec![(
                        "search",
                        json!({ "pattern": "pub fn", "path": "/crates/vfs-core/src", "limit": 60, "skip": skip }),
                    )]
                }
                _ => return Turn::Done("The constant has its new name, and I have seen the public functions."),
            },
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = Arc::new(OverlayBackend::new(Arc::new(LocalBackend::open(root)?)));
    let tools = ToolSet::new(Arc::<OverlayBackend>::clone(&files), Profile::Native);
    let cx = OpContext::new().with_actor("model");
    println!("The tools take {} bytes of a request.", tools.to_anthropic(SchemaForm::Plain).to_string().len());

    let mut model = ScriptedModel { step: 0, page: 0 };
    let mut results: Vec<String> = Vec::new();
    let mut failures = 0;
    loop {
        let calls = match model.answer(&results) {
            Turn::Calls(calls) => calls,
            Turn::Done(words) => {
                println!("\nmodel: {words}");
                break;
            }
        };
        if model.step == 5 {
            files.edit_text(FILE, "content and encodings", "content, and encodings").await?;
            println!("\n(somebody else edits {FILE})");
        }
        let calls: Vec<_> = calls.into_iter().map(|(name, arguments)| ToolCall::new(name, arguments)).collect();
        let outcomes = tools.call_all(&cx, &calls).await;
        results.clear();
        for (ToolCall { name, arguments, .. }, outcome) in calls.iter().zip(outcomes) {
            failures += usize::from(outcome.failure.is_some());
            let text = outcome.to_text();
            println!("\n> {name} {arguments}\n{}", start_of(&text));
            results.push(text);
        }
    }
    assert_eq!(failures, 1, "only the stale edit fails");
    let changed = files.read_text(FILE).await?;
    assert!(
        changed.contains("Reviewed.")
            && changed.contains("MAX_BYTES: u64")
            && !changed.contains("DEFAULT_MAX_BYTES: u64")
    );
    Ok(())
}

/// Returns the first lines of a text, for people.
fn start_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() {
        0..=12 => text.to_owned(),
        count => format!("{}\n    (and {} more lines)", lines[..10].join("\n"), count - 10),
    }
}

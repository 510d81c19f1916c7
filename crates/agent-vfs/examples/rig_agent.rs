//! An agent of rig, offline: a script in the place of a model works on a small project with the native tools.
//!
//! `cargo run -p agent-vfs --example rig_agent --features rig`
//!
//! The agent, its loop and its messages are those of rig. The model renames a constant and changes its value. It makes two mistakes,
//! and corrects each by the text of the result.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use agent_vfs::tools::Profile;
use agent_vfs::{BackendExt, MemoryBackend, OpContext, ToolSet};
use futures::stream;
use rig_agent::AgentBuilder;
use rig_agent::agent::{AgentHook, HookContext, OutcomeAction, OutcomeEvent};
use rig_core::completion::{CompletionRequest, CompletionResponse, Usage};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::effect::{EffectKind, Outcome};
use rig_core::message::{AssistantContent, Message, Origin, ToolName, ToolResultContent, UserContent};
use rig_core::test_utils::{MOCK_API, MockFrame, MockScript};
use serde_json::{Value, json};

const LIMITS: &str = "\
//! Limits of requests.

/// The largest body of a request, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
";

const SERVER: &str = "\
//! The server.

use crate::limits::MAX_BODY;

/// Starts the server.
pub fn start(port: u16) {
    listen(port, MAX_BODY);
}
";

const MANUAL: &str = "\
# Limits

A request has a body of at most 1 MiB (`MAX_BODY`).
";

const TASK: &str = "Rename MAX_BODY to MAX_BODY_BYTES, and allow 2 MiB. Keep the manual right.";

/// A turn of the scripted model: calls of tools, or its last answer.
enum Turn {
    Calls(Vec<(&'static str, Value)>),
    Done(&'static str),
}

/// A script in the place of a model. It sees only what a model would see: the messages of the request.
#[derive(Clone)]
struct ScriptedModel;

impl ScriptedModel {
    fn answer(messages: &[Message]) -> Turn {
        let last = texts_of_last_results(messages).pop().unwrap_or_default();
        let turn = messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        Turn::Calls(match turn {
            // It looks around.
            0 => vec![("list", json!({ "path": "/" })), ("search", json!({ "pattern": "MAX_BODY", "word": true }))],
            // It renames the constant in every file, in one call.
            1 => vec![("edit", json!({ "path": "/**/*", "old": "MAX_BODY", "new": "MAX_BODY_BYTES" }))],
            // It reads the manual by a wrong name. The result has the right one.
            2 => vec![("read", json!({ "path": "/docs/limit.md" }))],
            3 => {
                let (_, path) = last.split_once("near it: ").expect("the result names a similar path");
                vec![("read", json!({ "path": path }))]
            }
            // It recalls a line of the code badly. The result has the line as it is.
            4 => vec![(
                "edit",
                json!({ "path": "/src/limits.rs", "old": "MAX_BODY_BYTES: usize = 1024*1024;", "new": "MAX_BODY_BYTES: usize = 2 << 20;" }),
            )],
            5 => {
                let (_, line) = last.split_once("Most similar: line 4: ").expect("the result has a similar line");
                let doubled = line.replace("1024 * 1024", "2 * 1024 * 1024");
                let code = json!({ "path": "/src/limits.rs", "old": line, "new": doubled });
                let manual = json!({ "path": "/docs/limits.md", "old": "1 MiB", "new": "2 MiB" });
                vec![("edit", json!({ "edits": [code, manual] }))]
            }
            _ => return Turn::Done("MAX_BODY_BYTES is 2 MiB, in the code and in the manual."),
        })
    }
}

/// Returns the texts of the results that follow the last turn of the model.
fn texts_of_last_results(messages: &[Message]) -> Vec<String> {
    let last_turn = messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let content = messages[last_turn.unwrap_or(messages.len())..].iter().flat_map(|message| match message {
        Message::User { content } => content.as_slice(),
        _ => &[],
    });
    let results = content.filter_map(|content| match content {
        UserContent::ToolResult(result) => {
            Some(result.content.iter().filter_map(ToolResultContent::as_text).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    });
    results.collect()
}

/// Rig sends a request by a transport, which is a network for the model of a service. Here it plays the script.
impl Transport<MockScript> for ScriptedModel {
    fn send(&self, request: CompletionRequest, _: Exchange) -> Opening<MockFrame> {
        let turn = request.chat_history.len();
        let content = match Self::answer(&request.chat_history) {
            Turn::Done(words) => vec![AssistantContent::text(words)],
            Turn::Calls(calls) => {
                let calls = calls.into_iter().enumerate().map(|(index, (name, arguments))| {
                    let name = ToolName::new(name).expect("the name is not empty");
                    AssistantContent::tool_call(format!("call-{turn}-{index}"), name, arguments)
                });
                calls.collect()
            }
        };
        let origin = Origin::new(MOCK_API, "script", "script");
        let response = CompletionResponse::new(content, Usage::default(), origin, Value::Null);
        Opening::ready(Opened::new(stream::iter([Ok(MockFrame::Response(Box::new(response)))])))
    }
}

/// A hook of rig that prints each call with its result, and collects the codes of errors.
#[derive(Clone, Default)]
struct CallPrinter {
    error_codes: Arc<Mutex<Vec<String>>>,
}

impl AgentHook for CallPrinter {
    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        if let (EffectKind::ToolCall { name, args }, Ok(Outcome::ToolResult { result })) = (event.kind, event.outcome) {
            println!("\n> {name} {args}\n{}", result.output().render());
            if let Some(error) = result.error() {
                let code = error.code().unwrap_or_default().to_owned();
                println!("(rig's error kind: {}, code: {code})", error.kind());
                self.error_codes.lock().unwrap_or_else(PoisonError::into_inner).push(code);
            }
        }
        OutcomeAction::Proceed
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let files = Arc::new(MemoryBackend::new());
    for (path, text) in [("/src/limits.rs", LIMITS), ("/src/server.rs", SERVER), ("/docs/limits.md", MANUAL)] {
        files.create_text(path, text).await?;
    }
    let tools = ToolSet::new(Arc::<MemoryBackend>::clone(&files), Profile::Native);
    let cx = OpContext::new().with_actor("model");
    let printer = CallPrinter::default();

    // A model of a service would be in the place of the script; the rest would stay the same.
    let agent = AgentBuilder::new(Model::new(MockScript::new("script"), ScriptedModel))
        .preamble("You change the files of a project by the tools.")
        .dynamic_tools(agent_vfs::rig::tools(&tools, &cx))
        .default_max_turns(20)
        .add_hook(printer.clone())
        .build();

    println!("user: {TASK}");
    let response = agent.prompt(TASK).tool_concurrency(4).await?;
    println!("\nmodel: {}", response.output());

    assert_eq!(
        files.read_text("/src/limits.rs").await?,
        LIMITS.replace("MAX_BODY: usize = ", "MAX_BODY_BYTES: usize = 2 * ")
    );
    assert_eq!(files.read_text("/src/server.rs").await?, SERVER.replace("MAX_BODY", "MAX_BODY_BYTES"));
    assert_eq!(
        files.read_text("/docs/limits.md").await?,
        "# Limits\n\nA request has a body of at most 2 MiB (`MAX_BODY_BYTES`).\n"
    );
    let codes = printer.error_codes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(codes, ["not_found", "no_match"], "the two mistakes, and nothing else");
    Ok(())
}

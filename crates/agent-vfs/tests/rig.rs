//! The tools of a `ToolSet` as those of rig's agents.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_vfs::core::OperationId;
use agent_vfs::core::operation::{ResultStream, StreamCall, StreamRequest, UnaryRequest};
use agent_vfs::layers::FaultInjection;
use agent_vfs::tools::{Profile, SchemaForm};
use agent_vfs::{
    Backend, BackendExt, CancelToken, ErrorKind, Interceptor, Layer, MemoryBackend, OpContext, Operation, Policy,
    RuleSet, ToolSet, VfsPath, VirtualShell, VirtualShellConfig, WriteRequest,
};
use rig_agent::{Agent, AgentBuilder};
use rig_core::message::{
    AssistantContent, DocumentSourceKind, ImageMediaType, Message, ToolName, ToolResult, ToolResultContent, UserContent,
};
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use rig_core::tool::{DynamicTool, ToolContext, ToolErrorKind, ToolExecutionError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

/// A PNG image of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";
const PIXEL_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAACklEQVR4nGMAAQAABQABDQottAAAAABJRU5ErkJggg==";

/// How long a test may take: for a hang only.
const TIMEOUT: Duration = Duration::from_secs(300);

async fn files(contents: &[(&str, &[u8])]) -> Arc<MemoryBackend> {
    let files = Arc::new(MemoryBackend::new());
    for (path, content) in contents {
        let request = WriteRequest::new(VfsPath::parse(path).expect("a valid path"), content.to_vec());
        files.write(&OpContext::new(), request).await.expect("it is written");
    }
    files
}

fn tools(files: Arc<dyn Backend>, profile: Profile) -> Vec<DynamicTool> {
    agent_vfs::rig::tools(&ToolSet::new(files, profile), &OpContext::new())
}

async fn call(tools: &[DynamicTool], name: &str, arguments: Value) -> Result<ToolOutput, ToolExecutionError> {
    let tool = tools.iter().find(|tool| tool.name().as_str() == name);
    tool.unwrap_or_else(|| panic!("there is no tool {name}")).execute(arguments).await
}

fn agent(model: &MockCompletionModel, tools: Vec<DynamicTool>) -> Agent {
    AgentBuilder::new(model.clone()).dynamic_tools(tools).default_max_turns(10).build()
}

fn calls(calls: impl IntoIterator<Item = (&'static str, Value)>) -> MockTurn {
    MockTurn::from_contents(calls.into_iter().enumerate().map(|(index, (name, arguments))| {
        let name = ToolName::new(name).expect("the name of a tool");
        AssistantContent::tool_call(format!("call-{index}"), name, arguments)
    }))
}

/// Returns the results that the model saw in its last request.
fn results(model: &MockCompletionModel) -> Vec<ToolResult> {
    let request = model.requests().pop().expect("a request");
    let content = request.chat_history.into_iter().flat_map(|message| match message {
        Message::User { content } => content,
        _ => Vec::new(),
    });
    content
        .filter_map(|content| if let UserContent::ToolResult(result) = content { Some(result) } else { None })
        .collect()
}

#[test]
fn tools_are_those_of_the_set() {
    for profile in Profile::ALL {
        let files = VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new());
        let set = ToolSet::new(Arc::new(files), *profile);
        let tools = agent_vfs::rig::tools(&set, &OpContext::new());
        assert_eq!(tools.len(), set.tools().len(), "{profile:?}");
        for (tool, expected) in tools.iter().map(DynamicTool::definition).zip(set.tools()) {
            assert_eq!((tool.name.as_str(), tool.description.as_str()), (expected.name(), expected.description()));
            assert_eq!(tool.parameters, expected.input_schema(SchemaForm::Plain), "{profile:?} {}", tool.name);
        }
    }
}

#[tokio::test]
async fn a_text_result_is_one_text_with_its_notes() {
    let files = files(&[("/a.txt", b"one\ntwo\n")]).await;
    let arguments = json!({ "path": "/a.txt", "colour": "red" });
    let expected = ToolSet::new(Arc::<MemoryBackend>::clone(&files), Profile::Native);
    let expected = expected.call(&OpContext::new(), "read", &arguments).await;
    assert!(expected.parts.len() > 1, "the unknown argument is a note of its own: {expected:?}");

    let output = call(&tools(files, Profile::Native), "read", arguments).await.expect("the file is read");
    assert_eq!(output.as_text(), Some(expected.to_text().as_str()));
    assert!(output.render().contains("2\ttwo") && output.render().contains("colour"), "{}", output.render());
}

#[tokio::test]
async fn an_image_is_an_image_and_another_file_is_a_line() {
    let contents: [(&str, &[u8]); 3] =
        [("/pixel.png", PIXEL), ("/paper.pdf", b"%PDF-1.4\n\0"), ("/scan.tiff", b"II*\0\x08\0\0\0\0\0")];
    let tools = tools(files(&contents).await, Profile::Deepagents);
    let image = call(&tools, "read_file", json!({ "file_path": "/pixel.png" })).await.expect("the image is read");
    let [ToolResultContent::Image(image)] = image.as_content() else { panic!("it is no image: {}", image.render()) };
    assert_eq!(image.data, DocumentSourceKind::Base64(PIXEL_BASE64.to_owned()));
    assert_eq!(image.media_type, Some(ImageMediaType::PNG));

    for (path, line) in [("/paper.pdf", "[application/pdf, 10 bytes]"), ("/scan.tiff", "[image/tiff, 10 bytes]")] {
        let output = call(&tools, "read_file", json!({ "file_path": path })).await.expect("the file is read");
        assert_eq!(output.as_text(), Some(line));
    }
}

#[tokio::test]
async fn an_error_of_the_backend_has_its_code_and_a_kind_of_rig() {
    for kind in ErrorKind::ALL.iter().copied() {
        let backend = FaultInjection::new(kind).only(Operation::Write).layer(Arc::new(MemoryBackend::new()));
        let written = call(&tools(backend, Profile::Native), "write", json!({ "path": "/a", "content": "x" })).await;
        let error = written.expect_err("the write fails");
        let expected = match kind {
            ErrorKind::InvalidArgument | ErrorKind::InvalidPath | ErrorKind::InvalidPattern => {
                ToolErrorKind::InvalidArgs
            }
            ErrorKind::NotFound => ToolErrorKind::NotFound,
            ErrorKind::PermissionDenied
            | ErrorKind::PathEscape
            | ErrorKind::PolicyDenied
            | ErrorKind::ApprovalRequired => ToolErrorKind::PermissionDenied,
            ErrorKind::Timeout => ToolErrorKind::Timeout,
            ErrorKind::Cancelled => ToolErrorKind::Cancelled,
            ErrorKind::Unavailable => ToolErrorKind::Provider,
            _ => ToolErrorKind::Other,
        };
        assert_eq!((error.kind(), error.code()), (expected, Some(kind.code())));
        assert_eq!(error.retryable(), Some(kind.is_temporary()), "{kind:?}");
        let is_refusal = matches!(kind, ErrorKind::PolicyDenied | ErrorKind::ApprovalRequired);
        assert_eq!(error.is_refusal(), is_refusal, "{kind:?}");
        assert!(error.model_feedback().is_some_and(|text| text.starts_with("Error: ")), "{kind:?}: {error}");
    }
}

#[tokio::test]
async fn wrong_arguments_and_failed_commands_are_errors_with_their_text() {
    let shell = VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new());
    let tools = tools(Arc::new(shell), Profile::Native);
    for arguments in [json!({}), json!({ "path": 7, "lines": [] }), json!([]), json!("no"), Value::Null] {
        let error = call(&tools, "read", arguments.clone()).await.expect_err("they cannot be read");
        assert_eq!((error.kind(), error.code()), (ToolErrorKind::InvalidArgs, Some("invalid_arguments")));
        let text = error.model_feedback().unwrap_or_default();
        assert!(text.starts_with("Error: ") && text.len() <= 2_000, "{arguments}: {text}");
    }
    let error = call(&tools, "run", json!({ "command": "echo counted; exit 3" })).await.expect_err("it fails");
    assert_eq!((error.kind(), error.code()), (ToolErrorKind::Other, Some("command_failed")));
    assert!(error.model_feedback().is_some_and(|text| text.contains("counted")), "{error}");
}

#[tokio::test]
async fn a_model_sees_what_failed_and_goes_on() {
    let rules = RuleSet::from_toml("[[rules]]\neffect = 'deny'\npaths = ['/secrets']\n").expect("valid rules");
    let files = files(&[("/plan.md", b"- draft\n"), ("/secrets/key", b"hidden\n")]).await;
    let governed = Policy::new(Arc::new(rules)).layer(Arc::<MemoryBackend>::clone(&files));
    let model = MockCompletionModel::from_turns([
        calls([
            ("read", json!({ "path": "/plam.md" })),
            ("read", json!({ "path": "/secrets/key" })),
            ("read", json!({})),
        ]),
        calls([("edit", json!({ "path": "/plan.md", "old": "draft", "new": "final" }))]),
        MockTurn::text("It is final."),
    ]);
    let response = agent(&model, tools(governed, Profile::Native)).prompt("Make it final.").await.expect("an answer");
    assert_eq!(response.output(), "It is final.");
    assert_eq!(files.read_text("/plan.md").await.expect("the file is read"), "- final\n");

    let shown: Vec<(bool, String)> = results(&model)
        .iter()
        .map(|result| (result.is_error, result.content.iter().filter_map(ToolResultContent::as_text).collect()))
        .collect();
    assert_eq!(shown.iter().map(|(is_error, _)| *is_error).collect::<Vec<_>>(), [true, true, true, false]);
    assert_eq!(shown[0].1, "Error: File '/plam.md' not found; near it: /plan.md");
    assert!(shown.iter().all(|(_, text)| !text.is_empty() && !text.contains("hidden")), "{shown:?}");
    assert!(shown[3].1.contains("- final"), "{shown:?}");
}

/// Waits in every write until all writes that are expected have begun.
#[derive(Debug)]
struct WriteBarrier(Barrier);

impl Interceptor for WriteBarrier {
    fn name(&self) -> &'static str {
        "write-barrier"
    }

    async fn call<Q: UnaryRequest>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> agent_vfs::Result<Q::Output> {
        if Q::OPERATION == Operation::Write {
            self.0.wait().await;
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn calls_of_one_turn_run_in_parallel_and_each_has_its_result() {
    const CALLS: usize = 64;
    let files = files(&[]).await;
    let backend = Arc::new(WriteBarrier(Barrier::new(CALLS))).layer(Arc::<MemoryBackend>::clone(&files));
    let arguments =
        |index: usize| json!({ "file_path": format!("/{index}.txt"), "content": format!("file {index}\n") });
    let model = MockCompletionModel::from_turns([
        calls((0..CALLS).map(|index| ("write_file", arguments(index)))),
        MockTurn::text("All are written."),
    ]);
    let agent = agent(&model, tools(backend, Profile::Deepagents));
    let run = agent.prompt("Write them.").tool_concurrency(CALLS);
    let response = tokio::time::timeout(TIMEOUT, run.into_future()).await.expect("no call waits for another to end");
    assert_eq!(response.expect("an answer").output(), "All are written.");

    let results = results(&model);
    assert_eq!(results.len(), CALLS);
    for (index, result) in results.iter().enumerate() {
        let text = result.content[0].as_text().unwrap_or_default();
        assert!(!result.is_error && text.contains(&format!("/{index}.txt")), "{index}: {text}");
        let written = files.read_text(&format!("/{index}.txt")).await.expect("the file is there");
        assert_eq!(written, format!("file {index}\n"));
    }
}

/// Says that an operation has begun, and waits until its context is cancelled.
#[derive(Debug, Default)]
struct UntilCancelled {
    begun: Notify,
    dropped: Arc<AtomicBool>,
}

/// Sets a flag when it is dropped.
struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Interceptor for UntilCancelled {
    fn name(&self) -> &'static str {
        "until-cancelled"
    }

    async fn call<Q: UnaryRequest>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> agent_vfs::Result<Q::Output> {
        let _flag = DropFlag(Arc::clone(&self.dropped));
        self.begun.notify_one();
        cx.cancel_token().cancelled().await;
        cx.check()?;
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_cancelled_context_ends_calls() {
    let token = CancelToken::new();
    let cx = OpContext::new().with_cancel_token(token.clone());
    let waiting = Arc::new(UntilCancelled::default());
    let backend = Arc::clone(&waiting).layer(files(&[("/a.txt", b"one\n")]).await);
    let tools = agent_vfs::rig::tools(&ToolSet::new(backend, Profile::Native), &cx);

    let during = call(&tools, "read", json!({ "path": "/a.txt" }));
    let cancel = async {
        waiting.begun.notified().await;
        token.cancel();
    };
    let (during, ()) =
        tokio::time::timeout(TIMEOUT, futures::future::join(during, cancel)).await.expect("the call ends");
    let after = call(&tools, "write", json!({ "path": "/b.txt", "content": "x" })).await;
    for result in [during, after] {
        let error = result.expect_err("its context is cancelled");
        assert_eq!((error.kind(), error.code()), (ToolErrorKind::Cancelled, Some("cancelled")));
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_its_calls() {
    let waiting = Arc::new(UntilCancelled::default());
    let backend = Arc::clone(&waiting).layer(files(&[("/a.txt", b"one\n")]).await);
    let model = MockCompletionModel::from_turns([calls([("read", json!({ "path": "/a.txt" }))])]);
    let agent = agent(&model, tools(backend, Profile::Native));
    tokio::select! {
        ended = agent.prompt("Read it.").into_future() => panic!("nothing ends the call: {ended:?}"),
        () = waiting.begun.notified() => {}
    }
    assert!(waiting.dropped.load(Ordering::SeqCst));
}

/// Collects the actor of every operation, and whether it has an operation id.
#[derive(Debug, Default)]
struct ContextLog(Mutex<Vec<(Option<String>, bool)>>);

impl Interceptor for ContextLog {
    fn name(&self) -> &'static str {
        "context-log"
    }

    async fn call<Q: UnaryRequest>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> agent_vfs::Result<Q::Output> {
        let entry = (cx.actor().map(str::to_owned), cx.operation_id().is_some());
        self.0.lock().expect("no test panics in between").push(entry);
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test]
async fn a_run_may_have_a_context_of_its_own() {
    let log = Arc::new(ContextLog::default());
    let backend = Arc::clone(&log).layer(files(&[]).await);
    let context = |actor: &str| {
        let id = OperationId::parse("one-change").expect("a valid id");
        OpContext::new().with_actor(actor).with_operation_id(id)
    };
    let tools = agent_vfs::rig::tools(&ToolSet::new(backend, Profile::Deepagents), &context("agent"));
    let write = |path: &str| calls([("write_file", json!({ "file_path": path, "content": "x" }))]);
    let turns = [write("/a"), MockTurn::text("Done."), write("/b"), MockTurn::text("Done.")];
    let agent = agent(&MockCompletionModel::from_turns(turns), tools);

    let logged = || std::mem::take(&mut *log.0.lock().expect("no test panics in between"));
    agent.prompt("Write a file.").await.expect("an answer");
    let entries = logged();
    assert!(
        !entries.is_empty() && entries.iter().all(|entry| *entry == (Some("agent".to_owned()), false)),
        "{entries:?}"
    );

    let scope = ToolContext::new().with_scope(Arc::new(context("run")));
    agent.prompt("Write another.").tool_context(scope).await.expect("an answer");
    let entries = logged();
    assert!(
        !entries.is_empty() && entries.iter().all(|entry| *entry == (Some("run".to_owned()), false)),
        "{entries:?}"
    );
}

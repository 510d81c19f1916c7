//! HTTP service of the tests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::pin::Pin;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};

use super::signature;

pub(crate) const TOKEN: &str = "a-token-that-nobody-sees";
pub(crate) const KEY_ID: &str = "a-key-id";
pub(crate) const KEY: &str = "a-key-that-nobody-sees";

/// The protocol of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Agentkit,
}

/// The fault of one request.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// The script is not run; the response has this status and `Retry-After`.
    Status(u16, Option<&'static str>),
    /// The script runs, and the connection is cut before the response.
    Lost,
    /// The script runs, and the connection is cut within the response.
    CutBody,
    /// There is no response.
    Silent,
    /// The response has this body.
    Body(String),
    /// The response does not end.
    Endless,
    /// The response redirects to this address.
    Redirect,
}

#[derive(Default)]
struct State {
    plan: VecDeque<Fate>,
    requests: usize,
    runs: usize,
}

pub(crate) struct Service {
    pub(crate) kind: Kind,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: Mutex<tokio::task::JoinHandle<()>>,
}

impl Service {
    pub(crate) async fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let server = Mutex::new(tokio::spawn(serve(listener, kind, Arc::clone(&state))));
        Self { kind, address, state, server }
    }

    pub(crate) fn url(&self) -> String {
        match self.kind {
            Kind::Json => format!("http://{}/v1/run", self.address),
            Kind::Agentkit => format!("http://{}/", self.address),
        }
    }

    /// Sets the faults of the next requests.
    pub(crate) fn plan(&self, fates: impl IntoIterator<Item = Fate>) {
        self.state.lock().expect("the state").plan = fates.into_iter().collect();
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn take_requests(&self) -> usize {
        std::mem::take(&mut self.state.lock().expect("the state").requests)
    }

    /// Returns the number of scripts since the last call.
    pub(crate) fn take_runs(&self) -> usize {
        std::mem::take(&mut self.state.lock().expect("the state").runs)
    }

    /// Stops accepting connections before the method returns.
    pub(crate) async fn stop(&self) {
        let stopped = std::mem::replace(&mut *self.server.lock().expect("the server"), tokio::spawn(async {}));
        stopped.abort();
        // The task was aborted, so its result is an error.
        let _cancelled = stopped.await;
    }

    /// Accepts connections again.
    pub(crate) async fn resume(&self) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option");
        let end = Instant::now() + crate::HANG_TIMEOUT;
        while socket.bind(self.address).is_err() {
            assert!(Instant::now() < end, "the port is taken");
            tokio::task::yield_now().await;
        }
        let listener = socket.listen(16).expect("a listener");
        *self.server.lock().expect("the server") = tokio::spawn(serve(listener, self.kind, Arc::clone(&self.state)));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.lock().expect("the server").abort();
    }
}

type Answer = Response<BoxBody<Bytes, std::io::Error>>;

fn whole(body: impl Into<Bytes>) -> BoxBody<Bytes, std::io::Error> {
    Full::from(body.into()).map_err(|never| match never {}).boxed()
}

async fn serve(listener: TcpListener, kind: Kind, state: Arc<Mutex<State>>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { return };
        let state = Arc::clone(&state);
        let answer = service_fn(move |request| answer(kind, Arc::clone(&state), request));
        tokio::spawn(async move {
            // Some tests cut a connection.
            let mut server = hyper::server::conn::http1::Builder::new();
            let _ = server.keep_alive(false).serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

async fn answer(kind: Kind, state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Answer, std::io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let fate = {
        let mut state = state.lock().expect("the state");
        state.requests += 1;
        state.plan.pop_front()
    };
    assert_eq!(parts.method, "POST");
    assert_eq!(parts.headers["content-type"], "application/json");
    let is_authorized = match kind {
        Kind::Json => {
            assert_eq!(parts.uri.path(), "/v1/run");
            parts.headers["authorization"] == format!("Bearer {TOKEN}")
        }
        Kind::Agentkit => signature::is_right(&parts, &body),
    };
    if !is_authorized {
        let sent: Vec<&str> = parts.headers.values().filter_map(|value| value.to_str().ok()).collect();
        return Ok(says(401, kind, &format!("unknown: {}", sent.join(" "))));
    }
    let run = || async {
        state.lock().expect("the state").runs += 1;
        tokio::task::spawn_blocking(move || match kind {
            Kind::Json => run_json(&body),
            Kind::Agentkit => run_agentkit(&body),
        })
        .await
        .expect("a run")
    };
    let cut = || std::io::Error::other("cut");
    Ok(match fate {
        None => Response::new(whole(run().await)),
        Some(Fate::Status(status, retry_after)) => {
            let mut answer = says(status, kind, "not now");
            if let Some(value) = retry_after {
                answer.headers_mut().insert("retry-after", value.parse().expect("a value"));
            }
            answer
        }
        Some(Fate::Lost) => {
            run().await;
            return Err(cut());
        }
        Some(Fate::CutBody) => {
            let body = run().await;
            Response::new(BoxBody::new(Broken { part: Some(Bytes::from(body).slice(..5)), is_sent: false }))
        }
        Some(Fate::Silent) => std::future::pending().await,
        Some(Fate::Body(body)) => Response::new(whole(body)),
        Some(Fate::Endless) => Response::new(BoxBody::new(Endless)),
        Some(Fate::Redirect) => {
            let mut answer = says(307, kind, "there");
            answer.headers_mut().insert("location", parts.uri.path().parse().expect("a value"));
            answer
        }
    })
}

fn says(status: u16, kind: Kind, words: &str) -> Answer {
    let body = match kind {
        Kind::Json => json!({ "error": words }),
        Kind::Agentkit => json!({"ResponseMetadata": {"Error": {"Code": "No", "Message": words}}}),
    };
    let answer = Response::builder().status(status);
    answer.body(whole(body.to_string())).expect("an answer")
}

type NextFrame = Poll<Option<Result<Frame<Bytes>, std::io::Error>>>;

struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> NextFrame {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 1024])))))
    }
}

/// A part of a response, after which the connection is cut.
struct Broken {
    part: Option<Bytes>,
    is_sent: bool,
}

impl Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> NextFrame {
        if let Some(part) = self.part.take() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        if !std::mem::replace(&mut self.is_sent, true) {
            // The first part is sent when no further part is ready.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(std::io::Error::other("cut"))))
    }
}

/// Runs a program of a session's own with files for its outputs, for a time.
fn run_for(command: &mut Command, stdin: &[u8], time: Duration) -> (Option<ExitStatus>, Vec<u8>, Vec<u8>) {
    let directory = tempfile::TempDir::new().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("in"), stdin).expect("a file");
    let create = |name: &str| std::fs::File::create(at(name)).expect("a file");
    let mut child = command
        .stdin(Stdio::from(std::fs::File::open(at("in")).expect("a file")))
        .stdout(create("out"))
        .stderr(create("err"))
        .process_group(0)
        .spawn()
        .expect("a process");
    let end = Instant::now() + time;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break Some(status);
        }
        if Instant::now() >= end {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            child.wait().expect("an end");
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |name: &str| std::fs::read(at(name)).expect("a file");
    (status, read("out"), read("err"))
}

fn run_json(body: &[u8]) -> String {
    let call: Value = serde_json::from_slice(body).expect("JSON");
    let stdin = STANDARD.decode(call["stdin"].as_str().expect("text")).expect("base64");
    let time = Duration::from_millis(call["timeout_ms"].as_u64().expect("a number"));
    let mut command = Command::new("sh");
    command.args(["-c", call["script"].as_str().expect("text")]);
    let (status, mut stdout, stderr) = run_for(&mut command, &stdin, time);
    // The service returns a byte more than requested.
    let max = call["max_output_bytes"].as_u64().map_or(usize::MAX, |max| max as usize + 1);
    if call["keep"] == "beginning" {
        stdout.truncate(max);
    }
    json!({
        "exit_code": status.and_then(|status| status.code()),
        "signal": status.and_then(|status| status.signal()),
        "timed_out": status.is_none(),
        "stdout": STANDARD.encode(stdout),
        "stderr": STANDARD.encode(stderr),
    })
    .to_string()
}

/// Runs the Python as a kernel does: what it prints is a list of texts, in pieces, and an exception is one of them.
fn run_agentkit(body: &[u8]) -> String {
    let call: Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(call["ToolId"], "tool");
    assert_eq!(call["UserSessionId"], "session/é 1");
    assert_eq!(call["OperationType"], "RunCode");
    let payload: Value = serde_json::from_str(call["OperationPayload"].as_str().expect("text")).expect("JSON");
    assert_eq!(payload["kernel_name"], "python3");
    let time = Duration::from_secs(payload["timeout"].as_u64().expect("whole seconds"));
    let mut command = Command::new("python3");
    let (status, stdout, stderr) = run_for(command.arg("-"), payload["code"].as_str().expect("code").as_bytes(), time);
    let text = String::from_utf8(stdout).expect("text");
    let (first, second) = text.split_at(text.len() / 2);
    let is_right = status.is_some_and(|status| status.success());
    let mut outputs = vec![
        json!({"output_type": "stream", "name": "stdout", "text": first}),
        json!({"output_type": "stream", "name": "stdout", "text": [second]}),
    ];
    if !is_right {
        let words = String::from_utf8_lossy(&stderr).into_owned();
        outputs.push(json!({"output_type": "error", "ename": "Failure", "evalue": words}));
    }
    let result = json!({"success": is_right, "data": {"kernel_name": "python3", "outputs": outputs}});
    json!({
        "ResponseMetadata": {"RequestId": "1", "Action": "InvokeTool", "Version": "2025-10-30", "Region": "cn-beijing"},
        "Result": {"ToolId": "tool", "Result": result.to_string()},
    })
    .to_string()
}

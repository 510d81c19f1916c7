//! Command `vfs exec`: runs a command.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use vfs_core::{Backend, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse};

use crate::args::ExecArgs;
use crate::backend_session::BackendSession;
use crate::exit::{self, Exit, Failure};
use crate::jobs;
use crate::shell_selection::{ShellBackendKind, no_shell, streaming_shell};
use crate::standard_output::StandardOutput;
use crate::standard_streams;

/// The timeout of a background command without `--timeout`, ten years.
const UNLIMITED_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

pub(super) async fn run(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: ExecArgs,
    keep_job: Option<String>,
) -> Result<Exit, Failure> {
    if args.background && args.stdin {
        return Err(Failure::Usage("a background command cannot read standard input; leave out --stdin"));
    }
    let kind = ShellBackendKind::from_args(args.shell)?;
    let request = request(session, &args)?;
    request.check()?;
    if args.background && keep_job.is_none() {
        let id = jobs::start()?;
        writeln!(out, "{id}")?;
        return Ok(Exit::Success);
    }
    let backend = session.with_shell(kind).await?;
    match keep_job {
        Some(id) => jobs::run_monitored(id, session.cx.clone(), &*backend, request).await,
        None if args.json => {
            let shell = backend.as_shell().ok_or_else(no_shell)?;
            let response = shell.execute(&session.cx, request).await?;
            out.json(&ExecuteOutput { response: &response, separate: args.separate })?;
            Ok(exit_of(&response))
        }
        None => stream(session, out, backend, request).await,
    }
}

fn request(session: &BackendSession, args: &ExecArgs) -> Result<ExecuteRequest, Failure> {
    let mut cwd = session.path_or_root(args.cwd.as_deref())?;
    if args.shell.sandbox {
        // In a sandbox the root is one directory among those of the system.
        cwd = session.path_in_sandbox(args.shell.sandbox_args, &cwd)?;
    }
    let mut request = ExecuteRequest::new(args.command.join(" ")).cwd(cwd);
    request.max_output_bytes = args.max_output;
    request.timeout = args.timeout.or(args.background.then_some(UNLIMITED_TIMEOUT));
    request.env = args.env.iter().cloned().collect();
    if args.inherit_env {
        request = request.inherit_env();
    }
    if args.stdin {
        request = request.stdin(standard_streams::read_text()?);
    }
    Ok(request)
}

/// JSON form of a response that contains each byte of output once.
pub(super) struct ExecuteOutput<'a> {
    response: &'a ExecuteResponse,
    /// Whether standard output and standard error are separate fields.
    separate: bool,
}

impl<'a> ExecuteOutput<'a> {
    /// Creates the form in which both outputs are interleaved, in order of arrival.
    pub(super) fn new(response: &'a ExecuteResponse) -> Self {
        Self { response, separate: false }
    }
}

impl Serialize for ExecuteOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(mut fields) = serde_json::to_value(self.response).map_err(S::Error::custom)? else {
            return Err(S::Error::custom("internal: a response is not an object"));
        };
        let duplicates: &[&str] = if self.separate { &["output"] } else { &["stdout", "stderr"] };
        duplicates.iter().for_each(|name| drop(fields.remove(*name)));
        fields.serialize(serializer)
    }
}

/// Prints the output of a command as it arrives.
async fn stream(
    session: &BackendSession,
    out: &mut StandardOutput,
    backend: Arc<dyn Backend>,
    request: ExecuteRequest,
) -> Result<Exit, Failure> {
    let timeout = request.timeout.unwrap_or(ExecuteRequest::DEFAULT_TIMEOUT);
    let mut events = streaming_shell(&*backend)?.execute_stream(session.cx.clone(), request);
    while let Some(event) = events.next().await {
        match event? {
            ExecuteEvent::Stdout(text) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            ExecuteEvent::Stderr(text) => io::stderr().lock().write_all(text.as_bytes())?,
            ExecuteEvent::Exit(ended) => {
                out.flush()?;
                exit::print_problems(&ended.problems);
                if ended.timed_out {
                    let seconds = timeout.as_secs_f64();
                    exit::print_message(format_args!(
                        "the command was stopped after {seconds} s; set another limit with --timeout"
                    ));
                }
                return Ok(exit_of(&ended));
            }
            _ => {}
        }
    }
    Err(Error::new(ErrorKind::Internal, "the output of the command ended without an exit status").into())
}

/// Returns the exit code as shells do: that of the command, 128 plus the signal, or 124 after a timeout.
fn exit_of(ended: &ExecuteResponse) -> Exit {
    let code = match (ended.timed_out, ended.exit_code, ended.signal) {
        (true, ..) => 124,
        (_, Some(code), _) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        (_, None, Some(signal)) => u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128)),
        (_, None, None) => u8::MAX,
    };
    Exit::Command(code)
}

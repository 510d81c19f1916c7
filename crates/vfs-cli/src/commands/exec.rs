//! `vfs exec`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use vfs_core::{Backend, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, StreamingShell};

use crate::args::ExecArgs;
use crate::exit::{self, Exit, Failure};
use crate::jobs;
use crate::output::Output;
use crate::session::{Session, ShellKind};
use crate::streams;

/// How long a command in the background may run that is given no time.
const NO_LIMIT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

pub(super) async fn run(
    session: &Session,
    out: &mut Output,
    args: ExecArgs,
    keep_job: Option<String>,
) -> Result<Exit, Failure> {
    if args.background && args.stdin {
        return Err(Failure::Usage("--background does not wait, so nothing can be read from here; leave out --stdin"));
    }
    let kind = ShellKind::of(args.shell)?;
    let request = request(session, &args)?;
    request.check()?;
    if args.background && keep_job.is_none() {
        let id = jobs::start()?;
        writeln!(out, "{id}")?;
        return Ok(Exit::Success);
    }
    let backend = session.with_shell(kind).await?;
    match keep_job {
        Some(id) => jobs::keep(id, session.cx.clone(), &*backend, request).await,
        None if args.json => {
            let shell = backend.as_shell().ok_or_else(no_shell)?;
            let ended = shell.execute(&session.cx, request).await?;
            out.json(&Printed { ended: &ended, separate: args.separate })?;
            Ok(exit_of(&ended))
        }
        None => stream(session, out, backend, request).await,
    }
}

fn request(session: &Session, args: &ExecArgs) -> Result<ExecuteRequest, Failure> {
    let mut cwd = session.path_or_root(args.cwd.as_deref())?;
    if args.shell.sandbox {
        // Commands in a sandbox see the root as a directory beside those of the system.
        cwd = session.path_in_sandbox(args.shell.sandbox_args, &cwd)?;
    }
    let mut request = ExecuteRequest::new(args.command.join(" ")).cwd(cwd);
    request.max_output_bytes = args.max_output;
    request.timeout = args.timeout.or(args.background.then_some(NO_LIMIT));
    request.env = args.env.iter().cloned().collect();
    if args.inherit_env {
        request = request.inherit_env();
    }
    if args.stdin {
        request = request.stdin(streams::text()?);
    }
    Ok(request)
}

/// A response as JSON that has each byte of output once.
pub(super) struct Printed<'a> {
    ended: &'a ExecuteResponse,
    /// Whether both outputs are printed by themselves, in place of both in the order of arrival.
    separate: bool,
}

impl<'a> Printed<'a> {
    /// Creates a response with both outputs interleaved, in order of arrival.
    pub(super) fn new(ended: &'a ExecuteResponse) -> Self {
        Self { ended, separate: false }
    }
}

impl Serialize for Printed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(mut fields) = serde_json::to_value(self.ended).map_err(S::Error::custom)? else {
            return Err(S::Error::custom("a response is an object"));
        };
        let repeated: &[&str] = if self.separate { &["output"] } else { &["stdout", "stderr"] };
        repeated.iter().for_each(|name| drop(fields.remove(*name)));
        fields.serialize(serializer)
    }
}

/// Hands on what is printed as it comes.
async fn stream(
    session: &Session,
    out: &mut Output,
    backend: Arc<dyn Backend>,
    request: ExecuteRequest,
) -> Result<Exit, Failure> {
    let timeout = request.timeout.unwrap_or(ExecuteRequest::DEFAULT_TIMEOUT);
    let mut events = streaming(&*backend)?.execute_stream(session.cx.clone(), request);
    while let Some(event) = events.next().await {
        match event? {
            ExecuteEvent::Stdout(text) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            ExecuteEvent::Stderr(text) => io::stderr().lock().write_all(text.as_bytes())?,
            ExecuteEvent::Exit(ended) => {
                out.flush()?;
                exit::warn(&ended.problems);
                if ended.timed_out {
                    let seconds = timeout.as_secs_f64();
                    exit::tell(format_args!(
                        "the command was stopped after {seconds} s; set another time with --timeout"
                    ));
                }
                return Ok(exit_of(&ended));
            }
            _ => {}
        }
    }
    Err(Error::new(ErrorKind::Internal, "the command's output ended without its exit").into())
}

/// The streaming shell of `backend`.
pub(crate) fn streaming(backend: &dyn Backend) -> Result<&dyn StreamingShell, Failure> {
    backend.as_streaming_shell().ok_or_else(no_shell)
}

fn no_shell() -> Failure {
    Failure::Usage("nothing runs commands on these files; run with --virtual")
}

/// As shells tell it: the code, 128 and the signal, or 124 where the time was over.
fn exit_of(ended: &ExecuteResponse) -> Exit {
    let code = match (ended.timed_out, ended.exit_code, ended.signal) {
        (true, ..) => 124,
        (_, Some(code), _) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        (_, None, Some(signal)) => u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128)),
        (_, None, None) => u8::MAX,
    };
    Exit::Command(code)
}

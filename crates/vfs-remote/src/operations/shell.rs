//! Command execution: `Shell` for the backend.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::shell::{BaseEnvironment, FullOutputMode, RunMode};
use vfs_core::{Error, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell};
use vfs_search::run_until_cancelled;

use crate::backend::SandboxBackend;
use crate::exec::{RemoteExec, RemoteExit, RemoteOutput, RetainedOutputPart, ScriptInvocation};
use crate::operations::remote_staged_content::{PartUploadMethod, RemoteStagedContent};
use crate::operations::stat::refuse_reserved;
use crate::remote_place_client::{RemotePlaceClient, SCRIPT_ROOM};
use crate::script::error::{labelled, unanswered};
use crate::script::head_tail_output::{HeadTailOutput, join};
use crate::script::reply::Reply;
use crate::script::{PathResolutionMode, Script, printable, quoted};

/// Maximum timeout of a command.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Prints the marker before the outputs of the command. Text before the marker does not belong to the command.
const BEGIN: &str = r#"[ "$n" = . ] || into
check_cwd
printf '%s' "$M"
printf '%s' "$M" >&2"#;

#[async_trait]
impl<E: RemoteExec> Shell for SandboxBackend<E> {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        cx.check().map_err(|error| error.or_path(&req.cwd))?;
        check(&req)?;
        let place = &self.place;
        let limit = req.timeout.unwrap_or(place.config.command_timeout).min(MAX_TIMEOUT);
        let max_bytes = req.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let max_bytes = max_bytes.min(place.config.max_output_bytes);
        let (mut invocation, script, staged) = prepare(place, cx, &req).await?;
        invocation.timeout = limit;
        // Leave room for the marker, the text of a login shell before it, and a character at each end of the cut.
        invocation.max_output_bytes = max_bytes.saturating_add(OUTPUT_OVERHEAD);
        let started = Instant::now();
        let completed = run_until_cancelled(cx, &req.cwd, place.execute.run(invocation))
            .await
            .flatten()
            .map_err(|error| error.or_path(&req.cwd))?;
        let response = to_response(&req, max_bytes, &script, completed, started.elapsed())?;
        if let Some(staged) = staged.filter(|_| response.exit_code.is_some()) {
            staged.set_used();
        }
        Ok(response)
    }
}

/// Refuses a request that no shell can run, or that needs a feature which this shell lacks.
fn check(req: &ExecuteRequest) -> Result<()> {
    req.check()?;
    refuse_reserved(&req.cwd)?;
    let cannot = |message: &'static str| Err(Error::new(ErrorKind::Unsupported, message).with_path(&req.cwd));
    if req.run != RunMode::Foreground {
        return cannot(
            "this backend cannot run commands in the background; run the command in the foreground with a timeout",
        );
    }
    if req.base_env != BaseEnvironment::Clean {
        return cannot("commands here do not inherit an environment; pass the variables that they need");
    }
    if req.full_output != FullOutputMode::Dropped {
        return cannot("output is not written to a file here; let the command write it to one");
    }
    if req.terminal.is_some() {
        return cannot("this backend has no terminals; run the command without one");
    }
    Ok(())
}

async fn prepare<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    req: &ExecuteRequest,
) -> Result<(ScriptInvocation, Script, Option<RemoteStagedContent<E>>)> {
    let mut script = place.script(cx, &req.cwd).await?;
    let transport = place.execute.transport();
    let input = Bytes::from(req.stdin.clone().unwrap_or_default());
    let mut run = String::from("exec");
    let (mut opened, mut staged) = ("", None);
    if input.len() as u64 <= transport.max_stdin_bytes {
        script.stdin(input);
    } else if input.len() <= SCRIPT_ROOM / 4 {
        run = format!("printf {} |", printable(&input));
    } else {
        let transfer = PartUploadMethod::by_script(place).await.map_err(|error| error.or_path(&req.cwd))?;
        let content = RemoteStagedContent::stage(place, cx, &req.cwd, &input, transfer).await?;
        content.provide(&mut script);
        script.push("tidy() { rm -f \"$staged\"; }");
        opened = "exec <\"$staged\"\nrm -f \"$staged\"";
        staged = Some(content);
    }
    script.walk(PathResolutionMode::Followed, &req.cwd).push(opened).push(BEGIN);
    run.push_str(" env -i \"PATH=$PATH\"");
    let always = place.config.env.iter().map(|(name, value)| (name, value));
    for (name, value) in always.chain(&req.env) {
        run.push_str(&format!(" {}", quoted(&format!("{name}={value}"))));
    }
    script.push(&format!("{run} sh -c -- {}", quoted(&req.command)));
    if script.text.len() > transport.max_script_bytes {
        let message =
            "the command and its environment exceed the limit of the transport; write a script to a file, and run that";
        return Err(Error::new(ErrorKind::TooLarge, message).with_path(&req.cwd));
    }
    let mut invocation = ScriptInvocation::new(script.text.clone());
    invocation.stdin = script.stdin.clone();
    invocation.keep = RetainedOutputPart::Ends;
    invocation.has_secrets = !(place.config.env.is_empty() && req.env.is_empty());
    Ok((invocation, script, staged))
}

/// Maximum size of the text in an output that does not belong to the command, in bytes.
const OUTPUT_OVERHEAD: u64 = 4 << 10;

fn to_response(
    req: &ExecuteRequest,
    max_bytes: u64,
    script: &Script,
    completed: RemoteOutput,
    duration: Duration,
) -> Result<ExecuteResponse> {
    let RemoteOutput { stdout, stderr, exit, truncated, stdout_bytes, stderr_bytes } = completed;
    let marker = &script.marker;
    let begun =
        HeadTailOutput::after(marker, &stdout, stdout_bytes).zip(HeadTailOutput::after(marker, &stderr, stderr_bytes));
    let mut response = ExecuteResponse::default();
    match (begun, Reply::parse(marker, &stdout)) {
        (_, Ok(reply)) if reply.failure().is_some() => {
            let label = reply.failure().unwrap_or_default();
            return Err(labelled(label, &stderr, &req.cwd));
        }
        (Some((out, err)), _) => {
            let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
            (response.stdout, response.stderr) = (join(&[out], max_bytes).text(), join(&[err], max_bytes).text());
            let both = join(&[out, err], max_bytes);
            (response.output, response.output_bytes) = (both.text(), both.total());
            // The transport may have dropped output without counting the bytes.
            response.truncated = truncated || both.is_cut();
        }
        // If the command did not start before the timeout, the timeout is its result.
        (None, _) if exit == RemoteExit::TimedOut => {}
        (None, _) => return Err(unanswered(exit, &stderr).with_path(&req.cwd)),
    }
    match exit {
        RemoteExit::Exited(code) => response.exit_code = Some(code),
        RemoteExit::Signalled(signal) => response.signal = Some(signal),
        RemoteExit::TimedOut => response.timed_out = true,
    }
    response.duration = duration;
    Ok(response)
}

//! Operations on commands and jobs of a batch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use vfs_core::shell::{JobId, JobInfo, JobsRequest, RunMode, StopJobRequest};
use vfs_core::{Backend, Error, ErrorKind, ExecuteRequest, OpContext, Result, Shell};

use super::super::exec::ExecuteOutput;
use super::batch_request::{OperationFields, decode};
use super::bounded_json::encode;
use crate::args::{BatchArgs, ShellBackendArgs};
use crate::backend_session::BackendSession;
use crate::exit::Failure;
use crate::shell_selection::ShellBackendKind;

/// Runs the commands of a batch, if `--allow exec` permits that.
pub(super) struct BatchShell {
    backend: Option<Arc<dyn Backend>>,
    args: ShellBackendArgs,
    /// Jobs of this batch, which are stopped at its end.
    jobs: Mutex<Vec<JobId>>,
}

/// Operations on commands and jobs.
pub(super) const COMMAND_OPERATIONS: [&str; 4] = ["execute", "jobs", "job_output", "stop_job"];

/// The result of the operation `jobs`.
#[derive(Serialize)]
struct JobsResult {
    jobs: Vec<JobInfo>,
}

impl BatchShell {
    /// Opens the shell that the arguments select, if they have `--allow exec`.
    pub(super) async fn open(session: &BackendSession, args: &BatchArgs) -> Result<Self, Failure> {
        let kind = ShellBackendKind::from_args(args.shell)?;
        let backend = match args.allow {
            Some(_) => Some(session.with_shell(kind).await?),
            None if args.shell != ShellBackendArgs::default() => {
                return Err(Failure::Usage("--sandbox and --virtual need --allow exec"));
            }
            None => None,
        };
        Ok(Self { backend, args: args.shell, jobs: Mutex::default() })
    }

    /// Performs `op`, one of [`COMMAND_OPERATIONS`]. A foreground command is stopped after `timeout`, and its answer has the output
    /// until then; for every other operation, `timeout` is the deadline.
    pub(super) async fn perform(
        &self,
        session: &BackendSession,
        cx: OpContext,
        op: &str,
        mut fields: OperationFields,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>> {
        let shell = self.shell()?;
        // The field `id` is the id of the request, so the id of the job has a field of its own.
        if matches!(op, "job_output" | "stop_job") {
            let job = fields
                .remove("job")
                .ok_or_else(|| Error::invalid_argument("missing field `job`; give the id of a job"))?;
            fields.insert("id".to_owned(), job);
        }
        let with_deadline =
            |cx: OpContext| timeout.map_or_else(|| cx.clone(), |timeout| cx.clone().with_timeout(timeout));
        match op {
            "execute" => {
                if fields.get("cwd").is_none_or(Value::is_null) {
                    let cwd = session.path_or_root(None)?;
                    fields.insert("cwd".to_owned(), cwd.as_str().into());
                }
                let mut request: ExecuteRequest = decode(fields)?;
                if self.args.sandbox {
                    request.cwd = session
                        .path_in_sandbox(self.args.sandbox_args, &request.cwd)
                        .map_err(|failure| Error::invalid_argument(failure.to_string()))?;
                }
                if request.run == RunMode::Background {
                    let response = shell.execute(&with_deadline(cx), request).await?;
                    self.jobs.lock().unwrap_or_else(PoisonError::into_inner).extend(response.job.clone());
                    return encode(&response);
                }
                if timeout.is_some_and(|timeout| timeout.is_zero()) {
                    return Err(Error::of(ErrorKind::Timeout));
                }
                request.timeout = match (timeout, request.timeout) {
                    (Some(timeout), Some(requested)) => Some(timeout.min(requested)),
                    (timeout, requested) => timeout.or(requested),
                };
                encode(&ExecuteOutput::new(&shell.execute(&cx, request).await?))
            }
            "jobs" => {
                decode::<JobsRequest>(fields)?;
                encode(&JobsResult { jobs: shell.jobs(&with_deadline(cx), JobsRequest::new()).await? })
            }
            "job_output" => encode(&shell.job_output(&with_deadline(cx), decode(fields)?).await?),
            _ => encode(&shell.stop_job(&with_deadline(cx), decode(fields)?).await?),
        }
    }

    /// Stops the jobs that still run.
    ///
    /// # Errors
    ///
    /// Returns the first failure, after all jobs were stopped.
    pub(super) async fn close(&self, session: &BackendSession) -> Result<()> {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(shell) = self.backend.as_deref().and_then(|backend| backend.as_shell()) else { return Ok(()) };
        let mut result = Ok(());
        for job in jobs {
            match shell.stop_job(&session.cx, StopJobRequest::new(job)).await {
                // The job has ended already.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                stopped => result = result.and(stopped.map(drop)),
            }
        }
        result
    }

    fn shell(&self) -> Result<&dyn Shell> {
        let backend = self.backend.as_deref().ok_or_else(|| {
            Error::new(ErrorKind::PolicyDenied, "this batch cannot run commands; start it with --allow exec")
        })?;
        backend.as_shell().ok_or_else(|| Error::new(ErrorKind::Unsupported, "no shell is available for these files"))
    }
}

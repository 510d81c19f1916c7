//! Requests to run commands.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use vfs_core::{
    Backend, Error, ErrorKind, ExecuteRequest, Job, JobsRequest, OpContext, Result, RunMode, Shell, StopJobRequest,
};

use super::super::exec::Printed;
use super::json::encode;
use super::request::{Fields, decode};
use crate::args::{BatchArgs, ShellArgs};
use crate::exit::Failure;
use crate::session::{Session, ShellKind};

/// What runs commands, where that is allowed.
pub(super) struct Commands {
    backend: Option<Arc<dyn Backend>>,
    args: ShellArgs,
}

/// The operations that run commands and look after them.
pub(super) const COMMAND_OPERATIONS: [&str; 4] = ["execute", "jobs", "job_output", "stop_job"];

#[derive(Serialize)]
struct Jobs {
    jobs: Vec<Job>,
}

impl Commands {
    /// Opens what the arguments allow.
    pub(super) async fn open(session: &Session, args: &BatchArgs) -> Result<Self, Failure> {
        let kind = ShellKind::of(args.shell)?;
        let backend = match args.allow {
            Some(_) => Some(session.with_shell(kind).await?),
            None if args.shell != ShellArgs::default() => {
                return Err(Failure::Usage("--sandbox and --virtual say how commands run; add --allow exec"));
            }
            None => None,
        };
        Ok(Self { backend, args: args.shell })
    }

    /// Carries out `op`, which is one of [`COMMAND_OPERATIONS`]; `timeout` bounds a command that is waited for, whose answer
    /// then has what it printed until then.
    pub(super) async fn perform(
        &self,
        session: &Session,
        cx: OpContext,
        op: &str,
        mut fields: Fields,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>> {
        let shell = self.shell()?;
        // The field `id` is that of the request itself.
        if let Some(job) = fields.remove("job") {
            fields.insert("id".to_owned(), job);
        }
        let bounded = |cx: OpContext| timeout.map_or_else(|| cx.clone(), |timeout| cx.clone().with_timeout(timeout));
        match op {
            "execute" => {
                let mut request: ExecuteRequest = decode(fields)?;
                if self.args.sandbox {
                    request.cwd = session
                        .path_in_sandbox(self.args.sandbox_args, &request.cwd)
                        .map_err(|failure| Error::invalid_argument(failure.to_string()))?;
                }
                if request.run == RunMode::Background {
                    return encode(&shell.execute(&bounded(cx), request).await?);
                }
                let own = request.timeout.unwrap_or(ExecuteRequest::DEFAULT_TIMEOUT);
                request.timeout = timeout.map_or(request.timeout, |timeout| Some(timeout.min(own)));
                encode(&Printed::new(&shell.execute(&cx, request).await?))
            }
            "jobs" => {
                decode::<JobsRequest>(fields)?;
                encode(&Jobs { jobs: shell.jobs(&bounded(cx), JobsRequest::new()).await? })
            }
            "job_output" => encode(&shell.job_output(&bounded(cx), decode(fields)?).await?),
            _ => encode(&shell.stop_job(&bounded(cx), decode(fields)?).await?),
        }
    }

    /// Ends the jobs that still run.
    pub(super) async fn close(&self, session: &Session) -> Result<()> {
        let Some(shell) = self.backend.as_deref().and_then(|backend| backend.as_shell()) else { return Ok(()) };
        let jobs = match shell.jobs(&session.cx, JobsRequest::new()).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(()),
            jobs => jobs?,
        };
        for job in jobs.into_iter().filter(|job| job.exit.is_none()) {
            shell.stop_job(&session.cx, StopJobRequest::new(job.id)).await?;
        }
        Ok(())
    }

    fn shell(&self) -> Result<&dyn Shell> {
        let backend = self.backend.as_deref().ok_or_else(|| {
            Error::new(ErrorKind::PolicyDenied, "commands are not allowed here; start the batch with --allow exec")
        })?;
        backend.as_shell().ok_or_else(|| Error::new(ErrorKind::Unsupported, "nothing runs commands on these files"))
    }
}

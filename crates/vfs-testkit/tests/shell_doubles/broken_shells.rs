//! A shell with a fault.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream, StreamExt};
use vfs_core::shell::{
    BaseEnvironment, CommandExit, FullOutputMode, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, RunMode,
    StopJobRequest, TerminalSize,
};
use vfs_core::{
    Backend, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell, StreamingShell,
    VfsPath,
};
use vfs_shell::LocalShellBackend;

/// Fault of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    DropsErrors,
    LosesExitCodes,
    LosesSignals,
    OmitsDuration,
    PutsOneOutputBeforeTheOther,
    TrimsOutput,
    EndsAtNul,
    DecodesInPieces,
    OmitsTruncation,
    KeepsTheHead,
    KeepsTheTail,
    WritesNoFile,
    LeaksItsEnvironment,
    PassesSecretsOn,
    RunsInTheRoot,
    TakesTheRootForWhatIsMissing,
    GivesNothingToRead,
    TakesAnyTime,
    ForgetsAtTheTimeout,
    HidesTheTimeout,
    LeavesAllRunning,
    WaitsForAll,
    StreamsAtTheEnd,
    EndsTwice,
    KeepsForTheEnd,
    EndsWithoutExit,
    ReadsOnWithoutReader,
    CutsItems,
    RepeatsOutput,
    LosesOutputBetween,
    ReportsExitEarly,
    StopsInWordOnly,
    KnowsAnyJob,
    EndsJobsWithTheirCall,
    ListsNoJobs,
    ShowsJobsToAll,
    TakesAnyCursor,
    RunsElsewhere,
    RunsOneAtATime,
    AnswersForAnother,
    IgnoresTerminals,
    AlwaysHasATerminal,
    WaitsForTheBackground,
    DropsWhatItCannot,
}

/// The shell of the host with one fault.
#[derive(Debug, Clone)]
pub(crate) struct BrokenShell {
    inner: Arc<LocalShellBackend>,
    fault: Fault,
    turn: Arc<tokio::sync::Mutex<()>>,
    last: Arc<Mutex<Option<ExecuteResponse>>>,
}

impl BrokenShell {
    pub(crate) fn new(inner: LocalShellBackend, fault: Fault) -> Self {
        Self { inner: Arc::new(inner), fault, turn: Arc::default(), last: Arc::default() }
    }

    fn shell(&self) -> &dyn Shell {
        self.inner.as_shell().expect("the host has a shell")
    }

    /// Applies the fault to a request.
    fn misread(&self, mut req: ExecuteRequest) -> ExecuteRequest {
        match self.fault {
            Fault::LeaksItsEnvironment => req.env = everything_and(req.env),
            Fault::PassesSecretsOn if req.base_env == BaseEnvironment::Inherited => req.env = everything_and(req.env),
            Fault::RunsInTheRoot => req.cwd = VfsPath::root(),
            Fault::GivesNothingToRead => req.stdin = None,
            Fault::TakesAnyTime if req.timeout == Some(Duration::ZERO) => req.timeout = None,
            Fault::WaitsForAll => req.command.push_str("\nwait"),
            Fault::WritesNoFile => req.full_output = FullOutputMode::Dropped,
            Fault::KeepsTheHead | Fault::KeepsTheTail => req.max_output_bytes = Some(u64::MAX),
            Fault::IgnoresTerminals => req.terminal = None,
            Fault::AlwaysHasATerminal => req.terminal = Some(req.terminal.unwrap_or_default()),
            Fault::WaitsForTheBackground => req.run = RunMode::Foreground,
            Fault::DropsWhatItCannot => {
                req.full_output = FullOutputMode::Dropped;
                req.terminal = None::<TerminalSize>;
                req.base_env = BaseEnvironment::Clean;
            }
            _ => {}
        }
        req
    }

    /// Returns the response with the fault.
    fn mistell(&self, mut ended: ExecuteResponse, limit: usize) -> ExecuteResponse {
        match self.fault {
            Fault::DropsErrors => {
                ended.stderr.clear();
                ended.output.clone_from(&ended.stdout);
            }
            Fault::LosesExitCodes if ended.exit_code.is_some() => ended.exit_code = Some(0),
            Fault::LosesSignals if ended.signal.take().is_some() => ended.exit_code = Some(1),
            Fault::OmitsDuration => ended.duration = Duration::ZERO,
            Fault::PutsOneOutputBeforeTheOther => ended.output = format!("{}{}", ended.stdout, ended.stderr),
            Fault::TrimsOutput => ended.stdout = ended.stdout.trim_end().to_owned(),
            Fault::EndsAtNul => ended.stdout.truncate(ended.stdout.find('\0').unwrap_or(ended.stdout.len())),
            Fault::DecodesInPieces => {
                let pieces = ended.stdout.as_bytes().chunks(4096);
                ended.stdout = pieces.map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
            }
            Fault::OmitsTruncation => ended.truncated = false,
            Fault::KeepsTheHead | Fault::KeepsTheTail => {
                for text in [&mut ended.output, &mut ended.stdout, &mut ended.stderr] {
                    if text.len() > limit {
                        ended.truncated = true;
                        let cut = if self.fault == Fault::KeepsTheHead { limit } else { text.len() - limit };
                        let (head, tail) = text.split_at(text.floor_char_boundary(cut));
                        *text = (if self.fault == Fault::KeepsTheHead { head } else { tail }).to_owned();
                    }
                }
            }
            Fault::ForgetsAtTheTimeout if ended.timed_out => {
                ended.output.clear();
                ended.stdout.clear();
                ended.stderr.clear();
            }
            Fault::HidesTheTimeout if ended.timed_out => {
                ended.timed_out = false;
                ended.exit_code = Some(124);
            }
            _ => {}
        }
        ended
    }

    /// Answers in time, and lets the command go on for a while.
    async fn leave_running(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        cx.check()?;
        let time = req.timeout.unwrap_or(ExecuteRequest::DEFAULT_TIMEOUT);
        let (this, longer) = (self.clone(), req.timeout(Duration::from_secs(45)));
        let runs = tokio::spawn(async move { this.shell().execute(&OpContext::new(), longer).await });
        let deadline = cx.deadline().map(tokio::time::Instant::from_std);
        let late = tokio::time::sleep(time);
        let ended = async {
            tokio::select! {
                ended = runs => ended.expect("no panic"),
                () = late => {
                    let mut ended = ExecuteResponse::default();
                    ended.timed_out = true;
                    ended.duration = time;
                    Ok(ended)
                }
                () = async { tokio::time::sleep_until(deadline.expect("it is set")).await }, if deadline.is_some() => {
                    Err(Error::new(ErrorKind::Timeout, "the deadline passed"))
                }
            }
        };
        match select(Box::pin(ended), Box::pin(cx.cancel_token().cancelled())).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Err(Error::new(ErrorKind::Cancelled, "it was cancelled")),
        }
    }
}

/// Returns the environment of this process, overridden by `given`.
fn everything_and(given: std::collections::BTreeMap<String, String>) -> std::collections::BTreeMap<String, String> {
    std::env::vars().chain(given).collect()
}

#[async_trait]
impl Shell for BrokenShell {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let limit = req.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES) as usize;
        let req = self.misread(req);
        let answer = match self.fault {
            Fault::LeavesAllRunning => return self.leave_running(cx, req).await,
            Fault::RunsOneAtATime => {
                let _turn = self.turn.lock().await;
                self.shell().execute(cx, req).await
            }
            Fault::TakesTheRootForWhatIsMissing => match self.shell().execute(cx, req.clone()).await {
                Err(error) if error.is_absence() => self.shell().execute(cx, req.cwd(VfsPath::root())).await,
                answer => answer,
            },
            Fault::EndsJobsWithTheirCall => {
                let answer = self.shell().execute(cx, req).await;
                if let Ok(ExecuteResponse { job: Some(id), .. }) = &answer {
                    let (this, id, cx) = (self.clone(), id.clone(), cx.clone());
                    tokio::spawn(async move {
                        cx.cancel_token().cancelled().await;
                        this.shell().stop_job(&OpContext::new(), StopJobRequest::new(id)).await
                    });
                }
                answer
            }
            _ => self.shell().execute(cx, req).await,
        };
        let ended = self.mistell(answer?, limit);
        if self.fault == Fault::AnswersForAnother {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(ended.clone());
            return Ok(last.unwrap_or(ended));
        }
        Ok(ended)
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<JobInfo>> {
        match self.fault {
            Fault::ListsNoJobs => Ok(Vec::new()),
            Fault::ShowsJobsToAll => self.shell().jobs(&OpContext::new(), req).await,
            _ => self.shell().jobs(cx, req).await,
        }
    }

    async fn job_output(&self, cx: &OpContext, mut req: JobOutputRequest) -> Result<JobOutputResult> {
        match self.fault {
            Fault::TakesAnyCursor => {
                let all = self.shell().job_output(cx, JobOutputRequest::new(req.id.clone())).await?;
                req.cursor = req.cursor.min(all.cursor);
            }
            Fault::RepeatsOutput => req.cursor = req.cursor.saturating_sub(1),
            Fault::LosesOutputBetween if req.cursor > 0 => req.cursor += 1,
            _ => {}
        }
        let all = JobOutputRequest::new(req.id.clone()).from(req.cursor);
        let answer = self.shell().job_output(cx, req).await;
        match (self.fault, answer) {
            (Fault::KnowsAnyJob, Err(_)) => Ok(JobOutputResult::default()),
            (Fault::ReportsExitEarly, Ok(mut chunk)) => {
                chunk.exit = self.shell().job_output(cx, all).await?.exit;
                Ok(chunk)
            }
            (_, answer) => answer,
        }
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        if self.fault == Fault::StopsInWordOnly {
            let jobs = self.shell().jobs(cx, JobsRequest::new()).await?;
            let mut job = jobs.into_iter().find(|job| job.id == req.id).expect("the law stops what it began");
            let mut exit = CommandExit::default();
            exit.signal = Some(15);
            job.exit = Some(exit);
            return Ok(job);
        }
        self.shell().stop_job(cx, req).await
    }
}

impl StreamingShell for BrokenShell {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let req = self.misread(req);
        let streaming = self.inner.as_streaming_shell().expect("the host's shell streams");
        let items = streaming.execute_stream(cx.clone(), req.clone());
        match self.fault {
            Fault::StreamsAtTheEnd => {
                stream::once(async move { stream::iter(items.collect::<Vec<_>>().await) }).flatten().boxed()
            }
            Fault::EndsTwice => items
                .flat_map(|item| match &item {
                    Ok(ExecuteEvent::Exit(_)) => stream::iter(vec![item.clone(), item]),
                    _ => stream::iter(vec![item]),
                })
                .boxed(),
            Fault::KeepsForTheEnd => {
                let mut streamed = String::new();
                items
                    .map(move |item| match item {
                        Ok(ExecuteEvent::Stdout(text)) => {
                            streamed.push_str(&text);
                            Ok(ExecuteEvent::Stdout(text))
                        }
                        Ok(ExecuteEvent::Exit(mut exit)) => {
                            exit.stdout.clone_from(&streamed);
                            Ok(ExecuteEvent::Exit(exit))
                        }
                        item => item,
                    })
                    .boxed()
            }
            Fault::EndsWithoutExit => {
                items.filter(|item| std::future::ready(!matches!(item, Ok(ExecuteEvent::Exit(_))))).boxed()
            }
            Fault::ReadsOnWithoutReader => {
                let (sender, receiver) = futures::channel::mpsc::unbounded();
                tokio::spawn(items.for_each(move |item| {
                    // Whether anybody still reads is what it does not care about.
                    drop(sender.unbounded_send(item));
                    std::future::ready(())
                }));
                receiver.boxed()
            }
            Fault::CutsItems => items
                .map(|item| match item {
                    Ok(ExecuteEvent::Stdout(text)) if text.len() > 3 => {
                        let (head, tail) = text.as_bytes().split_at(text.len() / 2 + 1);
                        let both = [head, tail].map(String::from_utf8_lossy).concat();
                        Ok(ExecuteEvent::Stdout(both))
                    }
                    item => item,
                })
                .boxed(),
            _ => items,
        }
    }
}

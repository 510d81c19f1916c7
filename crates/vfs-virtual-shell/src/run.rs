//! Running one command line, on a thread of its own.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bashkit::hooks::{self, ExitEvent, HookAction};
use bashkit::parser::Parser;
use bashkit::{Bash, ExecOptions, ExecResult, ExecutionLimits, LimitExceeded, SessionLimits, StreamData};
use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::OwnedSemaphorePermit;
use vfs_core::timer::Timer;
use vfs_core::{
    Backend, CancelToken, Error, ErrorKind, ExecuteRequest, FullOutput, Intercepted, Interceptor, OpContext, Result,
    ResultStream, StreamCall, StreamRequest, UnaryRequest, VfsPath,
};

use crate::backend::Inner;
use crate::config::VirtualShellConfig;
use crate::directories::Directories;
use crate::files::{Files, Unfinished};
use crate::guard::{MAX_SCRIPT, STACK, guard};
use crate::record::Record;
use crate::stop::{Reason, Stop, after};

/// Which output something is printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Standard,
    Error,
}

/// Who is told what a command prints, from its thread.
pub(crate) trait Audience: Send + Sync + 'static {
    /// `bytes` were printed; the command goes on when this returns.
    fn printed(&self, output: Output, bytes: &[u8]);

    /// It is over.
    fn ended(&self, ended: Ended);
}

/// How a command ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) duration: Duration,
    /// Whether the interpreter dropped a part of what was printed.
    pub(crate) is_cut: bool,
    /// The file with all that was printed.
    pub(crate) full_output: Option<VfsPath>,
}

#[derive(Debug, Clone)]
pub(crate) enum How {
    /// By itself.
    Exited(i32),
    /// At a limit.
    Killed,
    /// Before its time.
    Stopped(Reason),
    /// The interpreter is at fault.
    Failed(Error),
}

/// The signal of what is ended at a limit or a timeout.
pub(crate) const SIGKILL: i32 = 9;

/// A command that runs. Dropping it ends the command.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) stop: Arc<Stop>,
    _alarm: Option<Timer>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now(Reason::Dropped);
    }
}

/// A command that is to be run.
pub(crate) struct Start {
    pub(crate) cx: OpContext,
    pub(crate) request: ExecuteRequest,
    pub(crate) stop: Arc<Stop>,
    pub(crate) permit: OwnedSemaphorePermit,
    /// When to stop it, and why.
    pub(crate) end: Option<(Instant, Reason)>,
}

/// Starts a thread for a command.
pub(crate) fn start(shell: &Inner, start: Start, audience: Arc<dyn Audience>) -> Result<Running> {
    let Start { cx, request, stop, permit, end } = start;
    let alarm = end.map(|(moment, reason)| {
        let stop = Arc::clone(&stop);
        Timer::set(moment, move || stop.now(reason))
    });
    let cwd = request.cwd.clone();
    let running = Running { stop: Arc::clone(&stop), _alarm: alarm };
    // Not the shell itself: its jobs end when it is dropped.
    let (backend, config) = (within(Handle::try_current().ok(), &shell.backend), shell.config.clone());
    let (exited, unfinished) = (Arc::default(), Arc::default());
    let command = Command { backend, config, cx, request, stop, audience, exited, unfinished };
    let thread = thread::Builder::new().name("vfs-virtual-shell".to_owned()).stack_size(STACK);
    let spawned = thread.spawn(move || {
        command.run();
        drop(permit);
    });
    spawned.map_err(|error| {
        let message = "no thread could be started for the command; try again later";
        Error::new(ErrorKind::Busy, message).with_path(&cwd).with_source(error)
    })?;
    Ok(running)
}

/// A backend whose operations run in the runtime that the call was made in, while the interpreter has one of its own, for
/// the sake of the stacks of its threads.
fn within(runtime: Option<Handle>, backend: &Arc<dyn Backend>) -> Arc<dyn Backend> {
    match runtime {
        Some(runtime) => Arc::new(Intercepted::new(Arc::clone(backend), Arc::new(Within(runtime)))),
        None => Arc::clone(backend),
    }
}

struct Within(Handle);

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Within")
    }
}

impl Interceptor for Within {
    fn name(&self) -> &'static str {
        "within"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let mut sent = pin!(request.send(inner, cx));
        poll_fn(|task| {
            let _entered = self.0.enter();
            sent.as_mut().poll(task)
        })
        .await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        let entered = self.0.enter();
        let mut items = call.start(cx);
        drop(entered);
        stream::poll_fn(move |task| {
            let _entered = self.0.enter();
            items.poll_next_unpin(task)
        })
        .boxed()
    }
}

struct Command {
    backend: Arc<dyn Backend>,
    config: VirtualShellConfig,
    cx: OpContext,
    request: ExecuteRequest,
    stop: Arc<Stop>,
    audience: Arc<dyn Audience>,
    exited: Arc<Exited>,
    unfinished: Arc<Unfinished>,
}

/// That the last line of a script was reached, or an `exit` before: the interpreter itself waits for what was left running.
#[derive(Debug, Default)]
struct Exited {
    code: OnceLock<i32>,
    token: CancelToken,
}

impl Exited {
    fn with(&self, code: i32) {
        self.code.get_or_init(|| code);
        self.token.cancel();
    }

    async fn code(&self) -> i32 {
        self.token.cancelled().await;
        self.code.get().copied().unwrap_or_default()
    }
}

/// How long what a command left running may still print.
const LEFT: Duration = Duration::from_millis(100);

/// `command`, with an `exit` at its end where it may leave something running, and where that changes nothing else: not in a
/// here-document, not behind a line that goes on, not before a trap, which would have no time, and not where it would mend
/// what has no end.
fn script(command: &str) -> Cow<'_, str> {
    let last = command.trim_end();
    let is_open = (last.ends_with("&&") || last.ends_with("||")) && !last.contains(['#', '\\']) && !last.contains("<<");
    if is_open {
        // The interpreter would run it as if nothing were missing; so it is refused, in the words of bash.
        return Cow::Owned(format!("{last} ("));
    }
    let leaves =
        command.contains('&') && !command.contains("<<") && !command.contains("trap") && !command.ends_with('\\');
    if leaves && command.len() < MAX_SCRIPT && Parser::new(command).parse().is_ok() {
        Cow::Owned(format!("{command}\nexit"))
    } else {
        Cow::Borrowed(command)
    }
}

impl Command {
    fn run(self) {
        let begun = Instant::now();
        // Scripts are parsed on threads of the runtime, and need the same stack there.
        let runtime = Builder::new_current_thread().enable_all().thread_stack_size(STACK).build();
        let work = AssertUnwindSafe(|| match runtime {
            Ok(runtime) => {
                let ended = runtime.block_on(self.interpret());
                runtime.shutdown_background();
                ended
            }
            Err(error) => self.failed("no runtime could be started", Some(error)),
        });
        let mut ended = catch_unwind(work).unwrap_or_else(|_| self.failed("the interpreter broke off", None));
        ended.duration = begun.elapsed();
        self.audience.ended(ended);
    }

    fn failed(&self, message: &'static str, source: Option<std::io::Error>) -> Ended {
        let error = Error::new(ErrorKind::Internal, message).with_path(&self.request.cwd);
        Ended::new(How::Failed(source.into_iter().fold(error, Error::with_source)))
    }

    async fn interpret(&self) -> Ended {
        let wants_all = self.request.full_output == FullOutput::File;
        let record = Arc::new(Mutex::new(Record::new(wants_all)));
        let mut ended = {
            let interpreted = pin!(self.interpret_with(&record));
            match select(interpreted, pin!(self.stop.stopped())).await {
                Either::Left((ended, _)) => ended,
                Either::Right((reason, _)) => Ended::new(How::Stopped(reason)),
            }
        };
        match self.stop.reason() {
            Some(Reason::Limit(limit)) => {
                self.say(limit);
                ended.how = How::Killed;
            }
            Some(reason) => ended.how = How::Stopped(reason),
            None => {}
        }
        self.unfinished.finished().await;
        let all = record.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((all, cx)) = all.zip(self.cx_for_output()) {
            match all.write(&*self.backend, &cx, &self.config.output_directory).await {
                Ok(path) => ended.full_output = Some(path),
                Err(error) => self.say(&format!("the full output could not be written: {}", error.for_model())),
            }
        }
        ended
    }

    /// The context in which the full output is written: none where the caller gave up, who is promised that no file is
    /// touched any more, and one that outlives the command where it was ended for another reason.
    fn cx_for_output(&self) -> Option<OpContext> {
        match self.stop.reason() {
            None => Some(self.cx.clone()),
            Some(reason) => (!reason.is_given_up() || reason == Reason::Stopped).then(|| self.cx.for_cleanup()),
        }
    }

    /// Prints a line of the shell's own.
    fn say(&self, message: &str) {
        self.audience.printed(Output::Error, format!("bash: {message}\n").as_bytes());
    }

    async fn interpret_with(&self, record: &Arc<Mutex<Record>>) -> Ended {
        let mut bash = self.bash();
        self.stop.attach(bash.cancellation_token());
        if !self.request.env.contains_key("HOME") {
            // A variable of the shell, but not of its environment, which has what was passed and nothing else.
            if let Err(error) = bash.exec("HOME=/").await {
                return self.broken(error);
            }
        }
        let (audience, told) = (Arc::clone(&self.audience), Arc::clone(record));
        let printed = Box::new(move |standard: &StreamData, error: &StreamData| {
            tell(&told, &*audience, standard.as_bytes(), error.as_bytes());
        });
        let mut options = ExecOptions::new().streaming(printed);
        if let Some(stdin) = &self.request.stdin {
            options = options.stdin(stdin.as_str());
        }
        let script = script(&self.request.command);
        let interpreted = bash.exec_with_options(&script, options);
        let left = async {
            let code = self.exited.code().await;
            after(LEFT).await;
            code
        };
        let result = match select(pin!(interpreted), pin!(left)).await {
            Either::Left((result, _)) => result,
            // What it left running does not hold up the answer, and ends with it.
            Either::Right((code, _)) => return Ended::new(How::Exited(code)),
        };
        match result {
            Ok(result) => {
                self.tell_rest(record, &result);
                let mut ended = Ended::new(How::Exited(result.exit_code));
                ended.is_cut = result.stdout_truncated || result.stderr_truncated;
                ended
            }
            Err(error) => self.broken(error),
        }
    }

    /// Tells what the interpreter gave only at the end.
    fn tell_rest(&self, record: &Mutex<Record>, result: &ExecResult) {
        let (standard, error) = record.lock().unwrap_or_else(PoisonError::into_inner).told();
        let rest = |all: &StreamData, told: usize| all.as_bytes().get(told..).unwrap_or_default().to_vec();
        tell(record, &*self.audience, &rest(&result.stdout, standard), &rest(&result.stderr, error));
    }

    /// How it ended where the interpreter gave up.
    fn broken(&self, error: bashkit::Error) -> Ended {
        let exited = |code| Ended::new(How::Exited(code));
        match error {
            bashkit::Error::Cancelled => Ended::new(How::Stopped(self.stop.reason().unwrap_or(Reason::Cancelled))),
            bashkit::Error::ResourceLimit(LimitExceeded::Timeout(_)) => Ended::new(How::Stopped(Reason::Timeout)),
            bashkit::Error::ResourceLimit(limit) => {
                self.say(&limit.to_string());
                Ended::new(How::Killed)
            }
            bashkit::Error::Parse { .. } => {
                let report = error.syntax_report("bash: -c", &self.request.command);
                let report = report.unwrap_or_else(|| format!("bash: {error}\n"));
                self.audience.printed(Output::Error, report.as_bytes());
                exited(2)
            }
            bashkit::Error::Internal(_) => self.failed("the interpreter failed", None),
            other => {
                self.say(&other.to_string());
                exited(1)
            }
        }
    }

    fn exit_guard(&self) -> hooks::Interceptor<ExitEvent> {
        let (exited, has_trap) = (Arc::clone(&self.exited), self.request.command.contains("trap"));
        Box::new(move |event| {
            if !has_trap {
                exited.with(event.code);
            }
            HookAction::Continue(event)
        })
    }

    fn bash(&self) -> Bash {
        let config = &self.config;
        let files = Files {
            backend: Arc::clone(&self.backend),
            cx: self.cx.clone(),
            config: config.clone(),
            stop: Arc::clone(&self.stop),
            made: Directories::default(),
            read: AtomicU64::default(),
            unfinished: Arc::clone(&self.unfinished),
        };
        let mut builder = Bash::builder()
            .fs(Arc::new(files))
            .cwd(self.request.cwd.as_str())
            .rootfs(false)
            .follow_symlinks(false)
            .builtin_filter(|name| !LEFT_OUT.contains(&name))
            .before_tool(guard(Arc::clone(&self.stop)))
            .on_exit(self.exit_guard())
            .max_memory(size(config.max_memory_bytes))
            .session_limits(SessionLimits::unlimited())
            .limits(limits(config));
        for (name, value) in &self.request.env {
            builder = builder.env(name, value);
        }
        builder.build()
    }
}

/// Tools that would reach out of here, and one that parses what it reads by recursion without a bound.
const LEFT_OUT: [&str; 4] = ["curl", "wget", "http", "bc"];

fn limits(config: &VirtualShellConfig) -> ExecutionLimits {
    let rounds = size(config.max_loop_iterations);
    ExecutionLimits::new()
        .max_commands(size(config.max_commands))
        .max_loop_iterations(rounds)
        .max_total_loop_iterations(rounds)
        .max_stdout_bytes(size(config.max_output_bytes))
        .max_stderr_bytes(size(config.max_output_bytes))
        .max_live_intermediate_bytes(config.max_memory_bytes)
        .max_aggregate_input_bytes(config.max_memory_bytes.saturating_mul(16))
        .max_work_units(WORK_UNITS)
        // A few bytes are put behind what was asked for.
        .max_input_bytes(MAX_SCRIPT + 64)
        .max_parser_operations(PARSER_OPERATIONS)
        // The alarm of the call rings; this is for a clock that does not.
        .timeout(Duration::from_secs(30 * 24 * 3600))
}

/// Some minutes of work that nothing else bounds.
const WORK_UNITS: u64 = 2_000_000_000;

/// More than the longest script takes, with the parts of it that are parsed again.
const PARSER_OPERATIONS: usize = 2_000_000;

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn tell(record: &Mutex<Record>, audience: &dyn Audience, standard: &[u8], error: &[u8]) {
    for (output, bytes) in [(Output::Standard, standard), (Output::Error, error)] {
        if !bytes.is_empty() {
            record.lock().unwrap_or_else(PoisonError::into_inner).push(output, bytes);
            audience.printed(output, bytes);
        }
    }
}

impl Ended {
    pub(crate) fn new(how: How) -> Self {
        Self { how, duration: Duration::ZERO, is_cut: false, full_output: None }
    }
}

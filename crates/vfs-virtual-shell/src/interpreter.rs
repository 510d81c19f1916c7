//! Interpreter thread of one script.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bashkit::hooks::{self, ExitEvent, HookAction};
use bashkit::parser::Parser;
use bashkit::{Bash, ExecOptions, ExecResult, ExecutionLimits, LimitExceeded, SessionLimits, StreamData};
use futures::future::{Either, select};
use tokio::runtime::{Builder, Handle};
use tokio::sync::OwnedSemaphorePermit;
use vfs_core::shell::FullOutputMode;
use vfs_core::timer::Timer;
use vfs_core::{Backend, CancelToken, Error, ErrorKind, ExecuteRequest, OpContext, Result};

use crate::backend_file_system::{BackendFileSystem, UninterruptibleTasks};
use crate::builtin_guard::{MAX_SCRIPT_BYTES, STACK_BYTES, builtin_guard};
use crate::config::VirtualShellConfig;
use crate::output_recorder::{OutputRecorder, write_full_output};
use crate::output_sink::{OutputSink, OutputStream};
use crate::runtime_interceptor::bridge_runtime;
use crate::script_exit::{ExitCause, ScriptExit};
use crate::script_only_dirs::ScriptOnlyDirs;
use crate::stop_signal::{ScriptStopSignal, StopReason, sleep};

/// Running script. Dropping it stops the script.
#[derive(Debug)]
pub(crate) struct RunningScript {
    pub(crate) stop: Arc<ScriptStopSignal>,
    _alarm: Option<Timer>,
}

impl Drop for RunningScript {
    fn drop(&mut self) {
        self.stop.trigger(StopReason::Dropped);
    }
}

/// Script that has its permit and is ready to run.
pub(crate) struct ReadyScript {
    /// The backend without its shell, whose jobs end when it is dropped.
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) config: VirtualShellConfig,
    pub(crate) cx: OpContext,
    pub(crate) request: ExecuteRequest,
    pub(crate) stop: Arc<ScriptStopSignal>,
    pub(crate) permit: OwnedSemaphorePermit,
    /// Time at which the script is stopped, and the reason.
    pub(crate) limit: Option<(Instant, StopReason)>,
}

/// Starts a thread that runs a script.
pub(crate) fn spawn_script(start: ReadyScript, sink: Arc<dyn OutputSink>) -> Result<RunningScript> {
    let ReadyScript { backend, config, cx, request, stop, permit, limit } = start;
    let alarm = limit.map(|(moment, reason)| {
        let stop = Arc::clone(&stop);
        Timer::set(moment, move || stop.trigger(reason))
    });
    let cwd = request.cwd.clone();
    let running = RunningScript { stop: Arc::clone(&stop), _alarm: alarm };
    let backend = bridge_runtime(Handle::try_current().ok(), &backend);
    let (exit_code, cleanup) = (Arc::default(), Arc::default());
    let runner = ScriptRunner { backend, config, cx, request, stop, sink, exit_code, cleanup };
    let thread = thread::Builder::new().name("vfs-virtual-shell".to_owned()).stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || {
        runner.run();
        drop(permit);
    });
    spawned.map_err(|error| {
        let message = "starting the command failed: no thread is left; try again later";
        Error::new(ErrorKind::Busy, message).with_path(&cwd).with_source(error)
    })?;
    Ok(running)
}

/// Everything that the thread of a script needs.
struct ScriptRunner {
    backend: Arc<dyn Backend>,
    config: VirtualShellConfig,
    cx: OpContext,
    request: ExecuteRequest,
    stop: Arc<ScriptStopSignal>,
    sink: Arc<dyn OutputSink>,
    exit_code: Arc<ExitCodeLatch>,
    cleanup: Arc<UninterruptibleTasks>,
}

/// Exit code, set once when the script reaches its end or an `exit`. The interpreter itself would wait for background processes.
#[derive(Debug, Default)]
struct ExitCodeLatch {
    code: OnceLock<i32>,
    token: CancelToken,
}

impl ExitCodeLatch {
    fn set(&self, code: i32) {
        self.code.get_or_init(|| code);
        self.token.cancel();
    }

    async fn wait(&self) -> i32 {
        self.token.cancelled().await;
        self.code.get().copied().unwrap_or_default()
    }
}

/// Time that background processes of a script may still print after its end.
const BACKGROUND_GRACE: Duration = Duration::from_millis(100);

/// Appends an `exit` to `command` if it may leave background processes. Commands that an `exit` would change stay as they
/// are: those with a here-document, a continued last line, a trap, which would have no time to run, or a syntax error.
fn prepare_script(command: &str) -> Cow<'_, str> {
    let last = command.trim_end();
    let is_open = (last.ends_with("&&") || last.ends_with("||")) && !last.contains(['#', '\\']) && !last.contains("<<");
    if is_open {
        // The interpreter would accept a dangling `&&` or `||`. The open parenthesis makes it fail as in bash.
        return Cow::Owned(format!("{last} ("));
    }
    let may_leave_processes =
        command.contains('&') && !command.contains("<<") && !command.contains("trap") && !command.ends_with('\\');
    if may_leave_processes && command.len() < MAX_SCRIPT_BYTES && Parser::new(command).parse().is_ok() {
        Cow::Owned(format!("{command}\nexit"))
    } else {
        Cow::Borrowed(command)
    }
}

impl ScriptRunner {
    fn run(self) {
        let started_at = Instant::now();
        // The runtime parses scripts on its own threads, which need the same stack.
        let runtime = Builder::new_current_thread().enable_all().thread_stack_size(STACK_BYTES).build();
        let work = AssertUnwindSafe(|| match runtime {
            Ok(runtime) => {
                let exit = runtime.block_on(self.interpret());
                runtime.shutdown_background();
                exit
            }
            Err(error) => self.internal_failure("running the command failed: no runtime could be started", Some(error)),
        });
        let mut exit = catch_unwind(work)
            .unwrap_or_else(|_| self.internal_failure("running the command failed: the interpreter panicked", None));
        exit.duration = started_at.elapsed();
        self.sink.finish(exit);
    }

    fn internal_failure(&self, message: &'static str, source: Option<std::io::Error>) -> ScriptExit {
        let error = Error::new(ErrorKind::Internal, message).with_path(&self.request.cwd);
        ScriptExit::new(ExitCause::Failed(source.into_iter().fold(error, Error::with_source)))
    }

    async fn interpret(&self) -> ScriptExit {
        let wants_all = self.request.full_output == FullOutputMode::File;
        let recorder = Arc::new(Mutex::new(OutputRecorder::new(wants_all)));
        let mut exit = {
            let execution = pin!(self.execute(&recorder));
            match select(execution, pin!(self.stop.wait())).await {
                Either::Left((exit, _)) => exit,
                Either::Right((reason, _)) => ScriptExit::new(ExitCause::Stopped(reason)),
            }
        };
        match self.stop.reason() {
            Some(StopReason::Limit(limit)) => {
                self.print_line(limit);
                exit.cause = ExitCause::Killed;
            }
            Some(reason) => exit.cause = ExitCause::Stopped(reason),
            None => {}
        }
        self.cleanup.join_all().await;
        let all = recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((all, cx)) = all.zip(self.cx_for_output()) {
            match write_full_output(all, &*self.backend, &cx, &self.config.output_directory).await {
                Ok(path) => exit.full_output = Some(path),
                Err(error) => self.print_line(&format!("writing the full output failed: {}", error.for_model())),
            }
        }
        exit
    }

    /// Returns the context for writing the full output. If the caller abandoned the call, there is none, because no file may
    /// be touched any more; if the script was ended for another reason, the context outlives it.
    fn cx_for_output(&self) -> Option<OpContext> {
        match self.stop.reason() {
            None => Some(self.cx.clone()),
            Some(reason) => (!reason.is_abandoned() || reason == StopReason::Stopped).then(|| self.cx.for_cleanup()),
        }
    }

    /// Prints a line of the shell itself.
    fn print_line(&self, message: &str) {
        self.sink.write(OutputStream::Stderr, format!("bash: {message}\n").as_bytes());
    }

    async fn execute(&self, recorder: &Arc<Mutex<OutputRecorder>>) -> ScriptExit {
        let mut bash = self.build_interpreter();
        self.stop.attach(bash.cancellation_token());
        if !self.request.env.contains_key("HOME") {
            // `HOME` is a variable of the shell, but not of its environment, which has only the variables of the request.
            if let Err(error) = bash.exec("HOME=/").await {
                return self.exit_of_error(error);
            }
        }
        let (sink, shared) = (Arc::clone(&self.sink), Arc::clone(recorder));
        let printed = Box::new(move |standard: &StreamData, error: &StreamData| {
            emit(&shared, &*sink, standard.as_bytes(), error.as_bytes());
        });
        let mut options = ExecOptions::new().streaming(printed);
        if let Some(stdin) = &self.request.stdin {
            options = options.stdin(stdin.as_str());
        }
        let script = prepare_script(&self.request.command);
        let execution = bash.exec_with_options(&script, options);
        let script_end = async {
            let code = self.exit_code.wait().await;
            sleep(BACKGROUND_GRACE).await;
            code
        };
        let result = match select(pin!(execution), pin!(script_end)).await {
            Either::Left((result, _)) => result,
            // Background processes do not delay the response, and end with the script.
            Either::Right((code, _)) => return ScriptExit::new(ExitCause::Exited(code)),
        };
        match result {
            Ok(result) => {
                self.emit_rest(recorder, &result);
                let mut exit = ScriptExit::new(ExitCause::Exited(result.exit_code));
                exit.is_cut = result.stdout_truncated || result.stderr_truncated;
                exit
            }
            Err(error) => self.exit_of_error(error),
        }
    }

    /// Emits the output that the interpreter returned only at the end.
    fn emit_rest(&self, recorder: &Mutex<OutputRecorder>, result: &ExecResult) {
        let (standard, error) = recorder.lock().unwrap_or_else(PoisonError::into_inner).counts();
        let rest = |all: &StreamData, sent: usize| all.as_bytes().get(sent..).unwrap_or_default().to_vec();
        emit(recorder, &*self.sink, &rest(&result.stdout, standard), &rest(&result.stderr, error));
    }

    /// Returns the exit for an error of the interpreter.
    fn exit_of_error(&self, error: bashkit::Error) -> ScriptExit {
        let exited = |code| ScriptExit::new(ExitCause::Exited(code));
        match error {
            bashkit::Error::Cancelled => {
                ScriptExit::new(ExitCause::Stopped(self.stop.reason().unwrap_or(StopReason::Cancelled)))
            }
            bashkit::Error::ResourceLimit(LimitExceeded::Timeout(_)) => {
                ScriptExit::new(ExitCause::Stopped(StopReason::Timeout))
            }
            bashkit::Error::ResourceLimit(limit) => {
                self.print_line(&limit.to_string());
                ScriptExit::new(ExitCause::Killed)
            }
            bashkit::Error::Parse { .. } => {
                let report = error.syntax_report("bash: -c", &self.request.command);
                let report = report.unwrap_or_else(|| format!("bash: {error}\n"));
                self.sink.write(OutputStream::Stderr, report.as_bytes());
                exited(2)
            }
            bashkit::Error::Internal(_) => {
                self.internal_failure("running the command failed: the interpreter has an internal error", None)
            }
            other => {
                self.print_line(&other.to_string());
                exited(1)
            }
        }
    }

    fn exit_hook(&self) -> hooks::Interceptor<ExitEvent> {
        let (exit_code, has_trap) = (Arc::clone(&self.exit_code), self.request.command.contains("trap"));
        Box::new(move |event| {
            if !has_trap {
                exit_code.set(event.code);
            }
            HookAction::Continue(event)
        })
    }

    fn build_interpreter(&self) -> Bash {
        let config = &self.config;
        let files = BackendFileSystem {
            backend: Arc::clone(&self.backend),
            cx: self.cx.clone(),
            config: config.clone(),
            stop: Arc::clone(&self.stop),
            empty_dirs: ScriptOnlyDirs::default(),
            bytes_read: AtomicU64::default(),
            cleanup: Arc::clone(&self.cleanup),
        };
        let mut builder = Bash::builder()
            .fs(Arc::new(files))
            .cwd(self.request.cwd.as_str())
            .rootfs(false)
            .follow_symlinks(false)
            .builtin_filter(|name| !EXCLUDED_BUILTINS.contains(&name))
            .before_tool(builtin_guard(Arc::clone(&self.stop)))
            .on_exit(self.exit_hook())
            .max_memory(to_usize(config.max_memory_bytes))
            .session_limits(SessionLimits::unlimited())
            .limits(limits(config));
        for (name, value) in &self.request.env {
            builder = builder.env(name, value);
        }
        builder.build()
    }
}

/// Builtins that reach the network, and one that parses its input by unbounded recursion.
const EXCLUDED_BUILTINS: [&str; 4] = ["curl", "wget", "http", "bc"];

fn limits(config: &VirtualShellConfig) -> ExecutionLimits {
    let rounds = to_usize(config.max_loop_iterations);
    ExecutionLimits::new()
        .max_commands(to_usize(config.max_commands))
        .max_loop_iterations(rounds)
        .max_total_loop_iterations(rounds)
        .max_stdout_bytes(to_usize(config.max_output_bytes))
        .max_stderr_bytes(to_usize(config.max_output_bytes))
        .max_live_intermediate_bytes(config.max_memory_bytes)
        .max_aggregate_input_bytes(config.max_memory_bytes.saturating_mul(16))
        .max_work_units(MAX_WORK_UNITS)
        // Some bytes are appended to the command.
        .max_input_bytes(MAX_SCRIPT_BYTES + 64)
        .max_parser_operations(MAX_PARSER_OPERATIONS)
        // The timer of the call fires first; this bound covers a clock that does not advance.
        .timeout(Duration::from_secs(30 * 24 * 3600))
}

/// Upper bound on work that no other limit covers: some minutes.
const MAX_WORK_UNITS: u64 = 2_000_000_000;

/// Upper bound on parser steps. The longest script needs fewer, including parts that are parsed again.
const MAX_PARSER_OPERATIONS: usize = 2_000_000;

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn emit(recorder: &Mutex<OutputRecorder>, sink: &dyn OutputSink, standard: &[u8], error: &[u8]) {
    for (output, bytes) in [(OutputStream::Stdout, standard), (OutputStream::Stderr, error)] {
        if !bytes.is_empty() {
            recorder.lock().unwrap_or_else(PoisonError::into_inner).push(output, bytes);
            sink.write(output, bytes);
        }
    }
}

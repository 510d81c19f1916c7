//! Local transport: one shell process of this machine per script.

mod ignored_signals;
mod shell_pool;

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{Access, FileType, access, stat};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use vfs_core::output::HeadTailBuffer;
use vfs_core::{Error, ErrorKind, Result};

use self::ignored_signals::reset_ignored_signals;
use self::shell_pool::{PooledOrNewShell, ShellPool};
use crate::config::RedactedValues;
use crate::exec::{RemoteExec, RemoteExit, RemoteOutput, ScriptInvocation, TransportLimits};

/// Runs scripts by a shell of this machine, or by any command that accepts a script as its last argument, such as
/// `chroot DIRECTORY sh -c`.
///
/// # Behaviour
///
/// * The shell inherits only [`PATH`](Self::env) from the environment of this process. It runs in a process group of
///   its own, and ignores no signal, even if this process does. When the script exits, the rest of the group is killed.
///   When the call is dropped or reaches its timeout, the group receives SIGTERM, and SIGKILL 200 ms later. Processes
///   that left the group are not ended.
/// * After a value of [`new`](Self::new) has run scripts of one kind more than once, it starts a shell in advance for
///   the next one. Up to four such idle shells exist until the last clone of the value is dropped.
/// * This transport confines nothing: a script may do whatever this process may. Use it for tests, for places that
///   confine themselves, and for files that are reached through a program of this machine.
///
/// ```
/// use vfs_remote::LocalProcess;
///
/// let shell = LocalProcess::new();
/// let busybox = LocalProcess::command(["busybox", "sh", "-c"]);
/// # let _ = (shell, busybox);
/// ```
#[derive(Clone)]
pub struct LocalProcess {
    command: Vec<String>,
    env: Vec<(String, String)>,
    /// Shells started in advance; `None` if the command may not pass its standard input to the shell.
    ready: Option<Arc<ShellPool<ShellProcess>>>,
}

impl LocalProcess {
    /// Creates a transport that runs scripts by `sh -c`.
    pub fn new() -> Self {
        Self { ready: Some(Arc::default()), ..Self::command(["sh", "-c"]) }
    }

    /// Creates a transport that runs scripts by a command, which receives the script as an additional last argument.
    pub fn command<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
        Self { command: command.into_iter().map(Into::into).collect(), env: vec![("PATH".into(), path)], ready: None }
    }

    /// Sets a variable of the shell's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.env.retain(|(other, _)| *other != name);
        self.env.push((name, value.into()));
        // The shells that clones of this value have started lack the variable.
        self.ready = self.ready.map(|_| Arc::default());
        self
    }

    /// Looks up `program` in the `PATH` of its environment, and returns the name itself if there is no such program.
    ///
    /// The standard library would start a program that it has to look up by a copy of this process, which costs more
    /// than the shell.
    fn locate(&self, program: &str) -> PathBuf {
        let path = self.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let is_name = !program.contains('/');
        let places = path.filter(|_| is_name).into_iter().flat_map(std::env::split_paths);
        let mut candidates = places.filter(|place| place.is_absolute()).map(|place| place.join(program));
        candidates.find(|candidate| is_program(candidate)).unwrap_or_else(|| program.into())
    }

    fn start(&self, script: &str) -> Result<ShellProcess> {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Error::invalid_argument("the command that runs scripts is empty; give a shell"))?;
        let mut command = Command::new(self.locate(program));
        command
            .arg0(program)
            .args(arguments)
            .arg(script)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        reset_ignored_signals(&mut command);
        let child = command.spawn().map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("the shell '{program}' could not be started")).with_source(error)
        })?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(ShellProcess { child: Some(child), group })
    }
}

impl Default for LocalProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProcess").field("command", &self.command).field("env", &RedactedValues(&self.env)).finish()
    }
}

impl fmt::Display for LocalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local process")
    }
}

/// A shell and its process group, which are ended on drop.
struct ShellProcess {
    child: Option<Child>,
    group: Option<Pid>,
}

impl ShellProcess {
    /// Returns `self`, or `None` if the shell has exited.
    fn if_running(mut self) -> Option<Self> {
        let is_running = self.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|exit| exit.is_none()));
        if !is_running {
            // The shell was waited for, so another group may have this number.
            self.group = None;
        }
        is_running.then_some(self)
    }

    /// Writes `rest` to the standard input and closes it. Returns `None` if the write fails.
    async fn feed(mut self, rest: &str) -> Option<Self> {
        let mut input = self.child.as_mut()?.stdin.take()?;
        input.write_all(rest.as_bytes()).await.ok()?;
        Some(self)
    }

    /// Waits for the exit of the shell itself.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Sends a signal to the remaining processes of a group.
fn send(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The call fails if no process of the group is left.
        _ = kill_process_group(group, signal);
    }
}

/// Ends the group in the background, so that dropping a call does not wait.
impl Drop for ShellProcess {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return send(Some(group), Signal::KILL) };
        let Some(mut child) = self.child.take() else { return };
        send(Some(group), Signal::TERM);
        runtime.spawn(async move {
            // As long as the shell is not waited for, no other group can have its number.
            sleep(GRACE).await;
            send(Some(group), Signal::KILL);
            _ = child.wait().await;
        });
    }
}

/// Time that a group has to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(200);

/// Time for which the outputs are read after the script has exited: processes that left its group may keep them open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

#[async_trait]
impl RemoteExec for LocalProcess {
    fn transport(&self) -> TransportLimits {
        TransportLimits::default()
    }

    async fn run(&self, invocation: ScriptInvocation) -> Result<RemoteOutput> {
        let (mut out, mut err) = (invocation.output_buffer(), invocation.output_buffer());
        let ScriptInvocation { script, beginning, stdin, timeout: limit, .. } = invocation;
        let ready = self.ready.as_ref().filter(|_| stdin.is_empty());
        let fed = match ready.map(|ready| ready.take(&script, beginning, ShellProcess::if_running)) {
            // A shell that did not receive the whole rest has not run the script.
            Some(PooledOrNewShell::Rest(shell, rest)) => shell.feed(rest).await,
            Some(PooledOrNewShell::Whole) | None => None,
        };
        let mut running = match fed {
            Some(shell) => shell,
            None => self.start(&script)?,
        };
        let child = running.child.as_mut();
        let pipes = child.map(|child| (child.stdin.take(), child.stdout.take(), child.stderr.take()));
        let Some((input, Some(stdout), Some(stderr))) = pipes else {
            return Err(Error::new(ErrorKind::Internal, "a shell was started without its pipes"));
        };
        let feed = async move {
            if let Some(mut input) = input {
                // A script need not read its input.
                _ = input.write_all(&stdin).await;
            }
            let Some(ready) = ready else { return };
            if let Some(next) = ready.refill_script(&script, beginning) {
                // If no shell can be started, the next call reports the error.
                if let Ok(shell) = self.start(&next) {
                    ready.add(&script, beginning, shell);
                }
            }
        };
        let ending = {
            let traffic = async {
                tokio::join!(feed, read(stdout, &mut out), read(stderr, &mut err));
            };
            tokio::pin!(traffic);
            let mut is_through = false;
            let mut status = timeout(limit, exit(&mut running, traffic.as_mut(), &mut is_through)).await;
            let has_timed_out = status.is_err();
            if has_timed_out {
                send(running.group, Signal::TERM);
                status = timeout(GRACE, exit(&mut running, traffic.as_mut(), &mut is_through)).await;
            }
            send(running.group.take(), Signal::KILL);
            if !is_through {
                // Processes that left the group may keep the outputs open.
                _ = timeout(DRAIN_TIMEOUT, traffic).await;
            }
            let status = match status {
                Ok(status) => status,
                Err(_) => running.wait().await,
            };
            let ending = ending_of(status.map_err(lost)?);
            if has_timed_out { RemoteExit::TimedOut } else { ending }
        };
        Ok(RemoteOutput::from_buffers(ending, out, err))
    }
}

/// Waits for the shell to exit, and drives the transfer of its input and outputs meanwhile.
async fn exit(
    running: &mut ShellProcess,
    mut traffic: Pin<&mut impl Future<Output = ()>>,
    is_through: &mut bool,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            () = &mut traffic, if !*is_through => *is_through = true,
            status = running.wait() => return status,
        }
    }
}

fn lost(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the exit of a shell is unknown").with_source(error)
}

fn ending_of(status: ExitStatus) -> RemoteExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => RemoteExit::Exited(code),
        (None, signal) => RemoteExit::Signalled(signal.unwrap_or_default()),
    }
}

/// Reads `output` to its end.
async fn read(mut output: impl AsyncRead + Unpin, buffered: &mut HeadTailBuffer) {
    let mut buffer = vec![0; 64 << 10];
    // An output that cannot be read any more has ended.
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        buffered.push(&buffer[..count]);
    }
}

/// Returns whether `path` leads to a regular file that this process may execute.
fn is_program(path: &Path) -> bool {
    let is_file = stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && access(path, Access::EXEC_OK).is_ok()
}

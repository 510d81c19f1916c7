//! Local transport: one shell process of this machine per script.

mod shell_pool;
mod signals;

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

use self::shell_pool::{ReadyShells, ScriptStart};
use self::signals::reset_ignored_signals;
use crate::config::Names;
use crate::exec::{Invocation, RemoteExec, RemoteExit, RemoteOutput, Transport};

/// Runs scripts by a shell of this machine, or by any command that takes one as its last argument, such as
/// `chroot DIRECTORY sh -c`.
///
/// # Behaviour
///
/// * The shell gets [`PATH`](Self::env) and nothing else of this process' environment, in a process group of its own, and
///   ignores no signal, even if this process does. All of that group is ended with the call, whether it ends, is dropped, or
///   reaches its timeout: where it did not end by itself it first gets a signal to terminate, and has 200 ms to do so. What left
///   the group is not ended.
/// * A shell of [`new`](Self::new) that ran scripts of one kind more than once is started ahead for the next one, so that up to
///   four idle ones are there until the last clone of this is dropped.
/// * It is no boundary: what runs there may do whatever this process may. It is for tests, for places that confine themselves,
///   and for files that a program of this machine leads to.
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
    /// `None` unless the command is known to pass its standard input to the shell.
    ready: Option<Arc<ReadyShells<LocalShell>>>,
}

impl LocalProcess {
    /// Runs scripts by `sh -c`.
    pub fn new() -> Self {
        Self { ready: Some(Arc::default()), ..Self::command(["sh", "-c"]) }
    }

    /// Runs scripts by a command, to which each is given as one more argument.
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
        // Shells that clones of this have started lack the variable.
        self.ready = self.ready.map(|_| Arc::default());
        self
    }

    /// The path of `program`, where the `PATH` of its environment leads to one: what has to be searched for is started by a
    /// copy of this process, which costs more than the shell.
    fn located(&self, program: &str) -> PathBuf {
        let path = self.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        let is_name = !program.contains('/');
        let places = path.filter(|_| is_name).into_iter().flat_map(std::env::split_paths);
        let mut candidates = places.filter(|place| place.is_absolute()).map(|place| place.join(program));
        candidates.find(|candidate| is_program(candidate)).unwrap_or_else(|| program.into())
    }

    fn start(&self, script: &str) -> Result<LocalShell> {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Error::invalid_argument("the command that runs scripts is empty; give a shell"))?;
        let mut command = Command::new(self.located(program));
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
        Ok(LocalShell { child: Some(child), group })
    }
}

impl Default for LocalProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProcess").field("command", &self.command).field("env", &Names(&self.env)).finish()
    }
}

impl fmt::Display for LocalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local process")
    }
}

/// A shell and its process group, which end with this.
struct LocalShell {
    child: Option<Child>,
    group: Option<Pid>,
}

impl LocalShell {
    /// This, unless the shell has ended.
    fn if_running(mut self) -> Option<Self> {
        let is_running = self.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|ended| ended.is_none()));
        if !is_running {
            // The shell was waited for, so another group may have this number.
            self.group = None;
        }
        is_running.then_some(self)
    }

    /// This, having been given all of its standard input, unless it does not take it.
    async fn fed(mut self, rest: &str) -> Option<Self> {
        let mut input = self.child.as_mut()?.stdin.take()?;
        input.write_all(rest.as_bytes()).await.ok()?;
        Some(self)
    }

    /// Waits for the shell itself.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Sends a signal to all that is left of a group.
fn send(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // Nothing of it may be left by now.
        _ = kill_process_group(group, signal);
    }
}

/// A caller that drops a call does not wait for its end.
impl Drop for LocalShell {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return send(Some(group), Signal::KILL) };
        let Some(mut child) = self.child.take() else { return };
        send(Some(group), Signal::TERM);
        runtime.spawn(async move {
            // As long as the shell is not waited for, nothing else can have the number of its group.
            sleep(GRACE).await;
            send(Some(group), Signal::KILL);
            _ = child.wait().await;
        });
    }
}

/// How long a group has to end after the signal to terminate.
const GRACE: Duration = Duration::from_millis(200);

/// How long what a script left behind may keep its outputs open.
const LEFT_OPEN: Duration = Duration::from_millis(100);

#[async_trait]
impl RemoteExec for LocalProcess {
    fn transport(&self) -> Transport {
        Transport::default()
    }

    async fn run(&self, invocation: Invocation) -> Result<RemoteOutput> {
        let (mut out, mut err) = (invocation.keeper(), invocation.keeper());
        let Invocation { script, beginning, stdin, timeout: limit, .. } = invocation;
        let ready = self.ready.as_ref().filter(|_| stdin.is_empty());
        let fed = match ready.map(|ready| ready.take(&script, beginning, LocalShell::if_running)) {
            // One that does not take the rest has run nothing.
            Some(ScriptStart::Rest(shell, rest)) => shell.fed(rest).await,
            Some(ScriptStart::Whole) | None => None,
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
                // A script need not read what it is given.
                _ = input.write_all(&stdin).await;
            }
            let Some(ready) = ready else { return };
            if let Some(next) = ready.refill_script(&script, beginning) {
                // Where none can be started, the next script says so.
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
                _ = timeout(LEFT_OPEN, traffic).await;
            }
            let status = match status {
                Ok(status) => status,
                Err(_) => running.wait().await,
            };
            let ending = ending_of(status.map_err(lost)?);
            if has_timed_out { RemoteExit::TimedOut } else { ending }
        };
        Ok(RemoteOutput::kept(ending, out, err))
    }
}

/// Waits for the shell to exit, while what it reads and prints goes on.
async fn exit(
    running: &mut LocalShell,
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

/// Reads to the end.
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

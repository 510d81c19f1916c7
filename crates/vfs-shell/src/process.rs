//! Supervised processes: start, exit status and termination with all descendants.

#[expect(
    unsafe_code,
    reason = "a process is prepared between fork and exec, where nothing but system calls is allowed"
)]
mod after_fork;
mod prepared_fork;
mod process_start_lock;
mod supervisor_reaper;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{MemfdFlags, OFlags, SealFlags};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::spawner::SpawnSpec;

use after_fork::{NO_ORPHANS, StatusRecord};
use prepared_fork::PreparedFork;
pub(crate) use process_start_lock::ProcessStartLock;
use supervisor_reaper::SupervisorReaper;

/// Size of the record by which a supervisor reports a [`ProgramExit`].
pub(crate) const STATUS_RECORD_BYTES: usize = size_of::<StatusRecord>();

/// Standard descriptors of a program.
#[derive(Debug)]
pub(crate) struct StandardFds {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

/// Control channel of a supervisor. Dropping it has no effect, other than dropping a [`SupervisedProcess`].
#[derive(Debug)]
pub(crate) struct SupervisorControl {
    socket: OwnedFd,
    supervisor: OwnedFd,
}

impl SupervisorControl {
    /// Asks the supervisor to terminate every process of the command: `SIGTERM`, then `SIGKILL` after the grace period.
    /// Returns at once.
    pub(crate) fn terminate(&self) {
        // The supervisor reads the end of the stream, also if another process has a copy of the socket. If the call fails,
        // the supervisor and all its processes have exited.
        let _ignored = rustix::net::shutdown(&self.socket, Shutdown::Both);
        // Resume the supervisor in case the command has stopped it.
        let _ignored = rustix::process::pidfd_send_signal(&self.supervisor, Signal::CONT);
    }

    /// Tells the supervisor to exit and leave the processes running.
    pub(crate) fn release(&self) {
        let _ignored = rustix::net::send(&self.socket, &[after_fork::RELEASE], SendFlags::NOSIGNAL);
    }
}

/// Running program and its descendants. Dropping it terminates all of them through their supervisor, for which a thread
/// waits: nothing here blocks.
#[derive(Debug)]
pub(crate) struct SupervisedProcess {
    pub(crate) control: Arc<SupervisorControl>,
}

impl Drop for SupervisedProcess {
    fn drop(&mut self) {
        self.control.terminate();
    }
}

/// Exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramExit {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Whether descendants were still running at the exit.
    pub(crate) has_orphans: bool,
}

impl ProgramExit {
    /// Decodes the record that a supervisor wrote.
    pub(crate) fn read(bytes: [u8; STATUS_RECORD_BYTES]) -> Self {
        let [left, status] = decode_record(bytes);
        let (exited, signalled) = (libc::WIFEXITED(status), libc::WIFSIGNALED(status));
        Self {
            exit_code: exited.then(|| libc::WEXITSTATUS(status)),
            signal: signalled.then(|| libc::WTERMSIG(status)),
            has_orphans: left != NO_ORPHANS,
        }
    }
}

fn decode_record(bytes: [u8; STATUS_RECORD_BYTES]) -> StatusRecord {
    let [a, b, c, d, e, f, g, h] = bytes;
    [i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])]
}

/// Creates a sealed file in memory with `text`, which nobody can change and no task has to feed.
pub(crate) fn sealed_input(text: &str) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file)
}

/// Starts the program of `spec` under a supervisor and returns once it executes. Blocks for about a millisecond.
///
/// `standard` is created under the same start lock, so that no other process has a copy which would hold pipes open.
///
/// The returned descriptor does not block. It yields one [`ProgramExit`] record and ends when the last process has exited.
pub(crate) fn start(
    _lock: ProcessStartLock,
    spec: SpawnSpec,
    standard: StandardFds,
    grace: Duration,
    cwd: &VfsPath,
) -> Result<(SupervisedProcess, OwnedFd)> {
    let unavailable = |error: io::Error| {
        Error::new(ErrorKind::Unavailable, "starting a process failed: the system refused it; try again later")
            .with_source(error)
    };
    let (started, started_writer) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| unavailable(errno.into()))?;
    let (status, status_writer) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| unavailable(errno.into()))?;
    let (socket, supervisor_socket) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|errno| unavailable(errno.into()))?;
    let reaper = SupervisorReaper::get_or_start().map_err(unavailable)?;
    let prepared = PreparedFork::new(spec, standard, [started_writer, status_writer, supervisor_socket], grace)?;
    let supervisor = prepared.fork().map_err(unavailable)?;
    drop(prepared);
    let pidfd = rustix::process::pidfd_open(supervisor, PidfdFlags::empty()).and_then(|pidfd| {
        let copy = rustix::io::fcntl_dupfd_cloexec(&pidfd, 0)?;
        Ok((pidfd, copy))
    });
    let (pidfd, copy) = match pidfd {
        Ok(both) => both,
        Err(errno) => {
            // No other code waits for this supervisor. Without a control socket it terminates what it started and exits.
            drop(socket);
            let _ended = rustix::process::waitpid(Some(supervisor), WaitOptions::empty());
            return Err(unavailable(errno.into()));
        }
    };
    let handle = reaper.watch(copy);
    let process = SupervisedProcess { control: Arc::new(SupervisorControl { socket, supervisor: pidfd }) };
    let program = wait_until_started(&started, &process.control.supervisor).map_err(|failure| failure.error(cwd))?;
    handle.set_program(program);
    rustix::fs::fcntl_setfl(&status, OFlags::NONBLOCK).map_err(|errno| unavailable(errno.into()))?;
    Ok((process, status))
}

/// Stage and error number of a failed start.
struct StartFailure {
    stage: i32,
    errno: rustix::io::Errno,
}

/// The program exited without a report.
const PROGRAM_GONE: StartFailure = StartFailure { stage: after_fork::STAGE_FORK, errno: rustix::io::Errno::CHILD };

/// Interval at which a supervisor that has not reported the start is resumed.
const WAKE_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits until the program and `supervisor` have closed the other end: the program by executing or failing, `supervisor`
/// right after it.
fn wait_until_started(started: &OwnedFd, supervisor: &OwnedFd) -> std::result::Result<Pid, StartFailure> {
    // The program may be killed before it can report.
    let mut outcome = Err(PROGRAM_GONE);
    loop {
        match rustix::event::poll(&mut [PollFd::new(started, PollFlags::IN)], Some(&WAKE_INTERVAL)) {
            Ok(0) => {
                // A program that stops its supervisor at once may be faster than the supervisor closes its end. The signal
                // has no effect on a supervisor that runs or has exited.
                let _ignored = rustix::process::pidfd_send_signal(supervisor, Signal::CONT);
                continue;
            }
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(StartFailure { stage: after_fork::STAGE_FORK, errno }),
            Ok(_) => {}
        }
        let mut bytes = [0; STATUS_RECORD_BYTES];
        match rustix::io::read(started, &mut bytes) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(StartFailure { stage: after_fork::STAGE_FORK, errno }),
            Ok(0) => return outcome,
            Ok(_) => {}
        }
        outcome = match decode_record(bytes) {
            [after_fork::STAGE_READY, pid] => Pid::from_raw(pid).ok_or(PROGRAM_GONE),
            [stage, errno] => Err(StartFailure { stage, errno: rustix::io::Errno::from_raw_os_error(errno) }),
        };
    }
}

impl StartFailure {
    fn error(self, cwd: &VfsPath) -> Error {
        use rustix::io::Errno;
        let (kind, message) = match (self.stage, self.errno) {
            (after_fork::STAGE_CHDIR, Errno::ACCESS | Errno::PERM) => (
                ErrorKind::PermissionDenied,
                "entering the working directory failed: permission denied; run the command in another one",
            ),
            (after_fork::STAGE_CHDIR, _) => (ErrorKind::Unavailable, "entering the working directory failed"),
            (after_fork::STAGE_CONFINE, _) => {
                (ErrorKind::Unsupported, "starting the command failed: its confinement could not be applied")
            }
            (after_fork::STAGE_EXEC, Errno::TOOBIG) => (
                ErrorKind::TooLarge,
                "starting the command failed: it or its environment is too long (the system takes 128 KiB for one text); \
                 write it to a file and run that",
            ),
            (after_fork::STAGE_EXEC, Errno::NOENT | Errno::NOTDIR) => {
                (ErrorKind::Unsupported, "starting the shell failed: its program does not exist; install it")
            }
            (after_fork::STAGE_EXEC, Errno::ACCESS | Errno::PERM) => {
                (ErrorKind::PermissionDenied, "starting the shell failed: its program may not be executed")
            }
            (after_fork::STAGE_EXEC, Errno::NOMEM) => {
                (ErrorKind::QuotaExceeded, "starting the shell failed: the memory limit is too low; raise it")
            }
            (_, Errno::AGAIN) => {
                (ErrorKind::Busy, "starting the command failed: there are too many processes; try again")
            }
            _ => (ErrorKind::Unavailable, "starting the command failed"),
        };
        Error::new(kind, message).with_path(cwd).with_source(io::Error::from(self.errno))
    }
}

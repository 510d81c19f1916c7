//! Starting a process under a supervisor that sees to its end, and the end of all that descends from it.

#[expect(
    unsafe_code,
    reason = "a process is prepared between fork and exec, where nothing but system calls is allowed"
)]
mod after_fork;
mod plan;
mod reaper;
mod turn;

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

use crate::launch::Launch;

use after_fork::{ALONE, Record};
use plan::Prepared;
use reaper::Reaper;
pub(crate) use turn::Turn;

/// How many bytes a supervisor writes to tell of [`Ended`].
pub(crate) const RECORD_BYTES: usize = size_of::<Record>();

/// The descriptors that a program has from its beginning.
#[derive(Debug)]
pub(crate) struct Standard {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

/// The way to a supervisor. Dropping it does nothing; a [`Process`] that is dropped does.
#[derive(Debug)]
pub(crate) struct Control {
    socket: OwnedFd,
    supervisor: OwnedFd,
}

impl Control {
    /// Has every process of the command ended: asked first, and killed a grace later. Returns at once.
    pub(crate) fn end(&self) {
        // Told by the end of the stream, which is seen even where another process has a copy of the socket. Where this
        // fails, the supervisor has gone, and so has everything else.
        let _gone = rustix::net::shutdown(&self.socket, Shutdown::Both);
        // The command may have stopped its supervisor.
        let _gone = rustix::process::pidfd_send_signal(&self.supervisor, Signal::CONT);
    }

    /// Sends the supervisor away; what runs goes on.
    pub(crate) fn release(&self) {
        let _gone = rustix::net::send(&self.socket, &[after_fork::RELEASE], SendFlags::NOSIGNAL);
    }
}

/// A running program with all that descends from it. When dropped, all of them are ended, by their supervisor, and the
/// supervisor is waited for by a thread: nothing here blocks.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) control: Arc<Control>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.control.end();
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Whether processes of it were left then.
    pub(crate) left_others: bool,
}

impl Ended {
    /// Reads what a supervisor wrote.
    pub(crate) fn read(bytes: [u8; RECORD_BYTES]) -> Self {
        let [left, status] = record(bytes);
        let (exited, signalled) = (libc::WIFEXITED(status), libc::WIFSIGNALED(status));
        Self {
            exit_code: exited.then(|| libc::WEXITSTATUS(status)),
            signal: signalled.then(|| libc::WTERMSIG(status)),
            left_others: left != ALONE,
        }
    }
}

fn record(bytes: [u8; RECORD_BYTES]) -> Record {
    let [a, b, c, d, e, f, g, h] = bytes;
    [i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h])]
}

/// A file that a program can read `text` from, and nobody can change. It needs no one to write it while it is read.
pub(crate) fn input(text: &str) -> io::Result<OwnedFd> {
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

/// Starts what is to be launched, and returns once it is the program that was asked for. Blocks for about a millisecond.
///
/// `standard` is made in the same turn: nobody else has a copy of it then, who would keep its other ends from ending.
///
/// The descriptor tells of [`Ended`] once, and ends when the last process has. It does not block.
pub(crate) fn start(
    _turn: Turn,
    launch: Launch,
    standard: Standard,
    grace: Duration,
    cwd: &VfsPath,
) -> Result<(Process, OwnedFd)> {
    let unavailable = |error: io::Error| {
        Error::new(ErrorKind::Unavailable, "no process can be started now; try again later").with_source(error)
    };
    let (started, told) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| unavailable(errno.into()))?;
    let (status, tells) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| unavailable(errno.into()))?;
    let (socket, hears) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| unavailable(errno.into()))?;
    let reaper = Reaper::running().map_err(unavailable)?;
    let prepared = Prepared::new(launch, standard, [told, tells, hears], grace)?;
    let supervisor = prepared.fork().map_err(unavailable)?;
    drop(prepared);
    let pidfd = rustix::process::pidfd_open(supervisor, PidfdFlags::empty()).and_then(|pidfd| {
        let copy = rustix::io::fcntl_dupfd_cloexec(&pidfd, 0)?;
        Ok((pidfd, copy))
    });
    let (pidfd, copy) = match pidfd {
        Ok(both) => both,
        Err(errno) => {
            // Nobody else will wait for it. It ends, with what it started, since nobody is there to tell it anything.
            drop(socket);
            let _ended = rustix::process::waitpid(Some(supervisor), WaitOptions::empty());
            return Err(unavailable(errno.into()));
        }
    };
    let reaped = reaper.watch(copy);
    let process = Process { control: Arc::new(Control { socket, supervisor: pidfd }) };
    let program = wait_until_started(&started, &process.control.supervisor).map_err(|failure| failure.error(cwd))?;
    reaped.leads(program);
    rustix::fs::fcntl_setfl(&status, OFlags::NONBLOCK).map_err(|errno| unavailable(errno.into()))?;
    Ok((process, status))
}

/// What kept a program from being started.
struct Failure {
    doing: i32,
    errno: rustix::io::Errno,
}

/// The program is gone, and nobody knows why.
const GONE: Failure = Failure { doing: after_fork::FORKING, errno: rustix::io::Errno::CHILD };

/// How often a supervisor is woken that has not said for so long that its program is started.
const WAKING: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits until nobody has the other end any longer: the program gives it up by becoming what it is to be, or by failing, and
/// `supervisor` right after that.
fn wait_until_started(started: &OwnedFd, supervisor: &OwnedFd) -> std::result::Result<Pid, Failure> {
    // Somebody may kill it before it can say anything.
    let mut told = Err(GONE);
    loop {
        match rustix::event::poll(&mut [PollFd::new(started, PollFlags::IN)], Some(&WAKING)) {
            Ok(0) => {
                // A program that stops its supervisor at once may be faster than the supervisor gives up its end. To one
                // that runs this does nothing, and one that is gone has given it up.
                let _gone = rustix::process::pidfd_send_signal(supervisor, Signal::CONT);
                continue;
            }
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(Failure { doing: after_fork::FORKING, errno }),
            Ok(_) => {}
        }
        let mut bytes = [0; RECORD_BYTES];
        match rustix::io::read(started, &mut bytes) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(Failure { doing: after_fork::FORKING, errno }),
            Ok(0) => return told,
            Ok(_) => {}
        }
        told = match record(bytes) {
            [after_fork::READY, pid] => Pid::from_raw(pid).ok_or(GONE),
            [doing, errno] => Err(Failure { doing, errno: rustix::io::Errno::from_raw_os_error(errno) }),
        };
    }
}

impl Failure {
    fn error(self, cwd: &VfsPath) -> Error {
        use rustix::io::Errno;
        let (kind, message) = match (self.doing, self.errno) {
            (after_fork::ENTERING, Errno::ACCESS | Errno::PERM) => {
                (ErrorKind::PermissionDenied, "the directory may not be entered; run the command in another one")
            }
            (after_fork::ENTERING, _) => (ErrorKind::Unavailable, "the directory cannot be entered"),
            (after_fork::CONFINING, _) => {
                (ErrorKind::Unsupported, "the command could not be confined, so it was not started")
            }
            (after_fork::EXECUTING, Errno::TOOBIG) => (
                ErrorKind::TooLarge,
                "the command or its environment is longer than the system takes, which is 128 KiB for one text; write it \
                 to a file and run that",
            ),
            (after_fork::EXECUTING, Errno::NOENT | Errno::NOTDIR) => {
                (ErrorKind::Unsupported, "the shell that runs commands is not installed")
            }
            (after_fork::EXECUTING, Errno::ACCESS | Errno::PERM) => {
                (ErrorKind::PermissionDenied, "the shell that runs commands may not be executed")
            }
            (after_fork::EXECUTING, Errno::NOMEM) => {
                (ErrorKind::QuotaExceeded, "the limit of memory is too low for the shell that runs commands")
            }
            (_, Errno::AGAIN) => (ErrorKind::Busy, "there are too many processes; try again"),
            _ => (ErrorKind::Unavailable, "the command could not be started"),
        };
        Error::new(kind, message).with_path(cwd).with_source(io::Error::from(self.errno))
    }
}

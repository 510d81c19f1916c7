//! Thread that waits for supervisors, so that none stays behind as a zombie.
//!
//! The thread belongs to the process and not to a runtime, since a command may end after its runtime was shut down.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// Supervisor that the thread waits for.
struct WatchedSupervisor {
    supervisor: OwnedFd,
    program: Arc<AtomicI32>,
}

/// Handle by which the starter announces the program of a supervisor.
pub(super) struct ProgramPidSlot(Arc<AtomicI32>);

impl ProgramPidSlot {
    /// Sets the process id of the program, which leads its group. If the supervisor is killed, the reaper kills this group.
    pub(super) fn set_program(&self, program: Pid) {
        self.0.store(program.as_raw_nonzero().get(), Ordering::Release);
    }
}

/// Thread that waits for all supervisors.
pub(super) struct SupervisorReaper {
    pending: Mutex<Vec<WatchedSupervisor>>,
    wake: OwnedFd,
}

impl SupervisorReaper {
    /// Returns the reaper of this process, and starts its thread on the first call.
    pub(super) fn get_or_start() -> io::Result<&'static Self> {
        static REAPER: OnceLock<SupervisorReaper> = OnceLock::new();
        static STARTING: Mutex<()> = Mutex::new(());
        if let Some(reaper) = REAPER.get() {
            return Ok(reaper);
        }
        let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = REAPER.get() {
            return Ok(reaper);
        }
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (sender, receiver) = mpsc::sync_channel::<&Self>(1);
        thread::Builder::new().name("vfs-reaper".into()).spawn(move || receiver.iter().for_each(Self::run))?;
        let reaper = REAPER.get_or_init(|| Self { pending: Mutex::default(), wake });
        let _runs = sender.send(reaper);
        Ok(reaper)
    }

    /// Waits for the supervisor with the pidfd `supervisor`.
    pub(super) fn watch(&self, supervisor: OwnedFd) -> ProgramPidSlot {
        let program = Arc::new(AtomicI32::new(0));
        self.pending().push(WatchedSupervisor { supervisor, program: Arc::clone(&program) });
        // The write fails only if the counter is full, and then the thread is awake.
        let _awake = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        ProgramPidSlot(program)
    }

    fn pending(&self) -> MutexGuard<'_, Vec<WatchedSupervisor>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut supervisors: Vec<WatchedSupervisor> = Vec::new();
        loop {
            let mut sources: Vec<_> = [&self.wake]
                .into_iter()
                .chain(supervisors.iter().map(|watched| &watched.supervisor))
                .map(|fd| PollFd::new(fd, PollFlags::IN))
                .collect();
            if rustix::event::poll(&mut sources, None).is_err() {
                // Interrupted or out of memory: try again after a pause.
                thread::yield_now();
                continue;
            }
            let mut ended =
                sources.iter().skip(1).map(|source| !source.revents().is_empty()).collect::<Vec<_>>().into_iter();
            supervisors.retain(|watched| !(ended.next() == Some(true) && watched.reap()));
            let mut count = [0; 8];
            // If the counter is empty, no supervisor was added.
            let _none = rustix::io::read(&self.wake, &mut count);
            supervisors.append(&mut self.pending());
        }
    }
}

impl WatchedSupervisor {
    /// Reaps the supervisor and returns whether it no longer exists.
    fn reap(&self) -> bool {
        match rustix::process::waitid(
            WaitId::PidFd(self.supervisor.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        ) {
            Ok(None) | Err(Errno::INTR) => false,
            // A supervisor exits by itself once no process is left. A killed one leaves the program's group behind.
            Ok(Some(status)) if !status.exited() => {
                if let Some(program) = Pid::from_raw(self.program.load(Ordering::Acquire)) {
                    let _ignored = rustix::process::kill_process_group(program, Signal::KILL);
                }
                true
            }
            // Other code of this process has waited for it, or the descriptor is of no use.
            Ok(Some(_)) | Err(_) => true,
        }
    }
}

//! Waiting for supervisors, so that none stays behind as a zombie: one thread for the whole process.
//!
//! It does not belong to a runtime, since a command may end when its runtime is gone.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// A supervisor that is waited for.
struct Watched {
    supervisor: OwnedFd,
    program: Arc<AtomicI32>,
}

/// Says which program a supervisor watches over.
pub(super) struct Reaped(Arc<AtomicI32>);

impl Reaped {
    /// It is the leader of its group: should the supervisor be killed, that group is.
    pub(super) fn leads(&self, program: Pid) {
        self.0.store(program.as_raw_nonzero().get(), Ordering::Release);
    }
}

pub(super) struct Reaper {
    arrived: Mutex<Vec<Watched>>,
    wakes: OwnedFd,
}

impl Reaper {
    /// The one that runs, started by the first to ask.
    pub(super) fn running() -> io::Result<&'static Self> {
        static REAPER: OnceLock<Reaper> = OnceLock::new();
        static STARTING: Mutex<()> = Mutex::new(());
        if let Some(reaper) = REAPER.get() {
            return Ok(reaper);
        }
        let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = REAPER.get() {
            return Ok(reaper);
        }
        let wakes = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (sender, receiver) = mpsc::sync_channel::<&Self>(1);
        thread::Builder::new().name("vfs-reaper".into()).spawn(move || receiver.iter().for_each(Self::run))?;
        let reaper = REAPER.get_or_init(|| Self { arrived: Mutex::default(), wakes });
        let _runs = sender.send(reaper);
        Ok(reaper)
    }

    /// Waits for `supervisor`, a descriptor of it.
    pub(super) fn watch(&self, supervisor: OwnedFd) -> Reaped {
        let program = Arc::new(AtomicI32::new(0));
        self.arrived().push(Watched { supervisor, program: Arc::clone(&program) });
        // It fails only where so many have written that the thread is awake.
        let _awake = rustix::io::write(&self.wakes, &1_u64.to_ne_bytes());
        Reaped(program)
    }

    fn arrived(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut watched: Vec<Watched> = Vec::new();
        loop {
            let mut sources: Vec<_> = [&self.wakes]
                .into_iter()
                .chain(watched.iter().map(|watched| &watched.supervisor))
                .map(|fd| PollFd::new(fd, PollFlags::IN))
                .collect();
            if rustix::event::poll(&mut sources, None).is_err() {
                // Interrupted, or out of memory: tried again, but not at once.
                thread::yield_now();
                continue;
            }
            let mut ended =
                sources.iter().skip(1).map(|source| !source.revents().is_empty()).collect::<Vec<_>>().into_iter();
            watched.retain(|watched| !(ended.next() == Some(true) && watched.reap()));
            let mut count = [0; 8];
            // Nothing to read is no news.
            let _none = rustix::io::read(&self.wakes, &mut count);
            watched.append(&mut self.arrived());
        }
    }
}

impl Watched {
    /// Buries the supervisor if it has ended.
    fn reap(&self) -> bool {
        match rustix::process::waitid(
            WaitId::PidFd(self.supervisor.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        ) {
            Ok(None) | Err(Errno::INTR) => false,
            // It ends by itself once nothing is left. Killed, it leaves the program's group behind.
            Ok(Some(status)) if !status.exited() => {
                if let Some(program) = Pid::from_raw(self.program.load(Ordering::Acquire)) {
                    let _gone = rustix::process::kill_process_group(program, Signal::KILL);
                }
                true
            }
            // Another part of the process waited for it where it cannot be found.
            Ok(Some(_)) | Err(_) => true,
        }
    }
}

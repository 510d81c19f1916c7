//! The kernel's side: an inotify queue, read whole.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind};

use super::directory_tree::WatchId;
use crate::fs::errno::from_errno;

/// What is watched for.
///
/// Events are added to those that are watched for already, which are the same: a directory is looked for again by watching
/// it again, and the kernel would else forget for a moment what it was watched for, with all that happens then.
const WATCH_MASK: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MASK_ADD)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

/// How long the second half of a rename is waited for: the kernel queues the two apart from one another, and a busy machine
/// may stop who renames between them. What is moved away for good is told that much later.
const RENAME_PAIR_TIMEOUT: Duration = Duration::from_millis(50);

/// Most events that are read before they are looked at.
const MAX_EVENTS_PER_READ: usize = 16_384;

/// Bytes of the queue that are read at once.
const READ_BUFFER_SIZE: usize = 64 << 10;

/// One event.
#[derive(Debug, Clone)]
pub(super) struct InotifyEvent {
    pub(super) dir: WatchId,
    pub(super) flags: ReadFlags,
    pub(super) cookie: u32,
    /// The entry of the directory; `None` for the directory itself, and for a name that is not UTF-8.
    pub(super) name: Option<String>,
}

impl InotifyEvent {
    pub(super) fn has(&self, flags: ReadFlags) -> bool {
        self.flags.intersects(flags)
    }
}

#[derive(Debug)]
pub(super) struct InotifyQueue(OwnedFd);

impl InotifyQueue {
    pub(super) fn new() -> Result<Self, Error> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map(Self).map_err(|errno| match errno {
            Errno::MFILE => {
                let message =
                    "too many change feeds are open on this machine; close some, or raise fs.inotify.max_user_instances";
                Error::new(ErrorKind::Busy, message)
            }
            errno => from_errno(errno),
        })
    }

    /// Watches a directory that is held open.
    ///
    /// The way through `/proc` names the very directory that was opened below the root, whatever stands at its path by
    /// now, so that no link is ever watched through. What is watched then is the directory itself, wherever it is moved.
    pub(super) fn add(&self, dir: BorrowedFd<'_>) -> io::Result<WatchId> {
        inotify::add_watch(&self.0, format!("/proc/self/fd/{}", dir.as_raw_fd()), WATCH_MASK)
    }

    pub(super) fn remove(&self, id: WatchId) {
        // It fails where the directory is gone, and the watch with it.
        let _removed = inotify::remove_watch(&self.0, id);
    }

    /// Waits until there are events, `other` can be read, or the time is over. Says whether `other` can be read.
    pub(super) fn wait(&self, other: Option<BorrowedFd<'_>>, time: Duration) -> bool {
        let timeout = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
        fds.extend(other.as_ref().map(|other| PollFd::new(other, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => fds.get(1).is_some_and(|other| !other.revents().is_empty()),
            Err(Errno::INTR) => false,
            Err(_) => {
                // Memory is short. Looking again at once would not help.
                std::thread::park_timeout(time);
                false
            }
        }
    }

    /// The events that are there, with the other half of each rename where that comes at all.
    pub(super) fn read(&self) -> Vec<InotifyEvent> {
        let mut events = Vec::new();
        self.read_into(&mut events);
        let deadline = Instant::now() + RENAME_PAIR_TIMEOUT;
        while events.len() < MAX_EVENTS_PER_READ && has_unpaired_rename(&events) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.wait(None, left);
            self.read_into(&mut events);
        }
        events
    }

    fn read_into(&self, events: &mut Vec<InotifyEvent>) {
        let mut buffer = Vec::with_capacity(READ_BUFFER_SIZE);
        let mut reader = Reader::new(self.0.as_fd(), buffer.spare_capacity_mut());
        while !reader.is_buffer_empty() || events.len() < MAX_EVENTS_PER_READ {
            match reader.next() {
                Ok(event) => events.push(InotifyEvent {
                    dir: event.wd(),
                    flags: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().and_then(|name| name.to_str().ok()).map(str::to_owned),
                }),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for InotifyQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether something was moved away and it is not known where to.
fn has_unpaired_rename(events: &[InotifyEvent]) -> bool {
    let handle_created: HashSet<_> =
        events.iter().filter(|event| event.has(ReadFlags::MOVED_TO)).map(|event| event.cookie).collect();
    events.iter().any(|event| event.has(ReadFlags::MOVED_FROM) && !handle_created.contains(&event.cookie))
}

//! The inotify queue of a watcher.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind};

use super::watched_dir_tree::WatchDescriptor;
use crate::fs::errno::from_errno;

/// The events that are watched.
///
/// `MASK_ADD` adds the events to those that are already watched, which are the same: a directory is located by watching
/// it again, and without this flag the kernel would forget the old mask for a moment, and lose events.
const WATCH_MASK: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MASK_ADD)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

/// Maximum time to wait for the second half of a rename. The kernel queues the halves separately, and on a busy machine
/// the renaming process may be stopped between them. A move out of the watched tree is reported that much later.
const RENAME_PAIR_TIMEOUT: Duration = Duration::from_millis(50);

/// Maximum number of events that are read before they are processed.
const MAX_EVENTS_PER_READ: usize = 16_384;

/// Size of a single read from the queue, in bytes.
const READ_BUFFER_SIZE: usize = 64 << 10;

/// One inotify event.
#[derive(Debug, Clone)]
pub(super) struct InotifyEvent {
    pub(super) dir: WatchDescriptor,
    pub(super) flags: ReadFlags,
    pub(super) cookie: u32,
    /// The name in the directory; `None` for the directory itself, and for a name that is not UTF-8.
    pub(super) name: Option<String>,
}

impl InotifyEvent {
    pub(super) fn has(&self, flags: ReadFlags) -> bool {
        self.flags.intersects(flags)
    }
}

/// An inotify instance: the kernel's queue of the events of all its watches.
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

    /// Watches an open directory.
    ///
    /// The path through `/proc` names the very directory that was opened below the root, even if another entry is at
    /// its path by now, so that no link is ever followed. The kernel then watches the directory itself, even after a
    /// move.
    pub(super) fn add(&self, dir: BorrowedFd<'_>) -> io::Result<WatchDescriptor> {
        inotify::add_watch(&self.0, format!("/proc/self/fd/{}", dir.as_raw_fd()), WATCH_MASK)
    }

    pub(super) fn remove(&self, id: WatchDescriptor) {
        // This fails if the directory was removed, and the watch with it.
        let _removed = inotify::remove_watch(&self.0, id);
    }

    /// Waits until there are events, `other` is readable, or `time` has passed. Returns whether `other` is readable.
    pub(super) fn wait(&self, other: Option<BorrowedFd<'_>>, time: Duration) -> bool {
        let timeout = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
        fds.extend(other.as_ref().map(|other| PollFd::new(other, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => fds.get(1).is_some_and(|other| !other.revents().is_empty()),
            Err(Errno::INTR) => false,
            Err(_) => {
                // The kernel lacks memory, so polling again at once would not help.
                std::thread::park_timeout(time);
                false
            }
        }
    }

    /// Returns the pending events, with the other half of each rename if it arrives in time.
    pub(super) fn read(&self) -> Vec<InotifyEvent> {
        let mut events = Vec::new();
        self.read_into(&mut events);
        let deadline = Instant::now() + RENAME_PAIR_TIMEOUT;
        while events.len() < MAX_EVENTS_PER_READ && has_unpaired_rename(&events) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                break;
            }
            self.wait(None, remaining);
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

/// Returns whether an entry was moved away without a matching arrival.
fn has_unpaired_rename(events: &[InotifyEvent]) -> bool {
    let arrivals: HashSet<_> =
        events.iter().filter(|event| event.has(ReadFlags::MOVED_TO)).map(|event| event.cookie).collect();
    events.iter().any(|event| event.has(ReadFlags::MOVED_FROM) && !arrivals.contains(&event.cookie))
}

//! Reading what a command prints, in the order of arrival.
//!
//! Two pipes do not tell which of them was written to first, unless one looks at them after each write. So at first each
//! pipe holds one write only, of up to a page: whoever writes the next has to wait until it was read, and the kernel queues
//! the two pipes for us in the order in which they were written to. A command that writes from one thread is thus read in
//! exactly its order. After some thousand writes, by which it is known to print a lot, the pipes are made large, and then
//! they are read by turns.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use vfs_core::TerminalSize;

use crate::process::Standard;
use crate::ready::watched;

/// How many writes are read in their exact order. Each costs a turn of this task, some ten microseconds.
const EXACT_WRITES: u32 = 4096;

/// How much a pipe holds afterwards, where the system allows that much.
const LARGE: usize = 256 * 1024;

/// The most that is read at a time.
const PIECE: usize = 64 * 1024;

/// One of the two outputs. A terminal has the first only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The ends that a command prints to, which are this process' to read.
#[derive(Debug)]
pub(crate) enum Ends {
    Pipes { output: OwnedFd, error: OwnedFd },
    Terminal(OwnedFd),
}

/// Makes the standard descriptors of a command that reads `input`, and the ends of its outputs.
pub(crate) fn pipes(input: OwnedFd) -> io::Result<(Standard, Ends)> {
    let pipe = || -> io::Result<(OwnedFd, OwnedFd)> {
        // Direct: each write is one packet.
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
        // Rounded up to a page.
        rustix::pipe::fcntl_setpipe_size(&read, 1)?;
        Ok((read, write))
    };
    let (output, writes_output) = pipe()?;
    let (error, writes_error) = pipe()?;
    Ok((Standard { input, output: writes_output, error: writes_error }, Ends::Pipes { output, error }))
}

/// Makes a terminal, and the standard descriptors of a command that runs in it.
pub(crate) fn terminal(size: TerminalSize) -> io::Result<(Standard, Ends)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&ours, size)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let input = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
    let (output, error) = (input.try_clone()?, input.try_clone()?);
    rustix::fs::fcntl_setfl(&ours, OFlags::RDWR | OFlags::NONBLOCK)?;
    Ok((Standard { input, output, error }, Ends::Terminal(ours)))
}

/// How the pipes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// One write at a time, so many so far.
    Exact(u32),
    /// As much as is there, by turns.
    Turns,
}

/// The outputs of a command.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// Queues what can be read, the first first.
    ready: AsyncFd<OwnedFd>,
    sources: [Option<OwnedFd>; 2],
    order: Order,
    /// A source whose writers are gone: it is read to its end at once, since nothing will tell of it again.
    ending: Option<Stream>,
    buffer: Box<[u8]>,
}

impl Outputs {
    /// Needs a runtime with its IO driver.
    pub(crate) fn new(ends: Ends) -> io::Result<Self> {
        let ready = epoll::create(CreateFlags::CLOEXEC)?;
        let (sources, order) = match ends {
            Ends::Pipes { output, error } => ([Some(output), Some(error)], Order::Exact(0)),
            Ends::Terminal(ours) => ([Some(ours), None], Order::Turns),
        };
        let outputs = Self {
            ready: watched(ready, Interest::READABLE)?,
            sources,
            order,
            ending: None,
            // A write that was queued as a packet is read whole or loses its end: there is always room for one of a page.
            buffer: vec![0; PIECE + rustix::param::page_size()].into_boxed_slice(),
        };
        outputs.each(|ready, source, stream, flags| epoll::add(ready, source, stream.data(), flags))?;
        Ok(outputs)
    }

    fn each(
        &self,
        set: impl Fn(BorrowedFd<'_>, BorrowedFd<'_>, Stream, EventFlags) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        let edge = if self.order == Order::Turns { EventFlags::empty() } else { EventFlags::ET };
        for (source, stream) in self.sources.iter().zip([Stream::Stdout, Stream::Stderr]) {
            if let Some(source) = source {
                set(self.ready.get_ref().as_fd(), source.as_fd(), stream, EventFlags::IN | edge)?;
            }
        }
        Ok(())
    }

    /// Whether all have come to their end.
    pub(crate) fn are_closed(&self) -> bool {
        self.sources.iter().all(Option::is_none)
    }

    /// Waits for the next piece. `None` is the end of all. A call that is dropped loses nothing.
    pub(crate) async fn read(&mut self) -> io::Result<Option<(Stream, &[u8])>> {
        let (stream, length) = loop {
            if self.are_closed() {
                return Ok(None);
            }
            if let Some(piece) = self.take()? {
                break piece;
            }
            // Taking again before it is cleared: something may have arrived between.
            let mut guard = self.ready.readable().await?;
            if guard.get_inner().has_none()? {
                guard.clear_ready();
            }
        };
        Ok(Some((stream, &self.buffer[..length])))
    }

    /// The next piece, where there is one by now.
    pub(crate) fn try_read(&mut self) -> io::Result<Option<(Stream, &[u8])>> {
        Ok(self.take()?.map(|(stream, length)| (stream, &self.buffer[..length])))
    }

    /// Reads a piece into the buffer.
    fn take(&mut self) -> io::Result<Option<(Stream, usize)>> {
        loop {
            let stream = match self.ending {
                Some(stream) => stream,
                None => match self.next_ready()? {
                    Some((stream, has_ended)) => {
                        if has_ended && self.order != Order::Turns {
                            self.ending = Some(stream);
                        }
                        stream
                    }
                    None => return Ok(None),
                },
            };
            match self.read_from(stream)? {
                Some(0) => self.close(stream)?,
                Some(length) => {
                    self.count()?;
                    return Ok(Some((stream, length)));
                }
                None => self.ending = None,
            }
        }
    }

    /// The first that can be read, and whether its writers are gone.
    fn next_ready(&self) -> io::Result<Option<(Stream, bool)>> {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 1];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = match epoll::wait(self.ready.get_ref(), &mut events[..], Some(&now)) {
            Err(Errno::INTR) => 0,
            other => other?,
        };
        let [Event { flags, data }] = events;
        let stream = if data.u64() == Stream::Stdout.data().u64() { Stream::Stdout } else { Stream::Stderr };
        Ok((count > 0).then(|| (stream, flags.intersects(EventFlags::HUP | EventFlags::ERR))))
    }

    /// How much there was, zero at the end.
    fn read_from(&mut self, stream: Stream) -> io::Result<Option<usize>> {
        let Some(source) = &self.sources[stream as usize] else { return Ok(Some(0)) };
        let mut length = 0;
        while length < PIECE {
            match rustix::io::read(source, &mut self.buffer[length..]) {
                Ok(0) => break,
                Ok(read) => {
                    length += read;
                    if self.order != Order::Turns {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if length == 0 => return Ok(None),
                Err(Errno::AGAIN) => break,
                // The end of a terminal that nobody has open any longer.
                Err(Errno::IO) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Some(length))
    }

    fn close(&mut self, stream: Stream) -> io::Result<()> {
        if let Some(source) = self.sources[stream as usize].take() {
            epoll::delete(self.ready.get_ref(), &source)?;
        }
        self.ending = None;
        Ok(())
    }

    /// Changes to larger pieces once there were many.
    fn count(&mut self) -> io::Result<()> {
        match self.order {
            Order::Exact(writes) if writes < EXACT_WRITES => self.order = Order::Exact(writes + 1),
            Order::Exact(_) => {
                self.order = Order::Turns;
                self.each(|ready, source, stream, flags| {
                    // Where the user has too many large pipes already, this one stays small, and slower.
                    let _size = rustix::pipe::fcntl_setpipe_size(source, LARGE);
                    epoll::modify(ready, source, stream.data(), flags)
                })?;
            }
            Order::Turns => {}
        }
        Ok(())
    }
}

impl Stream {
    fn data(self) -> EventData {
        EventData::new_u64(self as u64)
    }
}

trait Readiness {
    /// Whether nothing is queued.
    fn has_none(&self) -> io::Result<bool>;
}

impl Readiness for OwnedFd {
    fn has_none(&self) -> io::Result<bool> {
        let mut sources = [rustix::event::PollFd::new(self, rustix::event::PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match rustix::event::poll(&mut sources, Some(&now)) {
            Err(Errno::INTR) => Ok(false),
            other => Ok(other? == 0),
        }
    }
}

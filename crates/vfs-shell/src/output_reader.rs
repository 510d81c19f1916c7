//! Reader of a command's output pipes or terminal, in the order of arrival.
//!
//! Two pipes do not reveal which of them was written to first, unless the reader checks after each write. So at first each
//! pipe holds a single write of up to a page: the next write blocks until the first was read, and epoll queues the two pipes
//! in the order of their writes. The output of a command that writes from one thread is thus read in exactly its order.
//! After some thousand writes the pipes get a large buffer and are read in turn.

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
use vfs_core::shell::TerminalSize;

use crate::async_fd::register;
use crate::process::StandardFds;

/// Number of writes that are read in their exact order. Each costs a wakeup of the task, about ten microseconds.
const MAX_ORDERED_WRITES: u32 = 4096;

/// Capacity in bytes that pipes get afterwards, if the system permits.
const LARGE_PIPE_CAPACITY: usize = 256 * 1024;

/// Upper bound on the bytes of one chunk.
const CHUNK_CAPACITY: usize = 64 * 1024;

/// One of the two outputs. A terminal has `Stdout` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

/// Ends of the output pipes, or of the terminal, that this process reads.
#[derive(Debug)]
pub(crate) enum OutputReadEnds {
    Pipes { output: OwnedFd, error: OwnedFd },
    Terminal(OwnedFd),
}

/// Creates the standard descriptors of a command that reads `input`, and the ends to read its output from.
pub(crate) fn pipes(input: OwnedFd) -> io::Result<(StandardFds, OutputReadEnds)> {
    let pipe = || -> io::Result<(OwnedFd, OwnedFd)> {
        // `O_DIRECT` makes each write a packet of its own.
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT)?;
        rustix::fs::fcntl_setfl(&read, OFlags::NONBLOCK)?;
        // The kernel rounds this up to one page.
        rustix::pipe::fcntl_setpipe_size(&read, 1)?;
        Ok((read, write))
    };
    let (output, output_writer) = pipe()?;
    let (error, error_writer) = pipe()?;
    Ok((StandardFds { input, output: output_writer, error: error_writer }, OutputReadEnds::Pipes { output, error }))
}

/// Opens a terminal and creates the standard descriptors of a command that runs in it.
pub(crate) fn terminal(size: TerminalSize) -> io::Result<(StandardFds, OutputReadEnds)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&ours, size)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let input = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
    let (output, error) = (input.try_clone()?, input.try_clone()?);
    rustix::fs::fcntl_setfl(&ours, OFlags::RDWR | OFlags::NONBLOCK)?;
    Ok((StandardFds { input, output, error }, OutputReadEnds::Terminal(ours)))
}

/// How the pipes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipeReadOrder {
    /// One write at a time; the number counts the writes read so far.
    Arrival(u32),
    /// As many bytes as there are, from each pipe in turn.
    RoundRobin,
}

/// Reader of all outputs of one command.
#[derive(Debug)]
pub(crate) struct OutputReader {
    /// Epoll instance that queues the readable sources, oldest first.
    ready: AsyncFd<OwnedFd>,
    sources: [Option<OwnedFd>; 2],
    order: PipeReadOrder,
    /// Source whose writers have closed it. It is read to its end at once, because an edge-triggered epoll reports it only once.
    ending: Option<OutputStream>,
    buffer: Box<[u8]>,
}

impl OutputReader {
    /// Registers `ends` with the runtime. Needs a runtime with its IO driver.
    pub(crate) fn new(ends: OutputReadEnds) -> io::Result<Self> {
        let ready = epoll::create(CreateFlags::CLOEXEC)?;
        let (sources, order) = match ends {
            OutputReadEnds::Pipes { output, error } => ([Some(output), Some(error)], PipeReadOrder::Arrival(0)),
            OutputReadEnds::Terminal(ours) => ([Some(ours), None], PipeReadOrder::RoundRobin),
        };
        let reader = Self {
            ready: register(ready, Interest::READABLE)?,
            sources,
            order,
            ending: None,
            // The tail of a packet that does not fit is lost, so there is always room for one more page.
            buffer: vec![0; CHUNK_CAPACITY + rustix::param::page_size()].into_boxed_slice(),
        };
        reader.for_each_source(|ready, source, stream, flags| epoll::add(ready, source, stream.data(), flags))?;
        Ok(reader)
    }

    fn for_each_source(
        &self,
        update: impl Fn(BorrowedFd<'_>, BorrowedFd<'_>, OutputStream, EventFlags) -> rustix::io::Result<()>,
    ) -> io::Result<()> {
        let edge = if self.order == PipeReadOrder::RoundRobin { EventFlags::empty() } else { EventFlags::ET };
        for (source, stream) in self.sources.iter().zip([OutputStream::Stdout, OutputStream::Stderr]) {
            if let Some(source) = source {
                update(self.ready.get_ref().as_fd(), source.as_fd(), stream, EventFlags::IN | edge)?;
            }
        }
        Ok(())
    }

    /// Returns whether all outputs have reached their end.
    pub(crate) fn are_closed(&self) -> bool {
        self.sources.iter().all(Option::is_none)
    }

    /// Waits for the next chunk; `None` is the end of all outputs. Cancel safe.
    pub(crate) async fn read(&mut self) -> io::Result<Option<(OutputStream, &[u8])>> {
        let (stream, length) = loop {
            if self.are_closed() {
                return Ok(None);
            }
            if let Some(chunk) = self.take()? {
                break chunk;
            }
            // Check again before the readiness is cleared: a write may have arrived meanwhile.
            let mut guard = self.ready.readable().await?;
            if is_idle(guard.get_inner())? {
                guard.clear_ready();
            }
        };
        Ok(Some((stream, &self.buffer[..length])))
    }

    /// Returns the next chunk if one is available now.
    pub(crate) fn try_read(&mut self) -> io::Result<Option<(OutputStream, &[u8])>> {
        Ok(self.take()?.map(|(stream, length)| (stream, &self.buffer[..length])))
    }

    /// Reads a chunk into the buffer.
    fn take(&mut self) -> io::Result<Option<(OutputStream, usize)>> {
        loop {
            let stream = match self.ending {
                Some(stream) => stream,
                None => match self.next_ready()? {
                    Some((stream, has_ended)) => {
                        if has_ended && self.order != PipeReadOrder::RoundRobin {
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
                    self.count_chunk()?;
                    return Ok(Some((stream, length)));
                }
                None => self.ending = None,
            }
        }
    }

    /// Returns the first readable stream, and whether its writers have closed it.
    fn next_ready(&self) -> io::Result<Option<(OutputStream, bool)>> {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 1];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = match epoll::wait(self.ready.get_ref(), &mut events[..], Some(&now)) {
            Err(Errno::INTR) => 0,
            other => other?,
        };
        let [Event { flags, data }] = events;
        let stream =
            if data.u64() == OutputStream::Stdout.data().u64() { OutputStream::Stdout } else { OutputStream::Stderr };
        Ok((count > 0).then(|| (stream, flags.intersects(EventFlags::HUP | EventFlags::ERR))))
    }

    /// Reads from `stream` and returns the number of bytes; zero is the end, `None` means nothing to read.
    fn read_from(&mut self, stream: OutputStream) -> io::Result<Option<usize>> {
        let Some(source) = &self.sources[stream as usize] else { return Ok(Some(0)) };
        let mut length = 0;
        while length < CHUNK_CAPACITY {
            match rustix::io::read(source, &mut self.buffer[length..]) {
                Ok(0) => break,
                Ok(read) => {
                    length += read;
                    if self.order != PipeReadOrder::RoundRobin {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if length == 0 => return Ok(None),
                Err(Errno::AGAIN) => break,
                // A terminal that no process has open any longer reports `EIO`.
                Err(Errno::IO) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Some(length))
    }

    fn close(&mut self, stream: OutputStream) -> io::Result<()> {
        if let Some(source) = self.sources[stream as usize].take() {
            epoll::delete(self.ready.get_ref(), &source)?;
        }
        self.ending = None;
        Ok(())
    }

    /// Counts a chunk, and changes to large pipes after [`MAX_ORDERED_WRITES`].
    fn count_chunk(&mut self) -> io::Result<()> {
        match self.order {
            PipeReadOrder::Arrival(writes) if writes < MAX_ORDERED_WRITES => {
                self.order = PipeReadOrder::Arrival(writes + 1)
            }
            PipeReadOrder::Arrival(_) => {
                self.order = PipeReadOrder::RoundRobin;
                self.for_each_source(|ready, source, stream, flags| {
                    // If the user's limit of pipe memory is reached, the pipe stays small, and slower.
                    let _size = rustix::pipe::fcntl_setpipe_size(source, LARGE_PIPE_CAPACITY);
                    epoll::modify(ready, source, stream.data(), flags)
                })?;
            }
            PipeReadOrder::RoundRobin => {}
        }
        Ok(())
    }
}

impl OutputStream {
    fn data(self) -> EventData {
        EventData::new_u64(self as u64)
    }
}

/// Returns whether the epoll instance has no queued event.
fn is_idle(epoll: &OwnedFd) -> io::Result<bool> {
    let mut sources = [rustix::event::PollFd::new(epoll, rustix::event::PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    match rustix::event::poll(&mut sources, Some(&now)) {
        Err(Errno::INTR) => Ok(false),
        other => Ok(other? == 0),
    }
}

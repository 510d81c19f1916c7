//! Writer of a command's terminal input.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::async_fd::register;

/// Control-D, which ends the input of a program that reads lines.
const END_OF_INPUT: u8 = 4;

/// Text that is written to a terminal as fast as the terminal takes it, followed by an end of input.
#[derive(Debug)]
pub(crate) struct PtyInput {
    terminal: AsyncFd<OwnedFd>,
    bytes: Vec<u8>,
    written: usize,
}

impl PtyInput {
    pub(crate) fn new(terminal: OwnedFd, text: &str) -> io::Result<Self> {
        let mut bytes = text.as_bytes().to_vec();
        if !text.is_empty() && !text.ends_with('\n') {
            // Within a line, the first Control-D only hands over the unfinished line.
            bytes.push(END_OF_INPUT);
        }
        bytes.push(END_OF_INPUT);
        Ok(Self { terminal: register(terminal, Interest::WRITABLE)?, bytes, written: 0 })
    }

    /// Writes the rest of the text. Returns when all is written or the terminal is closed. Cancel safe.
    pub(crate) async fn write_all(&mut self) {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            let write = |terminal: &OwnedFd| Ok(rustix::io::write(terminal, rest)?);
            match self.terminal.async_io(Interest::WRITABLE, write).await {
                Ok(written) => self.written += written,
                // The terminal is closed. A command need not read its input.
                Err(_) => return,
            }
        }
    }
}

//! What is typed at a command's terminal.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::ready::watched;

/// Ends the input of a program that reads lines; Control-D on a keyboard.
const END: u8 = 4;

/// Text that is written to a terminal as it takes it, and the end after it.
#[derive(Debug)]
pub(crate) struct Typing {
    terminal: AsyncFd<OwnedFd>,
    bytes: Vec<u8>,
    typed: usize,
}

impl Typing {
    pub(crate) fn new(terminal: OwnedFd, text: &str) -> io::Result<Self> {
        let mut bytes = text.as_bytes().to_vec();
        if !text.is_empty() && !text.ends_with('\n') {
            // Within a line it only hands over what was typed so far.
            bytes.push(END);
        }
        bytes.push(END);
        Ok(Self { terminal: watched(terminal, Interest::WRITABLE)?, bytes, typed: 0 })
    }

    /// Types the rest, and is ready once that is done or nobody takes it any longer. A call that is dropped loses nothing.
    pub(crate) async fn finish(&mut self) {
        while let Some(rest) = self.bytes.get(self.typed..).filter(|rest| !rest.is_empty()) {
            let write = |terminal: &OwnedFd| Ok(rustix::io::write(terminal, rest)?);
            match self.terminal.async_io(Interest::WRITABLE, write).await {
                Ok(written) => self.typed += written,
                // The terminal is closed. A command need not read what it is given.
                Err(_) => return,
            }
        }
    }
}

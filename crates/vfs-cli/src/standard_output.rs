//! Buffered standard output, with colours on a terminal only.

use std::future::pending;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::standard_streams;

/// Capacity of the output buffer for pipes and files in bytes, 64 KiB.
const BUFFER_CAPACITY: usize = 64 << 10;

/// Locked standard output. Bytes are written unchanged, escape sequences included.
#[derive(Debug)]
pub(crate) struct StandardOutput {
    writer: BufWriter<StdoutLock<'static>>,
    /// The colours of search results.
    pub(crate) palette: Palette,
}

/// The colours of search results: those of ripgrep, or none if the output is not a terminal or `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Palette {
    pub(crate) path: Style,
    pub(crate) line: Style,
    pub(crate) matched: Style,
}

impl Palette {
    fn ripgrep() -> Self {
        Self {
            path: AnsiColor::Magenta.on_default(),
            line: AnsiColor::Green.on_default(),
            matched: AnsiColor::Red.on_default().bold(),
        }
    }
}

impl StandardOutput {
    /// Locks standard output.
    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        // On a terminal, standard output is line-buffered already.
        let buffer = if stdout.is_terminal() { 0 } else { BUFFER_CAPACITY };
        // Even if the environment forces colours, scripts get none.
        let palette = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Palette::default(),
            _ if !stdout.is_terminal() => Palette::default(),
            _ => Palette::ripgrep(),
        };
        Self { writer: BufWriter::with_capacity(buffer, stdout.lock()), palette }
    }

    /// Returns whether texts are printed in colours.
    pub(crate) fn has_colours(&self) -> bool {
        self.palette != Palette::default()
    }

    /// Writes one value as a line of JSON.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self, value)?;
        self.write_all(b"\n")
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        standard_streams::check_stdout()?;
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Waits until the reader of standard output has closed it, and returns the error of the next write.
///
/// Never returns if standard output has no reader to wait for, such as a file.
pub(crate) async fn wait_until_closed() -> io::Error {
    #[allow(deprecated, reason = "the replacement is not in the oldest supported tokio")]
    let Ok(stdout) = AsyncFd::with_interest(io::stdout(), Interest::WRITABLE) else { return pending().await };
    loop {
        let Ok(mut event) = stdout.ready(Interest::WRITABLE | Interest::ERROR).await else { return pending().await };
        if event.ready().is_error() || event.ready().is_write_closed() {
            return io::ErrorKind::BrokenPipe.into();
        }
        // The descriptor is only writable; wait for the next event.
        event.clear_ready();
    }
}

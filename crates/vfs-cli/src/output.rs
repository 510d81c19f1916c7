//! Standard output: locked once, buffered, coloured on a terminal only.

use std::future::pending;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::streams;

/// How much is gathered before it is written to a pipe or file.
const BUFFER: usize = 64 << 10;

/// The one writer of a command. Bytes pass through it as they are: content is never stripped of anything.
#[derive(Debug)]
pub(crate) struct Output {
    writer: BufWriter<StdoutLock<'static>>,
    /// The colours to write in.
    pub(crate) palette: Palette,
}

/// The colours of a search, as ripgrep has them; none where the output is not a terminal or `NO_COLOR` is set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Palette {
    pub(crate) path: Style,
    pub(crate) line: Style,
    pub(crate) matched: Style,
}

impl Palette {
    fn coloured() -> Self {
        Self {
            path: AnsiColor::Magenta.on_default(),
            line: AnsiColor::Green.on_default(),
            matched: AnsiColor::Red.on_default().bold(),
        }
    }
}

impl Output {
    /// Locks standard output.
    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        // On a terminal lines show as they come: standard output is line-buffered by itself.
        let buffer = if stdout.is_terminal() { 0 } else { BUFFER };
        // Whatever the environment forces: what a script reads has no colours.
        let palette = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Palette::default(),
            _ if !stdout.is_terminal() => Palette::default(),
            _ => Palette::coloured(),
        };
        Self { writer: BufWriter::with_capacity(buffer, stdout.lock()), palette }
    }

    /// Writes one value as a line of JSON.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self, value)?;
        self.write_all(b"\n")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        streams::check_stdout()?;
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Waits until the reader of standard output is gone, and returns the error that the next write would meet.
///
/// Never returns where that cannot be told, as for a file.
pub(crate) async fn wait_until_closed() -> io::Error {
    #[allow(deprecated, reason = "standard output stays what it is, and what replaces this is new in tokio")]
    let Ok(stdout) = AsyncFd::with_interest(io::stdout(), Interest::WRITABLE) else { return pending().await };
    loop {
        let Ok(mut event) = stdout.ready(Interest::WRITABLE | Interest::ERROR).await else { return pending().await };
        if event.ready().is_error() || event.ready().is_write_closed() {
            return io::ErrorKind::BrokenPipe.into();
        }
        // There is room for more, which writes find out by themselves.
        event.clear_ready();
    }
}

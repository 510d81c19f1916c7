//! Standard output: locked once, buffered, coloured on a terminal only.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

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
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

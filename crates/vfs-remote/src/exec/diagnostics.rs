//! Diagnostics of a failed client process, and their conversion to errors.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;

use vfs_core::{Error, ErrorKind};

/// Maximum size of a client's text in an error message, in bytes.
const MAX_EXCERPT_BYTES: usize = 240;

/// Converts the diagnostics of a client to an error.
pub(super) type ErrorClassifier = fn(&ClientDiagnostics) -> Error;

/// Diagnostics of a client that gave no complete response.
#[derive(Debug, Clone)]
pub(super) struct ClientDiagnostics {
    text: String,
    /// Whether the script was started.
    pub(super) started: bool,
    /// Whether the timeout passed before the script was started.
    pub(super) late: bool,
    /// The exit code of the client, if it exited by itself and this process has waited for it.
    pub(super) exit_code: Option<i32>,
}

impl ClientDiagnostics {
    /// Takes the text of `stderr`, or of `stdout` if that is empty.
    pub(super) fn new(stderr: &[u8], stdout: &[u8], started: bool, late: bool) -> Self {
        let text = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
        Self { text: String::from_utf8_lossy(text).into_owned(), started, late, exit_code: None }
    }

    /// Adds the exit code of the client.
    pub(super) fn with_exit_code(self, exit_code: Option<i32>) -> Self {
        Self { exit_code, ..self }
    }

    /// Returns whether the text contains one of `phrases`, in any case.
    pub(super) fn has(&self, phrases: &[&str]) -> bool {
        let text = self.text.to_lowercase();
        phrases.iter().any(|phrase| text.contains(phrase))
    }

    /// Returns an error of `kind` with the message `meaning`, followed by an excerpt of the client's text.
    pub(super) fn error(&self, kind: ErrorKind, meaning: impl fmt::Display) -> Error {
        let excerpt = self.excerpt();
        let message =
            if excerpt.is_empty() { meaning.to_string() } else { format!("{meaning} (it printed: {excerpt})") };
        Error::new(kind, message).with_source(ClientOutputError(one_line(&self.text, 2_000)))
    }

    /// Returns the error for a response that broke off, if the script was started.
    pub(super) fn broken_off(&self) -> Option<Error> {
        self.started.then(|| self.incomplete())
    }

    /// Returns the error for a script that was started and whose response is incomplete.
    pub(super) fn incomplete(&self) -> Error {
        self.error(
            ErrorKind::Unavailable,
            "the connection was lost, or the command's processes were killed, before its response was complete; \
             its effects are unknown: check them before running it again",
        )
    }

    /// Returns the last line of the text, without paths of this machine.
    fn excerpt(&self) -> String {
        let line = self.text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        let words = line.split_whitespace().map(|word| if word.contains(['/', '\\']) { "…" } else { word });
        one_line(&words.collect::<Vec<_>>().join(" "), MAX_EXCERPT_BYTES)
    }
}

/// The error output of a client, as the source of an error.
#[derive(Debug)]
struct ClientOutputError(String);

impl fmt::Display for ClientOutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClientOutputError {}

/// Returns the beginning of `text` on one line.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let mut line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() > max {
        line.truncate(line.floor_char_boundary(max));
        line.push('…');
    }
    line
}

/// Returns the error for a program that could not be started.
pub(super) fn not_started(program: &OsStr, error: io::Error) -> Error {
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!("the program `{name}` is not on this machine: install it, or name another"),
        io::ErrorKind::PermissionDenied => format!("the program `{name}` may not be run on this machine"),
        _ => format!("the program `{name}` could not be started"),
    };
    Error::new(ErrorKind::Unavailable, message).with_source(error)
}

/// Returns the error for a place that could not pass the input to the script.
pub(super) fn no_input() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the place cannot hand standard input to a command: its `dd` is missing or lacks `iflag=fullblock`; \
         the command was ended",
    )
}

/// Returns the error for outputs whose final records are invalid.
pub(super) fn broken_answer() -> Error {
    Error::new(ErrorKind::Unavailable, "the answer of the place does not say how the command ended")
}

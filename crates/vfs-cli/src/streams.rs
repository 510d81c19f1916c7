//! Standard input and output, which were closed or not when this process started.

use std::io::{self, Read, StdinLock};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Failure;

static IS_INPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static IS_OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// The standard library opens `/dev/null` for a closed descriptor before `main`, as others do who mean an empty input.
// Two system calls and two atomics, which need nothing of the standard library.
#[ctor::ctor(unsafe)]
fn note_what_is_closed() {
    let closed = vfs_shell::closed_streams();
    IS_INPUT_CLOSED.store(closed.input, Ordering::Relaxed);
    IS_OUTPUT_CLOSED.store(closed.output, Ordering::Relaxed);
}

/// Standard input, unless it is closed: what was to be read did not get here then, and is not empty.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed.
pub(crate) fn stdin() -> Result<StdinLock<'static>, Failure> {
    check_stdin()?;
    Ok(io::stdin().lock())
}

/// Fails as [`stdin`] does.
pub(crate) fn check_stdin() -> Result<(), Failure> {
    if !IS_INPUT_CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let message = "it is closed; redirect it from the content, or from /dev/null for none";
    Err(Failure::Input(io::Error::new(io::ErrorKind::NotConnected, message)))
}

/// All of standard input as text.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed, cannot be read, or is not UTF-8.
pub(crate) fn text() -> Result<String, Failure> {
    let mut text = String::new();
    stdin()?.read_to_string(&mut text).map_err(Failure::Input)?;
    Ok(text)
}

/// Fails where what is written to standard output would get nowhere.
pub(crate) fn check_stdout() -> io::Result<()> {
    if !IS_OUTPUT_CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::NotConnected, "it is closed; redirect it to a file, or to /dev/null"))
}

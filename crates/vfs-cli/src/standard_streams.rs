//! Standard input and output, with errors for closed descriptors.

use std::io::{self, Read, StdinLock};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Failure;

static IS_INPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static IS_OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Records which streams are closed. `main` is too late: by then the standard library has opened `/dev/null` in their place, which
/// is also how callers pass an empty input.
// The function makes two system calls and two atomic stores, so it does not depend on an initialised standard library.
#[ctor::ctor(unsafe)]
fn record_closed_streams() {
    let closed = vfs_shell::closed_streams();
    IS_INPUT_CLOSED.store(closed.input, Ordering::Relaxed);
    IS_OUTPUT_CLOSED.store(closed.output, Ordering::Relaxed);
}

/// Locks standard input. A closed standard input is an error and not an empty input.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed.
pub(crate) fn stdin() -> Result<StdinLock<'static>, Failure> {
    check_stdin()?;
    Ok(io::stdin().lock())
}

/// Fails if standard input is closed, as [`stdin`] does.
pub(crate) fn check_stdin() -> Result<(), Failure> {
    if !IS_INPUT_CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let message = "the descriptor is closed; redirect it from a file, or from /dev/null for an empty input";
    Err(Failure::Input(io::Error::new(io::ErrorKind::NotConnected, message)))
}

/// Reads standard input to its end.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed, cannot be read, or is not UTF-8.
pub(crate) fn read_text() -> Result<String, Failure> {
    let mut text = String::new();
    stdin()?.read_to_string(&mut text).map_err(Failure::Input)?;
    Ok(text)
}

/// Fails if standard output is closed.
pub(crate) fn check_stdout() -> io::Result<()> {
    if !IS_OUTPUT_CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::NotConnected, "the descriptor is closed; redirect it to a file, or to /dev/null"))
}

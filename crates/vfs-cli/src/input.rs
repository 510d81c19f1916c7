//! Standard input.

use std::io::{self, Read, StdinLock};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Failure;

/// Whether standard input was closed when this process started.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The standard library opens `/dev/null` for a closed descriptor before `main`, as others do who mean an empty input.
// One system call and an atomic, which need nothing of the standard library.
#[ctor::ctor(unsafe)]
fn note_whether_closed() {
    WAS_CLOSED.store(vfs_shell::is_standard_input_closed(), Ordering::Relaxed);
}

/// Standard input, unless it is closed: what was to be read did not get here then, and is not empty.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed.
pub(crate) fn stdin() -> Result<StdinLock<'static>, Failure> {
    if WAS_CLOSED.load(Ordering::Relaxed) {
        let message = "it is closed; redirect it from the content, or from /dev/null for none";
        return Err(Failure::Input(io::Error::new(io::ErrorKind::NotConnected, message)));
    }
    Ok(io::stdin().lock())
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

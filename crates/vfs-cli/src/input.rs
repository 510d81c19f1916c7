//! Standard input.

use std::io::{self, Read, StdinLock};

use rustix::fs::{OFlags, fcntl_getfl, fstat, major, minor};

use crate::exit::Failure;

/// Standard input, unless it is closed: what was to be read did not get here then, and is not empty.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed.
pub(crate) fn stdin() -> Result<StdinLock<'static>, Failure> {
    let stdin = io::stdin();
    if is_closed(&stdin) {
        let message = "it is closed; redirect it from the content, or from /dev/null for none";
        return Err(Failure::Input(io::Error::new(io::ErrorKind::NotConnected, message)));
    }
    Ok(stdin.lock())
}

/// Returns whether standard input was closed when the process started: the standard library opens `/dev/null` in its place, to
/// read and write, which a shell opens to read.
fn is_closed(stdin: &io::Stdin) -> bool {
    const NULL: (u32, u32) = (1, 3);
    let is_null = fstat(stdin).is_ok_and(|status| (major(status.st_rdev), minor(status.st_rdev)) == NULL);
    is_null && fcntl_getfl(stdin).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDWR)
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

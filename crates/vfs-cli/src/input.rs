//! Standard input.

use std::io::{self, Read, StdinLock};

use vfs_shell::is_standard_input_closed;

use crate::exit::Failure;

/// Standard input, unless it is closed: what was to be read did not get here then, and is not empty.
///
/// # Errors
///
/// [`Failure::Input`] if it is closed.
pub(crate) fn stdin() -> Result<StdinLock<'static>, Failure> {
    if is_standard_input_closed() {
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

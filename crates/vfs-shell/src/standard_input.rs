//! Standard input of this process.

use rustix::io::{Errno, fcntl_getfd};
use rustix::stdio::stdin;

/// Returns whether standard input is closed, so that what was to be read did not get here.
///
/// # Behaviour
///
/// The standard library opens `/dev/null` in place of a descriptor that is closed, before `main`: only what runs before that,
/// such as the constructors of the `ctor` crate, finds it closed. The one system call that this makes may be made there.
///
/// ```
/// assert!(!vfs_shell::is_standard_input_closed(), "it was closed at the start at most");
/// ```
pub fn is_standard_input_closed() -> bool {
    fcntl_getfd(stdin()).is_err_and(|errno| errno == Errno::BADF)
}

//! Which standard streams of this process are closed.

use rustix::io::{Errno, fcntl_getfd};
use rustix::stdio::{stdin, stdout};

/// Closed standard streams of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedStandardStreams {
    /// Whether standard input is closed.
    pub input: bool,
    /// Whether standard output is closed.
    pub output: bool,
}

/// Returns which standard streams are closed.
///
/// # Behaviour
///
/// Before `main`, the standard library opens `/dev/null` in place of each closed descriptor. Only code that runs before it, such as
/// a constructor of the `ctor` crate, sees a closed stream. This function makes two system calls and is safe to call there.
///
/// ```
/// let closed = vfs_shell::closed_streams();
/// assert!(!closed.input && !closed.output, "in main, each stream is open");
/// ```
pub fn closed_streams() -> ClosedStandardStreams {
    let is_closed = |flags: Result<_, Errno>| flags.is_err_and(|errno| errno == Errno::BADF);
    ClosedStandardStreams { input: is_closed(fcntl_getfd(stdin())), output: is_closed(fcntl_getfd(stdout())) }
}

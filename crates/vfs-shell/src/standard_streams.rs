//! The standard streams of this process.

use rustix::io::{Errno, fcntl_getfd};
use rustix::stdio::{stdin, stdout};

/// Which standard streams are closed, so that what was to be read or written does not get there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedStreams {
    /// Standard input.
    pub input: bool,
    /// Standard output.
    pub output: bool,
}

/// Returns which standard streams are closed.
///
/// # Behaviour
///
/// The standard library opens `/dev/null` in place of a descriptor that is closed, before `main`: only what runs before that,
/// such as the constructors of the `ctor` crate, finds it closed. The two system calls that this makes may be made there.
///
/// ```
/// let closed = vfs_shell::closed_streams();
/// assert!(!closed.input && !closed.output, "they were closed at the start at most");
/// ```
pub fn closed_streams() -> ClosedStreams {
    let is_closed = |flags: Result<_, Errno>| flags.is_err_and(|errno| errno == Errno::BADF);
    ClosedStreams { input: is_closed(fcntl_getfd(stdin())), output: is_closed(fcntl_getfd(stdout())) }
}

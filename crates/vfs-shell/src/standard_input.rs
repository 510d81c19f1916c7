//! Standard input of this process.

use std::io;

use rustix::fs::{OFlags, fcntl_getfl, fstat, major, minor};

/// Returns whether standard input was closed when this process started, so that what was to be read did not get here.
///
/// The standard library opens `/dev/null` in place of a closed descriptor, to read and write. A shell opens it to read, and so does
/// [`Stdio::null`](std::process::Stdio::null), so that an empty input is told from none.
///
/// ```
/// if vfs_shell::is_standard_input_closed() {
///     eprintln!("nothing can be read; redirect standard input from the content");
/// }
/// ```
pub fn is_standard_input_closed() -> bool {
    const NULL: (u32, u32) = (1, 3);
    let stdin = io::stdin();
    let is_null = fstat(&stdin).is_ok_and(|status| (major(status.st_rdev), minor(status.st_rdev)) == NULL);
    is_null && fcntl_getfl(&stdin).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDWR)
}

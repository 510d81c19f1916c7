//! What bubblewrap does when its processes are asked to end: nothing.
//!
//! Of a command that is asked to end, all processes are, and bubblewrap's are among them. Were they to heed that, the kernel
//! would kill the command at once, which would have had no time to end in order. So they ignore it, and the helper, which
//! becomes the command, takes that back.
#![expect(unsafe_code, reason = "no crate sets what a signal does without a handler")]

use std::io;

/// The signals by which processes are asked to end.
const ASKING: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];

/// This process, and the programs that it becomes, are not ended by being asked to. A system call for each signal.
pub(crate) fn ignore() -> io::Result<()> {
    set(libc::SIG_IGN)
}

/// They are again.
pub(crate) fn heed() -> io::Result<()> {
    set(libc::SIG_DFL)
}

fn set(disposition: libc::sighandler_t) -> io::Result<()> {
    for signal in ASKING {
        // SAFETY: no handler is set, so that nothing runs when a signal comes; `signal` may be called between `fork` and
        // `exec`.
        if unsafe { libc::signal(signal, disposition) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

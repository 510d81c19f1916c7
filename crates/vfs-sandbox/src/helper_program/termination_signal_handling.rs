//! Termination signals, which bubblewrap ignores and commands receive.
//!
//! A termination signal is sent to all processes of a command, including those of bubblewrap. If it ended bubblewrap,
//! the kernel would kill the command before it could clean up. Bubblewrap therefore ignores the signals, and the
//! helper, which becomes the command, restores the default.
#![expect(unsafe_code, reason = "no crate sets what a signal does without a handler")]

use std::io;

/// The signals that request termination.
const TERMINATION: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];

/// Ignores termination signals in this process and the programs that it becomes. Makes only system calls.
pub(crate) fn ignore() -> io::Result<()> {
    set(libc::SIG_IGN)
}

/// Restores the default action of termination signals.
pub(crate) fn restore() -> io::Result<()> {
    set(libc::SIG_DFL)
}

fn set(disposition: libc::sighandler_t) -> io::Result<()> {
    for signal in TERMINATION {
        // SAFETY: no handler is set, so no code runs when a signal arrives; `signal` may be called between `fork` and
        // `exec`.
        if unsafe { libc::signal(signal, disposition) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

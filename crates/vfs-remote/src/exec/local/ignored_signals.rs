//! Signal dispositions of local shells: reset of inherited ignored signals.
//!
//! An executed program continues to ignore the signals that its parent ignores. Under `nohup`, a shell could then
//! neither be ended by `SIGHUP` nor trap it, so its scripts would not clean up.
#![expect(unsafe_code, reason = "no crate sets the disposition of a signal between fork and exec")]

use std::{mem, ptr};

use libc::c_int;
use tokio::process::Command;

/// The highest number of a signal; the lowest is 1.
const LAST_SIGNAL: c_int = 64;

/// Restores the default disposition of each signal that this process ignores, in the processes that `command` starts.
///
/// If this process ignores none, `command` is unchanged: with a function to run between `fork` and `exec`, the standard
/// library starts it by a copy of this process, which is slower.
pub(crate) fn reset_ignored_signals(command: &mut Command) {
    // Every Rust program ignores SIGPIPE, and the standard library resets it for every process that it starts.
    let ignored: Vec<c_int> =
        (1..=LAST_SIGNAL).filter(|&signal| signal != libc::SIGPIPE && is_ignored(signal)).collect();
    if ignored.is_empty() {
        return;
    }
    let reset = move || {
        for &signal in &ignored {
            // SAFETY: no handler is set, so no code of this process runs when the signal arrives.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: in the new process `reset` only reads memory and calls `signal`, which is async-signal-safe. It neither
    // allocates nor frees, takes no lock, and does not panic.
    unsafe { command.pre_exec(reset) };
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction`, and the call only writes to it: without a new action, it changes nothing.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use crate::{LocalProcess, RemoteExec as _, RemoteExit, ScriptInvocation};

    #[tokio::test]
    async fn a_signal_that_this_process_ignores_ends_a_script_or_is_trapped() {
        // SAFETY: no handler is set, and no other code of these tests uses this signal.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        let place = LocalProcess::new();
        let run = async |script: &str| place.run(ScriptInvocation::new(script)).await.expect("it runs");
        assert_eq!(run("kill -USR2 $$; echo ignored").await.exit, RemoteExit::Signalled(libc::SIGUSR2));
        let trapped = run("trap 'echo trapped; exit 3' USR2; kill -USR2 $$; echo ignored").await;
        assert_eq!((trapped.exit, &trapped.stdout[..]), (RemoteExit::Exited(3), &b"trapped\n"[..]));
    }
}

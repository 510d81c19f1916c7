//! System calls that changes are made of, and that a filter may refuse.

use std::sync::OnceLock;

use rustix::fs::{self, AtFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;

/// Returns whether a seccomp filter refuses `flock`. A filter is permanent, so each call is probed once, with arguments that fail in
/// the kernel without side effects.
pub(crate) fn is_flock_refused() -> bool {
    static REFUSED: OnceLock<bool> = OnceLock::new();
    *REFUSED.get_or_init(|| fs::flock(fs::CWD, FlockOperation::NonBlockingLockExclusive).is_err_and(is_refusal))
}

/// Returns whether a seccomp filter refuses `linkat`, which gives an `O_TMPFILE` file its name.
pub(crate) fn is_linkat_refused() -> bool {
    static REFUSED: OnceLock<bool> = OnceLock::new();
    *REFUSED.get_or_init(|| fs::linkat(fs::CWD, "", fs::CWD, "", AtFlags::empty()).is_err_and(is_refusal))
}

/// Returns whether a seccomp filter refuses `renameat2`.
fn is_renameat2_refused() -> bool {
    static REFUSED: OnceLock<bool> = OnceLock::new();
    let is_refused = |flags| fs::renameat_with(fs::CWD, "", fs::CWD, "", flags).is_err_and(is_refusal);
    *REFUSED.get_or_init(|| [RenameFlags::NOREPLACE, RenameFlags::EXCHANGE].into_iter().any(is_refused))
}

fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::NOSYS)
}

/// Returns what does not hold between processes here, and what to do; `None` where all holds.
///
/// # Behaviour
///
/// Changes of one file by several processes take turns by `flock`, and one that came in between is found by `renameat2`. Where a
/// filter of system calls refuses one of them, files are changed all the same, and a change that another process makes to the
/// same file meanwhile may fail or be lost. Changes within one process take turns in any case.
///
/// ```
/// if let Some(warning) = vfs_local::weakness_between_processes() {
///     eprintln!("warning: {warning}");
/// }
/// ```
pub fn weakness_between_processes() -> Option<String> {
    let names = match (is_flock_refused(), is_renameat2_refused()) {
        (false, false) => return None,
        (true, false) => "flock",
        (false, true) => "renameat2",
        (true, true) => "flock and renameat2",
    };
    Some(format!(
        "a filter of system calls refuses {names}: a change that another process makes to the same file at the same time may \
         fail or be lost; let one process change the files, or allow the call in the filter (seccomp)"
    ))
}

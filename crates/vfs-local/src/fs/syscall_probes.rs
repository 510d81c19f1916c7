//! Probes for system calls that a seccomp filter may refuse.

use std::sync::OnceLock;

use rustix::fs::{self, AtFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;

/// Returns whether a seccomp filter refuses `flock`.
///
/// A filter is permanent, so each call is probed once, with arguments that fail in the kernel without side effects.
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

/// Returns a warning with the reason and the remedy, if concurrent changes of one file by several processes are not
/// fully protected from one another.
///
/// # Behaviour
///
/// Processes serialise their changes of one file with `flock`, and detect other changes with `renameat2`. If a seccomp
/// filter refuses one of these calls, changes do without it, and a concurrent change of the same file by another
/// process may fail or be lost. Changes within one process are always serialised.
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
        "a seccomp filter refuses {names}: concurrent changes of one file by several processes may fail or be lost; change the \
         files from one process only, or allow the call in the filter"
    ))
}

//! System calls that changes are made of, and that a filter may refuse.

use std::sync::OnceLock;

use rustix::fs::{self, AtFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;

/// Which calls a filter of system calls refuses this process. It cannot be taken off again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refused {
    /// `flock`.
    pub(crate) lock: bool,
    /// `linkat`, by which a file without a name is given one.
    pub(crate) link: bool,
    /// `renameat2`.
    rename: bool,
}

/// Asks for each call once, by arguments that the kernel itself refuses otherwise.
pub(crate) fn refused() -> Refused {
    static REFUSED: OnceLock<Refused> = OnceLock::new();
    let is_refused = |errno: Errno| matches!(errno, Errno::PERM | Errno::NOSYS);
    *REFUSED.get_or_init(|| Refused {
        lock: fs::flock(fs::CWD, FlockOperation::NonBlockingLockExclusive).is_err_and(is_refused),
        link: fs::linkat(fs::CWD, "", fs::CWD, "", AtFlags::empty()).is_err_and(is_refused),
        rename: [RenameFlags::NOREPLACE, RenameFlags::EXCHANGE]
            .into_iter()
            .any(|flags| fs::renameat_with(fs::CWD, "", fs::CWD, "", flags).is_err_and(is_refused)),
    })
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
    let Refused { lock, rename, .. } = refused();
    let names = match (lock, rename) {
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

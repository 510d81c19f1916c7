//! Writes beyond the process's limit on the size of files (`RLIMIT_FSIZE`), as errors.
//!
//! With such an error the kernel sends SIGXFSZ to the thread, which ends the process unless the program has provided for it.
//! What a signal does belongs to the program and not to a library, and a child would inherit it. So the thread blocks the
//! signal for the one system call, and takes it back where it came.
#![expect(unsafe_code, reason = "no crate of this workspace blocks a signal in one thread")]

use std::mem::MaybeUninit;
use std::ptr;

use rustix::io::{self, Errno};

/// Makes the system call `write`, which may write beyond the limit, and returns `EFBIG` where it would have been killed.
pub(crate) fn without_size_signal<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let signal = size_signal();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `signal` is an initialised set, and `before` has room for one, which a call that succeeds initialises.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signal, before.as_mut_ptr()) };
    if blocked != 0 {
        return Err(Errno::from_raw_os_error(blocked));
    }
    // SAFETY: the call above succeeded.
    let before = unsafe { before.assume_init() };
    let written = write();
    // SAFETY: `before` is an initialised set.
    let was_blocked = unsafe { libc::sigismember(&raw const before, libc::SIGXFSZ) } == 1;
    if !was_blocked {
        if matches!(written, Err(Errno::FBIG)) {
            take_back(&signal);
        }
        // SAFETY: `before` is an initialised set, the mask that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    }
    written
}

fn size_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, and `sigaddset` adds a signal that exists.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
        set.assume_init()
    }
}

/// Takes the signal off those that wait for this thread. Nothing waits where the file system's own limit was passed.
fn take_back(signal: &libc::sigset_t) {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time are initialised and outlive the call, which writes nothing where it gets null.
    unsafe { libc::sigtimedwait(signal, ptr::null_mut(), &raw const at_once) };
}

//! Writes beyond the process's limit on the size of files (`RLIMIT_FSIZE`), as errors.
//!
//! With such an error the kernel sends SIGXFSZ to the thread, which ends the process unless the program has provided for it.
//! What a signal does belongs to the program and not to a library, and a child would inherit it. So the thread blocks the
//! signal while it writes, and takes it back where it came.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "no crate of this workspace blocks a signal in one thread")
)]

/// The number of SIGXFSZ, for programs that handle it.
#[cfg(target_os = "linux")]
pub const FILE_SIZE_SIGNAL: i32 = libc::SIGXFSZ;

/// Runs `work`, which may write beyond the limit on the size of files, on this thread, whose writes then fail with `EFBIG`
/// instead of ending the process. Returns its value, and whether it met the limit.
///
/// # Behaviour
///
/// * The signal handlers of the process stay as they are, and so do the signals that this thread blocks. If it blocks SIGXFSZ
///   already, nothing is done, and nothing is known of the limit.
/// * On other systems than Linux nothing is done either.
pub fn without_size_signal<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let mut met_limit = false;
    #[cfg(target_os = "linux")]
    let blocked = linux::BlockedSignal::new(&mut met_limit);
    let value = work();
    #[cfg(target_os = "linux")]
    drop(blocked);
    (value, met_limit)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::mem::MaybeUninit;
    use std::ptr;

    /// SIGXFSZ, which this thread gets no more until this is dropped, and none of those that came meanwhile.
    pub(super) struct BlockedSignal<'a> {
        /// The mask that this thread had; `None` where that has the signal already.
        before: Option<libc::sigset_t>,
        came: &'a mut bool,
    }

    impl<'a> BlockedSignal<'a> {
        pub(super) fn new(came: &'a mut bool) -> Self {
            let signal = size_signal();
            let mut before = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: `signal` is an initialised set, and `before` has room for one.
            let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signal, before.as_mut_ptr()) };
            // SAFETY: a call that succeeds initialises `before`.
            let before = (failed == 0).then(|| unsafe { before.assume_init() });
            // SAFETY: `before` is an initialised set.
            let is_new = |before: &libc::sigset_t| unsafe { libc::sigismember(before, libc::SIGXFSZ) } == 0;
            Self { before: before.filter(is_new), came }
        }
    }

    impl Drop for BlockedSignal<'_> {
        fn drop(&mut self) {
            let Some(before) = &self.before else { return };
            *self.came = take_back(&size_signal());
            // SAFETY: `before` is an initialised set, the mask that this thread had.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
        }
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

    /// Takes the signal off those that wait for this thread, and returns whether it did. One is all that can wait.
    fn take_back(signal: &libc::sigset_t) -> bool {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time are initialised and outlive the call, which writes nothing where it gets null.
        unsafe { libc::sigtimedwait(signal, ptr::null_mut(), &raw const at_once) == libc::SIGXFSZ }
    }
}

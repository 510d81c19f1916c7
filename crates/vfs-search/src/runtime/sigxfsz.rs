//! Protection against SIGXFSZ: writes beyond `RLIMIT_FSIZE` fail with an error instead.
//!
//! With the error of such a write the kernel sends SIGXFSZ to the thread, which ends the process unless the program
//! handles the signal. Signal handlers belong to the program and not to a library, and a child process would inherit
//! an ignored signal. So the thread blocks the signal while it writes, and removes it if it arrived.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "no crate of this workspace blocks a signal in one thread")
)]

/// The number of SIGXFSZ, for programs that handle it.
#[cfg(target_os = "linux")]
pub const FILE_SIZE_SIGNAL: i32 = libc::SIGXFSZ;

/// Runs `work` on this thread. Writes of `work` beyond the limit on the size of files fail with `EFBIG` instead of
/// ending the process. Returns the value of `work`, and whether `work` exceeded the limit.
///
/// # Behaviour
///
/// * The signal handlers of the process and the signal mask of this thread stay as they are.
/// * If the thread blocks SIGXFSZ already, and on systems other than Linux, `work` just runs, and the second value is
///   always `false`.
pub fn without_size_signal<T>(work: impl FnOnce() -> T) -> (T, bool) {
    #[cfg(target_os = "linux")]
    return linux::without_size_signal(work);
    #[cfg(not(target_os = "linux"))]
    (work(), false)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::mem::MaybeUninit;
    use std::ptr;

    pub(super) fn without_size_signal<T>(work: impl FnOnce() -> T) -> (T, bool) {
        let mut has_exceeded_limit = false;
        let blocker = SizeSignalBlocker::new(&mut has_exceeded_limit);
        let value = work();
        drop(blocker);
        (value, has_exceeded_limit)
    }

    /// Blocks SIGXFSZ in this thread until it is dropped, and discards a signal that arrived in the meantime.
    struct SizeSignalBlocker<'a> {
        /// The previous signal mask of this thread; `None` if it blocks the signal already, or if blocking failed.
        previous_mask: Option<libc::sigset_t>,
        has_arrived: &'a mut bool,
    }

    impl<'a> SizeSignalBlocker<'a> {
        fn new(has_arrived: &'a mut bool) -> Self {
            let signal = size_signal();
            let mut previous_mask = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: `signal` is an initialised set, and `previous_mask` has room for one.
            let failed =
                unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signal, previous_mask.as_mut_ptr()) };
            // SAFETY: a call that succeeds initialises `previous_mask`.
            let previous_mask = (failed == 0).then(|| unsafe { previous_mask.assume_init() });
            // SAFETY: `previous_mask` is an initialised set.
            let was_unblocked =
                |previous_mask: &libc::sigset_t| unsafe { libc::sigismember(previous_mask, libc::SIGXFSZ) } == 0;
            Self { previous_mask: previous_mask.filter(was_unblocked), has_arrived }
        }
    }

    impl Drop for SizeSignalBlocker<'_> {
        fn drop(&mut self) {
            let Some(previous_mask) = &self.previous_mask else { return };
            *self.has_arrived = consume_pending(&size_signal());
            // SAFETY: `previous_mask` is an initialised set, the previous mask of this thread.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, previous_mask, ptr::null_mut()) };
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

    /// Removes a pending signal from this thread, and returns whether there was one. At most one can be pending.
    fn consume_pending(signal: &libc::sigset_t) -> bool {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time are initialised and outlive the call, which accepts null for the details of the
        // signal and then writes none.
        unsafe { libc::sigtimedwait(signal, ptr::null_mut(), &raw const at_once) == libc::SIGXFSZ }
    }
}

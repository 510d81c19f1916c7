//! Ending a command before its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use vfs_core::CancelToken;
use vfs_core::timer::Timer;

/// Why a command is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It ran as long as it may.
    Timeout,
    /// The deadline of the call passed.
    Deadline,
    /// The caller cancelled.
    Cancelled,
    /// Nobody waits for it any more.
    Dropped,
    /// Somebody stopped the job.
    Stopped,
    /// It would go over a limit, which these words name.
    Limit(&'static str),
}

impl Reason {
    /// Whether the caller gave it up: then there is no answer, but an error.
    pub(crate) fn is_given_up(self) -> bool {
        !matches!(self, Self::Timeout | Self::Limit(_))
    }
}

/// Ends one command: tells its operations, its interpreter and who waits for it.
#[derive(Debug)]
pub(crate) struct Stop {
    reason: OnceLock<Reason>,
    token: CancelToken,
    interpreter: OnceLock<Arc<AtomicBool>>,
}

impl Stop {
    /// Ends a command under `token`, which is cancelled with it.
    pub(crate) fn new(token: CancelToken) -> Self {
        Self { reason: OnceLock::new(), token, interpreter: OnceLock::new() }
    }

    /// Ends it, for the first reason that is given.
    pub(crate) fn now(&self, reason: Reason) {
        self.reason.get_or_init(|| reason);
        if let Some(flag) = self.interpreter.get() {
            flag.store(true, Ordering::Release);
        }
        self.token.cancel();
    }

    /// The token that is cancelled when it ends.
    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Why it is to end, where it is.
    pub(crate) fn reason(&self) -> Option<Reason> {
        // A token that is cancelled from above is the caller's.
        self.reason.get().copied().or_else(|| self.token.is_cancelled().then_some(Reason::Cancelled))
    }

    /// Tells the interpreter too, by its flag.
    pub(crate) fn attach(&self, flag: Arc<AtomicBool>) {
        let flag = self.interpreter.get_or_init(|| flag);
        if self.reason().is_some() {
            flag.store(true, Ordering::Release);
        }
    }

    /// Waits until it is to end.
    pub(crate) async fn stopped(&self) -> Reason {
        self.token.cancelled().await;
        let reason = self.reason().unwrap_or(Reason::Cancelled);
        self.now(reason);
        reason
    }

    /// Waits until it is to end, and then for its end, but not for long: most end at once.
    pub(crate) async fn stopped_for_long(&self) -> Reason {
        let reason = self.stopped().await;
        after(GRACE).await;
        reason
    }
}

/// How long a command that is to stop is waited for.
const GRACE: Duration = Duration::from_millis(200);

/// Waits for `span`, with or without a runtime.
pub(crate) async fn after(span: Duration) {
    let rung = CancelToken::new();
    let rings = rung.clone();
    let _alarm = Timer::set(Instant::now() + span, move || rings.cancel());
    rung.cancelled().await;
}

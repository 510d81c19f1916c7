//! Stop signal of a script, with its reason.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use vfs_core::CancelToken;
use vfs_core::timer::Timer;

/// Reason for stopping a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The time limit of the request is over.
    Timeout,
    /// The deadline of the call has passed.
    Deadline,
    /// The caller cancelled the call.
    Cancelled,
    /// The call or stream was dropped.
    Dropped,
    /// The job was stopped by `stop_job`.
    Stopped,
    /// The script would exceed the limit that this text names.
    Limit(&'static str),
}

impl StopReason {
    /// Returns whether the caller abandoned the call. The call then returns an error instead of a response.
    pub(crate) fn is_abandoned(self) -> bool {
        !matches!(self, Self::Timeout | Self::Limit(_))
    }
}

/// Stop signal of one script, for its operations, its interpreter and its waiters.
#[derive(Debug)]
pub(crate) struct ScriptStopSignal {
    reason: OnceLock<StopReason>,
    token: CancelToken,
    interpreter: OnceLock<Arc<AtomicBool>>,
}

impl ScriptStopSignal {
    /// Creates a signal that cancels `token`, and is triggered by it.
    pub(crate) fn new(token: CancelToken) -> Self {
        Self { reason: OnceLock::new(), token, interpreter: OnceLock::new() }
    }

    /// Triggers the signal. The first reason counts.
    pub(crate) fn trigger(&self, reason: StopReason) {
        self.reason.get_or_init(|| reason);
        if let Some(flag) = self.interpreter.get() {
            flag.store(true, Ordering::Release);
        }
        self.token.cancel();
    }

    /// Returns the token that the signal cancels.
    pub(crate) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Returns the reason if the signal is triggered.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        // If the token was cancelled from outside, the caller did it.
        self.reason.get().copied().or_else(|| self.token.is_cancelled().then_some(StopReason::Cancelled))
    }

    /// Sets `flag` of the interpreter when the signal is triggered.
    pub(crate) fn attach(&self, flag: Arc<AtomicBool>) {
        let flag = self.interpreter.get_or_init(|| flag);
        if self.reason().is_some() {
            flag.store(true, Ordering::Release);
        }
    }

    /// Waits until the signal is triggered.
    pub(crate) async fn wait(&self) -> StopReason {
        self.token.cancelled().await;
        let reason = self.reason().unwrap_or(StopReason::Cancelled);
        self.trigger(reason);
        reason
    }

    /// Waits until the signal is triggered, and then for a grace period in which most scripts exit.
    pub(crate) async fn wait_with_grace(&self) -> StopReason {
        let reason = self.wait().await;
        sleep(STOP_GRACE).await;
        reason
    }
}

/// Time that a stopped script gets to exit.
const STOP_GRACE: Duration = Duration::from_millis(200);

/// Sleeps for `span`, with or without a runtime.
pub(crate) async fn sleep(span: Duration) {
    let signal = CancelToken::new();
    let rings = signal.clone();
    let _alarm = Timer::set(Instant::now() + span, move || rings.cancel());
    signal.cancelled().await;
}

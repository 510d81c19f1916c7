//! Rate limiter of operations in fixed windows.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use vfs_core::error::ErrorDetail;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::quota_limits::QuotaLimits;

/// Number of actors from which on expired windows are removed.
const PRUNE_THRESHOLD: usize = 1024;

/// Counts operations in total and by actor in fixed windows.
#[derive(Debug)]
pub(super) struct RateLimiter {
    overall: Option<(u64, Duration)>,
    per_actor: Option<(u64, Duration)>,
    windows: Mutex<RateWindows>,
}

/// The current windows in total and by actor.
#[derive(Debug, Default)]
struct RateWindows {
    total: Option<FixedRateWindow>,
    actors: HashMap<Option<Box<str>>, FixedRateWindow>,
}

/// A time window, with the number of operations in it.
#[derive(Debug, Clone, Copy)]
struct FixedRateWindow {
    started_at: Instant,
    operations: u64,
}

impl RateLimiter {
    pub(super) fn new(overall: &QuotaLimits, per_actor: &QuotaLimits) -> Self {
        let windows = Mutex::default();
        Self { overall: overall.operations, per_actor: per_actor.operations, windows }
    }

    /// Counts an operation of `actor`, if every limit leaves room for it. Refused operations do not count.
    pub(super) fn admit(&self, actor: Option<&str>, path: &VfsPath) -> Result<()> {
        if self.overall.is_none() && self.per_actor.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Option<Box<str>> = actor.map(Box::from);
        let total = advance_window(self.overall, windows.total, now, "all callers of this process together", path)?;
        let actor_window = advance_window(self.per_actor, windows.actors.get(&key).copied(), now, "this actor", path)?;
        windows.total = total;
        if let (Some(actor_window), Some((_, window))) = (actor_window, self.per_actor) {
            if windows.actors.len() >= PRUNE_THRESHOLD {
                windows.actors.retain(|_, other| now.duration_since(other.started_at) < window);
            }
            windows.actors.insert(key, actor_window);
        }
        Ok(())
    }
}

/// Returns the window with one more operation; `None` if there is no limit.
fn advance_window(
    limit: Option<(u64, Duration)>,
    window: Option<FixedRateWindow>,
    now: Instant,
    owner: &str,
    path: &VfsPath,
) -> Result<Option<FixedRateWindow>> {
    let Some((max, length)) = limit else { return Ok(None) };
    let open = window.filter(|window| now.duration_since(window.started_at) < length);
    let window = open.unwrap_or(FixedRateWindow { started_at: now, operations: 0 });
    if window.operations >= max {
        let remaining = length.saturating_sub(now.duration_since(window.started_at));
        let message = format!(
            "{owner} may perform {max} operations in {length:?}, which are used up; try again in {remaining:?}"
        );
        let retry_after_ms = u64::try_from(remaining.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let error = Error::new(ErrorKind::QuotaExceeded, message).with_path(path);
        return Err(error.with_detail(ErrorDetail::RateLimited { retry_after_ms }));
    }
    Ok(Some(FixedRateWindow { operations: window.operations + 1, ..window }))
}

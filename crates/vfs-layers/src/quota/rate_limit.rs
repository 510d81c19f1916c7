//! Operations in a window of time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::limits::QuotaLimits;

/// From this many actors on, those whose window is over are forgotten.
const MANY: usize = 1024;

/// How often everybody and each actor has come lately.
#[derive(Debug)]
pub(super) struct Rate {
    overall: Option<(u64, Duration)>,
    per_actor: Option<(u64, Duration)>,
    windows: Mutex<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    whole: Option<Window>,
    actors: HashMap<Option<Box<str>>, Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    begun: Instant,
    operations: u64,
}

impl Rate {
    pub(super) fn new(overall: &QuotaLimits, per_actor: &QuotaLimits) -> Self {
        let windows = Mutex::default();
        Self { overall: overall.operations, per_actor: per_actor.operations, windows }
    }

    /// Counts an operation of `actor`, if all limits leave room for it. One that is refused does not count.
    pub(super) fn admit(&self, actor: Option<&str>, path: &VfsPath) -> Result<()> {
        if self.overall.is_none() && self.per_actor.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Option<Box<str>> = actor.map(Box::from);
        let whole = next(self.overall, windows.whole, now, "all callers of this process together", path)?;
        let own = next(self.per_actor, windows.actors.get(&key).copied(), now, "this actor", path)?;
        windows.whole = whole;
        if let (Some(own), Some((_, window))) = (own, self.per_actor) {
            if windows.actors.len() >= MANY {
                windows.actors.retain(|_, other| now.duration_since(other.begun) < window);
            }
            windows.actors.insert(key, own);
        }
        Ok(())
    }
}

/// The window with one operation more; `None` where there is no limit.
fn next(
    limit: Option<(u64, Duration)>,
    window: Option<Window>,
    now: Instant,
    whose: &str,
    path: &VfsPath,
) -> Result<Option<Window>> {
    let Some((most, length)) = limit else { return Ok(None) };
    let open = window.filter(|window| now.duration_since(window.begun) < length);
    let window = open.unwrap_or(Window { begun: now, operations: 0 });
    if window.operations >= most {
        let left = length.saturating_sub(now.duration_since(window.begun));
        let message =
            format!("{whose} may do {most} operations in {length:?}, and that is used up; try again in {left:?}");
        return Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path));
    }
    Ok(Some(Window { operations: window.operations + 1, ..window }))
}

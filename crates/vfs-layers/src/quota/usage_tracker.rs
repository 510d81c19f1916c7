//! Tracker of stored bytes and files, with reservations for pending changes.

use std::collections::HashMap;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::quota_limits::QuotaLimits;

/// Numbers of files and bytes, or a difference of both. Sums of sizes do not overflow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StorageAmount {
    pub(super) files: i128,
    pub(super) bytes: i128,
}

impl StorageAmount {
    pub(super) fn of(files: u64, bytes: u64) -> Self {
        Self { files: files.into(), bytes: bytes.into() }
    }

    pub(super) fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// Returns the positive part.
    pub(super) fn growth(self) -> Self {
        Self { files: self.files.max(0), bytes: self.bytes.max(0) }
    }

    fn min(self, other: Self) -> Self {
        Self { files: self.files.min(other.files), bytes: self.bytes.min(other.bytes) }
    }
}

impl Add for StorageAmount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { files: self.files + other.files, bytes: self.bytes + other.bytes }
    }
}

impl Neg for StorageAmount {
    type Output = Self;

    fn neg(self) -> Self {
        Self { files: -self.files, bytes: -self.bytes }
    }
}

impl Sub for StorageAmount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl AddAssign for StorageAmount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for StorageAmount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Stored amounts, and reservations of running operations.
#[derive(Debug, Clone, Copy, Default)]
struct StoredAndReserved {
    stored: StorageAmount,
    reserved: StorageAmount,
}

impl StoredAndReserved {
    /// Returns an error if `growth` would exceed a limit; `owner` names the account in the message.
    fn check(&self, limits: &QuotaLimits, growth: StorageAmount, owner: &str, path: &VfsPath) -> Result<()> {
        let used = self.stored + self.reserved;
        let both =
            [(limits.bytes, used.bytes, growth.bytes, "bytes"), (limits.files, used.files, growth.files, "files")];
        for (limit, used, growth, what) in both {
            let Some(max) = limit else { continue };
            if growth > 0 && used + growth > i128::from(max) {
                let message = format!(
                    "the quota of {owner} is {max} {what}; {used} are in use and this adds {growth}, so delete something \
                     first"
                );
                return Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path));
            }
        }
        Ok(())
    }
}

/// Usage in total and by actor.
#[derive(Debug)]
pub(super) struct UsageTracker {
    overall: QuotaLimits,
    per_actor: QuotaLimits,
    state: Mutex<UsageState>,
}

/// State of a [`UsageTracker`].
#[derive(Debug, Default)]
struct UsageState {
    total: StoredAndReserved,
    actors: HashMap<Option<Box<str>>, StoredAndReserved>,
    is_valid: bool,
    epoch: UsageInvalidationEpoch,
}

/// Number of invalidations of the usage. A count is valid only if none happened during it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UsageInvalidationEpoch(u64);

impl UsageTracker {
    pub(super) fn new(overall: QuotaLimits, per_actor: QuotaLimits) -> Self {
        Self { overall, per_actor, state: Mutex::default() }
    }

    /// Returns whether the tracked usage equals the stored files and bytes.
    pub(super) fn is_valid(&self) -> bool {
        self.state().is_valid
    }

    /// Marks the tracked usage as unknown, so that the files are counted again.
    pub(super) fn invalidate(&self) {
        let mut state = self.state();
        state.is_valid = false;
        state.epoch.0 += 1;
    }

    /// Returns the current epoch, to be read before a count begins.
    pub(super) fn epoch(&self) -> UsageInvalidationEpoch {
        self.state().epoch
    }

    /// Sets the result of a count that began in `epoch`. No reservation may be open.
    pub(super) fn set_stored(&self, stored: StorageAmount, epoch: UsageInvalidationEpoch) {
        let mut state = self.state();
        state.total.stored = stored;
        state.is_valid = state.epoch == epoch;
    }

    pub(super) fn total(&self) -> StorageAmount {
        self.state().total.stored
    }

    /// Returns the balance of `actor`.
    pub(super) fn of_actor(&self, actor: Option<&str>) -> StorageAmount {
        self.state().actors.get(&actor.map(Box::from)).map_or(StorageAmount::default(), |account| account.stored)
    }

    /// Reserves `growth` for a change by `actor`, if every limit leaves room for it.
    pub(super) fn reserve(
        &self,
        actor: Option<&str>,
        growth: StorageAmount,
        path: &VfsPath,
    ) -> Result<QuotaReservation<'_>> {
        let actor: Option<Box<str>> = actor.map(Box::from);
        let mut state = self.state();
        let actor_account = state.actors.get(&actor).copied().unwrap_or_default();
        state.total.check(&self.overall, growth, "all files together", path)?;
        actor_account.check(&self.per_actor, growth, "this actor", path)?;
        state.total.reserved += growth;
        state.actors.entry(actor.clone()).or_default().reserved += growth;
        Ok(QuotaReservation { tracker: self, actor, growth, is_open: true })
    }

    fn state(&self) -> MutexGuard<'_, UsageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Capacity that is reserved for a change. Dropping it open invalidates the usage, as the outcome of the change is
/// unknown.
#[derive(Debug)]
pub(super) struct QuotaReservation<'a> {
    tracker: &'a UsageTracker,
    actor: Option<Box<str>>,
    growth: StorageAmount,
    is_open: bool,
}

impl QuotaReservation<'_> {
    /// Ends the reservation of a change that was made, with its actual size `change`.
    pub(super) fn commit(mut self, change: StorageAmount) {
        self.close(change);
    }

    /// Ends the reservation of a change that was made, but whose size differs from the `observed` one, or is unknown. The actor is
    /// charged for growth, but not credited, and the files are counted again.
    pub(super) fn commit_unknown(mut self, observed: Option<StorageAmount>) {
        let growth = observed.map_or(self.growth, |observed| observed.growth().min(self.growth));
        self.close(growth);
        self.tracker.invalidate();
    }

    /// Ends the reservation of a change that was not made.
    pub(super) fn release(mut self) {
        self.close(StorageAmount::default());
    }

    fn close(&mut self, change: StorageAmount) {
        self.is_open = false;
        let mut state = self.tracker.state();
        state.total.reserved -= self.growth;
        state.total.stored += change;
        let actor_account = state.actors.entry(self.actor.take()).or_default();
        actor_account.reserved -= self.growth;
        actor_account.stored += change;
    }
}

impl Drop for QuotaReservation<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.close(StorageAmount::default());
            self.tracker.invalidate();
        }
    }
}

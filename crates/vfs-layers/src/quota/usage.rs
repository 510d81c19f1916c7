//! What is used, and what is about to be.

use std::collections::HashMap;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::limits::QuotaLimits;

/// Files and bytes, or how many more or fewer. Sums of sizes do not overflow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) files: i128,
    pub(super) bytes: i128,
}

impl Amount {
    pub(super) fn of(files: u64, bytes: u64) -> Self {
        Self { files: files.into(), bytes: bytes.into() }
    }

    /// What of it is more.
    pub(super) fn growth(self) -> Self {
        Self { files: self.files.max(0), bytes: self.bytes.max(0) }
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { files: self.files + other.files, bytes: self.bytes + other.bytes }
    }
}

impl Neg for Amount {
    type Output = Self;

    fn neg(self) -> Self {
        Self { files: -self.files, bytes: -self.bytes }
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// What is kept, and what operations under way may add to it.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    kept: Amount,
    reserved: Amount,
}

impl Account {
    /// Whether it can grow by `growth`; `whose` says in the message what is limited.
    fn check(&self, limits: &QuotaLimits, growth: Amount, whose: &str, path: &VfsPath) -> Result<()> {
        let used = self.kept + self.reserved;
        let both =
            [(limits.bytes, used.bytes, growth.bytes, "bytes"), (limits.files, used.files, growth.files, "files")];
        for (limit, used, growth, what) in both {
            let Some(most) = limit else { continue };
            if growth > 0 && used + growth > i128::from(most) {
                let message = format!(
                    "the quota of {whose} is {most} {what}; {used} are in use and this adds {growth}, so delete something \
                     first"
                );
                return Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path));
            }
        }
        Ok(())
    }
}

/// What everybody and each actor uses.
#[derive(Debug)]
pub(super) struct Ledger {
    overall: QuotaLimits,
    per_actor: QuotaLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    whole: Account,
    actors: HashMap<Option<Box<str>>, Account>,
    is_known: bool,
    epoch: Epoch,
}

/// How often what is stored became unknown. A count is good only if that did not happen while it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

impl Ledger {
    pub(super) fn new(overall: QuotaLimits, per_actor: QuotaLimits) -> Self {
        Self { overall, per_actor, state: Mutex::default() }
    }

    /// Whether what is kept is what is stored.
    pub(super) fn is_known(&self) -> bool {
        self.state().is_known
    }

    /// Says that what is stored may be something else from now on.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        state.is_known = false;
        state.epoch.0 += 1;
    }

    /// The epoch of now, to be asked for before a count begins.
    pub(super) fn epoch(&self) -> Epoch {
        self.state().epoch
    }

    /// Says what is stored by a count that began in `epoch`. Nothing may be reserved.
    pub(super) fn set(&self, stored: Amount, epoch: Epoch) {
        let mut state = self.state();
        state.whole.kept = stored;
        state.is_known = state.epoch == epoch;
    }

    pub(super) fn whole(&self) -> Amount {
        self.state().whole.kept
    }

    /// What `actor` has added, on balance.
    pub(super) fn of_actor(&self, actor: Option<&str>) -> Amount {
        self.state().actors.get(&actor.map(Box::from)).map_or(Amount::default(), |account| account.kept)
    }

    /// Sets `growth` aside for a change by `actor`, if all limits leave room for it.
    pub(super) fn reserve(&self, actor: Option<&str>, growth: Amount, path: &VfsPath) -> Result<Reservation<'_>> {
        let actor: Option<Box<str>> = actor.map(Box::from);
        let mut state = self.state();
        let own = state.actors.get(&actor).copied().unwrap_or_default();
        state.whole.check(&self.overall, growth, "all files together", path)?;
        own.check(&self.per_actor, growth, "this actor", path)?;
        state.whole.reserved += growth;
        state.actors.entry(actor.clone()).or_default().reserved += growth;
        Ok(Reservation { ledger: self, actor, growth, is_open: true })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room that is set aside for a change. Where it is dropped without a word, nobody knows whether the change was made.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    ledger: &'a Ledger,
    actor: Option<Box<str>>,
    growth: Amount,
    is_open: bool,
}

impl Reservation<'_> {
    /// The change was made, and came to `change`.
    pub(super) fn settle(mut self, change: Amount) {
        self.close(change);
    }

    /// The change was not made.
    pub(super) fn give_back(mut self) {
        self.close(Amount::default());
    }

    fn close(&mut self, change: Amount) {
        self.is_open = false;
        let mut state = self.ledger.state();
        state.whole.reserved -= self.growth;
        state.whole.kept += change;
        let own = state.actors.entry(self.actor.take()).or_default();
        own.reserved -= self.growth;
        own.kept += change;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.close(Amount::default());
            self.ledger.forget();
        }
    }
}

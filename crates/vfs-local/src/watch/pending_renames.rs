//! Pending renames: unpaired halves, and first halves of exchanges.

use std::collections::VecDeque;

use super::watched_dir_tree::{WatchDescriptor, WatchedEntryRef, is_reserved, to_owned_ref};
use crate::fs::root::RESERVED_PREFIX;

/// Maximum number of renames that are remembered to find the other half of an exchange.
const MAX_RENAMES: usize = 64;

/// An owned [`WatchedEntryRef`].
type OwnedWatchedEntryRef = (WatchDescriptor, String);

/// The renames for which more events are expected.
#[derive(Debug, Default)]
pub(super) struct PendingRenames {
    /// Source and target, newest first.
    moves: VecDeque<(OwnedWatchedEntryRef, OwnedWatchedEntryRef)>,
    /// Renames from a reserved name to an unknown target, by the cookie of the rename.
    unpaired: VecDeque<(u32, OwnedWatchedEntryRef)>,
}

impl PendingRenames {
    /// Forgets renames for which no more events can come. The halves of an exchange by another program are read
    /// together; of the exchanges of this library, many may be pending.
    pub(super) fn begin(&mut self) {
        self.moves.retain(|((_, name), _)| name.starts_with(RESERVED_PREFIX));
    }

    pub(super) fn record(&mut self, from: WatchedEntryRef<'_>, to: WatchedEntryRef<'_>) {
        // An entry that is renamed to a reserved name on its own, as by a delete, does not come back by the other half
        // of an exchange.
        if !is_reserved(to) {
            self.moves.truncate(MAX_RENAMES - 1);
            self.moves.push_front((to_owned_ref(from), to_owned_ref(to)));
        }
    }

    /// Returns whether the rename of `from` to `to` follows one of `to` to `from`, and forgets that one.
    pub(super) fn is_swap(&mut self, from: WatchedEntryRef<'_>, to: WatchedEntryRef<'_>) -> bool {
        let before = self.moves.iter().position(|before| *before == (to_owned_ref(to), to_owned_ref(from)));
        before.and_then(|before| self.moves.remove(before)).is_some()
    }

    pub(super) fn came_from_reserved(&self, place: WatchedEntryRef<'_>) -> bool {
        self.position_from_reserved(place).is_some()
    }

    pub(super) fn forget_from_reserved(&mut self, place: WatchedEntryRef<'_>) {
        if let Some(before) = self.position_from_reserved(place) {
            self.moves.remove(before);
        }
    }

    fn position_from_reserved(&self, place: WatchedEntryRef<'_>) -> Option<usize> {
        self.moves.iter().position(|((dir, name), to)| *to == to_owned_ref(place) && is_reserved((*dir, name)))
    }

    pub(super) fn record_unpaired(&mut self, cookie: u32, from: WatchedEntryRef<'_>) {
        self.unpaired.truncate(MAX_RENAMES - 1);
        self.unpaired.push_front((cookie, to_owned_ref(from)));
    }

    pub(super) fn take_unpaired(&mut self, cookie: u32) -> Option<OwnedWatchedEntryRef> {
        let half = self.unpaired.iter().position(|(pending, _)| *pending == cookie)?;
        self.unpaired.remove(half).map(|(_, from)| from)
    }
}

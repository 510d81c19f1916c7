//! Pending renames: unpaired halves, and first halves of exchanges.

use std::collections::VecDeque;

use super::directory_tree::{EntryRef, WatchId, is_reserved, to_owned_ref};
use crate::fs::root::RESERVED_PREFIX;

/// Maximum number of renames that are remembered to find the other half of an exchange.
const MAX_RENAMES: usize = 64;

/// An owned [`EntryRef`].
type OwnedEntryRef = (WatchId, String);

/// The renames for which more events are expected.
#[derive(Debug, Default)]
pub(super) struct RenameTracker {
    /// Source and target, newest first.
    moves: VecDeque<(OwnedEntryRef, OwnedEntryRef)>,
    /// Renames from a reserved name to an unknown target, by the cookie of the rename.
    unpaired: VecDeque<(u32, OwnedEntryRef)>,
}

impl RenameTracker {
    /// Forgets renames for which no more events can come. The halves of an exchange by another program are read
    /// together; of the exchanges of this library, many may be pending.
    pub(super) fn begin(&mut self) {
        self.moves.retain(|((_, name), _)| name.starts_with(RESERVED_PREFIX));
    }

    pub(super) fn record(&mut self, from: EntryRef<'_>, to: EntryRef<'_>) {
        // An entry that is renamed to a reserved name on its own, as by a delete, does not come back by the other half
        // of an exchange.
        if !is_reserved(to) {
            self.moves.truncate(MAX_RENAMES - 1);
            self.moves.push_front((to_owned_ref(from), to_owned_ref(to)));
        }
    }

    /// Returns whether the rename of `from` to `to` follows one of `to` to `from`, and forgets that one.
    pub(super) fn is_swap(&mut self, from: EntryRef<'_>, to: EntryRef<'_>) -> bool {
        let before = self.moves.iter().position(|before| *before == (to_owned_ref(to), to_owned_ref(from)));
        before.and_then(|before| self.moves.remove(before)).is_some()
    }

    pub(super) fn came_from_reserved(&self, place: EntryRef<'_>) -> bool {
        self.position_from_reserved(place).is_some()
    }

    pub(super) fn forget_from_reserved(&mut self, place: EntryRef<'_>) {
        if let Some(before) = self.position_from_reserved(place) {
            self.moves.remove(before);
        }
    }

    fn position_from_reserved(&self, place: EntryRef<'_>) -> Option<usize> {
        self.moves.iter().position(|((dir, name), to)| *to == to_owned_ref(place) && is_reserved((*dir, name)))
    }

    pub(super) fn record_unpaired(&mut self, cookie: u32, from: EntryRef<'_>) {
        self.unpaired.truncate(MAX_RENAMES - 1);
        self.unpaired.push_front((cookie, to_owned_ref(from)));
    }

    pub(super) fn take_unpaired(&mut self, cookie: u32) -> Option<OwnedEntryRef> {
        let half = self.unpaired.iter().position(|(pending, _)| *pending == cookie)?;
        self.unpaired.remove(half).map(|(_, from)| from)
    }
}

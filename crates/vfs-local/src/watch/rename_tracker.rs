//! The renames that more is to come of: halves, and swaps.

use std::collections::VecDeque;

use super::directory_tree::{Id, Place, is_reserved, owned};
use crate::fs::root::RESERVED;

/// Most renames that the other half of a swap is looked for among.
const MOST: usize = 64;

/// An entry of a watched directory, kept.
type Kept = (Id, String);

/// The renames that more is to come of.
#[derive(Debug, Default)]
pub(super) struct Renames {
    /// From where to where, newest first.
    moves: VecDeque<(Kept, Kept)>,
    /// What came out of hiding without where to, by the cookie of the rename.
    halves: VecDeque<(u32, Kept)>,
}

impl Renames {
    /// Forgets what cannot have more to come: of others the two halves of a swap are read together, while of ours many may
    /// be on their way.
    pub(super) fn begin(&mut self) {
        self.moves.retain(|((_, name), _)| name.starts_with(RESERVED));
    }

    pub(super) fn keep(&mut self, from: Place<'_>, to: Place<'_>) {
        // What goes into hiding by itself does not come back by the other half of a swap.
        if !is_reserved(to) {
            self.moves.truncate(MOST - 1);
            self.moves.push_front((owned(from), owned(to)));
        }
    }

    /// Whether the rename of `from` to `to` follows one of `to` to `from`, which is then forgotten.
    pub(super) fn is_swap(&mut self, from: Place<'_>, to: Place<'_>) -> bool {
        let before = self.moves.iter().position(|before| *before == (owned(to), owned(from)));
        before.and_then(|before| self.moves.remove(before)).is_some()
    }

    pub(super) fn came_from_hiding(&self, place: Place<'_>) -> bool {
        self.coming(place).is_some()
    }

    pub(super) fn forget_coming(&mut self, place: Place<'_>) {
        if let Some(before) = self.coming(place) {
            self.moves.remove(before);
        }
    }

    fn coming(&self, place: Place<'_>) -> Option<usize> {
        self.moves.iter().position(|((dir, name), to)| *to == owned(place) && is_reserved((*dir, name)))
    }

    pub(super) fn keep_half(&mut self, cookie: u32, from: Place<'_>) {
        self.halves.truncate(MOST - 1);
        self.halves.push_front((cookie, owned(from)));
    }

    pub(super) fn take_half(&mut self, cookie: u32) -> Option<Kept> {
        let half = self.halves.iter().position(|(known, _)| *known == cookie)?;
        self.halves.remove(half).map(|(_, from)| from)
    }
}

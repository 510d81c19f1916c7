//! Outcome of one file's search, apart from its matches.

use vfs_core::search::Skipped;

use crate::search_item::SearchItem;

/// The outcome of one file's search, apart from its matches.
pub(crate) enum FileOutcome {
    Searched,
    Skipped(Skipped),
}

impl FileOutcome {
    /// Returns the outcome of a binary file that was skipped.
    pub(crate) fn binary() -> Self {
        Self::Skipped(skipped(|skipped| &mut skipped.binary))
    }

    /// Returns the item that ends the file.
    pub(crate) fn into_item(self, left_early: bool) -> SearchItem {
        match self {
            Self::Searched => SearchItem::Done { searched: true, left_early, skipped: Skipped::default() },
            Self::Skipped(skipped) => SearchItem::Done { searched: false, left_early, skipped },
        }
    }

    pub(crate) fn is_binary(&self) -> bool {
        matches!(self, Self::Skipped(skipped) if skipped.binary > 0)
    }
}

/// Returns the counts of one skipped file, counted in `field`.
pub(crate) fn skipped(field: impl Fn(&mut Skipped) -> &mut u64) -> Skipped {
    let mut skipped = Skipped::default();
    *field(&mut skipped) = 1;
    skipped
}

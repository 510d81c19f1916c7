//! The places of a match that are told.

/// Most places of one line that are told: the rest of a line of a million hits is no news.
pub(crate) const MAX_SUBMATCHES: usize = 1 << 16;

/// How often telling places may read a line again. So many are told of any line, about, whatever the expression is.
const MAX_RESCANS: usize = 1 << 10;

/// Most steps, about, that telling the places of one line takes: bytes read again times places of an expression.
const MAX_RESCAN_STEPS: u64 = 1 << 26;

/// Where in a line, or in the lines of one match, the pattern is, as far as that is told.
pub(crate) struct SubmatchCollector<'a> {
    found: &'a mut Vec<(usize, usize)>,
    max_count: usize,
    /// None that begins behind this is told.
    max_start: usize,
    /// How many bytes may still be read again.
    left: usize,
}

impl<'a> SubmatchCollector<'a> {
    /// Takes none yet, and at most `max_count` that begin up to `max_start`; they go to `found`, which is emptied.
    pub(crate) fn new(
        found: &'a mut Vec<(usize, usize)>,
        max_count: usize,
        max_start: usize,
        rescan_allowance: usize,
    ) -> Self {
        found.clear();
        Self { found, max_count, max_start, left: rescan_allowance }
    }

    /// Takes a place, to find which an engine may have read `again` bytes that it has to read again for the next one; whether
    /// more are told.
    pub(crate) fn take(&mut self, start: usize, end: usize, again: usize) -> bool {
        if start > self.max_start || self.found.len() >= self.max_count {
            return false;
        }
        self.found.push((start, end));
        match self.left.checked_sub(again) {
            Some(left) => self.left = left,
            None => self.max_count = self.found.len(),
        }
        self.found.len() < self.max_count
    }
}

/// How many bytes may be read again to tell the places in `length` bytes of an expression whose counted repetitions expand to
/// `expansion` places.
///
/// It is counted in bytes and not in time, so that the same call gives the same answer.
pub(crate) fn rescan_allowance(length: usize, expansion: u64) -> usize {
    let max_count = usize::try_from(MAX_RESCAN_STEPS / expansion.max(1)).unwrap_or(usize::MAX);
    length.saturating_mul(MAX_RESCANS).min(max_count)
}

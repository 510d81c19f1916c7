//! The places of a match that are told.

/// Most places of one line that are told: the rest of a line of a million hits is no news.
pub(crate) const MOST_PLACES: usize = 1 << 16;

/// How often telling places may read a line again. So many are told of any line, about, whatever the expression is.
const MOST_PASSES: usize = 1 << 10;

/// Most steps, about, that telling the places of one line takes: bytes read again times places of an expression.
const MOST_STEPS: u64 = 1 << 26;

/// Where in a line, or in the lines of one match, the pattern is, as far as that is told.
pub(crate) struct Places<'a> {
    found: &'a mut Vec<(usize, usize)>,
    most: usize,
    /// None that begins behind this is told.
    reach: usize,
    /// How many bytes may still be read again.
    left: usize,
}

impl<'a> Places<'a> {
    /// Takes none yet, and at most `most` that begin up to `reach`; they go to `found`, which is emptied.
    pub(crate) fn new(found: &'a mut Vec<(usize, usize)>, most: usize, reach: usize, allowance: usize) -> Self {
        found.clear();
        Self { found, most, reach, left: allowance }
    }

    /// Takes a place, to find which an engine may have read `again` bytes that it has to read again for the next one; whether
    /// more are told.
    pub(crate) fn take(&mut self, start: usize, end: usize, again: usize) -> bool {
        if start > self.reach || self.found.len() >= self.most {
            return false;
        }
        self.found.push((start, end));
        match self.left.checked_sub(again) {
            Some(left) => self.left = left,
            None => self.most = self.found.len(),
        }
        self.found.len() < self.most
    }
}

/// How many bytes may be read again to tell the places in `length` bytes of an expression whose counted repetitions expand to
/// `expansion` places.
///
/// It is counted in bytes and not in time, so that the same call gives the same answer.
pub(crate) fn allowance(length: usize, expansion: u64) -> usize {
    let most = usize::try_from(MOST_STEPS / expansion.max(1)).unwrap_or(usize::MAX);
    length.saturating_mul(MOST_PASSES).min(most)
}

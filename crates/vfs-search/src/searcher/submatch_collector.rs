//! Submatches of a line, with bounds on their number and on the work to find them.

/// Maximum number of submatches of one line.
pub(crate) const MAX_SUBMATCHES: usize = 1 << 16;

/// Maximum number of bytes that may be scanned more than once to find the submatches of a line, as a multiple of the
/// line's length. It allows about this many submatches, fewer if [`MAX_RESCAN_STEPS`] is reached first.
const MAX_RESCANS: usize = 1 << 10;

/// Approximate maximum of regex engine steps for repeated scans of one line: bytes scanned again, times states of the
/// compiled expression.
const MAX_RESCAN_STEPS: u64 = 1 << 26;

/// Collects the ranges of the pattern in a line, or in the lines of one match, within the bounds.
pub(crate) struct SubmatchCollector<'a> {
    found: &'a mut Vec<(usize, usize)>,
    max_count: usize,
    /// Maximum start of a range; later ones are not reported.
    max_start: usize,
    /// Number of bytes that may still be scanned again.
    remaining: usize,
}

impl<'a> SubmatchCollector<'a> {
    /// Creates an empty collector for at most `max_count` ranges that start up to `max_start`. The ranges go to
    /// `found`, which is cleared.
    pub(crate) fn new(
        found: &'a mut Vec<(usize, usize)>,
        max_count: usize,
        max_start: usize,
        rescan_allowance: usize,
    ) -> Self {
        found.clear();
        Self { found, max_count, max_start, remaining: rescan_allowance }
    }

    /// Adds a range after which `rescan_cost` bytes are scanned again for the next match. Returns whether there is room
    /// for further ranges.
    pub(crate) fn take(&mut self, start: usize, end: usize, rescan_cost: usize) -> bool {
        if start > self.max_start || self.found.len() >= self.max_count {
            return false;
        }
        self.found.push((start, end));
        match self.remaining.checked_sub(rescan_cost) {
            Some(remaining) => self.remaining = remaining,
            None => self.max_count = self.found.len(),
        }
        self.found.len() < self.max_count
    }
}

/// Returns the number of bytes that may be scanned again to find the submatches in `length` bytes, with an expression
/// whose counted repetitions expand to `expansion` states.
///
/// The unit is bytes and not time, so that equal searches return equal results.
pub(crate) fn rescan_allowance(length: usize, expansion: u64) -> usize {
    let max_count = usize::try_from(MAX_RESCAN_STEPS / expansion.max(1)).unwrap_or(usize::MAX);
    length.saturating_mul(MAX_RESCANS).min(max_count)
}

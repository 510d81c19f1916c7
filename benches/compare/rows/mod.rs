//! The rows of the table.

mod calls;
mod commands;
mod disk;
mod memory;
mod tasks;
mod windows;

use anyhow::Result;

use crate::lab::Lab;
use crate::timing::{Contest, Unit};

/// One figure of ours, beside one of somebody else.
pub(crate) struct Row {
    /// What notes and the command line call it.
    pub(crate) id: &'static str,
    /// What is done.
    pub(crate) work: &'static str,
    /// What of ours is measured.
    pub(crate) ours: &'static str,
    /// What it is compared with; empty where there is nobody.
    pub(crate) theirs: &'static str,
    /// What is compared.
    pub(crate) unit: Unit,
    /// What is to be reached.
    pub(crate) goal: Goal,
    /// Gets everything ready for the two sides to take turns.
    pub(crate) prepare: fn(&Lab) -> Result<Contest>,
}

/// What a row is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// At most so many times theirs.
    Ratio(f64),
    /// At most so many seconds or bytes.
    AtMost(f64),
    /// Nothing: it is shown for what it is.
    None,
}

/// All rows, in the order of the table.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = disk::rows();
    rows.extend(windows::rows());
    rows.extend(memory::rows());
    rows.extend(calls::rows());
    rows.extend(commands::rows());
    rows.extend(tasks::rows());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let mut names: Vec<_> = all().iter().map(|row| row.id).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_ratio_is_to_somebody() {
        for row in all() {
            assert!(!matches!(row.goal, Goal::Ratio(_)) || !row.theirs.is_empty(), "{}", row.id);
        }
    }
}

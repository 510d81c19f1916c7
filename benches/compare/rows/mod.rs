//! The rows of the table.

mod calls;
mod commands;
mod disk;
mod exchanges;
mod memory;
mod tasks;
mod tools;
mod windows;

use anyhow::Result;

use crate::lab::Lab;
use crate::timing::{Contest, Unit};

/// One measurement of this library beside that of a rival.
pub(crate) struct Row {
    /// Name of the row in notes and on the command line.
    pub(crate) id: &'static str,
    /// Description of the work.
    pub(crate) work: &'static str,
    /// Part of this library that is measured.
    pub(crate) ours: &'static str,
    /// Rival of the comparison; empty if there is none.
    pub(crate) theirs: &'static str,
    /// Unit of the comparison.
    pub(crate) unit: Unit,
    /// Goal of the row.
    pub(crate) goal: Goal,
    /// Prepares the two sides, which are measured in turns.
    pub(crate) prepare: fn(&Lab) -> Result<Contest>,
}

/// Goal of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// Upper bound on the ratio to the rival.
    Ratio(f64),
    /// Upper bound in seconds or bytes.
    AtMost(f64),
    /// No goal: the row is shown for information.
    None,
}

/// All rows, in the order of the table.
pub(crate) fn all() -> Vec<Row> {
    // Commands are started by forks of this process, whose cost grows with its memory: they are measured before the searches.
    let mut rows = commands::rows();
    rows.extend(disk::rows());
    rows.extend(windows::rows());
    rows.extend(memory::rows());
    rows.extend(calls::rows());
    rows.extend(tools::rows());
    rows.extend(exchanges::rows());
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

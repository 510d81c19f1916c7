//! Which failures a soak may come across, and how often it came across each.

use std::collections::BTreeMap;
use std::fmt;

use vfs_core::{Error, ErrorKind};

/// Begins the name of the host's directory, which no message may show.
pub(crate) const HOST_MARKER: &str = "vfs-soak-";

/// Interruption of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    None,
    /// Its token is cancelled.
    Token,
    /// Its deadline passes.
    Deadline,
    /// Its future is dropped.
    Drop,
}

/// Panics where `error` is not what a caller has to reckon with when others change the same files.
pub(crate) fn assert_expected(operation: &str, error: &Error, interruption: Interruption) {
    let expected = match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::NotEmpty
        | ErrorKind::NoMatch
        | ErrorKind::NotUnique
        | ErrorKind::Conflict
        | ErrorKind::Busy
        | ErrorKind::InvalidArgument => true,
        ErrorKind::Cancelled => interruption == Interruption::Token,
        ErrorKind::Timeout => interruption == Interruption::Deadline,
        _ => false,
    };
    assert!(expected, "{operation}, {interruption:?}: {error:?}");
    assert!(!error.for_model().contains(HOST_MARKER), "{operation} shows a host path: {}", error.for_model());
}

/// How calls ended.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<(&'static str, Ending), u64>);

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    Done,
    Dropped,
    Failed(ErrorKind),
}

impl Tally {
    pub(crate) fn add(&mut self, operation: &'static str, ending: Ending) {
        *self.0.entry((operation, ending)).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.0.values().sum()
    }

    /// Panics where an operation never succeeded: then it was not tested.
    pub(crate) fn assert_complete(&self) {
        for operation in super::operations::NAMES {
            assert!(self.0.contains_key(&(operation, Ending::Done)), "{operation} never succeeded");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls", self.calls())?;
        let mut last = "";
        for ((operation, ending), count) in &self.0 {
            if *operation != last {
                write!(f, "\n{operation:>12}:")?;
                last = operation;
            }
            match ending {
                Ending::Done => write!(f, " {count} done")?,
                Ending::Dropped => write!(f, ", {count} dropped")?,
                Ending::Failed(kind) => write!(f, ", {count} {kind}")?,
            }
        }
        Ok(())
    }
}

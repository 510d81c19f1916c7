//! Positions of a pattern in a line.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A byte range of the text of a line in which the pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Submatch {
    /// The first byte.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
}

/// The positions of a pattern in one line, in order: a slice of [`Submatch`].
///
/// A single submatch is stored inline, without an allocation. The JSON form is a list.
///
/// ```
/// use vfs_core::search::{Submatch, Submatches};
///
/// let places: Submatches = [Submatch { start: 3, end: 6 }].into();
/// assert_eq!(places[0].end, 6);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Submatches(SmallVec<[Submatch; 1]>);

impl Submatches {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all submatches.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether there are no submatches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for Submatches {
    type Target = [Submatch];

    fn deref(&self) -> &[Submatch] {
        &self.0
    }
}

impl FromIterator<Submatch> for Submatches {
    fn from_iter<I: IntoIterator<Item = Submatch>>(places: I) -> Self {
        Self(places.into_iter().collect())
    }
}

impl<const N: usize> From<[Submatch; N]> for Submatches {
    fn from(places: [Submatch; N]) -> Self {
        places.into_iter().collect()
    }
}

impl From<Vec<Submatch>> for Submatches {
    fn from(places: Vec<Submatch>) -> Self {
        Self(places.into())
    }
}

impl<'a> IntoIterator for &'a Submatches {
    type Item = &'a Submatch;
    type IntoIter = std::slice::Iter<'a, Submatch>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<const N: usize> PartialEq<[Submatch; N]> for Submatches {
    fn eq(&self, other: &[Submatch; N]) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Submatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Submatches {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Submatches {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

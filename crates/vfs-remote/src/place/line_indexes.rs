//! LRU cache of line indexes of large files, by version.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use vfs_core::Version;
use vfs_core::window::LineIndex;

/// Most files of which something is kept.
const MOST: usize = 64;

/// What is known of the files that were read last, by version, the newest at the end.
#[derive(Default)]
pub(crate) struct LineIndexes(Mutex<VecDeque<(Version, LineIndex)>>);

impl LineIndexes {
    /// Takes what is known of a content.
    pub(crate) fn take(&self, version: &Version) -> LineIndex {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(of, _)| of == version);
        place.and_then(|place| kept.remove(place)).map(|(_, known)| known).unwrap_or_default()
    }

    /// Keeps what is known by now.
    pub(crate) fn keep(&self, version: Version, known: LineIndex) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, _)| *of != version);
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((version, known));
    }
}

impl fmt::Debug for LineIndexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("LineIndexes").field("files", &kept.len()).finish()
    }
}

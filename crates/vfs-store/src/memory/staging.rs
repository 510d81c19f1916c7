//! Staged contents of files that are written in parts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use vfs_core::Result;

use crate::store::{StagedContent, StagingToken};

/// Age after which a content without a new part is removed.
const MAX_IDLE_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The staged contents of one namespace.
#[derive(Debug, Default)]
pub(super) struct StagedContents(HashMap<StagingToken, StagedBuffer>);

/// The parts of a content that were staged so far.
#[derive(Debug)]
struct StagedBuffer {
    bytes: BytesMut,
    touched_at: Instant,
}

impl StagedContents {
    /// Removes the contents that were abandoned.
    pub(super) fn remove_abandoned(&mut self, now: Instant) {
        self.0.retain(|_, content| now.duration_since(content.touched_at) < MAX_IDLE_TIME);
    }

    pub(super) fn begin(&mut self, token: StagingToken, now: Instant) {
        self.0.insert(token, StagedBuffer { bytes: BytesMut::new(), touched_at: now });
    }

    pub(super) fn append(&mut self, token: &StagingToken, part: &[u8], now: Instant) -> Result<()> {
        let content = self.0.get_mut(token).ok_or_else(StagingToken::unknown)?;
        content.bytes.extend_from_slice(part);
        content.touched_at = now;
        Ok(())
    }

    /// Returns the bytes of a content, which remains staged.
    pub(super) fn get(&self, staged: &StagedContent) -> Result<Bytes> {
        let content = self.0.get(&staged.token).filter(|content| content.bytes.len() as u64 == staged.size);
        Ok(content.ok_or_else(StagingToken::unknown)?.bytes.clone().freeze())
    }

    pub(super) fn remove(&mut self, token: &StagingToken) {
        self.0.remove(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_without_a_new_part_for_a_day_is_removed() {
        let (begin, mut contents) = (Instant::now(), StagedContents::default());
        let [abandoned, recent, next] = ["abandoned", "recent", "next"].map(StagingToken::new);
        contents.begin(abandoned.clone(), begin);
        contents.begin(recent.clone(), begin);
        contents.append(&recent, b"text", begin + MAX_IDLE_TIME / 2).expect("it is stored");
        contents.begin(next, begin + MAX_IDLE_TIME);
        contents.remove_abandoned(begin + MAX_IDLE_TIME);
        assert!(contents.append(&abandoned, b"text", begin).is_err());
        let staged = StagedContent { token: recent, size: 4, version: "any".into() };
        assert_eq!(contents.get(&staged).expect("it is there"), "text");
    }
}

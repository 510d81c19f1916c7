//! Header of a value, stored before its content.

use std::io::Write;

use ::redis::{RedisWrite, ToRedisArgs};
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::Version;

use crate::store::{NewValue, StoredMeta, ValueContent};

/// What every head begins with.
const MARK: &str = "vfs1 ";
const VERSION: usize = 32;
/// The digits of a time in microseconds, with its sign.
const TIME: usize = 20;
/// How many digits of a second's fraction are kept.
const MICROSECONDS: u16 = 6;

/// The bytes of a head.
pub(super) const HEAD: usize = MARK.len() + VERSION + 1 + TIME + 1 + TIME + 1;

/// A file as it is sent to the server: its head and its content, or the size of a content that is staged.
#[derive(Debug, Clone)]
pub(super) struct EncodedFile<'a> {
    pub(super) stored: StoredMeta,
    value: &'a NewValue,
}

impl<'a> EncodedFile<'a> {
    pub(super) fn new(value: &'a NewValue) -> Self {
        let modified_at = value.modified_at.trunc_subsecs(MICROSECONDS);
        let stored = StoredMeta::new(value.content.size(), value.content.version(), modified_at)
            .created_at(value.created_at.trunc_subsecs(MICROSECONDS));
        Self { stored, value }
    }
}

impl ToRedisArgs for EncodedFile<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let NewValue { content, created_at, modified_at, .. } = self.value;
        let head = format!("{MARK}{} {}", self.stored.version, times(*created_at, *modified_at));
        let mut argument = out.writer_for_next_arg();
        // What is written to is in memory.
        let _ = argument.write_all(head.as_bytes());
        let _ = match content {
            ValueContent::Bytes(content) => argument.write_all(content),
            ValueContent::Staged(staged) => write!(argument, "{}", staged.size),
        };
    }
}

/// The end of a head.
pub(super) fn times(created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> String {
    let (created, modified) = (created_at.timestamp_micros(), modified_at.timestamp_micros());
    format!("{created:+0TIME$} {modified:+0TIME$}\n")
}

/// What a `head` says of a file with `size` bytes of content; `None` where another program wrote it.
pub(super) fn read(head: &[u8], size: i64) -> Option<StoredMeta> {
    let text = std::str::from_utf8(head).ok()?.strip_prefix(MARK)?.strip_suffix('\n')?;
    let (version, times) = text.split_at_checked(VERSION)?;
    let (created, modified) = times.strip_prefix(' ')?.split_once(' ')?;
    let read_time = |text: &str| DateTime::from_timestamp_micros(text.parse().ok().filter(|_| text.len() == TIME)?);
    if !version.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let size = u64::try_from(size).ok()?;
    Some(StoredMeta::new(size, Version::new(version), read_time(modified)?).created_at(read_time(created)?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_was_written_is_read() {
        for at in [Utc::now(), DateTime::UNIX_EPOCH, DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            let value = NewValue::new(Bytes::from("content"), at).created_at(DateTime::UNIX_EPOCH);
            let file = EncodedFile::new(&value);
            let sent = file.to_redis_args().remove(0);
            assert_eq!(sent.len(), HEAD + 7);
            assert_eq!(&sent[HEAD..], b"content");
            assert_eq!(read(&sent[..HEAD], 7), Some(file.stored));
        }
    }

    #[test]
    fn what_others_wrote_is_none_of_ours() {
        let value = NewValue::new(Bytes::new(), Utc::now());
        let head = EncodedFile::new(&value).to_redis_args().remove(0);
        assert!(read(&head, 0).is_some());
        assert_eq!(read(&head, -1), None);
        for at in 0..HEAD {
            let mut wrong = head.clone();
            wrong[at] = b'\xff';
            assert_eq!(read(&wrong, 0), None, "{at}");
            assert_eq!(read(&head[..at], 0), None, "{at}");
        }
    }
}

//! Header of a value, stored before its content.

use std::io::Write;

use ::redis::{RedisWrite, ToRedisArgs};
use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::Version;

use crate::store::{NewValue, StoredMeta, ValueContent};

/// Beginning of every head.
const MARK: &str = "vfs1 ";
const VERSION: usize = 32;
/// Length of a time in microseconds, with its sign.
const TIME: usize = 20;
/// Number of decimal places of a second that are stored.
const MICROSECONDS: u16 = 6;

/// Size of a head in bytes.
pub(super) const HEAD: usize = MARK.len() + VERSION + 1 + TIME + 1 + TIME + 1;

/// Maximum size of the content of one file: a string of Redis has at most 512 MiB, including the head of the file.
pub(super) const MAX_VALUE: u64 = (512 << 20) - HEAD as u64;

/// File as it is encoded for the server: its head and its content, or the size of a staged content.
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
        let head = format!("{MARK}{} {}", self.stored.version, encode_times(*created_at, *modified_at));
        let mut argument = out.writer_for_next_arg();
        // Writing to memory cannot fail.
        let _ = argument.write_all(head.as_bytes());
        let _ = match content {
            ValueContent::Bytes(content) => argument.write_all(content),
            ValueContent::Staged(staged) => write!(argument, "{}", staged.size),
        };
    }
}

/// Returns the times as they are encoded at the end of a head.
pub(super) fn encode_times(created_at: DateTime<Utc>, modified_at: DateTime<Utc>) -> String {
    let (created, modified) = (created_at.timestamp_micros(), modified_at.timestamp_micros());
    format!("{created:+0TIME$} {modified:+0TIME$}\n")
}

/// Parses the `head` of a file with `size` bytes of content. Returns `None` if another program wrote it.
pub(super) fn parse(head: &[u8], size: i64) -> Option<StoredMeta> {
    let text = std::str::from_utf8(head).ok()?.strip_prefix(MARK)?.strip_suffix('\n')?;
    let (version, times) = text.split_at_checked(VERSION)?;
    let (created, modified) = times.strip_prefix(' ')?.split_once(' ')?;
    let parse_time = |text: &str| DateTime::from_timestamp_micros(text.parse().ok().filter(|_| text.len() == TIME)?);
    if !version.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let size = u64::try_from(size).ok()?;
    Some(StoredMeta::new(size, Version::new(version), parse_time(modified)?).created_at(parse_time(created)?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn an_encoded_head_can_be_parsed() {
        for at in [Utc::now(), DateTime::UNIX_EPOCH, DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            let value = NewValue::new(Bytes::from("content"), at).created_at(DateTime::UNIX_EPOCH);
            let file = EncodedFile::new(&value);
            let sent = file.to_redis_args().remove(0);
            assert_eq!(sent.len(), HEAD + 7);
            assert_eq!(&sent[HEAD..], b"content");
            assert_eq!(parse(&sent[..HEAD], 7), Some(file.stored));
        }
    }

    #[test]
    fn a_head_of_another_program_is_rejected() {
        let value = NewValue::new(Bytes::new(), Utc::now());
        let head = EncodedFile::new(&value).to_redis_args().remove(0);
        assert!(parse(&head, 0).is_some());
        assert_eq!(parse(&head, -1), None);
        for at in 0..HEAD {
            let mut wrong = head.clone();
            wrong[at] = b'\xff';
            assert_eq!(parse(&wrong, 0), None, "{at}");
            assert_eq!(parse(&head[..at], 0), None, "{at}");
        }
    }
}

//! Writes of whole files and appends.

use std::sync::Arc;

use bytes::Bytes;
use vfs_core::{Error, ErrorKind, Result, VfsPath, WriteMode, WriteRequest, WriteResult, fallible_alloc};

use super::MutationPlan;
use crate::config::MutationContext;
use crate::file_map::{FileMap, FileOrDirectory};
use crate::memory_file::MemoryFile;

pub(crate) fn write(files: &FileMap, req: &WriteRequest, rules: &MutationContext<'_>) -> MutationPlan<WriteResult> {
    let WriteRequest { path, content, mode, modified_at, .. } = req;
    let existing = existing_file(files, path)?;
    check_mode(path, mode, existing)?;
    let prefix = match (mode, existing) {
        (WriteMode::Append, Some(file)) => file.content().clone(),
        _ => Bytes::new(),
    };
    let size = (prefix.len() + content.len()) as u64;
    rules.check_file(path, size)?;
    rules.check_total(files, path, existing.map_or(0, |file| file.size()), size)?;

    let content = fallible_alloc::join(&prefix, content)?;
    let file = match existing {
        Some(file) => file.with_content(content, rules.now),
        None => MemoryFile::new(content, rules.now, rules.format),
    };
    let file = match modified_at {
        Some(at) => file.with_modified_at(*at),
        None => file,
    };
    let result = WriteResult::new(path.clone(), existing.is_none(), file.version().clone(), size);
    Ok((vec![(path.clone(), Some(Arc::new(file)))], result))
}

/// Returns the file that a write to `path` would replace.
fn existing_file<'a>(files: &'a FileMap, path: &VfsPath) -> Result<Option<&'a Arc<MemoryFile>>> {
    match files.lookup(path)? {
        None => Ok(None),
        Some(FileOrDirectory::File(file)) => Ok(Some(file)),
        Some(FileOrDirectory::Directory) => Err(Error::at(ErrorKind::IsADirectory, path)),
    }
}

fn check_mode(path: &VfsPath, mode: &WriteMode, existing: Option<&Arc<MemoryFile>>) -> Result<()> {
    match (mode, existing) {
        (WriteMode::CreateNew, Some(_)) => Err(Error::already_exists(path)),
        (WriteMode::IfVersion(_), None) => Err(Error::conflict(path, None)),
        (WriteMode::IfVersion(expected), Some(file)) if file.version() != expected => {
            Err(Error::conflict(path, Some(file.version().clone())))
        }
        (WriteMode::CreateNew | WriteMode::Overwrite | WriteMode::Append | WriteMode::IfVersion(_), _) => Ok(()),
        _ => Err(Error::at(ErrorKind::Unsupported, path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MemoryConfig;
    use crate::ops::fixture::{self, path};

    #[test]
    fn a_mode_decides_what_happens_to_each_kind_of_entry() {
        let files = fixture::map(&[("/f", "old"), ("/d/x", "x")]);
        let version = |content: &'static str| fixture::file(content).version().clone();
        let if_version = |content| WriteMode::IfVersion(version(content));
        for (to, mode, expected) in [
            ("/new", WriteMode::CreateNew, Ok((true, "+"))),
            ("/new/below", WriteMode::Overwrite, Ok((true, "+"))),
            ("/new", WriteMode::Append, Ok((true, "+"))),
            ("/new", if_version("old"), Err(ErrorKind::Conflict)),
            ("/f", WriteMode::CreateNew, Err(ErrorKind::AlreadyExists)),
            ("/f", WriteMode::Overwrite, Ok((false, "+"))),
            ("/f", WriteMode::Append, Ok((false, "old+"))),
            ("/f", if_version("old"), Ok((false, "+"))),
            ("/f", if_version("other"), Err(ErrorKind::Conflict)),
            ("/d", WriteMode::CreateNew, Err(ErrorKind::IsADirectory)),
            ("/d", WriteMode::Overwrite, Err(ErrorKind::IsADirectory)),
            ("/d", WriteMode::Append, Err(ErrorKind::IsADirectory)),
            ("/d", if_version("x"), Err(ErrorKind::IsADirectory)),
            ("/", WriteMode::Overwrite, Err(ErrorKind::IsADirectory)),
            ("/f/below", WriteMode::Overwrite, Err(ErrorKind::NotADirectory)),
            ("/f/far/below", WriteMode::CreateNew, Err(ErrorKind::NotADirectory)),
        ] {
            let config = MemoryConfig::new();
            let request = WriteRequest::new(path(to), "+").mode(mode.clone());
            let outcome = write(&files, &request, &fixture::rules(&config));
            match (outcome, expected) {
                (Ok((change, result)), Ok((created, content))) => {
                    let written = files.with(change);
                    let file = written.get(&path(to)).expect("it was written");
                    assert_eq!((result.created, &file.content()[..]), (created, content.as_bytes()), "{to} {mode:?}");
                    assert_eq!((&result.version, result.size), (file.version(), file.size()), "{to} {mode:?}");
                }
                (Err(error), Err(kind)) => {
                    assert_eq!((error.kind(), error.path()), (kind, Some(to)), "{to} {mode:?}");
                }
                (outcome, _) => panic!("{to} {mode:?}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn a_conflict_has_the_current_version() {
        let files = fixture::map(&[("/f", "old")]);
        let config = MemoryConfig::new();
        for (to, actual) in [("/f", Some(fixture::file("old").version().clone())), ("/gone", None)] {
            let request = WriteRequest::new(path(to), "+").mode(WriteMode::IfVersion("stale".into()));
            let error = write(&files, &request, &fixture::rules(&config)).expect_err("a conflict");
            assert_eq!(error, Error::conflict(&path(to), actual));
        }
    }

    #[test]
    fn limits_apply_to_the_sizes_after_the_write() {
        let files = fixture::map(&[("/f", "12345"), ("/g", "1234")]);
        let config = MemoryConfig::new().max_file_size(8).max_total_size(12);
        for (to, mode, content, expected) in [
            ("/n", WriteMode::CreateNew, "123", Ok(3)),
            ("/n", WriteMode::CreateNew, "1234", Err(ErrorKind::QuotaExceeded)),
            ("/n", WriteMode::CreateNew, "123456789", Err(ErrorKind::TooLarge)),
            ("/f", WriteMode::Overwrite, "12345678", Ok(8)),
            ("/f", WriteMode::Append, "123", Ok(8)),
            ("/f", WriteMode::Append, "1234", Err(ErrorKind::TooLarge)),
            ("/g", WriteMode::Append, "1234", Err(ErrorKind::QuotaExceeded)),
        ] {
            let request = WriteRequest::new(path(to), content).mode(mode.clone());
            let size = write(&files, &request, &fixture::rules(&config)).map(|(_, result)| result.size);
            assert_eq!(size.map_err(|error| error.kind()), expected, "{to} {mode:?} {content}");
        }
    }

    #[test]
    fn a_store_over_its_quota_may_still_shrink() {
        let files = fixture::map(&[("/f", "12345"), ("/g", "1234")]);
        let config = MemoryConfig::new().max_total_size(4);
        let shrink = |content: &'static str| {
            let request = WriteRequest::new(path("/f"), content).mode(WriteMode::Overwrite);
            write(&files, &request, &fixture::rules(&config)).map(|(_, result)| result.size)
        };
        assert_eq!(shrink("1234"), Ok(4));
        assert_eq!(shrink("123456").map_err(|error| error.kind()), Err(ErrorKind::QuotaExceeded));
    }

    #[test]
    fn a_write_keeps_the_creation_time_and_sets_the_modification_time() {
        let files = fixture::map(&[("/f", "old")]);
        let config = MemoryConfig::new();
        let rules = fixture::rules(&config);
        let request = WriteRequest::new(path("/f"), "new").mode(WriteMode::Overwrite);
        let (change, _) = write(&files, &request, &rules).expect("it can be written");
        let written = files.with(change);
        let info = written.get(&path("/f")).expect("it is there").info(path("/f"));
        assert_eq!((info.created_at, info.modified_at), (Some(fixture::CREATED_AT), Some(rules.now)));
    }
}

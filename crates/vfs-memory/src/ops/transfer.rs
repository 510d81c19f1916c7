//! Renames and copies of files and directories.

use std::sync::Arc;

use vfs_core::transfer::{TransferTargetMode, check_source_and_target};
use vfs_core::{CopyRequest, CopyResult, Error, ErrorKind, OpContext, RenameRequest, RenameResult, Result, VfsPath};

use super::MutationPlan;
use crate::config::MutationContext;
use crate::file_map::{FileMap, FileOrDirectory};
use crate::memory_file::MemoryFile;

pub(crate) fn rename(files: &FileMap, cx: &OpContext, req: &RenameRequest) -> MutationPlan<RenameResult> {
    let TransferPlan { moves, replaced } = plan(files, cx, &req.from, &req.to, req.mode)?;
    let change = moves
        .into_iter()
        .flat_map(|FileTransfer { from, to, file }| [(from.clone(), None), (to, Some(Arc::clone(file)))])
        .collect();
    Ok((change, RenameResult::new(req.from.clone(), req.to.clone(), replaced.is_some())))
}

pub(crate) fn copy(
    files: &FileMap,
    cx: &OpContext,
    req: &CopyRequest,
    rules: &MutationContext<'_>,
) -> MutationPlan<CopyResult> {
    let TransferPlan { moves, replaced } = plan(files, cx, &req.from, &req.to, req.mode)?;
    let bytes = moves.iter().map(|one| one.file.size()).sum();
    rules.check_total(files, &req.to, replaced.map_or(0, |file| file.size()), bytes)?;
    let result = CopyResult::new(req.from.clone(), req.to.clone(), replaced.is_some(), moves.len() as u64, bytes);
    let change =
        moves.into_iter().map(|FileTransfer { to, file, .. }| (to, Some(Arc::new(file.copy_at(rules.now))))).collect();
    Ok((change, result))
}

/// The files of a rename or copy with their targets, and the file that is replaced.
struct TransferPlan<'a> {
    moves: Vec<FileTransfer<'a>>,
    replaced: Option<&'a Arc<MemoryFile>>,
}

/// One file of a rename or copy, with its source and target path.
struct FileTransfer<'a> {
    from: &'a VfsPath,
    to: VfsPath,
    file: &'a Arc<MemoryFile>,
}

fn plan<'a>(
    files: &'a FileMap,
    cx: &OpContext,
    from: &'a VfsPath,
    to: &VfsPath,
    mode: TransferTargetMode,
) -> Result<TransferPlan<'a>> {
    check_source_and_target(from, to)?;
    let source = files.find(from)?;
    let replaced = check_target(files, source, to, mode)?;
    let moves = match source {
        FileOrDirectory::File(file) => vec![FileTransfer { from, to: to.clone(), file }],
        FileOrDirectory::Directory => files
            .subtree(from)
            .map(|(path, file)| {
                cx.check()?;
                let below = path.strip_prefix(from).unwrap_or_default();
                let to = to.join(below).map_err(|error| error.with_path(to))?;
                Ok(FileTransfer { from: path, to, file })
            })
            .collect::<Result<_>>()?,
    };
    Ok(TransferPlan { moves, replaced })
}

/// Returns the file that `source` replaces at the target, or an error if it may not.
fn check_target<'a>(
    files: &'a FileMap,
    source: FileOrDirectory<'_>,
    to: &VfsPath,
    mode: TransferTargetMode,
) -> Result<Option<&'a Arc<MemoryFile>>> {
    let Some(target) = files.lookup(to)? else { return Ok(None) };
    if mode != TransferTargetMode::Overwrite {
        return Err(Error::already_exists(to));
    }
    match (source, target) {
        (FileOrDirectory::File(_), FileOrDirectory::File(replaced)) => Ok(Some(replaced)),
        (FileOrDirectory::File(_), FileOrDirectory::Directory) => Err(Error::at(ErrorKind::IsADirectory, to)),
        (FileOrDirectory::Directory, FileOrDirectory::File(_)) => Err(Error::at(ErrorKind::NotADirectory, to)),
        (FileOrDirectory::Directory, FileOrDirectory::Directory) => {
            let message = "the target directory is not empty; delete it first or choose another target";
            Err(Error::new(ErrorKind::NotEmpty, message).with_path(to))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MemoryConfig;
    use crate::ops::fixture::{self, path};

    fn fixture() -> FileMap {
        fixture::map(&[
            ("/d/x", "x"),
            ("/d/y/z", "zz"),
            ("/d-x", ""),
            ("/d0", ""),
            ("/e/e", "e"),
            ("/f", "f"),
            ("/g", "gg"),
        ])
    }

    fn contents(files: &FileMap) -> Vec<String> {
        fixture::contents(files).into_iter().map(|(path, content)| format!("{path}={content}")).collect()
    }

    #[test]
    fn a_rename_moves_and_a_copy_duplicates_only_the_named_path() {
        let files = fixture();
        let rest = ["/d-x=", "/d0=", "/e/e=e"];
        for (from, to, moved, left, replaced) in [
            ("/f", "/n", &["/n=f"][..], &["/d/x=x", "/d/y/z=zz", "/g=gg"][..], false),
            ("/f", "/d/n/m", &["/d/n/m=f"], &["/d/x=x", "/d/y/z=zz", "/g=gg"], false),
            ("/f", "/g", &["/g=f"], &["/d/x=x", "/d/y/z=zz"], true),
            ("/d", "/n", &["/n/x=x", "/n/y/z=zz"], &["/f=f", "/g=gg"], false),
            ("/d", "/e/n", &["/e/n/x=x", "/e/n/y/z=zz"], &["/f=f", "/g=gg"], false),
            ("/d/y", "/y", &["/y/z=zz"], &["/d/x=x", "/f=f", "/g=gg"], false),
        ] {
            let expected = |source: &[&str]| {
                let mut all: Vec<String> =
                    [&rest[..], moved, left, source].concat().iter().map(|text| (*text).to_owned()).collect();
                all.sort();
                all
            };
            let sorted = |files: &FileMap| {
                let mut all = contents(files);
                all.sort();
                all
            };
            let source: Vec<String> =
                contents(&files).into_iter().filter(|text| !expected(&[]).contains(text)).collect();
            let source: Vec<&str> = source.iter().map(String::as_str).filter(|text| text.starts_with(from)).collect();

            let request = RenameRequest::new(path(from), path(to)).overwrite();
            let (change, result) = rename(&files, &OpContext::new(), &request).expect("it can be moved");
            assert_eq!(sorted(&files.with(change)), expected(&[]), "rename {from} {to}");
            assert_eq!(result.replaced, replaced, "rename {from} {to}");

            let config = MemoryConfig::new();
            let request = CopyRequest::new(path(from), path(to)).overwrite();
            let (change, result) =
                copy(&files, &OpContext::new(), &request, &fixture::rules(&config)).expect("it can be copied");
            assert_eq!(sorted(&files.with(change)), expected(&source), "copy {from} {to}");
            assert_eq!((result.files as usize, result.replaced), (moved.len(), replaced), "copy {from} {to}");
            let bytes: usize = moved.iter().map(|text| text.len() - text.find('=').expect("a content") - 1).sum();
            assert_eq!(result.bytes as usize, bytes, "copy {from} {to}");
        }
    }

    #[test]
    fn refusals_are_the_same_for_both_and_name_the_path_that_is_wrong() {
        let files = fixture();
        let config = MemoryConfig::new();
        use TransferTargetMode::{CreateNew, Overwrite};
        for (from, to, mode, expected, at) in [
            ("/", "/n", Overwrite, ErrorKind::InvalidArgument, "/"),
            ("/f", "/", Overwrite, ErrorKind::InvalidArgument, "/"),
            ("/f", "/f", Overwrite, ErrorKind::InvalidArgument, "/f"),
            ("/d", "/d", CreateNew, ErrorKind::InvalidArgument, "/d"),
            ("/d", "/d/n", CreateNew, ErrorKind::InvalidArgument, "/d/n"),
            ("/d", "/d/y/n", Overwrite, ErrorKind::InvalidArgument, "/d/y/n"),
            ("/missing", "/n", CreateNew, ErrorKind::NotFound, "/missing"),
            ("/missing", "/f", CreateNew, ErrorKind::NotFound, "/missing"),
            ("/f/x", "/n", CreateNew, ErrorKind::NotADirectory, "/f/x"),
            ("/f", "/g/n", Overwrite, ErrorKind::NotADirectory, "/g/n"),
            ("/f", "/g", CreateNew, ErrorKind::AlreadyExists, "/g"),
            ("/f", "/d", CreateNew, ErrorKind::AlreadyExists, "/d"),
            ("/d", "/f", CreateNew, ErrorKind::AlreadyExists, "/f"),
            ("/f", "/d", Overwrite, ErrorKind::IsADirectory, "/d"),
            ("/d", "/f", Overwrite, ErrorKind::NotADirectory, "/f"),
            ("/d", "/e", Overwrite, ErrorKind::NotEmpty, "/e"),
            ("/d/y", "/d", Overwrite, ErrorKind::NotEmpty, "/d"),
            ("/d/x", "/d", Overwrite, ErrorKind::IsADirectory, "/d"),
        ] {
            let mut request = RenameRequest::new(path(from), path(to));
            request.mode = mode;
            let error = rename(&files, &OpContext::new(), &request).expect_err("it is refused");
            assert_eq!((error.kind(), error.path()), (expected, Some(at)), "rename {from} {to} {mode:?}");

            let mut request = CopyRequest::new(path(from), path(to));
            request.mode = mode;
            let error = copy(&files, &OpContext::new(), &request, &fixture::rules(&config)).expect_err("it is refused");
            assert_eq!((error.kind(), error.path()), (expected, Some(at)), "copy {from} {to} {mode:?}");
        }
    }

    #[test]
    fn a_directory_that_would_have_too_long_paths_stays_where_it_is() {
        let name = "n".repeat(255);
        let deep = vec![name.as_str(); 15].join("/");
        let files = fixture::map(&[(&format!("/d/{deep}"), "")]);
        let request = RenameRequest::new(path("/d"), path(&format!("/{name}/{name}")));
        let error = rename(&files, &OpContext::new(), &request).expect_err("over 4096 bytes");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidPath, Some(request.to.as_str())));
    }

    #[test]
    fn a_renamed_file_is_the_same_and_a_copy_is_a_new_one() {
        let files = fixture();
        let config = MemoryConfig::new();
        let rules = fixture::rules(&config);
        let before = files.get(&path("/f")).expect("it is there").info(path("/n"));

        let request = RenameRequest::new(path("/f"), path("/n"));
        let (change, _) = rename(&files, &OpContext::new(), &request).expect("it can be moved");
        assert_eq!(files.with(change).get(&path("/n")).expect("it is there").info(path("/n")), before);

        let request = CopyRequest::new(path("/f"), path("/n"));
        let (change, _) = copy(&files, &OpContext::new(), &request, &rules).expect("it can be copied");
        let copied = files.with(change).get(&path("/n")).expect("it is there").info(path("/n"));
        assert_eq!(
            (copied.version, copied.created_at, copied.modified_at),
            (before.version, Some(rules.now), Some(rules.now))
        );
    }

    #[test]
    fn copies_count_against_the_quota() {
        let files = fixture();
        let config = MemoryConfig::new().max_total_size(files.bytes() + 2);
        let copied = |from: &str, to: &str| {
            let request = CopyRequest::new(path(from), path(to)).overwrite();
            copy(&files, &OpContext::new(), &request, &fixture::rules(&config)).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(copied("/g", "/n"), Ok(()));
        assert_eq!(copied("/d", "/n"), Err(ErrorKind::QuotaExceeded));
        assert_eq!(copied("/g", "/f"), Ok(()));
    }
}

//! Concurrent edits of one file, each conditional on the version that it read.

use std::sync::Arc;

use futures::future::join_all;
use vfs_core::{
    Backend, EditRequest, Error, ErrorKind, OpContext, ReadRequest, Result, VfsPath, WriteMode, WriteRequest,
};

use crate::law_runner::run;
use crate::target::Target;

/// Lets `tasks` tasks make `changes` changes each to one file, and checks at the end that the file has every acknowledged
/// one.
///
/// Each change reads the file and its version and adds a line of its own: by turns with an edit that expects the version,
/// a write on the version, an edit that expects nothing, and an append. A conflict is tried again.
///
/// # Panics
///
/// Panics if a change is lost, is made twice, or fails with another error than a conflict; and in a tokio runtime.
pub fn check_concurrently(target: &Target, tasks: usize, changes: usize) {
    run(async {
        let path = target.path("/shared.txt");
        let created = target.backend.write(&OpContext::new(), WriteRequest::new(path.clone(), "end\n")).await;
        created.expect("the file can be made");
        let workers = (0..tasks).map(|task| {
            let (backend, path) = (Arc::clone(&target.backend), path.clone());
            tokio::spawn(async move {
                for change in 0..changes {
                    let line = format!("task {task} change {change}\n");
                    while let Err(error) = add(&*backend, &path, &line, task + change).await {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
                    }
                }
            })
        });
        for worker in join_all(workers).await {
            worker.expect("no task fails");
        }
        let text = read(&*target.backend, &path).await.expect("the file is there").0;
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        let every = (0..tasks).flat_map(|task| (0..changes).map(move |change| format!("task {task} change {change}")));
        let mut expected: Vec<_> = every.chain(["end".to_owned()]).collect();
        expected.sort_unstable();
        assert_eq!(lines, expected, "every acknowledged change is there once");
    });
}

async fn read(backend: &dyn Backend, path: &VfsPath) -> Result<(String, vfs_core::Version)> {
    let result = backend.read(&OpContext::new(), ReadRequest::new(path.clone())).await?;
    let text = result.content.as_text().ok_or_else(|| Error::at(ErrorKind::NotText, path))?;
    Ok((text.to_owned(), result.version))
}

async fn add(backend: &dyn Backend, path: &VfsPath, line: &str, turn: usize) -> Result<()> {
    let cx = OpContext::new();
    let (text, version) = read(backend, path).await?;
    let edit = EditRequest::new(path.clone(), "end\n", format!("{line}end\n"));
    match turn % 4 {
        0 => backend.edit(&cx, edit.expected_version(version)).await.map(drop),
        1 => {
            let request = WriteRequest::new(path.clone(), format!("{line}{text}"));
            backend.write(&cx, request.mode(WriteMode::IfVersion(version))).await.map(drop)
        }
        2 => backend.edit(&cx, edit).await.map(drop),
        _ => {
            let request = WriteRequest::new(path.clone(), line.to_owned()).mode(WriteMode::Append);
            backend.write(&cx, request).await.map(drop)
        }
    }
}

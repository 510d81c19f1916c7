//! Results that do not reveal whether an unreadable file exists.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{join, poll_immediate};
use vfs_core::error::ErrorDetail;
use vfs_core::operation::{AnyRequest, UnaryRequest};
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::watch::WatchRequest;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, GlobRequest, GrepRequest, Layer,
    LsRequest, OpContext, OpenWriterRequest, ReadRequest, RenameRequest, ResolveRequest, Result, StatRequest, Version,
    WriteMode, WriteRequest,
};
use vfs_memory::MemoryBackend;
use vfs_policy::{Approval, ApprovalQueue, Policy};

use super::rules::{path, rules};

/// Returns the error of each operation on `at`.
async fn errors_at(files: &dyn Backend, at: &str) -> Vec<(&'static str, Option<Error>)> {
    let cx = OpContext::new();
    async fn ask<Q: UnaryRequest>(files: &dyn Backend, cx: &OpContext, request: Q) -> (&'static str, Option<Error>) {
        (Q::OPERATION.code(), request.send(files, cx).await.err())
    }
    let at = path(at);
    let mut errors = vec![
        ask(files, &cx, StatRequest::new(at.clone())).await,
        ask(files, &cx, ResolveRequest::new(at.clone())).await,
        ask(files, &cx, LsRequest::new(at.clone())).await,
        ask(files, &cx, GlobRequest::new("*").path(at.clone())).await,
        ask(files, &cx, GrepRequest::literal("text").path(at.clone())).await,
        ask(files, &cx, ReadRequest::new(at.clone())).await,
        ask(files, &cx, FileDownloadRequest::new(at.clone())).await,
        ask(files, &cx, EditRequest::new(at.clone(), "absent", "x")).await,
        ask(files, &cx, EditRequest::new(at.clone(), "absent", "x").dry_run()).await,
        ask(files, &cx, DeleteRequest::new(at.clone())).await,
        ask(files, &cx, CopyRequest::new(at.clone(), path("/new.md"))).await,
        ask(files, &cx, RenameRequest::new(at.clone(), path("/new.md"))).await,
    ];
    let mut found = files.grep_stream(cx.clone(), GrepRequest::literal("text").path(at.clone()));
    errors.push(("grep_stream", found.next().await.and_then(Result::err)));
    let mut events = files.as_watch().expect("there is a change feed").watch(cx, WatchRequest::new(at));
    errors.push(("watch", poll_immediate(events.next()).await.flatten().and_then(Result::err)));
    errors
}

#[tokio::test]
async fn errors_about_a_denied_file_are_the_same_whether_it_exists_or_not() {
    // Every directory leads on, as a file that may be read can be anywhere.
    let by_name =
        "[[rules]]\neffect = 'allow'\npaths = ['*.md']\n[[rules]]\neffect = 'deny'\nreason = 'it is secret'\n";
    let by_directory = "[[rules]]\neffect = 'deny'\npaths = ['/d']\nreason = 'it is secret'\n";
    for (text, at) in
        [(by_name, "/secret"), (by_name, "/d/secret"), (by_directory, "/d/secret"), (by_name, "/secret/x.md")]
    {
        let policy = Policy::new(Arc::new(rules(text)));
        let (with, without) = (MemoryBackend::new(), MemoryBackend::new());
        for files in [&with, &without] {
            files.create_text("/d/a.md", "text").await.expect("written");
        }
        with.create_text(at.trim_end_matches("/x.md"), "text").await.expect("written");
        let with = errors_at(&*policy.layer(Arc::new(with)), at).await;
        let without = errors_at(&*policy.layer(Arc::new(without)), at).await;
        for (there, absent) in with.iter().zip(&without) {
            let shown = |(operation, error): &(&str, Option<Error>)| format!("{operation}: {error:?}");
            assert_eq!(shown(there), shown(absent), "of {at} by {text}");
        }
        if at.ends_with("secret") {
            for (operation, error) in &with[..2] {
                let error = error.as_ref().expect("refused");
                assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{operation} of {at}");
                assert!(error.message().contains("it is secret"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_conflict_has_no_version_of_a_file_that_may_only_be_written() -> Result<()> {
    let inner = Arc::new(MemoryBackend::new());
    inner.create_text("/secrets/key", "hunter2").await?;
    inner.create_text("/open", "hunter2").await?;
    inner.create_text("/asked", "hunter2").await?;
    let denied = rules(
        "[[rules]]\neffect = 'deny'\noperations = ['read']\npaths = ['/secrets']\n\
         [[rules]]\neffect = 'ask'\noperations = ['read']\npaths = ['/asked']\n",
    );
    let files = Policy::new(Arc::new(denied)).layer(inner);
    let (cx, version) = (OpContext::new(), Version::new("guess"));
    for (at, is_shown) in [("/secrets/key", false), ("/asked", false), ("/open", true)] {
        let write = WriteRequest::new(path(at), "x").mode(WriteMode::IfVersion(version.clone()));
        let mut delete = DeleteRequest::new(path(at));
        delete.expected_version = Some(version.clone());
        let open = OpenWriterRequest::new(path(at)).mode(WriteMode::IfVersion(version.clone()));
        let commit = async {
            let mut writer = files.open_writer(&cx, open).await?;
            writer.write("x".into()).await?;
            writer.commit().await
        };
        let (write, delete, commit) = (files.write(&cx, write).await, files.delete(&cx, delete).await, commit.await);
        for error in
            [write.map(drop), delete.map(drop), commit.map(drop)].map(|result| result.expect_err("another version"))
        {
            assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some(at)), "{error}");
            let is_detailed = matches!(error.detail(), Some(ErrorDetail::Conflict { actual: Some(_) }));
            assert_eq!(is_detailed, is_shown, "{error:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_conflict_of_a_request_that_an_approver_edited_has_no_version_of_an_unreadable_file() -> Result<()> {
    let inner = Arc::new(MemoryBackend::new());
    inner.create_text("/secrets/key", "hunter2").await?;
    let asking = rules(
        "[[rules]]\neffect = 'ask'\noperations = ['write']\npaths = ['/asked']\n\
         [[rules]]\neffect = 'deny'\noperations = ['read']\npaths = ['/secrets']\n",
    );
    let (queue, mut pending) = ApprovalQueue::new(1);
    let files = Policy::new(Arc::new(asking)).with_approver(Arc::new(queue)).layer(inner);
    let write = |at: &str| WriteRequest::new(path(at), "x").mode(WriteMode::IfVersion(Version::new("guess")));
    let (cx, asked) = (OpContext::new(), write("/asked"));
    for edited in ["/secrets/key", "/secrets/key/x"] {
        let edit = async {
            let question = pending.recv().await.expect("there is a question");
            question.answer(Approval::Edit(Box::new(AnyRequest::Write(write(edited)))));
        };
        let (written, ()) = join(files.write(&cx, asked.clone()), edit).await;
        let error = written.expect_err("another version");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Conflict, Some(edited)));
        assert!(!matches!(error.detail(), Some(ErrorDetail::Conflict { actual: Some(_) })), "{error:?}");
    }
    Ok(())
}

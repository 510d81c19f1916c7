//! Cancellation, deadlines and dropped calls.

use std::time::Duration;

use futures::StreamExt;
use futures::future::poll_immediate;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, FileUploadRequest, GlobRequest, GrepRequest, LsRequest,
    OpContext, ReadRequest, RenameRequest, StatRequest, WriteMode, WriteRequest,
};

use super::LawResult;
use super::law_helpers::{cx, ends};
use crate::target::Target;

laws! { "context" in Wrapper:
    "O1" Nothing a_cancelled_call_does_nothing in Smoke,
    "O2" Nothing a_call_after_its_deadline_does_nothing,
    "O3" Nothing a_call_that_is_never_polled_does_nothing,
    "O4" Nothing a_dropped_change_is_complete_or_absent,
    "O5" Nothing a_long_search_ends_when_it_is_cancelled,
    "O5" Nothing a_long_search_ends_at_its_deadline,
}

/// Returns the result of each operation with `cx`, by name.
async fn every_answer(t: &Target, cx: &OpContext) -> Vec<(&'static str, Option<Error>)> {
    let (b, a) = (&t.backend, t.path("/d/a"));
    let upload = b.upload_files(cx, vec![FileUploadRequest::new(t.path("/uploaded"), "x")]).await.remove(0);
    let download = b.download_files(cx, vec![a.clone()]).await.remove(0);
    let grep = GrepRequest::literal("text").path(t.base.clone());
    let streamed = b.grep_stream(cx.clone(), grep.clone()).collect::<Vec<_>>().await.pop();
    vec![
        ("stat", b.stat(cx, StatRequest::new(a.clone())).await.err()),
        ("ls", b.ls(cx, LsRequest::new(t.base.clone())).await.err()),
        ("read", b.read(cx, ReadRequest::new(a.clone())).await.err()),
        ("write", b.write(cx, WriteRequest::new(t.path("/written"), "x")).await.err()),
        ("overwrite", b.write(cx, WriteRequest::new(a.clone(), "x").mode(WriteMode::Overwrite)).await.err()),
        ("edit", b.edit(cx, EditRequest::new(a.clone(), "text", "x")).await.err()),
        ("delete", b.delete(cx, DeleteRequest::new(t.path("/d")).recursive()).await.err()),
        ("rename", b.rename(cx, RenameRequest::new(a.clone(), t.path("/renamed"))).await.err()),
        ("copy", b.copy(cx, CopyRequest::new(t.path("/d"), t.path("/copied"))).await.err()),
        ("glob", b.glob(cx, GlobRequest::new("*").path(t.base.clone())).await.err()),
        ("grep", b.grep(cx, grep).await.err()),
        ("grep_stream", streamed.and_then(Result::err)),
        ("upload", upload.cause),
        ("download", download.cause),
    ]
}

async fn nothing_is_done(t: &Target, cx: &OpContext, kind: ErrorKind) -> LawResult {
    let version = t.put("/d/a", "text\n").await?;
    for (operation, error) in every_answer(t, cx).await {
        let error = error.unwrap_or_else(|| panic!("{operation} was done"));
        assert_eq!(error.kind(), kind, "{operation}: {error:?}");
        t.assert_fit_to_be_shown(&error);
    }
    assert_eq!(t.tree().await?, ["/d", "/d/a"]);
    assert_eq!(t.stat("/d/a").await?.version, Some(version));
    Ok(())
}

async fn a_cancelled_call_does_nothing(t: &Target) -> LawResult {
    let cx = cx();
    cx.cancel_token().cancel();
    nothing_is_done(t, &cx, ErrorKind::Cancelled).await
}

async fn a_call_after_its_deadline_does_nothing(t: &Target) -> LawResult {
    nothing_is_done(t, &cx().with_timeout(Duration::ZERO), ErrorKind::Timeout).await
}

async fn a_call_that_is_never_polled_does_nothing(t: &Target) -> LawResult {
    t.put("/d/a", "text\n").await?;
    let cx = cx();
    drop(t.backend.write(&cx, WriteRequest::new(t.path("/d/b"), "x")));
    drop(t.backend.edit(&cx, EditRequest::new(t.path("/d/a"), "text", "x")));
    drop(t.backend.delete(&cx, DeleteRequest::new(t.path("/d")).recursive()));
    drop(t.backend.rename(&cx, RenameRequest::new(t.path("/d/a"), t.path("/e"))));
    drop(t.backend.upload_files(&cx, vec![FileUploadRequest::new(t.path("/d/c"), "x")]));
    assert_eq!(t.tree().await?, ["/d", "/d/a"]);
    assert_eq!(t.text("/d/a").await?, "text\n");
    Ok(())
}

async fn a_dropped_change_is_complete_or_absent(t: &Target) -> LawResult {
    let whole = |letter: &str| letter.repeat(50_000);
    t.put("/a", whole("a")).await?;
    for round in 0..40 {
        let letter = ["b", "c"][round % 2];
        let (backend, request) = (t.shared(), WriteRequest::new(t.path("/a"), whole(letter)));
        let task = tokio::spawn(async move { backend.write(&cx(), request.mode(WriteMode::Overwrite)).await });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        task.abort();
        // The edit was either stopped or completed; the content of the file shows which.
        drop(task.await);
        drop(poll_immediate(t.backend.edit(&cx(), EditRequest::new(t.path("/a"), whole("z"), "never there"))).await);
        let text = t.text("/a").await?;
        assert!(["a", "b", "c"].iter().any(|letter| text == whole(letter)), "{} bytes are left", text.len());
    }
    assert_eq!(t.tree().await?, ["/a"]);
    Ok(())
}

async fn put_haystack(t: &Target) -> LawResult {
    for n in 0..2 {
        t.put(&format!("/{n}"), format!("{}\n", "ab".repeat(8_000)).repeat(250)).await?;
    }
    Ok(())
}

/// Returns a search that takes minutes in every engine: the pattern has no literal, thousands of its states are alive at each byte,
/// and nothing matches. A line takes a fraction of a second.
fn slow_search(t: &Target) -> GrepRequest {
    GrepRequest::regex("a[ab]{8000}[c-z]").path(t.base.clone())
}

async fn a_long_search_ends_when_it_is_cancelled(t: &Target) -> LawResult {
    put_haystack(t).await?;
    let cx = cx();
    let mut search = t.backend.grep(&cx, slow_search(t));
    assert!(poll_immediate(&mut search).await.is_none(), "a search of minutes is not over at once");
    cx.cancel_token().cancel();
    t.refused(ends("a cancelled search", search).await, ErrorKind::Cancelled);
    Ok(())
}

async fn a_long_search_ends_at_its_deadline(t: &Target) -> LawResult {
    put_haystack(t).await?;
    let cx = cx().with_timeout(Duration::from_millis(20));
    let ended = ends("a search with a deadline", t.backend.grep(&cx, slow_search(t))).await;
    t.refused(ended, ErrorKind::Timeout);
    Ok(())
}

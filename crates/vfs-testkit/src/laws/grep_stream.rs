//! Text search as a stream.

use futures::StreamExt;
use vfs_core::search::GrepSummary;
use vfs_core::{ErrorKind, GrepEvent, GrepOutput, GrepRequest, Result, TruncationReason};

use super::LawResult;
use super::law_helpers::{cx, ends};
use crate::target::Target;

laws! { "grep_stream" in Semantics:
    "T1" Nothing a_stream_gives_what_a_search_collects in Smoke,
    "T1" Nothing a_stream_of_files_gives_files,
    "T2" Nothing the_end_is_last_and_sums_up in Wrapper,
    "T3" Nothing a_failure_is_the_last_item in Wrapper,
    "T4" Nothing a_stream_that_is_dropped_ends_the_search in Wrapper,
    "T5" Nothing a_limit_ends_the_stream in Wrapper,
}

async fn events(t: &Target, request: GrepRequest) -> Vec<Result<GrepEvent>> {
    t.backend.grep_stream(cx(), request.path(t.base.clone())).collect().await
}

async fn put_some(t: &Target) -> LawResult {
    for n in 0..20 {
        t.put(&format!("/{}/{n:02}", ["a", "a-b", "c"][n % 3]), "before\nhit\nafter\nhit\n").await?;
    }
    t.put("/.hidden", "hit\n").await?;
    Ok(())
}

fn end(events: &[Result<GrepEvent>]) -> &GrepSummary {
    match events.last() {
        Some(Ok(GrepEvent::End(summary))) => summary,
        other => panic!("the last item is the end, not {other:?}"),
    }
}

async fn a_stream_gives_what_a_search_collects(t: &Target) -> LawResult {
    put_some(t).await?;
    let request = GrepRequest::literal("hit").context(1, 0);
    let collected = t.grep(request.clone()).await?;
    let mut matches = Vec::new();
    for event in events(t, request).await {
        if let GrepEvent::Match(line) = event? {
            matches.push(line);
        }
    }
    assert_eq!(matches, collected.matches);
    assert_eq!(matches.len(), 80);
    Ok(())
}

async fn a_stream_of_files_gives_files(t: &Target) -> LawResult {
    put_some(t).await?;
    for output in [GrepOutput::Files, GrepOutput::Counts] {
        let request = GrepRequest::literal("hit").output(output);
        let collected = t.grep(request.clone()).await?;
        let mut files = Vec::new();
        for event in events(t, request).await {
            match event? {
                GrepEvent::File(file) => files.push(file),
                GrepEvent::End(_) => {}
                other => panic!("{other:?} was not requested"),
            }
        }
        assert_eq!(files, collected.files);
    }
    Ok(())
}

async fn the_end_is_last_and_sums_up(t: &Target) -> LawResult {
    put_some(t).await?;
    let events = events(t, GrepRequest::literal("hit").context(1, 1)).await;
    let ends = events.iter().filter(|event| matches!(event, Ok(GrepEvent::End(_)))).count();
    let summary = end(&events);
    assert_eq!((ends, summary.matches, summary.files_matched, summary.files_searched), (1, 40, 20, 20));
    assert_eq!((summary.skipped.hidden, summary.truncated), (1, None));
    Ok(())
}

async fn a_failure_is_the_last_item(t: &Target) -> LawResult {
    put_some(t).await?;
    for (request, kind) in [
        (GrepRequest::regex("("), ErrorKind::InvalidPattern),
        (GrepRequest::literal(""), ErrorKind::InvalidArgument),
        (GrepRequest::literal("x").glob("{a"), ErrorKind::InvalidPattern),
    ] {
        let mut events = events(t, request).await;
        assert_eq!(events.len(), 1);
        t.refused(events.remove(0), kind);
    }
    let missing = GrepRequest::literal("x").path(t.path("/missing"));
    let mut events: Vec<_> = t.backend.grep_stream(cx(), missing).collect().await;
    t.refused(events.pop().expect("a failure is an item"), ErrorKind::NotFound);
    Ok(())
}

async fn a_stream_that_is_dropped_ends_the_search(t: &Target) -> LawResult {
    let line = "hit ".repeat(20);
    for n in 0..8 {
        t.put(&format!("/{n}"), format!("{line}\n").repeat(20_000)).await?;
    }
    // The last file takes minutes, so that only a stream that gives items as they are found, and stops when it is dropped,
    // comes to an end.
    t.put("/slow", format!("{}\n", "ab".repeat(8_000)).repeat(250)).await?;
    for taken in [0, 1, 100] {
        let stream = t.backend.grep_stream(cx(), GrepRequest::regex("hit|a[ab]{8000}[c-z]").path(t.base.clone()));
        let some: Vec<_> = ends("a few items", stream.take(taken).collect()).await;
        assert_eq!(some.len(), taken);
    }
    let unpolled = t.backend.grep_stream(cx(), GrepRequest::literal("hit").path(t.base.clone()));
    drop(unpolled);
    assert_eq!(t.grep(GrepRequest::literal("hit").limit(1)).await?.matches.len(), 1, "the backend lives on");
    Ok(())
}

async fn a_limit_ends_the_stream(t: &Target) -> LawResult {
    put_some(t).await?;
    let events = events(t, GrepRequest::literal("hit").limit(3)).await;
    assert_eq!(events.len(), 4);
    assert_eq!((end(&events).matches, end(&events).truncated), (3, Some(TruncationReason::Limit)));
    Ok(())
}

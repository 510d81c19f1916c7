//! Concurrent writes of one file.

use futures::future::join_all;
use vfs_core::{ErrorKind, ReadRequest, WriteMode, WriteRequest};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "write" in Storage:
    "W8" Nothing one_of_many_creators_wins in Wrapper,
    "W10" Nothing one_of_many_writers_on_a_version_wins,
    "W11" Nothing a_reader_sees_whole_files_only,
    "W12" Nothing every_acknowledged_append_is_in_the_file,
}

/// Number of tasks that change one file concurrently.
const TASKS: usize = 64;

async fn one_of_many_creators_wins(t: &Target) -> LawResult {
    let attempts = (0..TASKS).map(|task| {
        let (backend, request) = (t.shared(), WriteRequest::new(t.path("/d/a.txt"), format!("task {task}\n")));
        tokio::spawn(async move { backend.write(&cx(), request).await })
    });
    let mut winners = Vec::new();
    for (task, attempt) in join_all(attempts).await.into_iter().enumerate() {
        match attempt.expect("the task did not panic") {
            Ok(result) => winners.push((task, result.version)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error:?}"),
        }
    }
    let [(task, version)] = &winners[..] else { panic!("{} winners", winners.len()) };
    assert_eq!(t.text("/d/a.txt").await?, format!("task {task}\n"));
    assert_eq!(t.stat("/d/a.txt").await?.version.as_ref(), Some(version));
    assert_eq!(t.tree().await?, ["/d", "/d/a.txt"]);
    Ok(())
}

async fn one_of_many_writers_on_a_version_wins(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "nobody\n").await?;
    let attempts = (0..TASKS).map(|task| {
        let content = format!("task {task}\n");
        let request = WriteRequest::new(t.path("/a.txt"), content).mode(WriteMode::IfVersion(version.clone()));
        let backend = t.shared();
        tokio::spawn(async move { backend.write(&cx(), request).await })
    });
    let mut winners = Vec::new();
    for (task, attempt) in join_all(attempts).await.into_iter().enumerate() {
        match attempt.expect("the task did not panic") {
            Ok(_) => winners.push(task),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
        }
    }
    let [task] = winners[..] else { panic!("{winners:?} won") };
    assert_eq!(t.text("/a.txt").await?, format!("task {task}\n"));
    Ok(())
}

async fn a_reader_sees_whole_files_only(t: &Target) -> LawResult {
    let whole = |letter: char| letter.to_string().repeat(20_000);
    t.put("/a.txt", whole('a')).await?;
    let (backend, path) = (t.shared(), t.path("/a.txt"));
    let writer = tokio::spawn(async move {
        for round in 0..200_u8 {
            let content = char::from(b'a' + round % 26).to_string().repeat(20_000);
            backend.write(&cx(), WriteRequest::new(path.clone(), content).mode(WriteMode::Overwrite)).await?;
        }
        Ok::<_, vfs_core::Error>(())
    });
    let mut reads = 0;
    while !writer.is_finished() || reads == 0 {
        let result = t.read(ReadRequest::new(t.path("/a.txt"))).await?;
        let text = result.content.as_text().expect("it is text");
        let first = text.chars().next().expect("it is never empty");
        assert!(text == whole(first), "{} bytes, not all of them '{first}'", text.len());
        reads += 1;
    }
    writer.await.expect("the task did not panic")
}

async fn every_acknowledged_append_is_in_the_file(t: &Target) -> LawResult {
    let attempts = (0..TASKS).map(|task| {
        let request = WriteRequest::new(t.path("/a.log"), format!("task {task}\n")).mode(WriteMode::Append);
        let backend = t.shared();
        tokio::spawn(async move { backend.write(&cx(), request).await })
    });
    for attempt in join_all(attempts).await {
        attempt.expect("the task did not panic")?;
    }
    let text = t.text("/a.log").await?;
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<_> = (0..TASKS).map(|task| format!("task {task}")).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    Ok(())
}

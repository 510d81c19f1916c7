//! Mutations with an operation id, which are made once however often they are sent.

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::error::ErrorDetail;
use vfs_core::{
    BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, OpContext, OpenWriterRequest,
    OperationId, RenameRequest, Result, WriteMode, WriteRequest, WriteResult,
};

use super::LawResult;
use crate::target::Target;

laws! { "operation_ids" in Storage:
    "OI1" OperationIds each_mutation_that_is_repeated_is_made_once_with_the_first_result in Wrapper,
    "OI1" OperationIds a_thousand_repeated_appends_are_made_once,
    "OI2" OperationIds of_concurrent_calls_with_one_id_all_have_the_same_result,
    "OI3" OperationIds an_id_with_another_request_is_a_conflict_and_elsewhere_another_mutation in Wrapper,
    "OI4" OperationIds a_mutation_that_failed_is_made_when_it_is_repeated,
}

fn with_id(id: &str) -> OpContext {
    OpContext::new().with_operation_id(OperationId::parse(id).expect("laws name valid ids"))
}

impl Target {
    async fn append_with_id(&self, id: &str, path: &str, text: &str) -> Result<WriteResult> {
        let request = WriteRequest::new(self.path(path), text.to_owned()).mode(WriteMode::Append);
        self.backend.write(&with_id(id), request).await
    }

    async fn write_in_chunks_with_id(&self, id: &str, path: &str, chunks: &[Bytes]) -> Result<WriteResult> {
        let request = OpenWriterRequest::new(self.path(path)).mode(WriteMode::CreateNew);
        let mut writer = self.backend.open_writer(&with_id(id), request).await?;
        for chunk in chunks {
            writer.write(chunk.clone()).await?;
        }
        writer.commit().await
    }
}

async fn each_mutation_that_is_repeated_is_made_once_with_the_first_result(t: &Target) -> LawResult {
    let files = &t.backend;
    let cx = with_id("one");
    let create = || WriteRequest::new(t.path("/d/a"), "one\n");
    assert_eq!(files.write(&cx, create()).await?, files.write(&cx, create()).await?);
    assert_eq!(t.append_with_id("two", "/d/a", "two\n").await?, t.append_with_id("two", "/d/a", "two\n").await?);
    assert_eq!(t.text("/d/a").await?, "one\ntwo\n");
    let edit = || EditRequest::new(t.path("/d/a"), "o", "oo").replace_all().with_diff();
    let edited = files.edit(&cx, edit()).await?;
    assert_eq!((edited.occurrences, files.edit(&cx, edit()).await?), (2, edited));
    assert_eq!(t.text("/d/a").await?, "oone\ntwoo\n");
    let copy = || CopyRequest::new(t.path("/d"), t.path("/e"));
    assert_eq!(files.copy(&cx, copy()).await?, files.copy(&cx, copy()).await?);
    let rename = || RenameRequest::new(t.path("/e/a"), t.path("/e/b"));
    assert_eq!(files.rename(&cx, rename()).await?, files.rename(&cx, rename()).await?);
    let delete = || DeleteRequest::new(t.path("/d/a"));
    assert_eq!(files.delete(&cx, delete()).await?, files.delete(&cx, delete()).await?);
    let large = [Bytes::from(vec![b'x'; 9_000_000]), Bytes::from_static(b"end")];
    for chunks in [&large[1..], &large[..]] {
        let path = format!("/w/{}", chunks.len());
        let first = t.write_in_chunks_with_id("one", &path, chunks).await?;
        assert_eq!(t.write_in_chunks_with_id("one", &path, chunks).await?, first);
    }
    let upload =
        || [("/u/1", "1"), ("/u/2", "2"), ("/u/2", "3")].map(|(path, text)| FileUploadRequest::new(t.path(path), text));
    let first = files.upload_files(&cx, upload().into()).await;
    t.put("/u/1", "changed since").await?;
    let again = files.upload_files(&cx, upload().into()).await;
    let outcome = |responses: &[vfs_core::FileUploadResponse]| -> Vec<_> {
        responses.iter().map(|response| (response.error, response.version.clone())).collect()
    };
    assert_eq!(outcome(&first), outcome(&again));
    assert!(first.iter().all(|response| response.error.is_none()), "{first:?}");
    assert_eq!((t.text("/u/1").await?.as_str(), t.text("/u/2").await?.as_str()), ("changed since", "3"));
    assert_eq!(t.tree().await?, ["/e", "/e/b", "/u", "/u/1", "/u/2", "/w", "/w/1", "/w/2"]);
    Ok(())
}

async fn a_thousand_repeated_appends_are_made_once(t: &Target) -> LawResult {
    let append = |number: u32| async move {
        let (id, path, line) = (format!("append {number}"), format!("/log/{}", number % 10), format!("{number}\n"));
        let first = t.append_with_id(&id, &path, &line).await?;
        assert_eq!(t.append_with_id(&id, &path, &line).await?, first);
        Ok::<_, vfs_core::Error>(())
    };
    stream::iter((0..1000).map(append)).buffer_unordered(8).try_collect::<()>().await?;
    let mut numbers = Vec::new();
    for file in 0..10 {
        let text = t.text(&format!("/log/{file}")).await?;
        numbers.extend(text.lines().map(|line| line.parse::<u32>().expect("a number")));
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..1000), "each line is there once");
    Ok(())
}

async fn of_concurrent_calls_with_one_id_all_have_the_same_result(t: &Target) -> LawResult {
    let results = join_all((0..8).map(|_| t.append_with_id("same", "/a", "line\n"))).await;
    let results: Vec<_> = results.into_iter().collect::<Result<_>>()?;
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!(t.text("/a").await?, "line\n");
    Ok(())
}

async fn an_id_with_another_request_is_a_conflict_and_elsewhere_another_mutation(t: &Target) -> LawResult {
    t.append_with_id("id", "/a", "one\n").await?;
    let error = t.refused(t.append_with_id("id", "/a", "two\n").await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::OperationIdReused));
    t.append_with_id("id", "/b", "two\n").await?;
    t.append_with_id("other", "/a", "one\n").await?;
    assert_eq!((t.text("/a").await?.as_str(), t.text("/b").await?.as_str()), ("one\none\n", "two\n"));
    // A call without an id is another mutation, too.
    t.backend.append_text(t.path("/a").as_str(), "one\n").await?;
    assert_eq!(t.text("/a").await?, "one\none\none\n");
    Ok(())
}

async fn a_mutation_that_failed_is_made_when_it_is_repeated(t: &Target) -> LawResult {
    t.put("/a", "first").await?;
    let cx = with_id("id");
    let request = || WriteRequest::new(t.path("/a"), "second");
    t.refused(t.backend.write(&cx, request()).await, ErrorKind::AlreadyExists);
    t.backend.delete(&OpContext::new(), DeleteRequest::new(t.path("/a"))).await?;
    assert!(t.backend.write(&cx, request()).await?.created);
    assert_eq!(t.text("/a").await?, "second");
    Ok(())
}

//! Writes and reads of files in chunks.

use bytes::Bytes;
use chrono::SubsecRound as _;
use futures::TryStreamExt as _;
use vfs_core::chunks::read_chunks;
use vfs_core::error::ErrorDetail;
use vfs_core::{
    BackendExt, Error, ErrorKind, FileWriter, OpContext, OpenWriterRequest, ReadRequest, Result, WriteMode, WriteResult,
};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "chunks" in Storage:
    "CH1" Nothing a_writer_makes_a_new_file_of_its_chunks_with_its_parents in Smoke,
    "CH1" Nothing a_file_of_many_megabytes_is_written_and_read_in_chunks,
    "CH2" Nothing nothing_is_there_before_the_commit_and_nothing_is_left_without_one in Wrapper,
    "CH3" Nothing the_mode_holds_at_the_commit in Wrapper,
    "CH3" Nothing of_two_writers_of_a_new_file_one_wins,
    "CH4" Nothing a_writer_that_appends_is_refused in Wrapper,
    "CH5" Nothing a_path_that_cannot_be_a_file_is_refused,
    "CH6" Nothing a_cancelled_writer_writes_nothing in Wrapper,
    "CH7" SetTimes a_writer_sets_the_time_that_it_is_given,
    "CH8" Nothing the_chunks_of_a_read_are_the_file_in_order in Wrapper,
    "CH9" Nothing a_file_that_changes_between_two_chunks_is_a_conflict in Wrapper,
    "CH10" Nothing a_writer_commits_once in Wrapper,
}

impl Target {
    fn writer_request(&self, path: &str, mode: WriteMode) -> OpenWriterRequest {
        OpenWriterRequest::new(self.path(path)).mode(mode)
    }

    async fn open_writer(&self, path: &str, mode: WriteMode) -> Result<Box<dyn FileWriter>> {
        self.backend.open_writer(&cx(), self.writer_request(path, mode)).await
    }

    async fn write_in_chunks(&self, path: &str, mode: WriteMode, chunks: &[&'static [u8]]) -> Result<WriteResult> {
        let mut writer = self.open_writer(path, mode).await?;
        for chunk in chunks {
            writer.write(Bytes::from_static(chunk)).await?;
        }
        writer.commit().await
    }

    async fn read_in_chunks(&self, path: &str, request: impl FnOnce(ReadRequest) -> ReadRequest) -> Result<Vec<Bytes>> {
        let chunks = read_chunks(self.shared(), cx(), request(ReadRequest::new(self.path(path))));
        chunks.map_ok(|chunk| Bytes::copy_from_slice(chunk.content.as_bytes())).try_collect().await
    }
}

async fn a_writer_makes_a_new_file_of_its_chunks_with_its_parents(t: &Target) -> LawResult {
    let written = t.write_in_chunks("/d/e/a.bin", WriteMode::CreateNew, &[b"one\n", b"", b"\xff\0", b"two"]).await?;
    assert_eq!((written.path, written.created, written.size), (t.path("/d/e/a.bin"), true, 9));
    assert_eq!(t.bytes("/d/e/a.bin").await?, &b"one\n\xff\0two"[..]);
    assert_eq!(t.stat("/d/e/a.bin").await?.version, Some(written.version));
    let empty = t.write_in_chunks("/empty", WriteMode::CreateNew, &[]).await?;
    assert_eq!((empty.size, t.bytes("/empty").await?), (0, Bytes::new()));
    Ok(())
}

async fn a_file_of_many_megabytes_is_written_and_read_in_chunks(t: &Target) -> LawResult {
    let block = |number: u32| Bytes::from(number.to_le_bytes().repeat(100_000));
    let mut writer = t.open_writer("/large", WriteMode::CreateNew).await?;
    for number in 0..25 {
        writer.write(block(number)).await?;
    }
    assert_eq!(writer.commit().await?.size, 10_000_000);
    let chunks = t.read_in_chunks("/large", |request| request.max_bytes(1_000_000)).await?;
    assert_eq!(chunks.iter().map(Bytes::len).collect::<Vec<_>>(), [1_000_000; 10]);
    let expected: Vec<u8> = (0..25).flat_map(block).collect();
    assert!(chunks.concat() == expected, "the bytes are those that were written");
    Ok(())
}

async fn nothing_is_there_before_the_commit_and_nothing_is_left_without_one(t: &Target) -> LawResult {
    t.put("/a", "first").await?;
    let before = t.tree().await?;
    let mut over = t.open_writer("/a", WriteMode::Overwrite).await?;
    let mut new = t.open_writer("/new/b", WriteMode::CreateNew).await?;
    for writer in [&mut over, &mut new] {
        writer.write(Bytes::from_static(b"second")).await?;
    }
    assert_eq!((t.text("/a").await?.as_str(), t.tree().await?), ("first", before.clone()));
    drop((over, new));
    assert_eq!((t.text("/a").await?.as_str(), t.tree().await?), ("first", before));
    Ok(())
}

async fn the_mode_holds_at_the_commit(t: &Target) -> LawResult {
    let first = t.put("/a", "first").await?;
    let mut on_first = t.open_writer("/a", WriteMode::IfVersion(first.clone())).await?;
    on_first.write(Bytes::from_static(b"mine")).await?;
    let second = t.put("/a", "second").await?;
    let error = t.refused(on_first.commit().await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: Some(second.clone()) }));
    let written = t.write_in_chunks("/a", WriteMode::IfVersion(second), &[b"third"]).await?;
    assert!(!written.created);
    let over = t.write_in_chunks("/a", WriteMode::Overwrite, &[b"fourth"]).await?;
    assert_eq!((over.created, t.text("/a").await?.as_str()), (false, "fourth"));
    let missing = t.write_in_chunks("/gone", WriteMode::IfVersion(first), &[b"x"]).await;
    t.refused(missing, ErrorKind::Conflict);
    Ok(())
}

async fn of_two_writers_of_a_new_file_one_wins(t: &Target) -> LawResult {
    let (mut one, mut two) =
        (t.open_writer("/d/a", WriteMode::CreateNew).await?, t.open_writer("/d/a", WriteMode::CreateNew).await?);
    one.write(Bytes::from_static(b"one")).await?;
    two.write(Bytes::from_static(b"two")).await?;
    let (one, two) = futures::join!(one.commit(), two.commit());
    let (won, lost, text) = if one.is_ok() { (one, two, "one") } else { (two, one, "two") };
    assert!(won?.created);
    t.refused(lost, ErrorKind::AlreadyExists);
    assert_eq!(t.text("/d/a").await?, text);
    Ok(())
}

async fn a_writer_that_appends_is_refused(t: &Target) -> LawResult {
    t.refused(t.write_in_chunks("/a", WriteMode::Append, &[b"x"]).await, ErrorKind::InvalidArgument);
    assert!(!t.has("/a").await?);
    Ok(())
}

async fn a_path_that_cannot_be_a_file_is_refused(t: &Target) -> LawResult {
    t.put_each(&["/d/x", "/f"]).await?;
    for (path, kind) in [("/d", ErrorKind::IsADirectory), ("/f/below", ErrorKind::NotADirectory)] {
        for mode in [WriteMode::CreateNew, WriteMode::Overwrite] {
            t.refused(t.write_in_chunks(path, mode, &[b"x"]).await, kind);
        }
    }
    assert_eq!(t.tree().await?, ["/d", "/d/x", "/f"]);
    Ok(())
}

async fn a_cancelled_writer_writes_nothing(t: &Target) -> LawResult {
    let context = OpContext::new();
    let mut writer = t.backend.open_writer(&context, t.writer_request("/a", WriteMode::CreateNew)).await?;
    writer.write(Bytes::from_static(b"one")).await?;
    context.cancel_token().cancel();
    t.refused(writer.write(Bytes::from_static(b"two")).await, ErrorKind::Cancelled);
    let committed: Result<_> = writer.commit().await;
    let kinds = [ErrorKind::Cancelled, ErrorKind::InvalidArgument];
    assert!(kinds.contains(&committed.as_ref().map_or_else(Error::kind, |_| ErrorKind::Internal)), "{committed:?}");
    assert!(!t.has("/a").await?);
    Ok(())
}

async fn a_writer_sets_the_time_that_it_is_given(t: &Target) -> LawResult {
    let at = "2024-02-29T12:00:00.123456Z".parse::<chrono::DateTime<chrono::Utc>>().expect("a time");
    let request = t.writer_request("/a", WriteMode::CreateNew).modified_at(at);
    let mut writer = t.backend.open_writer(&cx(), request).await?;
    writer.write(Bytes::from_static(b"x")).await?;
    writer.commit().await?;
    let stored = t.stat("/a").await?.modified_at;
    assert_eq!(stored.map(|time| time.trunc_subsecs(6)), Some(at), "to the microsecond");
    Ok(())
}

async fn the_chunks_of_a_read_are_the_file_in_order(t: &Target) -> LawResult {
    t.put("/a", "0123456789").await?;
    t.put("/empty", "").await?;
    assert_eq!(t.read_in_chunks("/a", |request| request.max_bytes(4)).await?, ["0123", "4567", "89"]);
    assert_eq!(t.read_in_chunks("/a", |request| request.bytes(2, Some(7)).max_bytes(3)).await?, ["234", "56"]);
    assert_eq!(t.read_in_chunks("/a", |request| request).await?, ["0123456789"]);
    assert_eq!(t.read_in_chunks("/empty", |request| request.max_bytes(4)).await?, [""]);
    t.refused(t.read_in_chunks("/gone", |request| request).await, ErrorKind::NotFound);
    Ok(())
}

async fn a_file_that_changes_between_two_chunks_is_a_conflict(t: &Target) -> LawResult {
    for change in ["changed", "removed"] {
        t.put("/a", "0123456789").await?;
        let mut chunks = read_chunks(t.shared(), cx(), ReadRequest::new(t.path("/a")).max_bytes(4));
        assert!(chunks.try_next().await?.is_some());
        match change {
            "changed" => drop(t.put("/a", "another content").await?),
            _ => t.backend.delete_file(t.path("/a").as_str()).await?,
        }
        t.refused(chunks.try_next().await, ErrorKind::Conflict);
        assert!(chunks.try_next().await?.is_none(), "nothing comes after an error");
    }
    Ok(())
}

async fn a_writer_commits_once(t: &Target) -> LawResult {
    let mut writer = t.open_writer("/a", WriteMode::Overwrite).await?;
    writer.write(Bytes::from_static(b"one")).await?;
    let written = writer.commit().await?;
    t.refused(writer.commit().await, ErrorKind::InvalidArgument);
    t.refused(writer.write(Bytes::from_static(b"two")).await, ErrorKind::InvalidArgument);
    t.refused(writer.commit().await, ErrorKind::InvalidArgument);
    assert_eq!((t.text("/a").await?.as_str(), t.stat("/a").await?.version), ("one", Some(written.version)));
    Ok(())
}

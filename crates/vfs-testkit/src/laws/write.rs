//! Writes of files.

use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::error::ErrorDetail;
use vfs_core::{Content, ErrorKind, FileUploadRequest, LsRequest, ReadRequest, Version, WriteMode, WriteRequest};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "write" in Storage:
    "W1" Nothing a_new_file_is_made_with_its_parents in Smoke,
    "W2" Nothing an_existing_file_is_not_replaced_by_default in Wrapper,
    "W3" Nothing overwrite_replaces_all_of_a_file,
    "W4" Nothing append_adds_to_the_end_and_makes_the_file in Wrapper,
    "W5" Nothing a_write_on_a_version_replaces_that_version_only in Wrapper,
    "W5" Nothing a_write_on_a_version_of_a_missing_file_is_a_conflict,
    "W6" Nothing the_result_describes_the_written_file in Wrapper,
    "W7" Nothing any_bytes_can_be_written,
    "W7" Nothing an_empty_file_can_be_written,
    "W9" Nothing nothing_but_the_files_is_left_in_a_listing,
    "W13" SetTimes a_write_sets_the_time_that_it_is_given in Wrapper,
    "W13" SetTimes contents_of_one_time_have_different_versions,
    "W14" FixedTimes a_time_that_cannot_be_set_is_refused in Wrapper,
}

async fn a_new_file_is_made_with_its_parents(t: &Target) -> LawResult {
    t.write(WriteRequest::new(t.path("/a/b/c.txt"), "new\n")).await?;
    assert_eq!(t.text("/a/b/c.txt").await?, "new\n");
    assert_eq!(t.tree().await?, ["/a", "/a/b", "/a/b/c.txt"]);
    Ok(())
}

async fn an_existing_file_is_not_replaced_by_default(t: &Target) -> LawResult {
    let version = t.put("/a.txt", "first\n").await?;
    let path = t.path("/a.txt");
    let error = t.refused(t.write(WriteRequest::new(path.clone(), "second")).await, ErrorKind::AlreadyExists);
    let sentence = "because it already exists. Read and then make an edit, or write to a new path.";
    assert_eq!(error.for_model(), format!("Cannot write to {path} {sentence}"));
    assert_eq!(t.text("/a.txt").await?, "first\n");
    assert_eq!(t.stat("/a.txt").await?.version, Some(version));
    Ok(())
}

async fn overwrite_replaces_all_of_a_file(t: &Target) -> LawResult {
    let request = |content: &'static str| WriteRequest::new(t.path("/a.txt"), content).mode(WriteMode::Overwrite);
    assert!(t.write(request("a long first content\n")).await?.created);
    assert!(!t.write(request("short\n")).await?.created);
    assert_eq!(t.text("/a.txt").await?, "short\n");
    Ok(())
}

async fn append_adds_to_the_end_and_makes_the_file(t: &Target) -> LawResult {
    let request = |content: &'static [u8]| WriteRequest::new(t.path("/d/a.log"), content).mode(WriteMode::Append);
    let made = t.write(request(b"one")).await?;
    assert_eq!((made.created, made.size), (true, 3));
    let added = t.write(request(b"\ntwo\xff")).await?;
    assert_eq!((added.created, added.size), (false, 8));
    assert_eq!(t.stat("/d/a.log").await?.version, Some(added.version));
    assert_eq!(t.write(request(b"")).await?.size, 8);
    assert_eq!(t.bytes("/d/a.log").await?, &b"one\ntwo\xff"[..]);
    Ok(())
}

async fn a_write_on_a_version_replaces_that_version_only(t: &Target) -> LawResult {
    let path = t.path("/a.txt");
    let first = t.put("/a.txt", "first\n").await?;
    let on = |version: &Version, content: &'static str| {
        WriteRequest::new(path.clone(), content).mode(WriteMode::IfVersion(version.clone()))
    };
    let second = t.write(on(&first, "second\n")).await?;
    assert!(!second.created && second.version != first);
    let error = t.refused(t.write(on(&first, "third\n")).await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: Some(second.version.clone()) }));
    t.refused(t.write(on(&Version::new("made up"), "third\n")).await, ErrorKind::Conflict);
    assert_eq!(t.text("/a.txt").await?, "second\n");
    t.write(on(&second.version, "third\n")).await?;
    assert_eq!(t.text("/a.txt").await?, "third\n");
    Ok(())
}

async fn a_write_on_a_version_of_a_missing_file_is_a_conflict(t: &Target) -> LawResult {
    let version = t.put("/other.txt", "x").await?;
    let request = WriteRequest::new(t.path("/d/a.txt"), "x").mode(WriteMode::IfVersion(version));
    let error = t.refused(t.write(request).await, ErrorKind::Conflict);
    assert_eq!(error.detail(), Some(&ErrorDetail::Conflict { actual: None }));
    assert_eq!(t.tree().await?, ["/other.txt"], "not even a directory was made");
    Ok(())
}

async fn the_result_describes_the_written_file(t: &Target) -> LawResult {
    let result = t.write(WriteRequest::new(t.path("/d/a.txt"), "héllo\n")).await?;
    let info = t.stat("/d/a.txt").await?;
    assert_eq!((result.path, result.created, result.size), (t.path("/d/a.txt"), true, 7));
    assert_eq!((Some(result.version), 7), (info.version, info.size));
    Ok(())
}

async fn any_bytes_can_be_written(t: &Target) -> LawResult {
    let every_byte: Vec<u8> = (0..=255).cycle().take(4096).collect();
    for content in [every_byte, b"\xff\xfe\x00".to_vec(), b"\0".repeat(100_000), b"\xed\xa0\x80".to_vec()] {
        t.put("/a.bin", content.clone()).await?;
        assert_eq!(t.bytes("/a.bin").await?, content);
        let whole = t.read(ReadRequest::new(t.path("/a.bin")).bytes(0, None)).await?;
        assert_eq!(whole.size, content.len() as u64);
        if let Content::Binary { bytes, .. } = whole.content {
            assert_eq!(bytes, content);
        }
    }
    Ok(())
}

async fn an_empty_file_can_be_written(t: &Target) -> LawResult {
    let result = t.write(WriteRequest::new(t.path("/empty"), "")).await?;
    assert_eq!((result.created, result.size), (true, 0));
    assert_eq!(t.stat("/empty").await?.size, 0);
    t.refused(t.write(WriteRequest::new(t.path("/empty"), "x")).await, ErrorKind::AlreadyExists);
    Ok(())
}

async fn nothing_but_the_files_is_left_in_a_listing(t: &Target) -> LawResult {
    for round in 0..20 {
        t.put("/d/a.txt", format!("{round}\n")).await?;
        let again = WriteRequest::new(t.path("/d/a.txt"), "x");
        t.refused(t.write(again.clone()).await, ErrorKind::AlreadyExists);
        t.refused(t.write(again.mode(WriteMode::IfVersion("old".into()))).await, ErrorKind::Conflict);
    }
    let listing = t.ls(LsRequest::new(t.base.clone()).recursive()).await?;
    assert_eq!(t.names(&listing.entries), ["/d", "/d/a.txt"]);
    assert!(listing.problems.is_empty());
    Ok(())
}

/// Returns a moment in the distant past with a fraction of `microseconds`.
fn long_ago(microseconds: u32) -> DateTime<Utc> {
    DateTime::from_timestamp(981_173_106, microseconds * 1_000 + 999).expect("it is a time")
}

async fn assert_modified_at(t: &Target, name: &str, at: DateTime<Utc>) -> LawResult {
    let of_stat = t.stat(name).await?.modified_at.map(|at| at.trunc_subsecs(6));
    assert_eq!(of_stat, Some(at.trunc_subsecs(6)));
    let listed = t.ls(LsRequest::new(t.path(name).parent().expect("it is below a directory"))).await?.entries;
    let listed = listed.into_iter().find(|entry| entry.path == t.path(name)).expect("it is listed");
    assert_eq!(listed.modified_at.map(|at| at.trunc_subsecs(6)), of_stat);
    Ok(())
}

/// The time is set in every mode, and by an upload; the next write has its own time again.
async fn a_write_sets_the_time_that_it_is_given(t: &Target) -> LawResult {
    let write = |content: &'static str, mode| WriteRequest::new(t.path("/d/a.txt"), content).mode(mode);
    t.write(write("one", WriteMode::CreateNew).modified_at(long_ago(123_456))).await?;
    assert_modified_at(t, "/d/a.txt", long_ago(123_456)).await?;
    t.write(write("two", WriteMode::Overwrite).modified_at(long_ago(0))).await?;
    assert_modified_at(t, "/d/a.txt", long_ago(0)).await?;
    let version = t.write(write("+", WriteMode::Append).modified_at(long_ago(1))).await?.version;
    assert_modified_at(t, "/d/a.txt", long_ago(1)).await?;
    assert_eq!((t.text("/d/a.txt").await?, t.stat("/d/a.txt").await?.version), ("two+".into(), Some(version.clone())));
    t.write(write("three", WriteMode::IfVersion(version)).modified_at(long_ago(999_999))).await?;
    assert_modified_at(t, "/d/a.txt", long_ago(999_999)).await?;

    let upload = FileUploadRequest::new(t.path("/d/b.txt"), "four").modified_at(long_ago(7));
    let answer = t.backend.upload_files(&cx(), vec![upload]).await.remove(0);
    assert_eq!((answer.cause, answer.version), (None, t.stat("/d/b.txt").await?.version));
    assert_modified_at(t, "/d/b.txt", long_ago(7)).await?;

    t.write(write("five", WriteMode::Overwrite)).await?;
    assert!(t.stat("/d/a.txt").await?.modified_at > Some(long_ago(999_999)), "a write has the time of now");
    Ok(())
}

async fn contents_of_one_time_have_different_versions(t: &Target) -> LawResult {
    let mut versions = Vec::new();
    for n in 100..130 {
        let request = WriteRequest::new(t.path("/a.txt"), n.to_string()).mode(WriteMode::Overwrite);
        versions.push(t.write(request.modified_at(long_ago(5))).await?.version);
    }
    for (at, version) in versions.iter().enumerate() {
        assert!(!versions[..at].contains(version), "two contents have the version {version}");
    }
    Ok(())
}

async fn a_time_that_cannot_be_set_is_refused(t: &Target) -> LawResult {
    let request = WriteRequest::new(t.path("/a.txt"), "x").modified_at(long_ago(0));
    t.refused(t.write(request).await, ErrorKind::Unsupported);
    let files = vec![
        FileUploadRequest::new(t.path("/b.txt"), "x").modified_at(long_ago(0)),
        FileUploadRequest::new(t.path("/c.txt"), "x"),
    ];
    let answers = t.backend.upload_files(&cx(), files).await;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.cause.as_ref().map(vfs_core::Error::kind)).collect();
    assert_eq!(kinds, [Some(ErrorKind::Unsupported), None]);
    assert_eq!(t.tree().await?, ["/c.txt"]);
    Ok(())
}

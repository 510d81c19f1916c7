//! Uploads.

use vfs_core::transfer::FileOperationError;
use vfs_core::{Error, ErrorKind, FileUploadRequest, FileUploadResponse};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "upload" in Storage:
    "U1" Nothing answers_are_in_the_order_of_the_request in Smoke,
    "U2" Nothing one_failure_does_not_stop_the_others in Wrapper,
    "U3" Nothing uploads_overwrite_and_make_parents,
    "U4" Nothing any_bytes_are_taken,
    "U5" Nothing an_empty_upload_has_no_results,
}

async fn upload(t: &Target, files: &[(&str, &[u8])]) -> Vec<FileUploadResponse> {
    let files = files.iter().map(|(path, content)| FileUploadRequest::new(t.path(path), content.to_vec())).collect();
    t.backend.upload_files(&cx(), files).await
}

async fn answers_are_in_the_order_of_the_request(t: &Target) -> LawResult {
    let names: Vec<_> = (0..50).map(|n| format!("/{}/{n}", 49 - n)).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
    let answers = upload(t, &files).await;
    assert_eq!(answers.iter().map(|answer| t.name(&answer.path)).collect::<Vec<_>>(), names);
    for (answer, name) in answers.iter().zip(&names) {
        assert_eq!((answer.error, &answer.cause), (None, &None));
        assert_eq!(answer.version, t.stat(name).await?.version);
        assert_eq!(t.text(name).await?, *name);
    }
    Ok(())
}

async fn one_failure_does_not_stop_the_others(t: &Target) -> LawResult {
    t.put_each(&["/d/x", "/f"]).await?;
    let answers = upload(t, &[("/a", b"1"), ("/d", b"2"), ("/f/below", b"3"), ("/b", b"4")]).await;
    let expected = [
        None,
        Some((FileOperationError::IsDirectory, ErrorKind::IsADirectory)),
        Some((FileOperationError::InvalidPath, ErrorKind::NotADirectory)),
        None,
    ];
    assert_eq!(answers.len(), expected.len());
    for (answer, expected) in answers.iter().zip(expected) {
        assert_eq!(answer.error.zip(answer.cause.as_ref().map(Error::kind)), expected, "{answer:?}");
        assert_eq!(answer.version.is_some(), expected.is_none(), "{answer:?}");
        if let Some(cause) = &answer.cause {
            assert_eq!(cause.path(), Some(answer.path.as_str()));
            t.assert_fit_to_be_shown(cause);
        }
    }
    assert_eq!(t.tree().await?, ["/a", "/b", "/d", "/d/x", "/f"]);
    Ok(())
}

async fn uploads_overwrite_and_make_parents(t: &Target) -> LawResult {
    t.put("/a", "a long first content").await?;
    upload(t, &[("/a", b"second"), ("/new/deep/b", b"b"), ("/twice", b"1"), ("/twice", b"2")]).await;
    assert_eq!((t.text("/a").await?, t.text("/new/deep/b").await?), ("second".into(), "b".into()));
    assert_eq!(t.text("/twice").await?, "2", "the later of two wins");
    Ok(())
}

async fn any_bytes_are_taken(t: &Target) -> LawResult {
    let every_byte: Vec<u8> = (0..=255).collect();
    let answers = upload(t, &[("/every", &every_byte), ("/empty", b""), ("/nul", b"\0\0\0")]).await;
    assert!(answers.iter().all(|answer| answer.error.is_none()));
    assert_eq!(t.bytes("/every").await?, every_byte);
    assert!(t.bytes("/empty").await?.is_empty());
    assert_eq!(t.bytes("/nul").await?, &b"\0\0\0"[..]);
    Ok(())
}

async fn an_empty_upload_has_no_results(t: &Target) -> LawResult {
    assert!(upload(t, &[]).await.is_empty());
    assert!(t.backend.download_files(&cx(), Vec::new()).await.is_empty());
    Ok(())
}

//! Downloads.

use vfs_core::transfer::FileOperationError;
use vfs_core::{Error, ErrorKind};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "download" in Storage:
    "N1" Nothing answers_are_in_the_order_of_the_request in Smoke,
    "N2" Nothing one_failure_does_not_stop_the_others in Wrapper,
    "N3" Nothing the_bytes_are_the_file_as_it_is,
    "N3" Nothing a_file_of_many_megabytes_comes_whole,
}

async fn answers_are_in_the_order_of_the_request(t: &Target) -> LawResult {
    t.put_each(&["/a", "/b", "/c"]).await?;
    let order = ["/c", "/a", "/b", "/a"];
    let answers = t.backend.download_files(&cx(), order.iter().map(|path| t.path(path)).collect()).await;
    assert_eq!(answers.len(), order.len());
    for (answer, path) in answers.iter().zip(order) {
        assert_eq!(answer.path, t.path(path));
        assert_eq!(answer.content.as_deref(), Some(format!("{path}\n").as_bytes()));
        assert_eq!(answer.version, t.stat(path).await?.version);
    }
    Ok(())
}

async fn one_failure_does_not_stop_the_others(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/x"]).await?;
    let paths = ["/missing", "/a", "/d", "/a/below"].map(|path| t.path(path)).to_vec();
    let answers = t.backend.download_files(&cx(), paths).await;
    let expected = [
        Some((FileOperationError::FileNotFound, ErrorKind::NotFound)),
        None,
        Some((FileOperationError::IsDirectory, ErrorKind::IsADirectory)),
        Some((FileOperationError::InvalidPath, ErrorKind::NotADirectory)),
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        assert_eq!(answer.error.zip(answer.cause.as_ref().map(Error::kind)), expected, "{answer:?}");
        assert_eq!(answer.content.is_some(), expected.is_none(), "{answer:?}");
        if let Some(cause) = &answer.cause {
            assert_eq!(cause.path(), Some(answer.path.as_str()));
            t.assert_fit_to_be_shown(cause);
        }
    }
    Ok(())
}

async fn the_bytes_are_the_file_as_it_is(t: &Target) -> LawResult {
    for content in [&b""[..], b"a\r\nb\n", b"\xef\xbb\xbfmarked", b"\xff\xfea\0", b"\0\x01\xff", b"no line end"] {
        t.put("/a", content.to_vec()).await?;
        assert_eq!(t.bytes("/a").await?, content);
    }
    Ok(())
}

async fn a_file_of_many_megabytes_comes_whole(t: &Target) -> LawResult {
    let content: Vec<u8> = (0..(16_u32 << 20)).map(|n| (n % 251) as u8).collect();
    t.put("/big", content.clone()).await?;
    assert!(t.bytes("/big").await? == content, "16 MiB come back as they went");
    Ok(())
}

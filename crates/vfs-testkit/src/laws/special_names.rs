//! Names with special characters, through every operation.

use bytes::Bytes;
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, FileUploadRequest, GlobRequest, GrepRequest, LsRequest, RenameRequest,
    Result,
};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "paths" in Storage:
    "P4" Nothing ordinary_names_are_written_and_read in Wrapper,
    "P4" Nothing ordinary_names_are_described_and_listed,
    "P4" Nothing ordinary_names_are_edited,
    "P4" Nothing ordinary_names_are_found_by_their_escaped_pattern,
    "P4" Nothing ordinary_names_are_searched,
    "P4" Nothing ordinary_names_are_uploaded_and_downloaded,
    "P4" Nothing ordinary_names_are_renamed_copied_and_deleted,
    "P4" Nothing ordinary_names_are_directories_too,
    "P5" Nothing names_are_preserved_byte_for_byte,
}

fn ordinary_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a..b",
        "...",
        "..hidden",
        "foo..",
        "..\\x",
        "a\\..\\b",
        "[...slug]",
        "with space",
        " leading",
        "trailing ",
        "trailing.",
        "tab\there",
        "new\nline",
        "carriage\rreturn",
        "double\"quote",
        "single'quote",
        "$HOME",
        "${x}",
        "`id`",
        "$(id)",
        "%2e%2e",
        "%00",
        "a:b",
        "C:",
        "*",
        "?",
        "{a,b}",
        "[a-z]",
        "*?{}[]",
        "-rf",
        "--help",
        "!x",
        "#x",
        "~x",
        "~",
        "@file",
        "semi;colon",
        "a|b&c",
        "<in>out",
        "back\\slash",
        "\u{1}\u{1b}[31m",
        "\u{7f}",
        "zero\u{200b}width",
        "\u{202e}gpj.exe",
        "\u{feff}mark",
        "line\u{2028}separator",
        "😀.txt",
        "日本語.md",
        "caf\u{e9}",
        "CON",
        "nul.txt",
        ".a",
        ".gitkeep",
    ]
    .map(String::from)
    .to_vec();
    names.push("x".repeat(255));
    names.push("é".repeat(127));
    names
}

/// Puts a file of every ordinary name in `/d`, whose content is its own name after a word that all have.
async fn put_ordinary(t: &Target) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for name in ordinary_names() {
        let path = format!("/d/{name}");
        let content = format!("needle {}\n", name.escape_debug());
        t.put(&path, content.clone()).await?;
        files.push((path, content));
    }
    files.sort_unstable();
    Ok(files)
}

async fn ordinary_names_are_written_and_read(t: &Target) -> LawResult {
    for (path, content) in put_ordinary(t).await? {
        assert_eq!(t.text(&path).await?, content, "{path:?}");
    }
    t.put("/app/[...slug]/page.tsx", "route").await?;
    assert_eq!(t.text("/app/[...slug]/page.tsx").await?, "route");
    Ok(())
}

async fn ordinary_names_are_described_and_listed(t: &Target) -> LawResult {
    let files = put_ordinary(t).await?;
    for (path, content) in &files {
        let info = t.stat(path).await?;
        assert_eq!((info.path.as_str(), info.size), (t.path(path).as_str(), content.len() as u64));
    }
    let listing = t.ls(LsRequest::new(t.path("/d"))).await?;
    assert_eq!(t.names(&listing.entries), files.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>());
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    Ok(())
}

async fn ordinary_names_are_edited(t: &Target) -> LawResult {
    for (path, content) in put_ordinary(t).await? {
        t.edit(EditRequest::new(t.path(&path), "needle", "thread")).await?;
        assert_eq!(t.text(&path).await?, content.replacen("needle", "thread", 1), "{path:?}");
    }
    Ok(())
}

fn escaped(name: &str) -> String {
    name.chars().flat_map(|c| "*?[]{}\\!,".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

async fn ordinary_names_are_found_by_their_escaped_pattern(t: &Target) -> LawResult {
    for (path, _) in put_ordinary(t).await? {
        let pattern = escaped(path.strip_prefix("/d/").expect("it is in /d"));
        let result = t.glob(GlobRequest::new(&pattern).hidden()).await?;
        assert_eq!(t.names(&result.entries), [path.as_str()], "{pattern:?}");
    }
    Ok(())
}

async fn ordinary_names_are_searched(t: &Target) -> LawResult {
    let files = put_ordinary(t).await?;
    let all = t.grep(GrepRequest::literal("needle").hidden()).await?;
    let paths: Vec<_> = all.matches.iter().map(|hit| t.name(&hit.path)).collect();
    assert_eq!(paths, files.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>());
    for (path, content) in &files {
        let hits = t.hits(GrepRequest::literal("needle").path(t.path(path))).await?;
        assert_eq!(hits, [format!("{path}:1:{}", content.trim_end_matches('\n'))]);
    }
    Ok(())
}

async fn ordinary_names_are_uploaded_and_downloaded(t: &Target) -> LawResult {
    let paths: Vec<_> = ordinary_names().iter().map(|name| t.path(&format!("/d/{name}"))).collect();
    let uploads = paths.iter().map(|path| FileUploadRequest::new(path.clone(), path.as_str().to_owned())).collect();
    for answer in t.backend.upload_files(&cx(), uploads).await {
        assert_eq!(answer.error, None, "{answer:?}");
    }
    for (path, answer) in paths.iter().zip(t.backend.download_files(&cx(), paths.clone()).await) {
        assert_eq!((&answer.path, answer.content), (path, Some(Bytes::from(path.as_str().to_owned()))));
    }
    Ok(())
}

async fn ordinary_names_are_renamed_copied_and_deleted(t: &Target) -> LawResult {
    for (path, content) in put_ordinary(t).await? {
        let name = path.strip_prefix("/d/").expect("it is in /d");
        let (moved, copied) = (format!("/moved/{name}"), format!("/copied/{name}"));
        t.rename(RenameRequest::new(t.path(&path), t.path(&moved))).await?;
        t.copy(CopyRequest::new(t.path(&moved), t.path(&copied))).await?;
        assert_eq!(t.text(&copied).await?, content);
        t.delete(DeleteRequest::new(t.path(&moved))).await?;
        t.delete(DeleteRequest::new(t.path(&copied))).await?;
        assert!(!t.has(&path).await? && !t.has(&moved).await? && !t.has(&copied).await?, "{path:?}");
    }
    Ok(())
}

async fn ordinary_names_are_directories_too(t: &Target) -> LawResult {
    for name in ordinary_names() {
        let path = format!("/{name}/file");
        t.put(&path, "inside\n").await?;
        assert!(t.stat(&format!("/{name}")).await?.is_dir);
        assert_eq!(t.names(&t.ls(LsRequest::new(t.path(&format!("/{name}")))).await?.entries), [path.as_str()]);
        assert_eq!(t.delete(DeleteRequest::new(t.path(&format!("/{name}"))).recursive()).await?.files, 1);
    }
    assert!(t.tree().await?.is_empty());
    Ok(())
}

async fn names_are_preserved_byte_for_byte(t: &Target) -> LawResult {
    let names = ["/A.txt", "/a.txt", "/cafe\u{301}", "/caf\u{e9}"];
    t.put_each(&names).await?;
    assert_eq!(t.tree().await?, names, "neither case nor normal form is folded");
    for name in names {
        assert_eq!(t.text(name).await?, format!("{name}\n"));
    }
    Ok(())
}

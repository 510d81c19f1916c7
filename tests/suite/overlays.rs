//! Overlays over disks: what they show where there are links.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use tempfile::TempDir;
use vfs_composite::CompositeBackend;
use vfs_core::{
    Backend, BackendExt, DeleteRequest, ErrorKind, GlobRequest, GrepRequest, Layer, LsRequest, OpContext, Result,
    StatRequest,
};
use vfs_layers::Scoped;
use vfs_memory::MemoryBackend;
use vfs_policy::{Rule, RuleEffect};
use vfs_versions::OverlayBackend;

use super::links::{deny, disk, path};

/// An overlay that changed what links of the disk lead to.
async fn changed_behind_links() -> Result<(TempDir, OverlayBackend)> {
    let (root, base) = disk(
        &[("real/r", "old\n"), ("real/del", "old\n"), ("real/sub/s", "old\n"), ("real/gone/x", "old\n")],
        &[("ln", "real"), ("lf", "real/r"), ("real/up", "sub")],
    );
    let overlay = OverlayBackend::new(base);
    overlay.create_text("/real/q", "new\n").await?;
    overlay.write_text("/real/r", "new\n").await?;
    overlay.delete_file("/real/del").await?;
    overlay.write_text("/real/sub/s", "new\n").await?;
    overlay.delete(&OpContext::new(), DeleteRequest::new(path("/real/gone")).recursive()).await?;
    Ok((root, overlay))
}

/// The lines that a search from `start` finds, with their paths.
async fn lines(files: &dyn Backend, start: &str) -> Result<Vec<String>, ErrorKind> {
    let found = files.grep(&OpContext::new(), GrepRequest::regex("old|new").path(path(start))).await;
    let matches = found.map_err(|error| error.kind())?.matches;
    Ok(matches.into_iter().map(|hit| format!("{}:{}", hit.path, hit.text)).collect())
}

/// The names that `ls` lists, each described as by `stat`, none of them a problem.
pub(crate) async fn names(files: &dyn Backend, at: &str) -> Result<Vec<String>, ErrorKind> {
    let cx = OpContext::new();
    let listed = files.ls(&cx, LsRequest::new(path(at))).await.map_err(|error| error.kind())?;
    assert!(listed.problems.is_empty(), "{at}: {:?}", listed.problems);
    for entry in &listed.entries {
        let described = files.stat(&cx, StatRequest::new(entry.path.clone())).await;
        assert_eq!(described.as_ref(), Ok(entry));
    }
    Ok(listed.entries.into_iter().map(|entry| entry.path.to_string()).collect())
}

pub(crate) fn some<const N: usize>(texts: [&str; N]) -> Result<Vec<String>, ErrorKind> {
    Ok(texts.map(str::to_owned).to_vec())
}

#[tokio::test]
async fn a_search_that_starts_at_or_through_a_link_finds_what_is_there_now() -> Result<()> {
    let (_root, overlay) = changed_behind_links().await?;
    assert_eq!(lines(&overlay, "/ln").await, some(["/ln/q:new", "/ln/r:new", "/ln/sub/s:new"]));
    assert_eq!(lines(&overlay, "/ln/sub").await, some(["/ln/sub/s:new"]));
    assert_eq!(lines(&overlay, "/ln/up").await, some(["/ln/up/s:new"]));
    for file in ["/ln/r", "/ln/q", "/lf"] {
        assert_eq!(lines(&overlay, file).await, Ok(vec![format!("{file}:new")]));
    }
    for gone in ["/ln/del", "/ln/gone", "/ln/gone/x"] {
        assert_eq!(lines(&overlay, gone).await, Err(ErrorKind::NotFound), "{gone}");
    }
    overlay.delete(&OpContext::new(), DeleteRequest::new(path("/real")).recursive()).await?;
    for gone in ["/ln", "/ln/sub", "/lf"] {
        assert_eq!(overlay.read_text(gone).await.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        assert_eq!(lines(&overlay, gone).await, Err(ErrorKind::NotFound), "{gone}");
    }
    Ok(())
}

#[tokio::test]
async fn a_listing_that_starts_at_or_through_a_link_shows_what_is_there_now() -> Result<()> {
    let (_root, overlay) = changed_behind_links().await?;
    let cx = OpContext::new();
    assert_eq!(names(&overlay, "/ln").await, some(["/ln/q", "/ln/r", "/ln/sub", "/ln/up"]));
    assert_eq!(names(&overlay, "/ln/up").await, some(["/ln/up/s"]));
    assert_eq!(names(&overlay, "/ln/gone").await, Err(ErrorKind::NotFound));
    assert_eq!(names(&overlay, "/ln/r").await, Err(ErrorKind::NotADirectory));
    let globbed = overlay.glob(&cx, GlobRequest::new("**").path(path("/ln"))).await?;
    assert!(globbed.problems.is_empty(), "{:?}", globbed.problems);
    let found: Vec<_> = globbed.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(found, ["/ln/q", "/ln/r", "/ln/sub/s"]);

    overlay.create_text("/ln/made/here", "new\n").await?;
    assert_eq!(names(&overlay, "/ln/made").await, some(["/ln/made/here"]));
    overlay.delete(&cx, DeleteRequest::new(path("/real/sub")).recursive()).await?;
    assert_eq!(names(&overlay, "/ln/sub").await, Err(ErrorKind::NotFound));
    // What was a file of the base can be a directory by now.
    overlay.delete_file("/ln/r").await?;
    overlay.create_text("/ln/r/below", "new\n").await?;
    assert_eq!(overlay.read_text("/ln/r/below").await?, "new\n");
    assert_eq!(names(&overlay, "/ln/r").await, some(["/ln/r/below"]));
    assert_eq!(lines(&overlay, "/ln/r").await, some(["/ln/r/below:new"]));
    // And what was a link in a directory that was removed is none any more.
    overlay.create_text("/real/sub/again", "new\n").await?;
    assert_eq!(names(&overlay, "/ln/up").await, some(["/ln/up/again"]));
    overlay.delete(&cx, DeleteRequest::new(path("/real")).recursive()).await?;
    overlay.create_text("/real/up/x", "new\n").await?;
    assert_eq!(overlay.read_text("/ln/up/x").await?, "new\n");
    assert_eq!(names(&overlay, "/ln/up").await, some(["/ln/up/x"]));
    Ok(())
}

#[tokio::test]
async fn a_problem_in_a_listing_is_reported_at_the_requested_path() -> Result<()> {
    let (root, overlay) = changed_behind_links().await?;
    fs::write(root.path().join(OsStr::from_bytes(b"real/\xFF")), "").expect("it is written");
    for at in ["/real", "/ln"] {
        let listed = overlay.ls(&OpContext::new(), LsRequest::new(path(at))).await?;
        let problems: Vec<_> = listed.problems.into_iter().map(|problem| problem.path).collect();
        assert_eq!(problems, [format!("{at}/\u{FFFD}")]);
    }
    Ok(())
}

#[tokio::test]
async fn a_link_to_a_directory_that_was_made_here_is_listed_as_that() -> Result<()> {
    let links =
        [("ln", "real"), ("deep", "real/sub"), ("none", "missing"), ("links/l", "../real"), ("links/n", "../missing")];
    let (_root, base) = disk(&[("real/x", "old\n"), ("links/own", "old\n")], &links);
    let overlay = OverlayBackend::new(base);
    overlay.delete(&OpContext::new(), DeleteRequest::new(path("/real")).recursive()).await?;
    overlay.create_text("/real/sub/y", "new\n").await?;
    overlay.create_text("/missing/z", "new\n").await?;
    assert_eq!(names(&overlay, "/").await, some(["/deep", "/links", "/ln", "/missing", "/none", "/real"]));
    assert_eq!(names(&overlay, "/ln").await, some(["/ln/sub"]));
    for (start, expected) in [
        ("/", &["/missing/z", "/real/sub/y"][..]),
        ("/links", &["/links/l/sub/y", "/links/n/z"]),
        ("/deep", &["/deep/y"]),
        ("/none", &["/none/z"]),
    ] {
        let followed = GrepRequest::literal("new").path(path(start)).links(vfs_core::search::LinkMode::Follow);
        let found = overlay.grep(&OpContext::new(), followed).await?;
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        let found: Vec<_> = found.matches.iter().map(|hit| hit.path.as_str()).collect();
        assert_eq!(found, expected, "below {start}");
    }
    Ok(())
}

#[tokio::test]
async fn layers_over_an_overlay_search_through_links_what_is_there_now() -> Result<()> {
    let (_root, overlay) = changed_behind_links().await?;
    let overlay: Arc<dyn Backend> = Arc::new(overlay);
    let guarded = deny(Rule::new(RuleEffect::Deny).path("/real/sub")).layer(Arc::clone(&overlay));
    assert_eq!(lines(&*guarded, "/ln").await, some(["/ln/q:new", "/ln/r:new"]));
    assert_eq!(lines(&*guarded, "/lf").await, some(["/lf:new"]));
    let scoped = Scoped::new(path("/ln")).layer(Arc::clone(&overlay));
    assert_eq!(lines(&*scoped, "/").await, some(["/q:new", "/r:new", "/sub/s:new"]));
    let mounted = CompositeBackend::new(Arc::new(MemoryBackend::new())).with_mount("/m", overlay)?;
    assert_eq!(lines(&mounted, "/m/ln").await, some(["/m/ln/q:new", "/m/ln/r:new", "/m/ln/sub/s:new"]));
    assert_eq!(lines(&mounted, "/m/lf").await, some(["/m/lf:new"]));
    Ok(())
}

#[tokio::test]
async fn a_search_through_a_link_comes_by_what_is_mounted_where_it_leads() -> Result<()> {
    let (_root, base) = disk(&[("real/x", "old\n")], &[("ln", "real")]);
    let mounted = Arc::new(MemoryBackend::new());
    mounted.create_text("/y", "old\n").await?;
    let overlay = OverlayBackend::new(Arc::new(CompositeBackend::new(base).with_mount("/real/m", mounted)?));
    overlay.write_text("/real/x", "new\n").await?;
    let from_there = lines(&overlay, "/real").await;
    assert_eq!(from_there, some(["/real/m/y:old", "/real/x:new"]));
    assert_eq!(lines(&overlay, "/ln").await, some(["/ln/m/y:old", "/ln/x:new"]));
    Ok(())
}

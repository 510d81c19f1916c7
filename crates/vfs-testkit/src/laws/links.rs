//! Symbolic links, on backends that have them.

use vfs_core::search::{EntryKinds, LinkMode};
use vfs_core::{
    CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, FileUploadRequest, GlobRequest, GrepRequest, LsRequest,
    ReadRequest, RenameRequest, ResolveRequest, StatRequest, WriteMode, WriteRequest,
};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::{LinkMaker, Target};

laws! { "links" in Storage:
    "K1" Links a_link_is_read_as_its_target in Smoke,
    "K2" Links an_edit_or_write_keeps_the_link_a_link in Wrapper,
    "K3" Links delete_and_rename_take_the_link_and_not_its_target in Wrapper,
    "K4" Links a_dangling_link_is_a_problem_of_its_own,
    "K9" Links a_link_cycle_is_the_same_error_in_every_operation,
    "K5" Links glob_shows_links_to_files_and_does_not_enter_links,
    "K6" Links grep_leaves_links_out_and_counts_them,
    "K7" Links a_followed_link_into_the_searched_tree_is_not_entered,
    "K7" Links a_directory_outside_of_the_searched_tree_is_entered_once_under_its_smallest_path,
    "K8" Links a_link_is_no_empty_directory,
    "K10" Links a_link_that_ends_with_a_slash_leads_to_directories_alone,
}

/// Puts a link at `at`, and gives the maker to look at it.
fn link<'a>(t: &'a Target, at: &str, to: &str) -> &'a dyn LinkMaker {
    let maker = t.links.as_deref().expect("the law needs links");
    maker.link(&t.path(at), to).expect("the link can be made");
    maker
}

async fn a_link_is_read_as_its_target(t: &Target) -> LawResult {
    t.put("/d/file", "content\n").await?;
    link(t, "/to-file", "d/file");
    link(t, "/d/up", "../d/file");
    link(t, "/to-dir", "d");
    for path in ["/to-file", "/d/up", "/to-dir/file"] {
        assert_eq!(t.text(path).await?, "content\n");
        let info = t.stat(path).await?;
        assert_eq!((info.path, info.is_dir, info.size), (t.path(path), false, 8), "under its own name");
    }
    assert!(t.stat("/to-dir").await?.is_dir);
    assert_eq!(t.names(&t.ls(LsRequest::new(t.base.clone())).await?.entries), ["/d", "/to-dir", "/to-file"]);
    Ok(())
}

async fn an_edit_or_write_keeps_the_link_a_link(t: &Target) -> LawResult {
    t.put("/d/file", "one\n").await?;
    let maker = link(t, "/link", "d/file");
    t.edit(EditRequest::new(t.path("/link"), "one", "two")).await?;
    assert_eq!(t.text("/d/file").await?, "two\n");
    t.write(WriteRequest::new(t.path("/link"), "three\n").mode(WriteMode::Append)).await?;
    assert_eq!(t.text("/d/file").await?, "two\nthree\n");
    t.put("/link", "four\n").await?;
    assert_eq!(t.text("/d/file").await?, "four\n");
    assert!(maker.is_link(&t.path("/link")));
    t.refused(t.write(WriteRequest::new(t.path("/link"), "five")).await, ErrorKind::AlreadyExists);
    Ok(())
}

async fn delete_and_rename_take_the_link_and_not_its_target(t: &Target) -> LawResult {
    t.put("/d/file", "keep\n").await?;
    let maker = link(t, "/a", "d/file");
    link(t, "/b", "d");
    t.rename(RenameRequest::new(t.path("/a"), t.path("/moved"))).await?;
    assert!(maker.is_link(&t.path("/moved")) && !t.has("/a").await?);
    t.delete(DeleteRequest::new(t.path("/moved"))).await?;
    t.delete(DeleteRequest::new(t.path("/b"))).await?;
    assert_eq!(t.tree().await?, ["/d", "/d/file"]);
    assert_eq!(t.text("/d/file").await?, "keep\n");
    Ok(())
}

async fn a_dangling_link_is_a_problem_of_its_own(t: &Target) -> LawResult {
    t.put_each(&["/a", "/z"]).await?;
    link(t, "/dangling", "missing");
    link(t, "/loop", "loop");
    t.refused(t.read(ReadRequest::new(t.path("/dangling"))).await, ErrorKind::NotFound);
    assert!(t.stat("/loop").await.is_err());
    let listing = t.ls(LsRequest::new(t.base.clone())).await?;
    assert_eq!(t.names(&listing.entries), ["/a", "/z"], "the others are listed");
    let problems: Vec<_> = listing.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(problems, [t.path("/dangling").as_str(), t.path("/loop").as_str()]);
    t.delete(DeleteRequest::new(t.path("/dangling"))).await?;
    t.delete(DeleteRequest::new(t.path("/loop"))).await?;
    assert!(t.ls(LsRequest::new(t.base.clone())).await?.problems.is_empty());
    Ok(())
}

async fn a_link_cycle_is_the_same_error_in_every_operation(t: &Target) -> LawResult {
    t.put_each(&["/a", "/d/b"]).await?;
    link(t, "/itself", "itself");
    link(t, "/one", "two");
    link(t, "/two", "one");
    for at in ["/itself", "/one", "/itself/below", "/one/below/it"] {
        let path = || t.path(at);
        let (backend, cx) = (&t.backend, &cx());
        let mut failures = Vec::new();
        failures.extend(
            backend.upload_files(cx, vec![FileUploadRequest::new(path(), "x")]).await.pop().map(|file| file.cause),
        );
        failures.extend(backend.download_files(cx, vec![path()]).await.pop().map(|file| file.cause));
        assert_eq!(failures.iter().flatten().map(Error::kind).collect::<Vec<_>>(), [ErrorKind::InvalidPath; 2], "{at}");
        let answers = [
            ("stat", backend.stat(cx, StatRequest::new(path())).await.map(drop)),
            ("resolve", backend.resolve(cx, ResolveRequest::new(path())).await.map(drop)),
            ("read", t.read(ReadRequest::new(path())).await.map(drop)),
            ("ls", t.ls(LsRequest::new(path())).await.map(drop)),
            ("write", t.write(WriteRequest::new(path(), "x").mode(WriteMode::Overwrite)).await.map(drop)),
            ("append", t.write(WriteRequest::new(path(), "x").mode(WriteMode::Append)).await.map(drop)),
            ("edit", t.edit(EditRequest::new(path(), "a", "b")).await.map(drop)),
            ("glob", t.glob(GlobRequest::new("*").path(path())).await.map(drop)),
            ("grep", t.grep(GrepRequest::literal("x").path(path())).await.map(drop)),
            ("copy over", t.copy(CopyRequest::new(t.path("/a"), path()).overwrite()).await.map(drop)),
            ("copy", t.copy(CopyRequest::new(path(), t.path("/copy"))).await.map(drop)),
            ("delete below", t.delete(DeleteRequest::new(path().child("x")?)).await.map(drop)),
            ("rename from below", t.rename(RenameRequest::new(path().child("x")?, t.path("/new"))).await.map(drop)),
            ("rename to below", t.rename(RenameRequest::new(t.path("/a"), path().child("x")?)).await.map(drop)),
            ("copy to below", t.copy(CopyRequest::new(t.path("/a"), path().child("x")?)).await.map(drop)),
            ("create below", t.write(WriteRequest::new(path().child("x")?, "x")).await.map(drop)),
        ];
        for (operation, answer) in answers {
            let kind = answer.map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::InvalidPath), "{operation} of {at}");
        }
    }
    let create = WriteRequest::new(t.path("/itself"), "x");
    t.refused_as(t.write(create).await, &[ErrorKind::AlreadyExists, ErrorKind::InvalidPath]);
    let listing = t.ls(LsRequest::new(t.base.clone())).await?;
    assert_eq!(t.names(&listing.entries), ["/a", "/d"]);
    let globbed = t.glob(GlobRequest::new("*").links(LinkMode::Follow)).await?;
    let grepped = t.grep(GrepRequest::literal("x").links(LinkMode::Follow)).await?;
    for problems in [listing.problems, globbed.problems, grepped.problems] {
        let codes: Vec<_> = problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
        let paths = ["/itself", "/one", "/two"].map(|at| t.path(at));
        assert_eq!(codes, paths.each_ref().map(|at| (at.as_str(), ErrorKind::InvalidPath)));
    }
    Ok(())
}

async fn glob_shows_links_to_files_and_does_not_enter_links(t: &Target) -> LawResult {
    t.put_each(&["/d/file"]).await?;
    link(t, "/to-file", "d/file");
    link(t, "/to-dir", "d");
    assert_eq!(t.found("*file").await?, ["/d/file", "/to-file"]);
    Ok(())
}

async fn grep_leaves_links_out_and_counts_them(t: &Target) -> LawResult {
    t.put("/d/file", "hit\n").await?;
    link(t, "/to-file", "d/file");
    link(t, "/to-dir", "d");
    let result = t.grep(GrepRequest::literal("hit")).await?;
    assert_eq!((t.lines(&result.matches), result.skipped.links), (vec!["/d/file:1:hit".to_owned()], 2));
    let named = t.hits(GrepRequest::literal("hit").path(t.path("/to-file"))).await?;
    assert_eq!(named, ["/to-file:1:hit"], "a link that is named is followed");
    Ok(())
}

/// Returns the files with `hit` that a glob and a grep find below `start`, if both follow links.
async fn followed(t: &Target, start: &str) -> vfs_core::Result<Vec<String>> {
    let globbed = t.glob(GlobRequest::new("*").path(t.path(start)).links(LinkMode::Follow)).await?;
    let grepped = t.grep(GrepRequest::literal("hit").path(t.path(start)).links(LinkMode::Follow)).await?;
    let files = t.names(&globbed.entries);
    let lines: Vec<_> = files.iter().map(|file| format!("{file}:1:hit")).collect();
    assert_eq!(t.lines(&grepped.matches), lines, "both go down the same directories");
    assert_eq!((globbed.problems, grepped.problems), (vec![], vec![]));
    Ok(files)
}

async fn a_followed_link_into_the_searched_tree_is_not_entered(t: &Target) -> LawResult {
    let directories = ["a", "b", "c", "d", "e"];
    for from in directories {
        t.put(&format!("/tree/{from}/file"), "hit\n").await?;
        for to in directories {
            link(t, &format!("/tree/{from}/to-{to}"), &format!("../{to}"));
        }
    }
    link(t, "/tree/again", "../tree");
    link(t, "/way", "tree");
    let below = |start: &str| directories.map(|name| format!("{start}/{name}/file"));
    assert_eq!(followed(t, "/").await?, below("/tree"));
    assert_eq!(followed(t, "/tree").await?, below("/tree"));
    assert_eq!(followed(t, "/way").await?, below("/way"), "the searched tree is where the link leads");
    let named = t.glob(GlobRequest::new("to-*").kinds(EntryKinds::Directories).links(LinkMode::Follow)).await?;
    assert_eq!(named.entries.len(), 25, "the links themselves are shown");
    Ok(())
}

async fn a_directory_outside_of_the_searched_tree_is_entered_once_under_its_smallest_path(t: &Target) -> LawResult {
    for file in ["/out/x", "/out/inner/y", "/far/z", "/tree/own"] {
        t.put(file, "hit\n").await?;
    }
    link(t, "/tree/b", "../out");
    link(t, "/tree/c", "../out");
    link(t, "/out/far", "../far");
    link(t, "/far/out", "../out");
    link(t, "/far/home", "../tree");
    assert_eq!(followed(t, "/tree").await?, ["/tree/b/far/z", "/tree/b/inner/y", "/tree/b/x", "/tree/own"]);
    // A smaller path leads to a part of the outside directory.
    link(t, "/tree/a", "../out/inner");
    assert_eq!(followed(t, "/tree").await?, ["/tree/a/y", "/tree/b/far/z", "/tree/b/x", "/tree/own"]);
    // The directory outside may contain the searched tree.
    link(t, "/tree/0", "..");
    assert_eq!(
        followed(t, "/tree").await?,
        ["/tree/0/far/out/inner/y", "/tree/0/far/out/x", "/tree/0/far/z", "/tree/own"]
    );
    Ok(())
}

async fn a_link_is_no_empty_directory(t: &Target) -> LawResult {
    t.put("/d/e/x", "x").await?;
    t.delete(DeleteRequest::new(t.path("/d/e/x"))).await?;
    let maker = link(t, "/to-directory", "d/e");
    link(t, "/to-nothing", "missing");
    for at in ["/to-directory", "/to-nothing"] {
        t.refused(t.delete(DeleteRequest::new(t.path(at)).only_empty()).await, ErrorKind::NotADirectory);
        assert!(maker.is_link(&t.path(at)), "{at} is still a link");
    }
    assert!(t.has("/d/e").await?);
    // A link on the way is followed, as by every operation.
    link(t, "/through", "d");
    t.delete(DeleteRequest::new(t.path("/through/e")).only_empty()).await?;
    assert!(!t.has("/d/e").await? && t.has("/d").await?);
    Ok(())
}

async fn a_link_that_ends_with_a_slash_leads_to_directories_alone(t: &Target) -> LawResult {
    t.put("/d/file", "content\n").await?;
    link(t, "/between", "d/file");
    for (i, to) in ["d/file/", "d/file/.", "d/./file//", "between/"].into_iter().enumerate() {
        let at = format!("/link-{i}");
        link(t, &at, to);
        for refused in [t.text(&at).await.map(drop), t.put(&at, "changed\n").await.map(drop)] {
            assert!(refused.is_err_and(|error| error.is_absence()), "{to}");
        }
        assert_eq!(t.text("/d/file").await?, "content\n");
    }
    link(t, "/directory", "d/");
    assert_eq!(t.text("/directory/file").await?, "content\n");
    Ok(())
}

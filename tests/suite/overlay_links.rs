//! Overlays over disks with links: a link is removed as a link, and changes never go through one.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use vfs_core::search::LinkMode;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, GlobRequest, GrepRequest, Layer, OpContext,
    RenameRequest,
};
use vfs_memory::MemoryBackend;
use vfs_policy::{Rule, RuleEffect};
use vfs_versions::{CommitResult, OverlayBackend};

use crate::links::{deny, disk, path, run};

#[test]
fn an_overlay_removes_a_link_as_a_link() {
    run(async {
        let (root, base) = disk(&[("data/a", "a\n"), ("f", "f\n")], &[("dir", "data"), ("file", "f"), ("again", "f")]);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        overlay.delete(&cx, DeleteRequest::new(path("/dir")).recursive()).await?;
        overlay.delete_file("/file").await?;
        overlay.delete_file("/again").await?;
        overlay.create_text("/again", "a file now\n").await?;
        let moved = overlay.rename(&cx, RenameRequest::new(path("/data"), path("/moved"))).await?;
        assert_eq!(moved.to, path("/moved"));
        assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
        assert_eq!(fs::read_to_string(root.path().join("moved/a")).ok().as_deref(), Some("a\n"));
        assert_eq!(fs::read_to_string(root.path().join("f")).ok().as_deref(), Some("f\n"));
        assert_eq!(fs::read_to_string(root.path().join("again")).ok().as_deref(), Some("a file now\n"));
        for gone in ["dir", "file", "data"] {
            assert!(root.path().join(gone).symlink_metadata().is_err(), "{gone}");
        }
        Ok(())
    });
}

#[test]
fn an_overlay_moves_no_links_and_shows_what_they_lead_to_as_it_is_now() {
    run(async {
        let (_root, base) = disk(&[("data/x", "old\n"), ("data/y", "old\n")], &[("dir", "data"), ("file", "data/x")]);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        let error = overlay.rename(&cx, RenameRequest::new(path("/file"), path("/got"))).await.expect_err("a link");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        overlay.edit_text("/data/x", "old", "new").await?;
        overlay.delete_file("/data/y").await?;
        overlay.create_text("/dir/z", "new\n").await?;
        assert_eq!(overlay.read_text("/data/z").await?, "new\n");
        assert_eq!(overlay.read_text("/file").await?, "new\n");
        for (start, expected) in
            [("/", &["/data/x:new", "/data/z:new", "/file:new"][..]), ("/dir", &["/dir/x:new", "/dir/z:new"])]
        {
            let request = GrepRequest::regex("old|new").path(path(start)).links(LinkMode::Follow);
            let found = overlay.grep(&cx, request).await?;
            let lines: Vec<_> = found.matches.iter().map(|hit| format!("{}:{}", hit.path, hit.text)).collect();
            assert_eq!(lines, expected, "below {start}");
        }
        Ok(())
    });
}

#[test]
fn a_directory_gives_way_to_a_file_in_a_commit_to_a_disk() {
    run(async {
        let (root, base) = disk(&[("d/x", "x\n"), ("d/e/y", "y\n")], &[]);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
        overlay.create_text("/d", "a file\n").await?;
        assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
        assert_eq!(fs::read_to_string(root.path().join("d")).ok().as_deref(), Some("a file\n"));
        Ok(())
    });
}

#[test]
fn what_a_fork_took_back_is_the_bases_again_and_foreign_changes_are_seen() {
    run(async {
        let base = MemoryBackend::new();
        base.create_text("/a", "v0\n").await?;
        let (overlay, cx) = (OverlayBackend::new(Arc::new(base.clone())), OpContext::new());
        overlay.write_text("/a", "changed\n").await?;
        let fork = overlay.fork();
        fork.discard(&cx).await?;
        assert_eq!(overlay.merge(&cx, &fork).await?.merged, [path("/a")]);
        assert_eq!(overlay.read_text("/a").await?, "v0\n");

        let fork = overlay.fork();
        fork.write_text("/a", "by the fork\n").await?;
        base.write_text("/a", "by somebody else\n").await?;
        overlay.merge(&cx, &fork).await?;
        assert!(matches!(overlay.commit(&cx).await?, CommitResult::Conflicts(conflicts) if conflicts.len() == 1));
        assert_eq!(base.read_text("/a").await?, "by somebody else\n");
        Ok(())
    });
}

#[test]
fn a_policy_over_an_overlay_keeps_what_a_link_leads_to() {
    run(async {
        let (_root, base) =
            disk(&[("secrets/key", "secret\n"), ("public/x", "x\n")], &[("public/link", "../secrets/key")]);
        let overlay = OverlayBackend::new(base);
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(Arc::new(overlay));
        let cx = OpContext::new();
        let rename = RenameRequest::new(path("/public/link"), path("/public/got"));
        assert_eq!(guarded.rename(&cx, rename).await.expect_err("denied").kind(), ErrorKind::PolicyDenied);
        // The link itself may go; what it leads to stays out of reach.
        guarded.delete_file("/public/link").await?;
        guarded.create_text("/public/link", "mine\n").await?;
        assert_eq!(guarded.read_text("/public/link").await?, "mine\n");
        Ok(())
    });
}

#[test]
fn a_policy_over_an_overlay_keeps_what_a_link_leads_to_by_way_of_nothing() {
    run(async {
        let targets = ["x/../side/key", "x/no/../../side/key", "no/../side/key", "no/no/../../side/key"];
        let names: Vec<_> = (0..targets.len()).map(|i| format!("public/link-{i}")).collect();
        let mut links = vec![("public/side", "../secrets")];
        links.extend(names.iter().map(String::as_str).zip(targets));
        let (root, base) = disk(&[("secrets/key", "secret\n"), ("public/x", "x\n")], &links);
        let overlay = Arc::new(OverlayBackend::new(base));
        let guarded =
            deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(Arc::clone(&overlay) as Arc<dyn Backend>);
        let cx = OpContext::new();
        for name in &names {
            let at = format!("/{name}");
            let answers = [
                guarded.read_text(&at).await.err(),
                guarded.write_text(&at, "changed\n").await.err(),
                guarded.edit_text(&at, "secret", "changed").await.err(),
                guarded.create_text(&at, "changed\n").await.err(),
                guarded.copy(&cx, CopyRequest::new(path(&at), path("/got"))).await.err(),
                guarded.copy(&cx, CopyRequest::new(path("/public/x"), path(&at)).overwrite()).await.err(),
                guarded.grep(&cx, GrepRequest::regex("secret").path(path(&at))).await.err(),
            ];
            for (i, error) in answers.into_iter().enumerate() {
                let error = error.unwrap_or_else(|| panic!("operation {i} at {at} is refused"));
                assert!(matches!(error.kind(), ErrorKind::PolicyDenied | ErrorKind::NotFound), "{i} {at}: {error}");
            }
        }
        let found = guarded.grep(&cx, GrepRequest::regex("secret").links(LinkMode::Follow)).await?;
        assert!(found.matches.is_empty(), "{found:?}");
        assert!(overlay.diff(&cx).await?.is_empty());
        overlay.commit(&cx).await?;
        assert_eq!(fs::read_to_string(root.path().join("secrets/key")).ok().as_deref(), Some("secret\n"));
        Ok(())
    });
}

#[test]
fn a_commit_does_not_follow_a_link_that_came_above_what_it_writes() {
    run(async {
        let (root, base) = disk(&[("secrets/key", "secret\n")], &[]);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        overlay.create_text("/d/new", "new\n").await?;
        symlink("secrets", root.path().join("d")).expect("a link can be made");
        let CommitResult::Conflicts(conflicts) = overlay.commit(&cx).await? else { panic!("it is refused") };
        assert_eq!(conflicts.iter().map(|conflict| conflict.path.as_str()).collect::<Vec<_>>(), ["/d/new"]);
        assert!(!root.path().join("secrets/new").exists());
        Ok(())
    });
}

#[test]
fn a_removed_link_comes_back_by_no_merge_while_something_was_changed_below_it() {
    run(async {
        let (root, base) = disk(&[("secrets/key", "secret\n"), ("pub/a", "a\n")], &[("pub/l", "../secrets")]);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        overlay.delete_file("/pub/l").await?;
        let fork = overlay.fork();
        overlay.create_text("/pub/l/x", "x\n").await?;
        overlay.delete_file("/pub/l/x").await?;
        fork.discard(&cx).await?;
        overlay.merge(&cx, &fork).await?;
        let written = overlay.write_text("/pub/l/x", "written\n").await;
        let committed = overlay.commit(&cx).await;
        assert!(!root.path().join("secrets/x").exists(), "{written:?}, {committed:?}");
        Ok(())
    });
}

#[test]
fn a_discard_brings_links_back_as_links_and_goes_through_none() {
    run(async {
        let links = [("d/l", "../out"), ("d/broken", "nowhere"), ("dir", "out")];
        let (root, base) = disk(&[("out/f", "f\n"), ("d/f", "f\n"), ("e/f", "f\n")], &links);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        let discard = async |at: &str| overlay.discard_paths(&cx, &[path(at)]).await;
        overlay.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await?;
        overlay.create_text("/d/l/new", "new\n").await?;
        // The base has a link above it.
        discard("/d/l/new").await?;
        assert!(!overlay.exists("/d/l/f").await? && !overlay.exists("/d/l/new").await?);
        discard("/d/l").await?;
        assert_eq!(overlay.read_text("/d/l/f").await?, "f\n");
        assert!(!overlay.exists("/d/f").await?);

        overlay.write_text("/dir/f", "mine\n").await?;
        assert!(discard("/dir").await?.is_empty(), "the change is one of '/out/f'");
        assert_eq!(discard("/out").await?, [path("/out/f")]);

        // A link that came above a changed file.
        overlay.write_text("/e/f", "mine\n").await?;
        fs::remove_dir_all(root.path().join("e")).expect("a directory");
        symlink("out", root.path().join("e")).expect("a link");
        assert!(matches!(overlay.commit(&cx).await?, CommitResult::Conflicts(_)));
        discard("/e/f").await?;
        assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
        assert_eq!(fs::read_to_string(root.path().join("out/f")).ok().as_deref(), Some("f\n"));
        assert_eq!(fs::read_link(root.path().join("d/l")).ok().as_deref(), Some("../out".as_ref()));
        assert!(root.path().join("d/broken").symlink_metadata().is_err() && !root.path().join("d/f").exists());
        Ok(())
    });
}

#[test]
fn a_directory_of_broken_links_is_not_replaced_in_an_overlay() {
    run(async {
        let (_root, base) = disk(&[("src/sub/f", "f\n"), ("empty/gone", "")], &[("empty/sub", "../secrets/new")]);
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        overlay.delete_file("/empty/gone").await?;
        let rename = RenameRequest::new(path("/src"), path("/empty")).overwrite();
        assert_eq!(overlay.rename(&cx, rename).await.expect_err("it is not empty").kind(), ErrorKind::NotEmpty);
        Ok(())
    });
}

#[test]
fn an_overlay_follows_no_link_that_its_base_does_not_follow() {
    run(async {
        let links = [
            ("missing", "no/../g"),
            ("file", "f/../g"),
            ("fresh", "no/../new"),
            ("directory", "no/../d"),
            ("slash", "g/"),
            ("dangling", "made"),
        ];
        let (root, base) = disk(&[("f", "f\n"), ("g", "g\n"), ("d/x", "x\n")], &links);
        let (overlay, cx) = (OverlayBackend::new(Arc::clone(&base)), OpContext::new());
        for at in ["/missing", "/file", "/fresh", "/directory/x", "/slash"] {
            base.read_text(at).await.expect_err("the disk does not follow it");
            let read = overlay.read_text(at).await.expect_err("neither does the overlay");
            assert!(read.is_absence(), "{at}: {read}");
            let answers = [
                overlay.write_text(at, "changed\n").await.err(),
                overlay.edit_text(at, "g", "changed").await.err(),
                overlay.create_text(&format!("{at}/below"), "made\n").await.err(),
                overlay.grep(&cx, GrepRequest::regex("g").path(path(at))).await.err(),
            ];
            assert!(answers.iter().all(Option::is_some), "{at}: {answers:?}");
        }
        overlay.write_text("/d/new", "made\n").await?;
        let found = overlay.glob(&cx, GlobRequest::new("**/new").links(LinkMode::Follow)).await?;
        assert_eq!(found.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["/d/new"]);
        overlay.delete_file("/d/new").await?;
        overlay.write_text("/dangling", "made\n").await?;
        let CommitResult::Applied(changes) = overlay.commit(&cx).await? else { panic!("nothing stands against it") };
        assert_eq!(changes.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["/made"]);
        assert_eq!(fs::read_to_string(root.path().join("g")).ok().as_deref(), Some("g\n"));
        Ok(())
    });
}

#[test]
fn a_commit_removes_no_directory_behind_a_link_that_came_above_it() {
    run(async {
        let (root, base) = disk(&[("a/x", "x\n"), ("b/y", "y\n")], &[]);
        let at = |name: &str| root.path().join(name);
        for empty in ["a/d", "b/d"] {
            fs::create_dir(at(empty)).expect("a directory can be made");
        }
        let (overlay, cx) = (OverlayBackend::new(base), OpContext::new());
        overlay.delete(&cx, DeleteRequest::new(path("/a/d")).recursive()).await?;
        fs::rename(at("a"), at("moved")).expect("it can be moved");
        symlink("b", at("a")).expect("a link can be made");
        overlay.commit(&cx).await?;
        assert!(at("b/d").exists());
        Ok(())
    });
}

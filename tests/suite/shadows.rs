//! Paths that a mount shadows, reached through links of the backend below it.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use vfs_composite::CompositeBackend;
use vfs_core::multi_modal::MultiModalReadRequest;
use vfs_core::search::LinkMode;
use vfs_core::snapshots::SnapshotRequest;
use vfs_core::watch::{Change, WatchRequest};
use vfs_core::{
    Backend, BackendExt as _, CopyRequest, DeleteRequest, Error, ErrorKind, FileUploadRequest, GlobRequest,
    GrepRequest, Layer as _, LsRequest, MultiModalReader as _, OpContext, ReadRequest, RenameRequest, ResolveRequest,
    Result, Snapshots as _, StatRequest, Watch as _,
};
use vfs_layers::{Quota, QuotaLimits};
use vfs_memory::MemoryBackend;
use vfs_policy::{Policy, Rule, RuleEffect, RuleSet};
use vfs_versions::{Checkpoints, CommitResult, OverlayBackend};

use crate::links::{deny, disk, path};

/// A disk with links to its root and into `over`, where memory is mounted.
fn namespace() -> (TempDir, CompositeBackend) {
    let files =
        [("over/secret", "shadowed\n"), ("over/d/x", "shadowed\n"), ("src/a", "shown\n"), ("way/m/x", "shadowed\n")];
    let links =
        [("self", "."), ("into", "over"), ("file", "over/secret"), ("src/up", "../over/d"), ("src/way", "../way")];
    let (root, default) = disk(&files, &links);
    symlink("/", root.path().join("way/out")).expect("a link can be made");
    let mounted = || Arc::new(MemoryBackend::new());
    let files = CompositeBackend::new(default).with_mount("/over", mounted()).and_then(|files| {
        let files = files.with_mount("/way/m", mounted())?;
        Ok(files)
    });
    (root, files.expect("different places"))
}

fn run(work: impl Future<Output = Result<()>>) {
    Runtime::new().expect("a runtime can be built").block_on(work).expect("it works");
}

#[track_caller]
fn escapes<T: std::fmt::Debug>(answer: Result<T>, at: &str) {
    let error: Error = answer.expect_err("it leads to what is shadowed");
    assert_eq!((error.kind(), error.path()), (ErrorKind::PathEscape, Some(at)), "{error}");
}

#[test]
fn no_operation_comes_to_what_is_shadowed_through_a_link() {
    run(async {
        let (root, files) = namespace();
        let cx = OpContext::new();
        for at in ["/self/over/secret", "/self/self/over/d/x", "/into/secret", "/file", "/src/up/x"] {
            escapes(files.read_text(at).await, at);
            escapes(files.stat(&cx, StatRequest::new(path(at))).await, at);
            escapes(files.edit_text(at, "shadowed", "changed").await, at);
            escapes(files.write_text(at, "changed\n").await, at);
            escapes(files.resolve(&cx, ResolveRequest::new(path(at))).await, at);
            escapes(files.copy(&cx, CopyRequest::new(path(at), path("/got"))).await, at);
            escapes(files.multi_modal_read(&cx, MultiModalReadRequest::new(ReadRequest::new(path(at)))).await, at);
            let mut found = files.grep_stream(cx.clone(), GrepRequest::regex("^").path(path(at)));
            escapes(found.next().await.expect("an error").map(drop), at);
            let mut changes = files.watch(cx.clone(), WatchRequest::new(path(at)));
            escapes(changes.next().await.expect("an error"), at);
            let uploaded = files.upload_files(&cx, vec![FileUploadRequest::new(path(at), "changed\n")]).await;
            let downloaded = files.download_files(&cx, vec![path(at)]).await;
            for error in [&uploaded[0].cause, &downloaded[0].cause] {
                assert_eq!(error.as_ref().map(Error::kind), Some(ErrorKind::PathEscape), "{at}");
            }
        }
        for at in ["/self/over/secret", "/into/secret", "/src/up/x"] {
            escapes(files.delete_file(at).await, at);
            escapes(files.rename(&cx, RenameRequest::new(path(at), path("/got"))).await, at);
            escapes(files.rename(&cx, RenameRequest::new(path("/src/a"), path(at))).await, at);
            escapes(files.create_text(&format!("{at}-new"), "new\n").await, &format!("{at}-new"));
        }
        for at in ["/self/way", "/src/way/m", "/self/over"] {
            let deleted = files.delete(&cx, DeleteRequest::new(path(at)).recursive()).await;
            let error = deleted.expect_err("something is mounted there");
            assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::PathEscape), "{at}: {error}");
        }
        for at in ["over/secret", "over/d/x", "way/m/x"] {
            assert_eq!(fs::read_to_string(root.path().join(at)).ok().as_deref(), Some("shadowed\n"), "{at}");
        }
        // A link that leads elsewhere, or that is itself removed, is as anywhere.
        assert_eq!(files.read_text("/self/src/a").await?, "shown\n");
        files.delete_file("/file").await?;
        assert!(!root.path().join("file").is_symlink());
        Ok(())
    });
}

#[test]
fn no_listing_or_search_shows_what_is_shadowed_through_a_link() {
    run(async {
        let (_root, files) = namespace();
        let cx = OpContext::new();
        for start in ["/", "/self", "/src", "/src/way", "/self/self/src"] {
            for links in [LinkMode::Skip, LinkMode::Follow] {
                let grep = GrepRequest::regex("shadowed").path(path(start)).links(links);
                assert_eq!(files.grep(&cx, grep).await?.matches, [], "{start} {links:?}");
                let glob = GlobRequest::new("**/{secret,x}").path(path(start)).links(links);
                assert_eq!(files.glob(&cx, glob).await?.entries, [], "{start} {links:?}");
            }
            let listed = files.ls(&cx, LsRequest::new(path(start)).recursive()).await?;
            let shadowed =
                listed.entries.iter().filter(|entry| matches!(entry.path.name(), Some("secret" | "x" | "d")));
            assert_eq!(shadowed.count(), 0, "{start}: {listed:?}");
        }
        for start in ["/into", "/self/over", "/src/up"] {
            escapes(files.ls(&cx, LsRequest::new(path(start))).await, start);
            escapes(files.glob(&cx, GlobRequest::new("*").path(path(start))).await, start);
            escapes(files.grep(&cx, GrepRequest::regex("^").path(path(start))).await, start);
        }
        let root = files.ls(&cx, LsRequest::new(path("/"))).await?;
        let names: Vec<_> = root.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["/over", "/self", "/src", "/way"]);
        let problems: Vec<_> = root.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(problems, ["/file", "/into"]);
        Ok(())
    });
}

#[test]
fn namespaces_that_are_nested_shadow_what_links_of_the_inner_one_lead_to() {
    run(async {
        let (_root, project) = disk(&[("over/secret", "shadowed\n"), ("src/a", "shown\n")], &[("self", ".")]);
        let inner = CompositeBackend::new(Arc::new(MemoryBackend::new())).with_mount("/proj", project)?;
        let files = CompositeBackend::new(Arc::new(inner)).with_mount("/proj/over", Arc::new(MemoryBackend::new()))?;
        let at = "/proj/self/over/secret";
        escapes(files.read_text(at).await, at);
        escapes(files.delete_file(at).await, at);
        for links in [LinkMode::Skip, LinkMode::Follow] {
            let grep = GrepRequest::regex("shadowed").links(links);
            assert_eq!(files.grep(&OpContext::new(), grep).await?.matches, [], "{links:?}");
        }
        escapes(files.ls(&OpContext::new(), LsRequest::new(path("/proj/self/over"))).await, "/proj/self/over");
        assert_eq!(files.read_text("/proj/self/src/a").await?, "shown\n");
        Ok(())
    });
}

#[test]
fn where_a_mount_does_not_say_where_a_path_leads_nothing_is_changed() {
    run(async {
        let (root, default) = disk(&[("over/secret", "shadowed\n"), ("inbox/a", "a\n")], &[("inbox/l", "../over")]);
        let no_reads = deny(Rule::new(RuleEffect::Deny).operation("read").path("/inbox"));
        let files =
            CompositeBackend::new(no_reads.layer(default)).with_mount("/over", Arc::new(MemoryBackend::new()))?;
        for at in ["/inbox/l/secret", "/inbox/l/new"] {
            let error = files.create_text(at, "new\n").await.expect_err("nobody says where it leads");
            assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{error}");
        }
        assert_eq!(fs::read_to_string(root.path().join("over/secret")).ok().as_deref(), Some("shadowed\n"));
        assert!(!root.path().join("over/new").exists());
        Ok(())
    });
}

#[test]
fn layers_around_a_namespace_treat_a_link_to_what_is_shadowed_as_one_that_leads_out() {
    run(async {
        let cx = OpContext::new();
        let (root, files) = namespace();
        let policy = deny(Rule::new(RuleEffect::Deny).path("/secrets"));
        policy.layer(Arc::new(files.clone())).delete_file("/into").await?;
        assert!(!root.path().join("into").is_symlink());
        let overlay = OverlayBackend::new(Arc::new(files.clone()));
        overlay.delete_file("/file").await?;
        assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
        assert!(!root.path().join("file").is_symlink());
        symlink("over", root.path().join("into")).expect("a link can be made");
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = Checkpoints::new(store, path("/checkpoints")).over(Arc::new(files));
        files.snapshot(&cx, SnapshotRequest::new()).await?;
        Ok(())
    });
}

#[test]
fn a_mount_with_links_counts_and_asks_about_an_operation_once() {
    run(async {
        let (_root, default) = disk(&[("src/a", "a\n")], &[("link", "src")]);
        let once = Quota::new(QuotaLimits::new().max_operations(1, Duration::from_secs(3600))).layer(default);
        let files = CompositeBackend::new(once).with_mount("/over", Arc::new(MemoryBackend::new()))?;
        assert_eq!(files.read_text("/link/a").await?, "a\n");
        let error = files.read_text("/link/a").await.expect_err("the limit is reached");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);

        let (_root, default) = disk(&[("src/a", "a\n")], &[("link", "src")]);
        let policy = Policy::new(Arc::new(RuleSet::new([Rule::new(RuleEffect::Ask).operation("read")])?));
        let files = CompositeBackend::new(policy.layer(default)).with_mount("/over", Arc::new(MemoryBackend::new()))?;
        let error = files.read_text("/link/a").await.expect_err("nobody is there to ask");
        assert_eq!(error.kind(), ErrorKind::ApprovalRequired);
        files.create_text("/link/b", "b\n").await?;
        Ok(())
    });
}

#[test]
fn a_rename_around_or_into_what_is_shadowed_is_no_rename_for_those_who_watch() {
    run(async {
        let below = Arc::new(MemoryBackend::new());
        below.create_text("/keep", "x\n").await?;
        below.create_text("/dir/over/a", "x\n").await?;
        let shared: Arc<dyn Backend> = Arc::<MemoryBackend>::clone(&below);
        let files = CompositeBackend::new(shared)
            .with_mount("/over", Arc::new(MemoryBackend::new()))?
            .with_mount("/dir/over", Arc::new(MemoryBackend::new()))?;
        let cx = OpContext::new();
        let mut changes = files.watch(cx.clone(), WatchRequest::new(path("/")));
        below.rename(&cx, RenameRequest::new(path("/keep"), path("/over/x"))).await?;
        below.rename(&cx, RenameRequest::new(path("/over/x"), path("/back"))).await?;
        below.rename(&cx, RenameRequest::new(path("/dir"), path("/moved"))).await?;
        let mut seen = Vec::new();
        while seen.len() < 3 {
            match changes.next().await.expect("it goes on")?.change {
                Change::Created { path, .. } => seen.push(format!("created {path}")),
                Change::Removed { path } => seen.push(format!("removed {path}")),
                other => seen.push(format!("{other:?}")),
            }
        }
        // A mount stays where it is when the directory around it is renamed, so the feed cannot report what moved.
        assert_eq!(seen, ["removed /keep", "created /back", "Overflow"]);
        Ok(())
    });
}

//! Policies and mounts over disks with links: a link is removed as a link, and nothing behind one is lost or revealed.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::runtime::Runtime;
use vfs_composite::CompositeBackend;
use vfs_core::operation::Intercepted;
use vfs_core::search::LinkMode;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, FileUploadRequest, GlobRequest, GrepRequest, Layer,
    LsRequest, OpContext, OpenWriterRequest, Operation, RenameRequest, Result, StatRequest, Version, VfsPath,
    WriteMode, WriteRequest,
};
use vfs_layers::Scoped;
use vfs_local::{Durability, LocalConfig};
use vfs_memory::MemoryBackend;
use vfs_policy::{HardLinks, Policy, Rule, RuleEffect, RuleSet};
use vfs_testkit::CallCounter;
use vfs_versions::{Checkpoints, OverlayBackend};

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// A directory of the host with `files` and `links`, and a backend over it.
pub(crate) fn disk(files: &[(&str, &str)], links: &[(&str, &str)]) -> (TempDir, Arc<dyn Backend>) {
    let root = tempfile::tempdir().expect("a temporary directory can be made");
    for (at, text) in files {
        let host = root.path().join(at);
        fs::create_dir_all(host.parent().expect("it is below the root")).expect("a directory can be made");
        fs::write(host, text).expect("a file can be written");
    }
    for (at, to) in links {
        symlink(to, root.path().join(at)).expect("a link can be made");
    }
    let local = LocalConfig::new(root.path()).durability(Durability::Atomic).open().expect("the root can be opened");
    (root, Arc::new(local))
}

pub(crate) fn deny(rule: Rule) -> Policy {
    Policy::new(Arc::new(RuleSet::new([rule]).expect("a valid rule")))
}

pub(crate) fn run(work: impl Future<Output = Result<()>>) {
    Runtime::new().expect("a runtime can be built").block_on(work).expect("it works");
}

#[test]
fn a_file_with_another_name_is_not_got_by_appending_or_moving() {
    run(async {
        let (root, base) = disk(&[("secrets/key", "secret\n"), ("public/x", "x\n")], &[]);
        fs::hard_link(root.path().join("secrets/key"), root.path().join("public/hard")).expect("a link can be made");
        let files = CompositeBackend::new(Arc::new(MemoryBackend::new())).with_mount("/m", base)?;
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/m/secrets")).layer(Arc::new(files));
        let cx = OpContext::new();
        let append = WriteRequest::new(path("/m/public/hard"), "").mode(WriteMode::Append);
        let refused = [
            guarded.write(&cx, append).await.map(drop),
            guarded.rename(&cx, RenameRequest::new(path("/m/public/hard"), path("/got"))).await.map(drop),
            guarded.copy(&cx, CopyRequest::new(path("/m/public/hard"), path("/got"))).await.map(drop),
        ];
        for answer in refused {
            assert_eq!(answer.expect_err("denied").kind(), ErrorKind::PolicyDenied);
        }
        // From above the mount as well as from within.
        for at in ["/", "/m", "/m/public"] {
            assert!(guarded.grep(&cx, GrepRequest::literal("secret").path(path(at))).await?.matches.is_empty(), "{at}");
        }
        Ok(())
    });
}

#[test]
fn a_search_below_what_may_be_read_follows_no_link_out_of_it() {
    run(async {
        let (_root, base) = disk(&[("secrets/key", "secret\n"), ("public/x", "x\n")], &[("public/dir", "../secrets")]);
        let rules = RuleSet::new([Rule::new(RuleEffect::Deny).path("/secrets")])?.with_hard_links(HardLinks::Allow);
        let guarded = Policy::new(Arc::new(rules)).layer(base);
        let request = GrepRequest::literal("secret").path(path("/public")).links(LinkMode::Follow);
        assert!(guarded.grep(&OpContext::new(), request).await?.matches.is_empty());
        Ok(())
    });
}

#[test]
fn a_copied_directory_is_judged_where_it_really_goes() {
    run(async {
        let (_root, base) = disk(&[("desk/new/config.toml", "x\n"), ("app/y", "y\n")], &[("desk/out", "../app")]);
        let rule = Rule::new(RuleEffect::Deny).operation("write").path("/app/**/config.toml");
        let guarded = deny(rule).layer(base);
        let copy = CopyRequest::new(path("/desk/new"), path("/desk/out/sub"));
        assert_eq!(guarded.copy(&OpContext::new(), copy).await.expect_err("denied").kind(), ErrorKind::PolicyDenied);
        Ok(())
    });
}

#[test]
fn states_of_all_files_can_be_denied() {
    run(async {
        let rules = RuleSet::new([Rule::new(RuleEffect::Deny).operation("forget").operation("restore")])?;
        let guarded = Policy::new(Arc::new(rules)).layer(Arc::new(MemoryBackend::new()));
        let (snapshots, cx) = (guarded.as_snapshots().expect("memory has them"), OpContext::new());
        let taken = snapshots.snapshot(&cx, vfs_core::snapshots::SnapshotRequest::new()).await?;
        let restored = snapshots.restore(&cx, vfs_core::snapshots::RestoreRequest::new(taken.id.clone())).await;
        let forgotten = snapshots.forget(&cx, vfs_core::snapshots::ForgetRequest::new(taken.id)).await;
        for answer in [restored, forgotten] {
            assert_eq!(answer.expect_err("denied").kind(), ErrorKind::PolicyDenied);
        }
        Ok(())
    });
}

#[test]
fn a_scope_is_not_written_out_of_and_may_itself_be_reached_by_a_link() {
    run(async {
        let (root, base) = disk(
            &[("data/one/a", "a\n"), ("outside", "out\n")],
            &[("data/one/link", "../../outside"), ("scope", "data/one")],
        );
        let scoped = Scoped::new(path("/scope")).layer(base);
        let cx = OpContext::new();
        let copied = scoped.copy(&cx, CopyRequest::new(path("/a"), path("/link")).overwrite()).await;
        assert_eq!(copied.expect_err("it leads out").kind(), ErrorKind::PathEscape);
        assert_eq!(fs::read_to_string(root.path().join("outside")).ok().as_deref(), Some("out\n"));
        assert_eq!(scoped.grep_text("a").await?.len(), 1);
        assert_eq!(scoped.read_text("/a").await?, "a\n");
        Ok(())
    });
}

#[test]
fn a_writer_in_a_scope_does_not_commit_through_a_link_that_leads_out() {
    run(async {
        let (root, base) = disk(&[("data/one/x/a", "a\n"), ("outside/keep", "out\n")], &[]);
        let scoped = Scoped::new(path("/data")).layer(base);
        let mut writer = scoped.open_writer(&OpContext::new(), OpenWriterRequest::new(path("/one/x/b"))).await?;
        writer.write("b\n".into()).await?;
        fs::rename(root.path().join("data/one/x"), root.path().join("data/one/moved")).expect("renamed");
        symlink("../../outside", root.path().join("data/one/x")).expect("linked");
        assert_eq!(writer.commit().await.expect_err("it leads out").kind(), ErrorKind::PathEscape);
        assert!(!root.path().join("outside/b").exists());
        Ok(())
    });
}

#[test]
fn a_move_across_mounts_loses_neither_an_alias_nor_what_a_link_leads_to() {
    run(async {
        let memory: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = CompositeBackend::new(Arc::new(MemoryBackend::new()))
            .with_mount("/a", Arc::clone(&memory))?
            .with_mount("/b", memory)?;
        files.create_text("/a/f", "keep\n").await?;
        let cx = OpContext::new();
        let same = files.rename(&cx, RenameRequest::new(path("/a/f"), path("/b/f")).overwrite()).await;
        assert_eq!(same.expect_err("one file by two names").kind(), ErrorKind::InvalidArgument);
        assert_eq!(files.read_text("/a/f").await?, "keep\n");

        let (root, base) = disk(&[("data/a", "a\n")], &[("dir", "data"), ("file", "data/a")]);
        let files = CompositeBackend::new(base).with_mount("/m", Arc::new(MemoryBackend::new()))?;
        let moved = files.rename(&cx, RenameRequest::new(path("/dir"), path("/m/x"))).await;
        assert_eq!(moved.expect_err("a link to a directory").kind(), ErrorKind::CrossBackend);
        files.rename(&cx, RenameRequest::new(path("/file"), path("/m/file"))).await?;
        assert_eq!(files.read_text("/m/file").await?, "a\n");
        assert!(root.path().join("file").symlink_metadata().is_err());
        assert_eq!(fs::read_to_string(root.path().join("data/a")).ok().as_deref(), Some("a\n"));
        Ok(())
    });
}

#[test]
fn a_move_from_another_mount_writes_through_no_link() {
    run(async {
        let (root, default) = disk(
            &[("secrets/key", "secret\n"), ("pub/a", "a\n")],
            &[("pub/there", "../secrets/key"), ("pub/absent", "../secrets/nokey"), ("pub/dir", "../secrets")],
        );
        let files = CompositeBackend::new(default).with_mount("/m", Arc::new(MemoryBackend::new()))?;
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(Arc::new(files));
        guarded.create_text("/m/x", "overwritten\n").await?;
        let rename = |from, to| RenameRequest::new(path(from), path(to));
        for to in ["/pub/there", "/pub/absent", "/pub/dir"] {
            for (request, kind) in [
                (rename("/m/x", to), ErrorKind::AlreadyExists),
                (rename("/m/x", to).overwrite(), ErrorKind::CrossBackend),
            ] {
                let error = guarded.rename(&OpContext::new(), request).await.expect_err("a link is there");
                assert_eq!((error.kind(), error.path()), (kind, Some(to)), "{error}");
            }
        }
        assert_eq!(fs::read_to_string(root.path().join("secrets/key")).ok().as_deref(), Some("secret\n"));
        assert!(!root.path().join("secrets/nokey").exists());
        assert_eq!(guarded.read_text("/m/x").await?, "overwritten\n");
        Ok(())
    });
}

#[test]
fn a_directory_that_has_a_broken_link_is_not_replaced_by_one_of_another_mount() {
    run(async {
        let (root, base) = disk(&[("secrets/key", "secret\n"), ("pub/a", "a\n"), ("pub/d/gone", "")], &[]);
        fs::remove_file(root.path().join("pub/d/gone")).expect("it can be removed");
        symlink("../../secrets/nokey", root.path().join("pub/d/x")).expect("a link can be made");
        let overlay = Arc::new(OverlayBackend::new(Arc::clone(&base)));
        for default in [base, overlay] {
            let files = CompositeBackend::new(default).with_mount("/m", Arc::new(MemoryBackend::new()))?;
            files.create_text("/m/src/x", "moved\n").await?;
            let cx = OpContext::new();
            let moved = files.rename(&cx, RenameRequest::new(path("/m/src"), path("/pub/d")).overwrite()).await;
            let copied = files.copy(&cx, CopyRequest::new(path("/m/src"), path("/pub/d")).overwrite()).await;
            for error in [moved.expect_err("not empty"), copied.expect_err("not empty")] {
                assert_eq!((error.kind(), error.path()), (ErrorKind::NotEmpty, Some("/pub/d")), "{error}");
            }
            assert!(!files.exists("/secrets/nokey").await?);
        }
        Ok(())
    });
}

#[test]
fn a_link_above_a_denied_file_does_not_reveal_whether_it_exists() {
    run(async {
        let (_root, default) = disk(
            &[("secrets/key", "secret\n"), ("pub/a", "a\n")],
            &[("pub/there", "../secrets/key"), ("pub/absent", "../secrets/nokey")],
        );
        let rules =
            [Rule::new(RuleEffect::Allow).path("/secrets/*/public"), Rule::new(RuleEffect::Deny).path("/secrets")];
        let guarded = Policy::new(Arc::new(RuleSet::new(rules).expect("valid rules"))).layer(default);
        for at in ["/pub/there/public", "/pub/absent/public", "/secrets/key/public", "/secrets/nokey/public"] {
            let error = guarded.stat(&OpContext::new(), StatRequest::new(path(at))).await.expect_err("missing");
            assert_eq!((error.kind(), error.path()), (ErrorKind::NotFound, Some(at)), "{error}");
        }
        Ok(())
    });
}

#[test]
fn a_path_below_a_link_does_not_reveal_whether_a_denied_file_exists() {
    run(async {
        let (_root, default) = disk(
            &[("secrets/key", "secret\n"), ("pub/a", "a\n")],
            &[
                ("pub/there", "../secrets/key"),
                ("pub/absent", "../secrets/nokey"),
                ("pub/deep-there", "../secrets/key/x"),
                ("pub/deep-absent", "../secrets/nokey/x"),
            ],
        );
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(default);
        let cx = OpContext::new();
        for at in [
            "/pub/there/x",
            "/pub/absent/x",
            "/pub/there/x/y",
            "/pub/absent/x/y",
            "/pub/deep-there",
            "/pub/deep-absent",
            "/pub/deep-there/y",
            "/pub/deep-absent/y",
        ] {
            let answers = [
                guarded.create_text(at, "x").await.err(),
                guarded.read_text(at).await.err(),
                guarded.stat(&cx, StatRequest::new(path(at))).await.err(),
                guarded.copy(&cx, CopyRequest::new(path("/pub/a"), path(at))).await.err(),
            ];
            for error in answers {
                assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::PolicyDenied), "{at}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_link_through_a_denied_path_does_not_reveal_whether_that_is_a_file() {
    use ErrorKind::{AlreadyExists, Conflict, NotFound};
    run(async {
        let (_root, default) = disk(
            &[("secrets/key", "secret\n"), ("pub/a", "a\n")],
            &[
                ("pub/there", "../secrets/key/../../pub/a"),
                ("pub/absent", "../secrets/nokey/../../pub/a"),
                ("pub/new-there", "../secrets/key/../../pub/new"),
                ("pub/new-absent", "../secrets/nokey/../../pub/new"),
                ("pub/file", "a"),
            ],
        );
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(default);
        let cx = OpContext::new();
        let if_version = |at: &str| WriteRequest::new(path(at), "x").mode(WriteMode::IfVersion(Version::new("1")));
        let kinds = async |at: &str| {
            let answers = [
                guarded.read_text(at).await.err(),
                guarded.write_text(at, "x").await.err(),
                guarded.create_text(at, "x").await.err(),
                guarded.edit_text(at, "a", "b").await.err(),
                guarded.stat(&cx, StatRequest::new(path(at))).await.err(),
                guarded.ls(&cx, LsRequest::new(path(at))).await.err(),
                guarded.grep(&cx, GrepRequest::regex("a").path(path(at))).await.err(),
                guarded.copy(&cx, CopyRequest::new(path(at), path("/got"))).await.err(),
                guarded.copy(&cx, CopyRequest::new(path("/pub/a"), path(at)).overwrite()).await.err(),
                guarded.upload_files(&cx, vec![FileUploadRequest::new(path(at), "x")]).await.remove(0).cause,
                guarded.download_files(&cx, vec![path(at)]).await.remove(0).cause,
                guarded.write(&cx, if_version(at)).await.err(),
            ];
            answers.map(|error| error.map(|error| error.kind()))
        };
        for (there, absent) in [("/pub/there", "/pub/absent"), ("/pub/new-there", "/pub/new-absent")] {
            let (there, absent) = (kinds(there).await, kinds(absent).await);
            assert_eq!(there, absent);
            let expected = |kind: &Option<_>| matches!(kind, Some(NotFound | AlreadyExists | Conflict));
            assert!(there.iter().all(expected), "{there:?}");
        }
        let listed = guarded.ls(&cx, LsRequest::new(path("/pub"))).await?;
        let found = guarded.glob(&cx, GlobRequest::new("/pub/*").links(LinkMode::Follow)).await?;
        let searched = guarded.grep(&cx, GrepRequest::regex("a").path(path("/pub")).links(LinkMode::Follow)).await?;
        for problem in listed.problems.iter().chain(&found.problems).chain(&searched.problems) {
            assert_eq!(problem.code, NotFound, "{problem:?}");
        }
        for at in ["/pub/file", "/pub/file/below", "/pub/a/below/deep"] {
            let error = guarded.ls(&cx, LsRequest::new(path(at))).await.expect_err("a file");
            assert_eq!(error.kind(), ErrorKind::NotADirectory, "{at}");
        }
        Ok(())
    });
}

#[test]
fn a_link_to_a_denied_name_that_is_not_utf8_is_not_described() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    run(async {
        let (root, default) = disk(&[("secrets/key", "secret\n"), ("pub/a", "a\n")], &[]);
        fs::write(root.path().join("secrets").join(OsStr::from_bytes(b"k\xe9y")), "secret").expect("a file");
        symlink(OsStr::from_bytes(b"../secrets/k\xe9y"), root.path().join("pub/l")).expect("a link can be made");
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(default);
        let listed = guarded.ls(&OpContext::new(), LsRequest::new(path("/pub"))).await?;
        assert_eq!(listed.entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["/pub/a"]);
        guarded.delete_file("/pub/l").await?;
        assert!(root.path().join("pub/l").symlink_metadata().is_err(), "a link is removed without what it leads to");
        Ok(())
    });
}

#[test]
fn a_link_to_a_denied_directory_is_removed_whatever_is_in_that() {
    run(async {
        let links =
            [("pub/empty", "../secrets/empty"), ("pub/full", "../secrets"), ("pub/broken", "../secrets/broken")];
        let (root, default) = disk(&[("secrets/key", "secret\n"), ("pub/a", "a\n")], &links);
        fs::create_dir_all(root.path().join("secrets/empty")).expect("a directory can be made");
        fs::create_dir_all(root.path().join("secrets/broken")).expect("a directory can be made");
        symlink("none", root.path().join("secrets/broken/link")).expect("a link can be made");
        let guarded = deny(Rule::new(RuleEffect::Deny).path("/secrets")).layer(default);
        for (at, _) in links {
            guarded.delete_file(&format!("/{at}")).await?;
        }
        assert!(root.path().join("secrets/key").exists() && root.path().join("secrets/broken").exists());
        Ok(())
    });
}

#[test]
fn a_link_that_cannot_be_followed_is_deleted_behind_checkpoints() {
    run(async {
        let (root, base) = disk(&[], &[("loop", "loop"), ("out", "/etc/passwd"), ("dangling", "missing")]);
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = Checkpoints::new(store, path("/checkpoints")).over(base);
        for at in ["/loop", "/out", "/dangling"] {
            files.delete_file(at).await?;
        }
        let left = files.ls(&OpContext::new(), LsRequest::new(path("/"))).await?;
        assert!(left.entries.is_empty() && left.problems.is_empty(), "{left:?}");
        files.create_text("/d/f", "text").await?;
        symlink("loop", root.path().join("d/loop")).expect("the directory is ours");
        files.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await?;
        files.undo(&OpContext::new(), 1).await?;
        assert_eq!(files.read_text("/d/f").await?, "text");
        Ok(())
    });
}

#[test]
fn a_rename_of_a_link_that_leads_to_a_file_only_afterwards_is_undone() {
    run(async {
        let (root, base) = disk(&[("f", "text"), ("x/d/g", "beside")], &[("x/d/l", "../f")]);
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = Checkpoints::new(store, path("/checkpoints")).over(base);
        files.rename(&OpContext::new(), RenameRequest::new(path("/x/d"), path("/d2"))).await?;
        assert_eq!(files.read_text("/d2/l").await?, "text");
        files.undo(&OpContext::new(), 1).await?;
        assert!(root.path().join("x/d/l").is_symlink() && !files.exists("/d2").await?);
        Ok(())
    });
}

#[test]
fn a_rename_of_a_link_that_leads_nowhere_afterwards_is_undone() {
    run(async {
        let (root, base) = disk(&[("f", "text"), ("d/g", "beside")], &[("d/l", "../f")]);
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = Checkpoints::new(store, path("/checkpoints")).over(base);
        files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/x/d"))).await?;
        assert!(!files.exists("/x/d/l").await?);
        files.undo(&OpContext::new(), 1).await?;
        assert!(root.path().join("d/l").is_symlink() && !files.exists("/x/d").await?);
        assert_eq!(files.read_text("/d/l").await?, "text");
        // At the new path, the link leads to a directory.
        fs::create_dir_all(root.path().join("x/f")).expect("the directory is ours");
        files.rename(&OpContext::new(), RenameRequest::new(path("/d"), path("/x/d"))).await?;
        assert!(files.stat_path("/x/d/l").await?.is_dir);
        files.undo(&OpContext::new(), 1).await?;
        assert!(root.path().join("d/l").is_symlink() && !files.exists("/x/d").await?);
        Ok(())
    });
}

#[test]
fn a_link_through_a_file_keeps_no_change_from_being_made_behind_checkpoints() {
    run(async {
        for target in ["../f/", "../f/x"] {
            let (root, base) = disk(&[("f", "text"), ("x/d/g", "beside")], &[("x/d/l", target)]);
            let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
            let files = Checkpoints::new(store, path("/checkpoints")).over(base);
            let cx = OpContext::new();
            files.rename(&cx, RenameRequest::new(path("/x/d"), path("/d2"))).await?;
            files.write_text("/new", "new").await?;
            files.delete(&cx, DeleteRequest::new(path("/d2")).recursive()).await?;
            assert_eq!(files.undo(&cx, 3).await?.entries.len(), 3);
            assert_eq!(files.read_text("/x/d/g").await?, "beside");
            assert!(!files.exists("/d2").await? && root.path().join("f").exists());
        }
        Ok(())
    });
}

#[test]
fn an_undone_rename_leaves_a_link_that_was_added_since() {
    run(async {
        let (root, base) = disk(&[("f", "text"), ("x/d/g", "beside")], &[("x/d/l", "../f")]);
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = Checkpoints::new(store, path("/checkpoints")).over(base);
        files.rename(&OpContext::new(), RenameRequest::new(path("/x/d"), path("/d2"))).await?;
        symlink("../f", root.path().join("d2/n")).expect("a link can be made");
        files.undo(&OpContext::new(), 1).await?;
        assert_eq!(files.read_text("/x/d/g").await?, "beside");
        assert!(root.path().join("d2/n").is_symlink() && !root.path().join("x/d/n").is_symlink());
        assert!(root.path().join("d2/l").is_symlink() && !files.exists("/d2/g").await?);
        Ok(())
    });
}

#[test]
fn a_file_whose_name_is_not_utf8_is_not_taken_for_a_link_by_checkpoints() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    run(async {
        for target in ["x\u{FFFD}", "missing", "f", "f/"] {
            let (root, base) = disk(&[("d/f", "text")], &[("d/x\u{FFFD}", target)]);
            let hidden = root.path().join("d").join(OsStr::from_bytes(b"x\xff"));
            fs::write(&hidden, "hidden").expect("a file can be written");
            let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
            let files = Checkpoints::new(store, path("/checkpoints")).over(base);
            let deleted = files.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await;
            let error = deleted.expect_err("the content of a file cannot be stored");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some("/d/x\u{FFFD}")), "{target}");
            assert!(hidden.exists());
        }
        Ok(())
    });
}

#[test]
fn more_problems_than_a_listing_names_are_refused_without_a_lookup_of_each_link() {
    run(async {
        let names: Vec<_> = (0..1001).map(|number| (format!("d/{number:04}"), format!("{number:04}"))).collect();
        let links: Vec<_> = names.iter().map(|(at, to)| (at.as_str(), to.as_str())).collect();
        let (_root, base) = disk(&[("d/f", "text")], &links);
        let counter = Arc::new(CallCounter::default());
        let counted = Arc::new(Intercepted::new(base, Arc::clone(&counter)));
        let store: Arc<dyn Backend> = Arc::new(MemoryBackend::new());
        let files = Checkpoints::new(store, path("/checkpoints")).over(counted);
        let deleted = files.delete(&OpContext::new(), DeleteRequest::new(path("/d")).recursive()).await;
        assert_eq!(deleted.expect_err("some entries have no name").kind(), ErrorKind::Unsupported);
        assert_eq!(counter.calls(Operation::Ls), 1);
        assert_eq!(files.read_text("/d/f").await?, "text");
        Ok(())
    });
}

//! Tests of protected paths, by every path that leads to them.

use futures::executor::block_on;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest,
    GrepRequest, LsRequest, OpContext, RenameRequest, Result, WriteMode, WriteRequest,
};
use vfs_local::{PathResolutionMode, ProtectionLevel};

use crate::{Disk, assert_fails, path};

/// Creates a root with a read-only repository, a hidden file, a hidden directory, and links to all of them.
fn disk(resolution: PathResolutionMode) -> Disk {
    let disk = Disk::with(|config| {
        let config = config.resolution(resolution).protect(path("/.git"), ProtectionLevel::ReadOnly);
        config.protect(path("/.env"), ProtectionLevel::Hidden).protect(path("/a/keys"), ProtectionLevel::Hidden)
    });
    for (name, content) in [
        (".git/config", "[core]"),
        (".env", "PASSWORD"),
        ("a/keys/private", "PASSWORD"),
        ("a/other", "text"),
        ("b", "text"),
    ] {
        disk.put(name, content);
    }
    for (target, name) in [
        (".git", "git"),
        (".env", "env"),
        ("a", "above"),
        ("a/keys", "keys"),
        (".", "root"),
        ("../.git/config", "d/config"),
    ] {
        std::fs::create_dir_all(disk.root().join("d")).expect("directories are made");
        disk.link(target, name);
    }
    disk
}

const BOTH: [PathResolutionMode; 2] = [PathResolutionMode::Automatic, PathResolutionMode::Portable];

#[test]
fn read_only_and_hidden_entries_are_not_changed_by_any_path() {
    for disk in BOTH.map(disk) {
        let (files, cx) = (&disk.files, &OpContext::new());
        let write = |at: &str, mode| {
            let request = WriteRequest::new(path(at), "evil").mode(mode);
            block_on(files.write(cx, request)).map(drop)
        };
        let version = block_on(files.stat_path("/.git/config")).expect("it is readable").version.expect("a version");
        for at in ["/.git/config", "/git/config", "/d/config", "/root/.git/config", "/keys/private", "/env", "/.env"] {
            for mode in [WriteMode::Overwrite, WriteMode::Append, WriteMode::IfVersion(version.clone())] {
                assert_fails(write(at, mode), &[ErrorKind::PolicyDenied]);
            }
            assert_fails(block_on(files.edit_text(at, "core", "evil")).map(drop), &[ErrorKind::PolicyDenied]);
            let uploaded = block_on(files.upload_files(cx, vec![FileUploadRequest::new(path(at), "evil")])).remove(0);
            assert_eq!(uploaded.cause.map(|error| error.kind()), Some(ErrorKind::PolicyDenied), "{at}");
            let copied = files.copy(cx, CopyRequest::new(path("/b"), path(at)).overwrite());
            assert_fails(block_on(copied).map(drop), &[ErrorKind::PolicyDenied]);
        }
        for at in
            ["/.git/hooks/new", "/git/new", "/git/hooks/deep/new", "/keys/new", "/above/keys/new", "/root/root/.git/x"]
        {
            assert_fails(write(at, WriteMode::CreateNew), &[ErrorKind::PolicyDenied]);
            let moved = files.rename(cx, RenameRequest::new(path("/b"), path(at)));
            assert_fails(block_on(moved).map(drop), &[ErrorKind::PolicyDenied]);
        }
        for at in ["/.git", "/.git/config", "/git/config", "/root/.git", "/root/.env", "/above/keys", "/a", "/root/a"] {
            let deleted = files.delete(cx, DeleteRequest::new(path(at)).recursive());
            assert_fails(block_on(deleted).map(drop), &[ErrorKind::PolicyDenied]);
            let emptied = files.delete(cx, DeleteRequest::new(path(at)).only_empty());
            assert_fails(block_on(emptied).map(drop), &[ErrorKind::PolicyDenied]);
            let moved = files.rename(cx, RenameRequest::new(path(at), path("/moved")));
            assert_fails(block_on(moved).map(drop), &[ErrorKind::PolicyDenied]);
        }
        assert_eq!(disk.get(".git/config"), b"[core]");
        assert_eq!(disk.get("a/keys/private"), b"PASSWORD");
        assert!(!disk.root().join(".git/hooks").exists() && !disk.root().join(".git/new").exists());
    }
}

#[test]
fn hidden_entries_are_not_read_by_any_path() {
    for disk in BOTH.map(disk) {
        let (files, cx) = (&disk.files, &OpContext::new());
        for at in ["/.env", "/env", "/root/.env", "/a/keys/private", "/keys/private", "/above/keys/private"] {
            assert_fails(block_on(files.read_text(at)).map(drop), &[ErrorKind::PolicyDenied]);
            assert_fails(block_on(files.stat_path(at)).map(drop), &[ErrorKind::PolicyDenied]);
            let response = block_on(files.download_files(cx, vec![path(at)])).remove(0);
            assert_eq!(
                (response.content, response.cause.map(|error| error.kind())),
                (None, Some(ErrorKind::PolicyDenied))
            );
            let tried = EditRequest::new(path(at), "PASSWORD", "x").dry_run();
            assert_fails(block_on(files.edit(cx, tried)).map(drop), &[ErrorKind::PolicyDenied]);
            let searched = files.grep(cx, GrepRequest::literal("PASS").path(path(at)));
            assert_fails(block_on(searched).map(drop), &[ErrorKind::PolicyDenied]);
            let copied = files.copy(cx, CopyRequest::new(path(at), path("/copy")));
            assert_fails(block_on(copied).map(drop), &[ErrorKind::PolicyDenied]);
        }
        for at in ["/a/keys", "/keys", "/root/a/keys", "/above/keys"] {
            let searched = files.grep(cx, GrepRequest::literal("PASS").hidden().path(path(at)));
            assert_fails(block_on(searched).map(drop), &[ErrorKind::PolicyDenied]);
            let found = files.glob(cx, GlobRequest::new("**").path(path(at)));
            assert_fails(block_on(found).map(drop), &[ErrorKind::PolicyDenied]);
        }
        for at in ["/a", "/a/keys", "/keys", "/above"] {
            let copied = files.copy(cx, CopyRequest::new(path(at), path("/copy")));
            assert_fails(block_on(copied).map(drop), &[ErrorKind::PolicyDenied]);
        }
        let found = block_on(files.grep(cx, GrepRequest::literal("PASS").hidden())).expect("the rest is searched");
        assert_eq!(found.matches.len(), 0, "{found:?}");
        let reported: Vec<_> = found.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(reported, ["/.env", "/a/keys", "/env", "/keys"], "links to it are reported, too");
        assert!(!disk.root().join("copy").exists());
    }
}

#[test]
fn entries_beside_protected_ones_are_unaffected() -> Result<()> {
    for disk in BOTH.map(disk) {
        let (files, cx) = (&disk.files, &OpContext::new());
        assert_eq!(block_on(files.read_text("/git/config"))?, "[core]");
        assert_eq!(block_on(files.read_text("/d/config"))?, "[core]");
        block_on(files.edit(cx, EditRequest::new(path("/.git/config"), "core", "x").dry_run()))?;
        block_on(files.create_text("/.gitignore", "target\n"))?;
        block_on(files.create_text("/above/keysmith/new/file", "text"))?;
        block_on(files.edit_text("/above/other", "text", "words"))?;
        assert_eq!(block_on(files.read_text("/root/a/other"))?, "words");
        assert_eq!(block_on(files.ls(cx, LsRequest::new(path("/root/d"))))?.entries.len(), 1);
        block_on(files.rename(cx, RenameRequest::new(path("/root/b"), path("/above/b"))))?;
        block_on(files.copy(cx, CopyRequest::new(path("/.git"), path("/copy"))))?;
        block_on(files.delete(cx, DeleteRequest::new(path("/root/copy")).recursive()))?;
        block_on(files.delete(cx, DeleteRequest::new(path("/git"))))?;
        assert!(!disk.root().join("git").exists() && disk.root().join(".git/config").exists(), "the link goes");
    }
    Ok(())
}

#[test]
fn paths_that_differ_in_case_are_protected() {
    let disk = Disk::with(|config| config.protect(path("/.Env"), ProtectionLevel::Hidden));
    disk.put(".ENV", "PASSWORD");
    assert_fails(block_on(disk.files.read_text("/.ENV")).map(drop), &[ErrorKind::PolicyDenied]);
}

#[test]
fn the_target_of_a_link_is_checked_by_its_real_location() -> Result<()> {
    for resolution in BOTH {
        let disk = Disk::with(|config| {
            let config = config.resolution(resolution).protect(path("/.env"), ProtectionLevel::Hidden);
            config.protect(path("/a/keys"), ProtectionLevel::Hidden)
        });
        for name in [".env", "a/keys/private", "a/src/found", "a/src/ignored", "sub/.env"] {
            disk.put(name, "text\n");
        }
        disk.put("a/.gitignore", "ignored\n");
        disk.link("sub/.env", "plain");
        disk.link("a", "above");
        let (files, cx) = (&disk.files, &OpContext::new());
        let search = |at: &str| block_on(files.grep(cx, GrepRequest::literal("text").path(path(at))));
        assert_eq!(search("/plain")?.matches.len(), 1, "it is another file of that name");
        let found = search("/above/src")?;
        assert_eq!((found.matches.len(), found.problems.len()), (1, 0), "{found:?}");
        assert_eq!(block_on(files.ls(cx, LsRequest::new(path("/above"))))?.entries.len(), 3);
        let found = search("/above")?;
        assert_eq!((found.matches.len(), found.problems.len()), (1, 1), "{found:?}");
    }
    Ok(())
}

#[test]
fn a_tree_with_a_protected_name_in_it_is_not_deleted() -> Result<()> {
    for protection in [ProtectionLevel::ReadOnly, ProtectionLevel::Hidden] {
        let disk = Disk::with(|config| config.protect_name(".env", protection).protect_name("vault", protection));
        for name in ["d/a", "d/x/.env", "d/z", "e/x/y/VAULT/key", "e/z"] {
            disk.put(name, "text");
        }
        let deep = format!("deep{}", "/d".repeat(100));
        disk.put(&format!("{deep}/.env"), "text");
        let (files, cx) = (&disk.files, &OpContext::new());
        let delete = |at: &str| block_on(files.delete(cx, DeleteRequest::new(path(at)).recursive()));
        for (at, place) in [("/d", "/d/x/.env"), ("/e", "/e/x/y/VAULT")] {
            let error = delete(at).expect_err("a name is protected");
            assert_eq!((error.kind(), error.path()), (ErrorKind::PolicyDenied, Some(place)), "{error:?}");
            assert!(error.for_model().contains("nothing was deleted") && error.detail().is_none(), "{error:?}");
        }
        assert_fails(delete("/deep"), &[ErrorKind::PolicyDenied]);
        for name in ["d/a", "d/x/.env", "d/z", "e/x/y/VAULT/key", "e/z", &format!("{deep}/.env")] {
            assert_eq!(disk.get(name), b"text", "{name}");
        }
        block_on(files.rename(cx, RenameRequest::new(path("/d"), path("/moved"))))?;
        assert_fails(delete("/moved"), &[ErrorKind::PolicyDenied]);
        std::fs::remove_file(disk.root().join("moved/x/.env")).expect("it goes");
        assert_eq!(delete("/moved")?.files, 2);
    }
    Ok(())
}

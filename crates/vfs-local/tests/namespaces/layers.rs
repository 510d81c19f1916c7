//! Tests of mounts below a root, and of a root on a layered file system, as containers have them.
//!
//! On a layered file system, the first change of a file of a lower layer copies it to the upper one.

use std::path::Path;
use std::process::Command;

use futures::executor::block_on;
use tempfile::TempDir;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, OpContext, ReadRequest, RenameRequest,
    StatRequest, Version, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use crate::support::{Disk, SECRET, assert_fails, path};

pub(crate) const MOUNT: &str = "at=$(mktemp -d) && mount -t tmpfs tmpfs $at && cd $at && mkdir lower upper work merged && \
                     mount -t overlay overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work merged";

/// Whether both layers are on one file system: only then a file has the same inode number after it is copied to the
/// upper layer.
#[derive(Clone, Copy)]
enum LowerLayer {
    OnTheSameDisk,
    OnAnother,
}

/// An overlay mount in a temporary directory, whose lower layer has files before it is mounted.
struct Layers {
    at: TempDir,
    files: LocalBackend,
}

impl Layers {
    /// Mounts an overlay with the files `lower` in its lower layer.
    fn new(durability: Durability, lower: &[&str]) -> Self {
        Self::with(durability, LowerLayer::OnTheSameDisk, lower)
    }

    fn with(durability: Durability, place: LowerLayer, lower: &[&str]) -> Self {
        let at = tempfile::tempdir().expect("a temporary directory");
        mount(&["-t", "tmpfs", "tmpfs"], at.path());
        for name in ["lower", "upper", "work", "merged"] {
            std::fs::create_dir(at.path().join(name)).expect("directories are made");
        }
        if matches!(place, LowerLayer::OnAnother) {
            mount(&["-t", "tmpfs", "tmpfs"], &at.path().join("lower"));
        }
        for name in lower {
            let file = at.path().join("lower").join(name);
            std::fs::create_dir_all(file.parent().expect("it is below another")).expect("directories are made");
            std::fs::write(file, "content").expect("files are written");
        }
        let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| at.path().join(name));
        let [lower, upper, work] = [lower, upper, work].map(|layer| layer.display().to_string());
        let options = format!("userxattr,lowerdir={lower},upperdir={upper},workdir={work}");
        mount(&["-t", "overlay", "overlay", "-o", &options], &merged);
        let files = LocalConfig::new(merged).durability(durability).open().expect("the root opens");
        Self { at, files }
    }

    /// Mounts the layers again, as they are now.
    fn mount_again(&mut self) {
        let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| self.at.path().join(name));
        let options =
            format!("userxattr,lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        // The backend has its root open, and an open file system cannot be unmounted.
        self.files = LocalConfig::new(self.at.path()).open().expect("the root opens");
        let status = Command::new("umount").arg(&merged).status().expect("it runs");
        assert!(status.success(), "umount {}", merged.display());
        // This mount takes the device number that has become free.
        mount(&["-t", "tmpfs", "tmpfs"], &merged);
        mount(&["-t", "overlay", "overlay", "-o", &options], &merged);
        self.files = LocalConfig::new(merged).durability(Durability::Atomic).open().expect("the root opens");
    }

    fn version(&self, file: &str) -> Version {
        let info = block_on(self.files.stat(&OpContext::new(), StatRequest::new(path(file)))).expect("it is there");
        info.version.expect("files have versions")
    }

    fn in_upper(&self, name: &str) -> bool {
        self.at.path().join("upper").join(name).exists()
    }
}

fn mount(arguments: &[&str], at: &Path) {
    let status = Command::new("mount").args(arguments).arg(at).status().expect("it runs");
    assert!(status.success(), "{arguments:?} at {}", at.display());
}

/// Runs `test` with both settings of durability.
fn each(test: impl Fn(Durability)) {
    [Durability::Atomic, Durability::Full].into_iter().for_each(test);
}

pub(crate) fn what_was_read_of_a_lower_layer_can_be_changed() {
    each(|durability| check_changes(durability, LowerLayer::OnTheSameDisk));
}

pub(crate) fn what_was_read_of_a_lower_layer_on_another_disk_can_be_changed() {
    each(|durability| check_changes(durability, LowerLayer::OnAnother));
}

fn check_changes(durability: Durability, place: LowerLayer) {
    let layers = Layers::with(durability, place, &["edited", "written", "deleted", "appended"]);
    let (cx, files) = (OpContext::new(), &layers.files);
    let read = |file| block_on(files.read(&cx, ReadRequest::new(path(file)))).expect("it reads").version;

    let version = read("/edited");
    let edit = EditRequest::new(path("/edited"), "content", "edited").expected_version(version.clone());
    let dry_run = block_on(files.edit(&cx, edit.clone().dry_run())).expect("it can be edited");
    assert_eq!((dry_run.version, layers.version("/edited")), (version.clone(), version));
    assert!(!layers.in_upper("edited"), "a dry run changes nothing");
    let edited = block_on(files.edit(&cx, edit)).expect("it is what was read");
    assert_eq!(edited.version, layers.version("/edited"));

    let mode = WriteMode::IfVersion(read("/written"));
    let written = block_on(files.write(&cx, WriteRequest::new(path("/written"), "written").mode(mode)));
    assert_eq!(written.expect("it is what was read").version, layers.version("/written"));
    let delete = DeleteRequest::new(path("/deleted")).expected_version(read("/deleted"));
    block_on(files.delete(&cx, delete)).expect("it is what was read");
    block_on(files.append_text("/appended", " and more")).expect("it appends");

    let found = ["/edited", "/written", "/appended"].map(|file| block_on(files.read_text(file)).expect("it reads"));
    assert_eq!(found, ["edited", "written", "content and more"]);
    assert_fails(block_on(files.read_text("/deleted")), &[ErrorKind::NotFound]);
}

pub(crate) fn a_refused_change_leaves_a_file_of_a_lower_layer_as_it_is() {
    each(|durability| {
        let layers = Layers::new(durability, &["f"]);
        let (cx, before) = (OpContext::new(), layers.version("/f"));
        let mode = WriteMode::IfVersion(Version::new("another"));
        let write = WriteRequest::new(path("/f"), "x").mode(mode);
        assert_fails(block_on(layers.files.write(&cx, write)), &[ErrorKind::Conflict]);
        let edit = EditRequest::new(path("/f"), "what is not there", "x");
        assert_fails(block_on(layers.files.edit(&cx, edit)), &[ErrorKind::NoMatch]);
        assert_eq!(layers.version("/f"), before);
        assert!(!layers.in_upper("f"));
    });
}

pub(crate) fn a_directory_of_a_lower_layer_is_deleted_and_copied() {
    each(|durability| {
        let layers = Layers::new(durability, &["d/one", "d/below/two", "other"]);
        let (cx, files) = (OpContext::new(), &layers.files);
        // The kernel cannot move the directory.
        let moved = block_on(files.rename(&cx, RenameRequest::new(path("/d"), path("/e"))));
        let error = moved.expect_err("it lies in a lower layer");
        assert_eq!((error.kind(), error.path()), (ErrorKind::CrossBackend, Some("/d")), "{error:?}");
        assert!(
            error.for_model().contains("copy the directory to the new path, then delete the original"),
            "{error:?}"
        );
        let copied = block_on(files.copy(&cx, CopyRequest::new(path("/d"), path("/e")))).expect("it copies");
        assert_eq!(copied.files, 2);
        let deleted = block_on(files.delete(&cx, DeleteRequest::new(path("/d")).recursive())).expect("it deletes");
        assert_eq!(deleted.files, 2);
        let mut left: Vec<_> = std::fs::read_dir(layers.at.path().join("merged"))
            .expect("it lists")
            .map(|entry| entry.expect("it lists").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["e", "other"]);
        assert_eq!(block_on(files.read_text("/e/below/two")).expect("it reads"), "content");
    });
}

pub(crate) fn a_directory_of_a_lower_layer_that_goes_deep_is_deleted() {
    each(|durability| {
        // The tree is deeper than the number of open descriptors, with files at every end.
        let deep = format!("d{}", "/e".repeat(150));
        let ends = ["d/file".to_owned(), format!("{deep}/file"), format!("{deep}/f/file"), format!("{deep}/g/file")];
        let layers = Layers::new(durability, &[&["other"], &ends.each_ref().map(String::as_str)[..]].concat());
        let request = DeleteRequest::new(path("/d")).recursive();
        let deleted = block_on(layers.files.delete(&OpContext::new(), request)).expect("it deletes");
        assert_eq!(deleted.files, 4);
        let left: Vec<_> = std::fs::read_dir(layers.at.path().join("merged"))
            .expect("it lists")
            .map(|entry| entry.expect("it lists").file_name())
            .collect();
        assert_eq!(left, ["other"]);
    });
}

pub(crate) fn a_tree_with_something_mounted_below_stays_whole() {
    each(|durability| {
        for mounted in ["d/m/directory", "d/m/file"] {
            let disk = Disk::with(|config| config.durability(durability));
            let files = ["d/a", "d/b/c", "d/m/a", "d/m/directory/below", "d/m/file", "d/m/z", "d/y/c", "d/z"];
            files.iter().for_each(|name| disk.put(name, "x"));
            let source = disk.tree.path().join(if mounted == "d/m/file" { "outside/secret" } else { "outside" });
            mount(&["--bind", &source.display().to_string()], &disk.root().join(mounted));
            let request = DeleteRequest::new(path("/d")).recursive();
            let error = block_on(disk.files.delete(&OpContext::new(), request)).expect_err("something is mounted");
            let at = format!("/{mounted}");
            assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some(at.as_str())), "{error:?}");
            assert!(error.for_model().contains("mounted there") && error.detail().is_none(), "{error:?}");
            files.iter().filter(|name| !name.starts_with(mounted)).for_each(|name| assert_eq!(disk.get(name), b"x"));
        }
    });
}

pub(crate) fn what_something_is_mounted_on_is_refused_for_good() {
    each(|durability| {
        let disk = Disk::with(|config| config.durability(durability));
        disk.put("file", "below");
        disk.put("directory/file", "below");
        let outside = disk.tree.path().join("outside");
        let [file, directory] = ["secret", ""].map(|name| outside.join(name).display().to_string());
        mount(&["--bind", &file], &disk.root().join("file"));
        mount(&["--bind", &directory], &disk.root().join("directory"));
        let (cx, files) = (OpContext::new(), &disk.files);
        let refused = &[ErrorKind::PermissionDenied];
        let refused_by_mount = [ErrorKind::PermissionDenied, ErrorKind::CrossBackend];

        let overwrite = WriteRequest::new(path("/file"), "x").mode(WriteMode::Overwrite);
        assert_fails(block_on(files.write(&cx, overwrite)), refused);
        assert_fails(block_on(files.append_text("/file", "x")), refused);
        assert_fails(block_on(files.edit(&cx, EditRequest::new(path("/file"), "only", "x"))), refused);
        assert_fails(block_on(files.delete(&cx, DeleteRequest::new(path("/file")))), refused);
        assert_fails(block_on(files.delete(&cx, DeleteRequest::new(path("/directory")).recursive())), refused);
        disk.put("other", "other");
        for (from, to, mounted) in
            [("/file", "/new", "/file"), ("/other", "/file", "/file"), ("/directory", "/new", "/directory")]
        {
            let rename = RenameRequest::new(path(from), path(to)).overwrite();
            let error = block_on(files.rename(&cx, rename)).expect_err("something is mounted there");
            assert!(refused_by_mount.contains(&error.kind()) && error.path() == Some(mounted), "{error:?}");
        }
        let copy = CopyRequest::new(path("/other"), path("/file")).overwrite();
        let error = block_on(files.copy(&cx, copy)).expect_err("something is mounted there");
        assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some("/file")));
        std::fs::create_dir(disk.root().join("empty")).expect("a directory can be made");
        mount(&["-t", "tmpfs", "tmpfs"], &disk.root().join("empty"));
        assert_fails(block_on(files.delete(&cx, DeleteRequest::new(path("/empty")).only_empty())), refused);
        disk.put("tree/file", "tree");
        let copy = CopyRequest::new(path("/tree"), path("/empty")).overwrite();
        let error = block_on(files.copy(&cx, copy)).expect_err("something is mounted there");
        assert!(refused_by_mount.contains(&error.kind()) && error.path() == Some("/empty"), "{error:?}");
        assert_eq!(disk.get("file"), SECRET.as_bytes());
        assert_eq!(disk.get("directory/secret"), SECRET.as_bytes());
        let left = std::fs::read_dir(disk.root()).expect("it lists").count();
        assert_eq!(left, 5, "nothing else is left");
    });
}

pub(crate) fn an_untouched_file_keeps_its_version_when_the_layers_are_mounted_again() {
    let mut layers = Layers::new(Durability::Atomic, &["lower"]);
    block_on(layers.files.create_text("/upper", "content")).expect("it is made");
    let before = ["/lower", "/upper"].map(|file| layers.version(file));
    layers.mount_again();
    assert_eq!(["/lower", "/upper"].map(|file| layers.version(file)), before);
    let edit = EditRequest::new(path("/lower"), "content", "changed").expected_version(before[0].clone());
    block_on(layers.files.edit(&OpContext::new(), edit)).expect("nobody changed it");
}

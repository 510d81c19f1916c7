//! Operations that are interrupted, and the tree that they change.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use futures::executor::block_on;
use vfs_core::{
    Backend, CopyRequest, DeleteRequest, EditRequest, LsRequest, OpContext, RenameRequest, VfsPath, WriteMode,
    WriteRequest,
};
use vfs_local::LocalBackend;

pub(super) type State = BTreeMap<String, Vec<u8>>;

/// An operation on the tree that a test created.
type Run = fn(&LocalBackend, &OpContext) -> vfs_core::Result<()>;

/// One operation on a small tree.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) run: Run,
    /// Changes the files before the operation to those after it.
    pub(super) after: fn(&mut State),
    /// The files that an error in the middle may leave: a tree cannot be deleted in one step.
    pub(super) on_error: OnError,
}

#[derive(PartialEq)]
pub(super) enum OnError {
    Old,
    PartOfOld,
}

const OLD: &str = "old line one\nold line two\n";

pub(super) const CASES: &[Case] = &[
    Case {
        name: "write_new",
        run: |files, cx| block_on(files.write(cx, WriteRequest::new(path("/p/q/new"), big('n')))).map(drop),
        after: |state| drop(state.insert("/p/q/new".into(), big('n'))),
        on_error: OnError::Old,
    },
    Case {
        name: "overwrite",
        run: |files, cx| {
            block_on(files.write(cx, WriteRequest::new(path("/f"), big('o')).mode(WriteMode::Overwrite))).map(drop)
        },
        after: |state| drop(state.insert("/f".into(), big('o'))),
        on_error: OnError::Old,
    },
    Case {
        name: "append",
        run: |files, cx| {
            block_on(files.write(cx, WriteRequest::new(path("/f"), "more\n").mode(WriteMode::Append))).map(drop)
        },
        after: |state| state.get_mut("/f").expect("it is there").extend(b"more\n"),
        on_error: OnError::Old,
    },
    Case {
        name: "edit",
        run: |files, cx| block_on(files.edit(cx, EditRequest::new(path("/f"), "line one", "line 1"))).map(drop),
        after: |state| drop(state.insert("/f".into(), OLD.replace("line one", "line 1").into())),
        on_error: OnError::Old,
    },
    Case {
        name: "delete",
        run: |files, cx| block_on(files.delete(cx, DeleteRequest::new(path("/f")))).map(drop),
        after: |state| drop(state.remove("/f")),
        on_error: OnError::Old,
    },
    Case {
        name: "delete_tree",
        run: |files, cx| block_on(files.delete(cx, DeleteRequest::new(path("/d")).recursive())).map(drop),
        after: |state| state.retain(|path, _| !path.starts_with("/d/")),
        on_error: OnError::PartOfOld,
    },
    Case {
        name: "rename",
        run: |files, cx| block_on(files.rename(cx, RenameRequest::new(path("/f"), path("/d/g")).overwrite())).map(drop),
        after: |state| {
            let moved = state.remove("/f").expect("it is there");
            state.insert("/d/g".into(), moved);
        },
        on_error: OnError::Old,
    },
    Case {
        name: "copy_tree",
        run: |files, cx| block_on(files.copy(cx, CopyRequest::new(path("/d"), path("/e")))).map(drop),
        after: |state| {
            let copies: Vec<_> = state
                .iter()
                .filter_map(|(path, content)| Some((format!("/e/{}", path.strip_prefix("/d/")?), content.clone())))
                .collect();
            state.extend(copies);
        },
        on_error: OnError::Old,
    },
];

/// Operations that only some trials make.
pub(super) const OTHERS: [(&str, Run); 4] = [
    ("write_deep", |files, cx| {
        block_on(files.write(cx, WriteRequest::new(path(&format!("{}/f", "/d".repeat(DEPTH))), "x"))).map(drop)
    }),
    ("delete_tree_message", |files, cx| {
        let deleted = block_on(files.delete(cx, DeleteRequest::new(path("/d")).recursive()));
        deleted.map(drop).inspect_err(|error| print!("{}; ", error.message()))
    }),
    ("delete_tree_as_another", |files, cx| {
        let (own, other) = (rustix::process::geteuid(), rustix::fs::Uid::from_raw(65534));
        if own.is_root() {
            // The system call changes only the calling thread, which does all the work here.
            rustix::thread::set_thread_res_uid(other, own, own).expect("root may become anyone");
        }
        block_on(files.delete(cx, DeleteRequest::new(path("/d")).recursive())).map(drop)
    }),
    ("copy_wide", |files, cx| block_on(files.copy(cx, CopyRequest::new(path("/wide"), path("/copy")))).map(drop)),
];

/// Number of nested directories that are created.
pub(super) const DEPTH: usize = 990;

pub(super) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of this test are valid")
}

pub(super) fn big(letter: char) -> Vec<u8> {
    letter.to_string().repeat(50_000).into_bytes()
}

pub(super) fn before() -> State {
    [("/f", OLD), ("/d/g", "g\n"), ("/d/sub/h", "h\n")].map(|(path, text)| (path.to_owned(), text.into())).into()
}

pub(super) fn lay_out(root: &Path) {
    for (path, content) in before() {
        let path = root.join(&path[1..]);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories are made");
        fs::write(path, content).expect("files are written");
    }
}

/// Returns the files that a user of the backend finds: every file of a full listing with its content.
pub(super) fn found(root: &Path) -> State {
    let files = LocalBackend::open(root).expect("the root opens");
    let listing = block_on(files.ls(&OpContext::new(), LsRequest::new(VfsPath::root()).recursive())).expect("it lists");
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let listed = listing.entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.path.to_string());
    listed.map(|path| (path.clone(), fs::read(root.join(&path[1..])).expect("it reads"))).collect()
}

/// Returns the names of unfinished writes that are on the disk, listed or not.
pub(super) fn litter(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("it lists").map(|entry| entry.expect("it lists")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(".vfs-tmp-") {
            found.push(name);
        } else if entry.path().is_dir() {
            found.extend(litter(&entry.path()));
        }
    }
    found
}

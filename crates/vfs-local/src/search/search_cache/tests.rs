//! Tests: changes invalidate entries, refusals stay refusals, and the size limit holds.

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use futures::executor::block_on;
use tempfile::TempDir;
use vfs_core::{
    Backend as _, ErrorKind, GlobRequest, GrepRequest, GrepResult, OpContext, VfsPath, WriteMode, WriteRequest,
};
use vfs_search::Pool;

use super::*;
use crate::backend::LocalBackend;
use crate::config::LocalConfig;
use crate::config::policies::{HardLinks, MountPolicy, ProtectionLevel};
use crate::fs::cache_eligibility::MIN_UNCHANGED_AGE;

/// Longer than a tick of any file system's clock.
const TICK: Duration = Duration::from_millis(20);

/// Maximum time that a test waits for files to become older than that. It bounds a hang, and is no expectation of
/// speed.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a directory, and a cache that trusts the file system of temporary files.
fn memory_for(max_bytes: usize) -> (TempDir, SearchCache) {
    let root = tempfile::tempdir().expect("a temporary directory");
    (root, SearchCache::with_policy(max_bytes, CacheEligibility::on_any_file_system(TICK)))
}

fn config(root: &Path, memory: &SearchCache) -> LocalConfig {
    LocalConfig::new(root).search_cache(memory.clone())
}

fn opened(config: LocalConfig) -> LocalBackend {
    config.open().expect("the root opens")
}

fn grep(files: &LocalBackend, text: &str) -> GrepResult {
    block_on(files.grep(&OpContext::new(), GrepRequest::literal(text))).expect("it searches")
}

fn paths(found: &GrepResult) -> Vec<&str> {
    found.matches.iter().map(|line| line.path.as_str()).collect()
}

/// Searches until `count` files are cached.
fn search_until_cached(files: &LocalBackend, memory: &SearchCache, count: usize) {
    let start = Instant::now();
    while memory.files() < count {
        assert!(start.elapsed() < HANG_TIMEOUT, "{} of {count} files are remembered", memory.files());
        assert_eq!(paths(&grep(files, "nowhere to be found")), Vec::<&str>::new());
    }
}

#[test]
fn second_search_of_a_root_fills_the_cache() {
    let (root, memory) = memory_for(1 << 20);
    for file in 0..10 {
        fs::write(root.path().join(file.to_string()), format!("the text of {file}\n")).expect("it writes");
    }
    // Waits until the files are old enough.
    search_until_cached(&opened(config(root.path(), &memory)), &memory, 10);
    memory.0.directories.write().expect("not poisoned").clear();
    memory.0.searched_roots.lock().expect("not poisoned").clear();
    // All backends of one root count as one.
    let search = || grep(&opened(config(root.path(), &memory)), "text of 7");
    assert_eq!(paths(&search()), ["/7"]);
    assert_eq!((memory.files(), memory.bytes()), (0, 0));
    assert_eq!(paths(&search()), ["/7"]);
    assert_eq!(memory.files(), 10);
    assert_eq!(paths(&search()), ["/7"]);
}

#[test]
fn next_search_sees_every_kind_of_file_change() {
    type FileChangeCase = (&'static str, fn(&LocalBackend, PathBuf));
    const OLD: &str = "the old content\n";
    const NEW: &str = "the new content\n";
    let ways: [FileChangeCase; 7] = [
        ("in place, with the times set back", |_, file| {
            let before = fs::metadata(&file).and_then(|found| found.modified()).expect("it has a time");
            fs::write(&file, NEW).expect("it writes");
            let opened = fs::File::options().write(true).open(&file).expect("it opens");
            opened.set_modified(before).expect("its time is set");
        }),
        ("appended to", |_, file| {
            use std::io::Write as _;
            let mut opened = fs::File::options().append(true).open(&file).expect("it opens");
            opened.write_all(NEW.as_bytes()).expect("it writes");
        }),
        ("cut and written again", |_, file| {
            let opened = fs::File::options().write(true).open(&file).expect("it opens");
            opened.set_len(0).and_then(|()| opened.set_len(NEW.len() as u64)).expect("it is cut");
            std::os::unix::fs::FileExt::write_all_at(&opened, NEW.as_bytes(), 0).expect("it writes");
        }),
        ("replaced by another file", |_, file| {
            let other = file.with_extension("other");
            fs::write(&other, NEW).and_then(|()| fs::rename(&other, &file)).expect("it is replaced");
        }),
        ("through another name", |_, file| {
            let other = file.with_extension("other");
            fs::hard_link(&file, &other).and_then(|()| fs::write(&other, NEW)).expect("it writes");
            fs::remove_file(other).expect("it is removed");
        }),
        ("by a backend", |files, file| {
            let name = file.file_name().and_then(|name| name.to_str()).expect("it has a name");
            let path = VfsPath::parse(name).expect("a path");
            let write = WriteRequest::new(path, NEW).mode(WriteMode::Overwrite);
            block_on(files.write(&OpContext::new(), write)).expect("it writes");
        }),
        ("removed and made again", |_, file| {
            fs::remove_file(&file).and_then(|()| fs::write(&file, NEW)).expect("it is made again");
        }),
    ];
    for (what, change) in ways {
        let (root, memory) = memory_for(1 << 20);
        let file = root.path().join("file");
        fs::write(&file, OLD).expect("it writes");
        let files = opened(config(root.path(), &memory));
        search_until_cached(&files, &memory, 1);
        assert_eq!(paths(&grep(&files, "new")), Vec::<&str>::new(), "{what}");
        change(&files, file);
        assert_eq!(paths(&grep(&files, "the new")), ["/file"], "{what}");
    }
}

#[test]
fn next_walk_sees_every_kind_of_directory_change() {
    type DirectoryChangeCase = (&'static str, fn(&Path), &'static [&'static str]);
    let ways: [DirectoryChangeCase; 6] = [
        ("made", |d| fs::write(d.join("c"), "text\n").expect("it writes"), &["/d/a", "/d/b/x", "/d/c"]),
        ("removed", |d| fs::remove_file(d.join("a")).expect("it is removed"), &["/d/b/x"]),
        ("renamed", |d| fs::rename(d.join("a"), d.join("c")).expect("it is renamed"), &["/d/b/x", "/d/c"]),
        ("moved down", |d| fs::rename(d.join("a"), d.join("b/y")).expect("it is moved"), &["/d/b/x", "/d/b/y"]),
        (
            "made a directory",
            |d| {
                fs::remove_file(d.join("a")).and_then(|()| fs::create_dir(d.join("a"))).expect("it is replaced");
                fs::write(d.join("a/z"), "text\n").expect("it writes");
            },
            &["/d/a/z", "/d/b/x"],
        ),
        (
            "made a link",
            |d| {
                fs::remove_file(d.join("a")).expect("it is removed");
                std::os::unix::fs::symlink("b/x", d.join("a")).expect("it is made");
            },
            &["/d/b/x"],
        ),
    ];
    for (what, change, expected) in ways {
        let (root, memory) = memory_for(1 << 20);
        let directory = root.path().join("d");
        fs::create_dir_all(directory.join("b")).expect("it is made");
        for file in ["a", "b/x"] {
            fs::write(directory.join(file), "text\n").expect("it writes");
        }
        let files = opened(config(root.path(), &memory));
        search_until_cached(&files, &memory, 2);
        assert_eq!(paths(&grep(&files, "text")), ["/d/a", "/d/b/x"]);
        change(&directory);
        assert_eq!(paths(&grep(&files, "text")), expected, "{what}");
        let found = block_on(files.glob(&OpContext::new(), GlobRequest::new("**"))).expect("it walks");
        let found: Vec<_> =
            found.entries.iter().filter(|entry| !entry.is_dir).map(|entry| entry.path.as_str()).collect();
        assert_eq!(found.iter().filter(|path| expected.contains(path)).count(), expected.len(), "{what}: {found:?}");
    }
}

#[test]
fn cached_files_stay_refused() {
    let (root, memory) = memory_for(1 << 20);
    let secret = root.path().join("secret");
    fs::write(&secret, "text\n").and_then(|()| fs::hard_link(&secret, root.path().join("twin"))).expect("it writes");
    let files = opened(config(root.path(), &memory));
    search_until_cached(&files, &memory, 1);
    assert_eq!(grep(&files, "missing").problems, []);
    let refusing = opened(config(root.path(), &memory).hard_links(HardLinks::Refuse));
    let path = VfsPath::parse("/secret").expect("a path");
    let hiding = opened(config(root.path(), &memory).protect(path, ProtectionLevel::Hidden));
    for (files, kind, count) in [(refusing, ErrorKind::PermissionDenied, 2), (hiding, ErrorKind::PolicyDenied, 1)] {
        let problems: Vec<_> = grep(&files, "missing").problems.iter().map(|problem| problem.code).collect();
        assert_eq!(problems, vec![kind; count]);
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).expect("its mode is set");
    let is_refused = fs::File::open(&secret).is_err();
    assert_eq!(grep(&files, "missing").problems.len(), if is_refused { 2 } else { 0 });
}

#[test]
fn nothing_is_cached_if_disabled_or_unsafe() {
    let (root, memory) = memory_for(0);
    fs::write(root.path().join("file"), "text\n").expect("it writes");
    let young = SearchCache::with_policy(1 << 20, CacheEligibility::on_any_file_system(MIN_UNCHANGED_AGE));
    let stays = SearchCache::with_policy(1 << 20, CacheEligibility::on_any_file_system(Duration::ZERO));
    let on_any_age = SearchCache::of_unchanged(1 << 20, Duration::ZERO);
    for config in [
        config(root.path(), &memory),
        config(root.path(), &young),
        config(root.path(), &stays).mounts(MountPolicy::Stay),
        // The kernel generates the content of such files for each read.
        LocalConfig::new("/proc/sys/kernel/random").search_cache(on_any_age.clone()),
    ] {
        let files = opened(config);
        (0..4).for_each(|_| drop(grep(&files, "missing")));
    }
    assert_eq!([memory, young, stays, on_any_age].map(|memory| memory.files()), [0, 0, 0, 0]);
}

#[test]
fn cache_respects_its_limit_and_evicts_unused_directories() {
    const BOUND: usize = 128 << 10;
    let (root, memory) = memory_for(BOUND);
    for directory in ["old", "new"] {
        fs::create_dir(root.path().join(directory)).expect("it is made");
        for file in 0..100_u32 {
            let word = |word: u32| format!("{:08x} ", (file * 1_000 + word).wrapping_mul(0x9E37_79B1));
            let text: String = (0..1_500).map(word).collect();
            fs::write(root.path().join(directory).join(file.to_string()), text).expect("it writes");
        }
    }
    // Each worker may exceed the limit by one sketch.
    let files = opened(config(root.path(), &memory).search_pool(Pool::new(2)));
    let search = |directory: &str| {
        let path = VfsPath::parse(directory).expect("a path");
        let found = block_on(files.grep(&OpContext::new(), GrepRequest::literal("missing").path(path)));
        assert_eq!(found.expect("it searches").matches.len(), 0);
    };
    let start = Instant::now();
    while memory.bytes() < BOUND {
        assert!(start.elapsed() < HANG_TIMEOUT, "{} bytes are remembered", memory.bytes());
        search("/old");
    }
    let max_bytes = BOUND + (8 << 10);
    assert!(memory.bytes() < max_bytes, "{}", memory.bytes());
    let sketch_count = |directory: &str| {
        let opened = fs::File::open(root.path().join(directory)).expect("it opens");
        let cached = memory.get(&Metadata::from_fd(opened.as_fd()).expect("it is there"));
        cached.map_or(0, |directory| directory.sketch_count())
    };
    assert_eq!(sketch_count("new"), 0);
    (0..4 * MAX_UNUSED_SEARCHES).for_each(|_| search("/new"));
    assert!(memory.bytes() < max_bytes, "{}", memory.bytes());
    assert_eq!(sketch_count("old"), 0);
    assert!(sketch_count("new") > 5);
}

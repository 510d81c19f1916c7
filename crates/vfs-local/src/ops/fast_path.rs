//! Fast path for results that the kernel has in memory, computed on the calling thread.
//!
//! A hop to another thread takes several times as long as such a result. Each function returns `None` if anything would
//! have to be waited for, and if the kernel refuses the call: the operation on the blocking pool then waits, and
//! reports the error. Two waits cannot be foreseen: for listeners for permission events (fanotify), and for the release
//! of a file that was removed meanwhile and whose last descriptor is closed here.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::{self, Errno, ReadWriteFlags};
use vfs_core::{FileInfo, ReadRequest, ReadResult, ResolveResult, Result, VfsPath, window};

use crate::fs::metadata::Metadata;
use crate::local_fs::LocalFs;

/// Maximum size of a file that is read on the fast path, in bytes: text of that size takes some tens of microseconds.
const MAX_FAST_PATH_SIZE: u64 = 64 << 10;

impl LocalFs {
    /// Reads a short text file that is in memory.
    pub(crate) fn read_fast_path(&self, request: &ReadRequest) -> Option<Result<ReadResult>> {
        if request.bytes.is_some() || !self.nowait_reads.is_supported() {
            return None;
        }
        // As for every read, the type is checked through a descriptor that does not open the file itself.
        let open = |flags| self.root.open_cached(&request.path, flags, ResolveFlags::empty());
        let stat_file =
            |file: &OwnedFd| Metadata::from_fd(file.as_fd()).ok().filter(|metadata| self.is_fast_path_file(metadata));
        stat_file(&open(OFlags::PATH)?)?;
        // Updating the access time could block. Only the file's owner may open the file without such updates.
        let without_access_time = open(OFlags::RDONLY | OFlags::NOATIME);
        let leaves_access_time = without_access_time.is_some();
        let file = without_access_time.or_else(|| open(OFlags::RDONLY))?;
        let metadata = stat_file(&file)?;
        if !leaves_access_time && !self.nowait_reads.leaves_access_time(&metadata) {
            return None;
        }
        let size = usize::try_from(metadata.size()).ok()?;
        // One extra byte shows whether the file has grown.
        let mut content = vec![0; size + 1];
        match io::preadv2(&file, &mut [IoSliceMut::new(&mut content)], 0, ReadWriteFlags::NOWAIT) {
            Ok(count) if count == size => content.truncate(size),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                // The file system or the kernel does not support such reads, or a seccomp filter refuses them.
                self.nowait_reads.disable();
                return None;
            }
            Ok(_) | Err(_) => return None,
        }
        // Detecting a legacy encoding would take too long here.
        let is_quick = std::str::from_utf8(&content).is_ok() || content.contains(&0);
        is_quick.then(|| window::read_bytes(&content.into(), request, metadata.version()))
    }

    /// Returns the file information of `path`.
    pub(crate) fn stat_fast_path(&self, path: &VfsPath) -> Option<Result<FileInfo>> {
        let fd = self.root.open_cached(path, OFlags::PATH, ResolveFlags::empty())?;
        Some(Metadata::from_fd(fd.as_fd()).ok()?.file_info(path.clone()))
    }

    /// Returns `path` itself, if there is no link on the way to it.
    pub(crate) fn resolve_fast_path(&self, path: &VfsPath) -> Option<Result<ResolveResult>> {
        let fd = self.root.open_cached(path, OFlags::PATH, ResolveFlags::NO_SYMLINKS)?;
        let names = Metadata::from_fd(fd.as_fd()).ok()?.name_count();
        Some(Ok(ResolveResult::at(path.clone()).names(names)))
    }

    /// Returns whether this is a short file that may be read, and opening it reads nothing else.
    fn is_fast_path_file(&self, metadata: &Metadata) -> bool {
        metadata.check_readable_file(self.hard_links).is_ok()
            && (1..=MAX_FAST_PATH_SIZE).contains(&metadata.size())
            && !metadata.reads_extra_on_open()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use vfs_core::OpContext;

    use super::*;
    use crate::config::LocalConfig;
    use crate::config::policies::{HardLinks, PathResolutionMode, ProtectionLevel};

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    /// Creates a root next to an outside file, with files that the fast path may read, and others that it may not.
    fn local_fs(home: &Path) -> LocalFs {
        let root = home.join("root");
        fs::create_dir_all(root.join("d")).expect("directories are made");
        fs::write(home.join("outside"), "outside").expect("it is written");
        for (name, content) in [
            ("d/file", &b"one\ntwo\n"[..]),
            ("legacy", b"na\xefve\n"),
            ("binary", b"a\0b"),
            ("empty", b""),
            ("short", &vec![b'x'; MAX_FAST_PATH_SIZE as usize]),
            ("long", &vec![b'x'; MAX_FAST_PATH_SIZE as usize + 1]),
            (".env", b"PASSWORD"),
            ("protected", b"text"),
            ("d/.vfs-tmp-1", b"under way"),
        ] {
            fs::write(root.join(name), content).expect("it is written");
        }
        for (target, name) in [
            ("d/file", "inside"),
            ("../outside", "out"),
            ("d", "way"),
            ("..", "up"),
            (".env", "env"),
            ("/etc/passwd", "far"),
        ] {
            symlink(target, root.join(name)).expect("links are made");
        }
        mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("FIFOs are made");
        let config = LocalConfig::new(&root).protect(path("/.env"), ProtectionLevel::Hidden);
        let config = config.protect(path("/protected"), ProtectionLevel::ReadOnly);
        LocalFs::open(&config).expect("it opens")
    }

    fn home() -> tempfile::TempDir {
        tempfile::tempdir().expect("a directory")
    }

    /// Returns the result of the fast path, after a slow read has brought the file into memory. May need several
    /// attempts.
    fn read(local_fs: &LocalFs, request: &ReadRequest) -> Option<Result<ReadResult>> {
        // Following a link for the first time updates its access time, and clocks have a limited granularity.
        (0..200).find_map(|_| {
            let _result = local_fs.read(request, &OpContext::new());
            local_fs.read_fast_path(request)
        })
    }

    fn stat(local_fs: &LocalFs, at: &VfsPath) -> Option<Result<FileInfo>> {
        (0..200).find_map(|_| {
            let _result = local_fs.stat(at);
            local_fs.stat_fast_path(at)
        })
    }

    fn resolve(local_fs: &LocalFs, at: &VfsPath) -> Option<Result<ResolveResult>> {
        (0..200).find_map(|_| {
            let _result = local_fs.resolve(at);
            local_fs.resolve_fast_path(at)
        })
    }

    #[test]
    fn fast_and_slow_path_return_equal_results() {
        let home = home();
        let (local_fs, cx) = (local_fs(home.path()), OpContext::new());
        for at in ["/d/file", "/way/file", "/inside", "/binary", "/short", "/d", "/", "/fifo", "/protected"] {
            let at = path(at);
            let whole = ReadRequest::new(at.clone());
            for request in [whole.clone(), whole.clone().lines(1, 1), whole.clone().lines(9, 1), whole.max_bytes(0)] {
                if let Some(result) = read(&local_fs, &request) {
                    assert_eq!(result, local_fs.read(&request, &cx), "{request:?}");
                }
            }
            if let Some(result) = stat(&local_fs, &at) {
                assert_eq!(result, local_fs.stat(&at));
            }
            if let Some(result) = resolve(&local_fs, &at) {
                assert_eq!(result, local_fs.resolve(&at));
            }
        }
    }

    #[test]
    fn fast_path_reads_from_memory_if_the_file_system_supports_it() {
        let home = home();
        let local_fs = local_fs(home.path());
        let is_supported = local_fs.root.access_time_policy().is_some();
        for at in ["/d/file", "/d", "/", "/fifo"] {
            assert_eq!(stat(&local_fs, &path(at)).is_some(), is_supported, "{at}");
            assert_eq!(resolve(&local_fs, &path(at)).is_some(), is_supported, "{at}");
        }
        let is_read = |at: &str| read(&local_fs, &ReadRequest::new(path(at))).is_some();
        let were_read = ["/d/file", "/way/file", "/inside", "/binary", "/short", "/protected"].map(is_read);
        assert_eq!(were_read, [local_fs.nowait_reads.is_supported(); 6]);
    }

    #[test]
    fn fast_path_returns_nothing_for_outside_hidden_or_reserved_paths() {
        let home = home();
        let local_fs = local_fs(home.path());
        for at in ["/out", "/up/outside", "/far", "/.env", "/env", "/missing", "/d/.vfs-tmp-1"] {
            let at = path(at);
            assert!(read(&local_fs, &ReadRequest::new(at.clone())).is_none(), "{at}");
            assert!(stat(&local_fs, &at).is_none(), "{at}");
            assert!(resolve(&local_fs, &at).is_none(), "{at}");
        }
    }

    #[test]
    fn fast_path_resolves_no_links_and_reads_only_short_texts() {
        let home = home();
        let local_fs = local_fs(home.path());
        for at in ["/inside", "/way/file"] {
            assert!(resolve(&local_fs, &path(at)).is_none(), "{at}");
        }
        for at in ["/d", "/", "/fifo", "/empty", "/long", "/legacy"] {
            assert!(read(&local_fs, &ReadRequest::new(path(at))).is_none(), "{at}");
        }
        assert!(read(&local_fs, &ReadRequest::new(path("/d/file")).bytes(1, Some(2))).is_none());
    }

    #[test]
    fn fast_path_does_not_read_refused_files() {
        let home = home();
        let strict = |home: &Path| LocalConfig::new(home.join("root")).hard_links(HardLinks::Refuse);
        drop(local_fs(home.path()));
        let local_fs = LocalFs::open(&strict(home.path())).expect("it opens");
        fs::hard_link(home.path().join("root/d/file"), home.path().join("root/d/other")).expect("it gets a name");
        assert!(read(&local_fs, &ReadRequest::new(path("/d/file"))).is_none());
        let protected = home.path().join("root/protected");
        fs::set_permissions(&protected, fs::Permissions::from_mode(0o000)).expect("modes are set");
        // The superuser may read the file.
        let is_readable = fs::read(&protected).is_ok();
        assert_eq!(
            read(&local_fs, &ReadRequest::new(path("/protected"))).is_some(),
            is_readable && local_fs.nowait_reads.is_supported()
        );
    }

    #[test]
    fn portable_resolution_has_no_fast_path() {
        let home = home();
        drop(local_fs(home.path()));
        let config = LocalConfig::new(home.path().join("root")).resolution(PathResolutionMode::Portable);
        let local_fs = LocalFs::open(&config).expect("it opens");
        assert!(stat(&local_fs, &path("/d/file")).is_none() && resolve(&local_fs, &path("/d/file")).is_none());
        assert!(read(&local_fs, &ReadRequest::new(path("/d/file"))).is_none());
    }

    #[test]
    fn reading_does_not_change_the_access_time_of_own_files() {
        let home = home();
        let (local_fs, cx) = (local_fs(home.path()), OpContext::new());
        let (request, file) = (ReadRequest::new(path("/d/file")), home.path().join("root/d/file"));
        let accessed = || fs::metadata(&file).and_then(|metadata| metadata.accessed()).expect("it has times");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        let opened = fs::File::options().write(true).open(&file).expect("it opens");
        opened.set_times(fs::FileTimes::new().set_accessed(long_ago)).expect("times are set");
        assert!(local_fs.read(&request, &cx).is_ok());
        assert_eq!(read(&local_fs, &request).is_some(), local_fs.nowait_reads.is_supported());
        assert!(local_fs.download(request.path.clone(), &cx).error.is_none());
        assert_eq!(accessed(), long_ago);
    }

    #[test]
    fn next_read_sees_a_change() {
        let home = home();
        let (local_fs, cx) = (local_fs(home.path()), OpContext::new());
        let (request, file) = (ReadRequest::new(path("/d/file")), home.path().join("root/d/file"));
        for round in 0..50 {
            let text = format!("round {round}\n");
            fs::write(&file, &text).expect("it is written");
            for _ in 0..3 {
                let result = local_fs
                    .read_fast_path(&request)
                    .unwrap_or_else(|| local_fs.read(&request, &cx))
                    .expect("it reads");
                assert_eq!(result.content.as_text(), Some(text.as_str()));
            }
        }
    }
}

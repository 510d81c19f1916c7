//! Cache of self-test results, valid for one boot, kernel, user and configuration.
//!
//! The cache lets a sandbox open without a self-test that an equal sandbox has passed. A forged entry could open a
//! sandbox that does not confine its commands, so:
//!
//! * An entry is a file in a [directory](cache_directory) that belongs to the user of this process, has the mode 0700, and
//!   is verified through an open descriptor. No sandbox shows it: it is hidden below each mount, or the sandbox does not
//!   open.
//! * The key of an entry is a hash of the [system](system_fingerprint) (kernel, boot, user, groups, capabilities, security
//!   modules, namespaces, mounts, the running program) and of a description of the subject. The file contains the whole
//!   key, the record and a hash of both. A file with any other content, owner, mode or type is ignored.
//! * Under a filter of system calls there is no cache, since the kernel does not expose what an inherited filter does.
//! * A file is written under another name and renamed, so that no reader sees an incomplete entry.
//!
//! If an entry cannot be read or written, the work that it would have saved is done.

mod cache_directory;
mod mount_table;
mod system_fingerprint;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat};

pub(crate) use self::cache_directory::{SelfTestCacheExposure, exposed_below};
use crate::config::SelfTestPolicy;

/// Results of self-tests that this user recorded on the present system.
#[derive(Debug)]
pub(crate) struct SelfTestCache {
    directory: OwnedFd,
    system: String,
    self_test: SelfTestPolicy,
}

/// Handle to the entry of one subject, whether or not a result is recorded in it.
#[derive(Debug)]
pub(crate) struct SelfTestCacheSlot {
    cache: Arc<SelfTestCache>,
    key: blake3::Hash,
}

/// Maximum size of an entry, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Maximum number of entries. If there are more, the older half is removed before another is written.
const MAX_ENTRIES: usize = 64;

/// The mode of an entry.
const MODE: u32 = 0o600;

impl SelfTestCache {
    /// Opens the cache of this user; `None` if there is no safe directory for it, or the system cannot be described.
    pub(crate) fn open(self_test: SelfTestPolicy) -> Option<Arc<Self>> {
        Some(Arc::new(Self { system: system_fingerprint::describe()?, directory: cache_directory::open()?, self_test }))
    }

    /// Returns the entry of a subject. Its description must have everything on which the result depends beside the
    /// system.
    pub(crate) fn entry(self: &Arc<Self>, kind: &str, subject: &str) -> SelfTestCacheSlot {
        let mut hasher = blake3::Hasher::new_derive_key("vfs-sandbox 2026 stamp of a self-test");
        for part in [env!("CARGO_PKG_VERSION"), kind, &self.system, subject] {
            // The length before each part makes the encoding unambiguous.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        SelfTestCacheSlot { cache: Arc::clone(self), key: hasher.finalize() }
    }

    /// Removes the oldest entries if there are too many. A recent one may be that of a sandbox which is about to open.
    fn remove_old_entries(&self) {
        let Ok(directory) = Dir::read_from(&self.directory) else { return };
        let names = directory.flatten().map(|entry| entry.file_name().to_owned());
        let mut entries: Vec<_> = names
            .filter_map(|name| {
                let status = statat(&self.directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
                (!is_directory).then_some((status.st_mtime, status.st_mtime_nsec, name))
            })
            .collect();
        if entries.len() <= MAX_ENTRIES {
            return;
        }
        entries.sort();
        for (.., name) in &entries[..entries.len() - MAX_ENTRIES / 2] {
            let _ = unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

impl SelfTestCacheSlot {
    /// Returns the record; `None` if there is no valid entry, or the settings require a self-test each time.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        if self.cache.self_test == SelfTestPolicy::Always {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.cache.directory, self.name(), flags, Mode::empty()).ok()?;
        is_trusted(&fstat(&file).ok()?).then_some(())?;
        let mut bytes = Vec::new();
        File::from(file).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let record = bytes.strip_prefix(self.key.as_bytes())?;
        let (hash, record) = record.split_at_checked(blake3::OUT_LEN)?;
        (self.record_hash(record).as_bytes() == hash).then(|| record.to_owned())
    }

    /// Records a result. Failures are ignored, since the result can be determined again.
    pub(crate) fn store(&self, record: &[u8]) {
        self.cache.remove_old_entries();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let temporary = format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        if self.write(&temporary, record).and_then(|()| self.replace(&temporary)).is_err() {
            let _ = unlinkat(&self.cache.directory, temporary, AtFlags::empty());
        }
    }

    /// Removes the recorded result, if there is one.
    pub(crate) fn remove(&self) {
        let _ = unlinkat(&self.cache.directory, self.name(), AtFlags::empty());
    }

    fn name(&self) -> String {
        self.key.to_hex().to_string()
    }

    fn record_hash(&self, record: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(self.key.as_bytes(), record)
    }

    fn write(&self, name: &str, record: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.cache.directory, name, flags, Mode::from_raw_mode(MODE))?);
        file.write_all(self.key.as_bytes())?;
        file.write_all(self.record_hash(record).as_bytes())?;
        file.write_all(record)
    }

    fn replace(&self, name: &str) -> std::io::Result<()> {
        Ok(renameat(&self.cache.directory, name, &self.cache.directory, self.name())?)
    }
}

/// Returns whether a file may be an entry: a private regular file of this user, of one name.
fn is_trusted(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
        && status.st_mode & 0o7777 == MODE
        && status.st_uid == rustix::process::geteuid().as_raw()
        && status.st_nlink == 1
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "entries are files of the host")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use super::*;

    struct CacheFixture {
        directory: tempfile::TempDir,
        cache: Arc<SelfTestCache>,
    }

    impl CacheFixture {
        fn new(self_test: SelfTestPolicy) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let cache = Self::open_cache(&directory, self_test);
            Self { directory, cache }
        }

        fn open_cache(directory: &tempfile::TempDir, self_test: SelfTestPolicy) -> Arc<SelfTestCache> {
            let opened = cache_directory::open_in(directory.path(), "cache").expect("opened");
            Arc::new(SelfTestCache { directory: opened, system: "system".to_owned(), self_test })
        }

        fn file(&self, entry: &SelfTestCacheSlot) -> PathBuf {
            self.directory.path().join("cache").join(entry.name())
        }
    }

    #[test]
    fn an_entry_is_valid_for_its_subject_alone() {
        let place = CacheFixture::new(SelfTestPolicy::Cached);
        let entry = place.cache.entry("kind", "subject");
        assert_eq!(entry.load(), None);
        entry.store(b"record");
        assert_eq!(entry.load().as_deref(), Some(&b"record"[..]));
        assert_eq!(fs::metadata(place.file(&entry)).expect("there").permissions().mode() & 0o7777, 0o600);
        let others = [place.cache.entry("kind", "other"), place.cache.entry("kinds", "ubject")];
        for other in others {
            assert_eq!(other.load(), None);
            fs::copy(place.file(&entry), place.file(&other)).expect("copied");
            assert_eq!(other.load(), None, "it has another key");
        }
        let system = "system after an update".to_owned();
        let opened = cache_directory::open_in(place.directory.path(), "cache").expect("opened");
        let updated = Arc::new(SelfTestCache { directory: opened, system, self_test: SelfTestPolicy::Cached });
        assert_eq!(updated.entry("kind", "subject").load(), None);
        entry.remove();
        assert_eq!(entry.load(), None);
    }

    #[test]
    fn a_forged_or_damaged_entry_is_none() {
        let place = CacheFixture::new(SelfTestPolicy::Cached);
        let entry = place.cache.entry("kind", "subject");
        entry.store(b"record");
        let file = place.file(&entry);
        let bytes = fs::read(&file).expect("read");
        let elsewhere = place.directory.path().join("elsewhere");
        let forgeries: [(&str, &dyn Fn()); 6] = [
            ("other record", &|| fs::write(&file, [&bytes[..64], b"recore"].concat()).expect("written")),
            ("other key", &|| fs::write(&file, [b"x", &bytes[1..]].concat()).expect("written")),
            ("cut", &|| fs::write(&file, &bytes[..40]).expect("written")),
            ("mode", &|| fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set")),
            ("second name", &|| fs::hard_link(&file, &elsewhere).expect("linked")),
            ("link", &|| {
                fs::rename(&file, &elsewhere).expect("moved");
                symlink(&elsewhere, &file).expect("linked");
            }),
        ];
        for (name, forge) in forgeries {
            entry.store(b"record");
            assert!(entry.load().is_some(), "{name}");
            forge();
            assert_eq!(entry.load(), None, "{name}");
            let _ = fs::remove_file(&elsewhere);
        }
    }

    #[test]
    fn a_self_test_that_is_forced_reads_no_entry() {
        let place = CacheFixture::new(SelfTestPolicy::Cached);
        place.cache.entry("kind", "subject").store(b"record");
        let forced = CacheFixture::open_cache(&place.directory, SelfTestPolicy::Always);
        assert_eq!(forced.entry("kind", "subject").load(), None);
        forced.entry("kind", "subject").store(b"again");
        assert_eq!(place.cache.entry("kind", "subject").load().as_deref(), Some(&b"again"[..]));
    }

    #[test]
    fn the_oldest_entries_are_removed_if_there_are_too_many() {
        let place = CacheFixture::new(SelfTestPolicy::Cached);
        let now = SystemTime::now();
        let entries: Vec<_> = (0..=MAX_ENTRIES).map(|age| place.cache.entry("kind", &age.to_string())).collect();
        for (age, entry) in (0..).zip(&entries) {
            entry.store(b"");
            // Entries that are written within one tick of the clock of the file system would have equal times.
            let file = File::options().write(true).open(place.file(entry)).expect("opened");
            file.set_modified(now - Duration::from_secs(age)).expect("set");
        }
        assert!(entries.iter().all(|entry| entry.load().is_some()), "an entry was removed too early");
        let newest = place.cache.entry("kind", "newest");
        newest.store(b"");
        for (age, entry) in entries.iter().enumerate() {
            assert_eq!(entry.load().is_some(), age < MAX_ENTRIES / 2, "the entry of {age} s ago");
        }
        assert!(newest.load().is_some());
    }
}

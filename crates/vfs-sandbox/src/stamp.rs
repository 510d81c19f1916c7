//! Stamps: private files that record a result for as long as the system and the settings stay the same.
//!
//! A stamp lets a sandbox open without a self-test that an equal sandbox has passed. A forged stamp could open a
//! sandbox that does not confine its commands, so:
//!
//! * A stamp lies in a [directory](directory) that belongs to the user of this process, has the mode 0700, and is verified
//!   through an open descriptor. No sandbox shows it: it is hidden below each mount, or the sandbox does not open.
//! * The key of a stamp is a hash of the [system](system) (kernel, boot, user, groups, capabilities, security modules,
//!   namespaces, mounts, the running program) and of a description of the subject. The file contains the whole key, the
//!   record and a hash of both. A file with any other content, owner, mode or type is ignored.
//! * Under a filter of system calls there are no stamps, since the kernel does not expose what an inherited filter does.
//! * A file is written under another name and renamed, so that no reader sees an incomplete stamp.
//!
//! A stamp is only a cache: if one cannot be read or written, the work that it would have saved is done.

mod directory;
mod mount_table;
mod system;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, renameat, unlinkat};

pub(crate) use self::directory::{Exposed, exposed_below};
use crate::config::SelfTest;

/// Stamps of this user, for the system as it is now.
#[derive(Debug)]
pub(crate) struct Stamps {
    directory: OwnedFd,
    system: String,
    self_test: SelfTest,
}

/// A stamp, which need not exist.
#[derive(Debug)]
pub(crate) struct Stamp {
    stamps: Arc<Stamps>,
    key: blake3::Hash,
}

/// Maximum size of a stamp, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Maximum number of stamps. If there are more, all are removed before another is written.
const MAX_STAMPS: usize = 64;

/// The mode of a stamp.
const MODE: u32 = 0o600;

impl Stamps {
    /// Opens the stamps of this user; `None` if there is no safe directory for them, or the system cannot be described.
    pub(crate) fn open(self_test: SelfTest) -> Option<Arc<Self>> {
        Some(Arc::new(Self { system: system::describe()?, directory: directory::open()?, self_test }))
    }

    /// Returns the stamp for a subject. Its description must have everything on which the result depends beside the
    /// system.
    pub(crate) fn stamp(self: &Arc<Self>, kind: &str, subject: &str) -> Stamp {
        let mut hasher = blake3::Hasher::new_derive_key("vfs-sandbox 2026 stamp of a self-test");
        for part in [env!("CARGO_PKG_VERSION"), kind, &self.system, subject] {
            // The length before each part makes the encoding unambiguous.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        Stamp { stamps: Arc::clone(self), key: hasher.finalize() }
    }

    fn remove_all_if_many(&self) {
        let Ok(entries) = Dir::read_from(&self.directory) else { return };
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_owned()).collect();
        if names.len() > MAX_STAMPS {
            for name in names {
                // The two entries that every directory has cannot be removed.
                let _ = unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
    }
}

impl Stamp {
    /// Returns the record; `None` if there is no valid stamp, or the settings require a self-test each time.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        if self.stamps.self_test == SelfTest::Always {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.stamps.directory, self.name(), flags, Mode::empty()).ok()?;
        is_trusted(&fstat(&file).ok()?).then_some(())?;
        let mut bytes = Vec::new();
        File::from(file).take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        let record = bytes.strip_prefix(self.key.as_bytes())?;
        let (hash, record) = record.split_at_checked(blake3::OUT_LEN)?;
        (self.record_hash(record).as_bytes() == hash).then(|| record.to_owned())
    }

    /// Records a result. Failures are ignored, since the result can be determined again.
    pub(crate) fn store(&self, record: &[u8]) {
        self.stamps.remove_all_if_many();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let temporary = format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        if self.write(&temporary, record).and_then(|()| self.replace(&temporary)).is_err() {
            let _ = unlinkat(&self.stamps.directory, temporary, AtFlags::empty());
        }
    }

    /// Removes the stamp, if there is one.
    pub(crate) fn remove(&self) {
        let _ = unlinkat(&self.stamps.directory, self.name(), AtFlags::empty());
    }

    fn name(&self) -> String {
        self.key.to_hex().to_string()
    }

    fn record_hash(&self, record: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(self.key.as_bytes(), record)
    }

    fn write(&self, name: &str, record: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.stamps.directory, name, flags, Mode::from_raw_mode(MODE))?);
        file.write_all(self.key.as_bytes())?;
        file.write_all(self.record_hash(record).as_bytes())?;
        file.write_all(record)
    }

    fn replace(&self, name: &str) -> std::io::Result<()> {
        Ok(renameat(&self.stamps.directory, name, &self.stamps.directory, self.name())?)
    }
}

/// Returns whether a file may be a stamp: a private regular file of this user, of one name.
fn is_trusted(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
        && status.st_mode & 0o7777 == MODE
        && status.st_uid == rustix::process::geteuid().as_raw()
        && status.st_nlink == 1
}

/// Version of a file, from its metadata. Any change of the content changes the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileVersion {
    device: u64,
    inode: u64,
    bytes: i64,
    mode: u32,
    owner: u32,
    modified: (i64, u64),
    /// Time of the last change, which no process can set.
    changed: (i64, u64),
}

impl FileVersion {
    /// Returns the version of the file at `path`, following links.
    pub(crate) fn at(path: impl AsRef<Path>) -> Option<Self> {
        rustix::fs::stat(path.as_ref()).ok().as_ref().map(Self::from)
    }
}

impl From<&Stat> for FileVersion {
    fn from(status: &Stat) -> Self {
        Self {
            device: status.st_dev,
            inode: status.st_ino,
            bytes: status.st_size,
            mode: status.st_mode,
            owner: status.st_uid,
            modified: (status.st_mtime, status.st_mtime_nsec),
            changed: (status.st_ctime, status.st_ctime_nsec),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "stamps are files of the host")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    struct StampDirectory {
        directory: tempfile::TempDir,
        stamps: Arc<Stamps>,
    }

    impl StampDirectory {
        fn new(self_test: SelfTest) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let stamps = Self::stamps(&directory, self_test);
            Self { directory, stamps }
        }

        fn stamps(directory: &tempfile::TempDir, self_test: SelfTest) -> Arc<Stamps> {
            let opened = directory::open_in(directory.path(), "stamps").expect("opened");
            Arc::new(Stamps { directory: opened, system: "system".to_owned(), self_test })
        }

        fn file(&self, stamp: &Stamp) -> PathBuf {
            self.directory.path().join("stamps").join(stamp.name())
        }
    }

    #[test]
    fn a_stamp_is_valid_for_its_subject_alone() {
        let place = StampDirectory::new(SelfTest::Cached);
        let stamp = place.stamps.stamp("kind", "subject");
        assert_eq!(stamp.load(), None);
        stamp.store(b"record");
        assert_eq!(stamp.load().as_deref(), Some(&b"record"[..]));
        assert_eq!(fs::metadata(place.file(&stamp)).expect("there").permissions().mode() & 0o7777, 0o600);
        let others = [place.stamps.stamp("kind", "other"), place.stamps.stamp("kinds", "ubject")];
        for other in others {
            assert_eq!(other.load(), None);
            fs::copy(place.file(&stamp), place.file(&other)).expect("copied");
            assert_eq!(other.load(), None, "it has another key");
        }
        let system = "system after an update".to_owned();
        let opened = directory::open_in(place.directory.path(), "stamps").expect("opened");
        let updated = Arc::new(Stamps { directory: opened, system, self_test: SelfTest::Cached });
        assert_eq!(updated.stamp("kind", "subject").load(), None);
        stamp.remove();
        assert_eq!(stamp.load(), None);
    }

    #[test]
    fn a_forged_or_damaged_stamp_is_none() {
        let place = StampDirectory::new(SelfTest::Cached);
        let stamp = place.stamps.stamp("kind", "subject");
        stamp.store(b"record");
        let file = place.file(&stamp);
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
            stamp.store(b"record");
            assert!(stamp.load().is_some(), "{name}");
            forge();
            assert_eq!(stamp.load(), None, "{name}");
            let _ = fs::remove_file(&elsewhere);
        }
    }

    #[test]
    fn a_self_test_that_is_forced_reads_no_stamp() {
        let place = StampDirectory::new(SelfTest::Cached);
        place.stamps.stamp("kind", "subject").store(b"record");
        let forced = StampDirectory::stamps(&place.directory, SelfTest::Always);
        assert_eq!(forced.stamp("kind", "subject").load(), None);
        forced.stamp("kind", "subject").store(b"again");
        assert_eq!(place.stamps.stamp("kind", "subject").load().as_deref(), Some(&b"again"[..]));
    }

    #[test]
    fn the_number_of_stamps_is_bounded() {
        let place = StampDirectory::new(SelfTest::Cached);
        for number in 0..3 * MAX_STAMPS {
            place.stamps.stamp("kind", &number.to_string()).store(b"");
        }
        let left = fs::read_dir(place.directory.path().join("stamps")).expect("listed").count();
        assert!((1..=MAX_STAMPS + 1).contains(&left), "{left}");
    }
}

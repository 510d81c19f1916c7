//! A file that has all that a command printed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use chrono::Utc;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_local::LocalBackend;
use vfs_search::without_size_signal;

use crate::config::ShellConfig;
use crate::hop::hop;

/// How much is gathered before it is written, and for how long.
const BATCH: usize = 256 * 1024;
const LAG: Duration = Duration::from_millis(100);

/// A file that is written as a command prints, at its end only.
#[derive(Debug)]
pub(crate) struct FullOutput {
    path: VfsPath,
    file: Arc<OwnedFd>,
    gathered: BytesMut,
    /// When what was gathered is to be written.
    due: Option<Instant>,
    room: u64,
}

impl FullOutput {
    /// Makes a new file in the directory that `config` names, which is no link and is below none.
    pub(crate) async fn create(files: &LocalBackend, config: &ShellConfig, cx: &OpContext) -> Result<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "{}-{}-{}.txt",
            Utc::now().format("%Y%m%dT%H%M%S%6f"),
            std::process::id(),
            LAST.fetch_add(1, Ordering::Relaxed)
        );
        let path = config.full_output_directory.child(&name)?;
        // Commands can put links where this is to be, also ones to what they may not write to themselves.
        let directory = files.make_directory(cx, &config.full_output_directory).await?;
        let file = hop(move || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::NOFOLLOW;
            rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))
        })
        .await?
        .map_err(|errno| failed(errno, &path))?;
        Ok(Self {
            path,
            file: Arc::new(file),
            gathered: BytesMut::new(),
            due: None,
            room: config.max_full_output_bytes,
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &VfsPath {
        &self.path
    }

    /// When to [`flush`](Self::flush), where nothing else happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Adds what was printed.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let (fits, over) = bytes.split_at(usize::try_from(self.room).unwrap_or(usize::MAX).min(bytes.len()));
        self.room -= fits.len() as u64;
        self.gathered.extend_from_slice(fits);
        if !over.is_empty() {
            self.flush().await?;
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the command printed more than a file for its output may hold, so it was ended; send what it prints \
                 through a filter",
            )
            .with_path(&self.path));
        }
        self.due = self.due.or_else(|| Instant::now().checked_add(LAG));
        if self.gathered.len() < BATCH { Ok(()) } else { self.flush().await }
    }

    /// Writes what was gathered.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        self.due = None;
        let (gathered, file) = (self.gathered.split().freeze(), Arc::clone(&self.file));
        let write = move || without_size_signal(|| write_all(&file, &gathered)).0;
        hop(write).await?.map_err(|errno| failed(errno, &self.path))
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn failed(errno: Errno, path: &VfsPath) -> Error {
    let kind = match errno {
        Errno::FBIG => {
            let message = "the file for the output would be larger than this process (ulimit -f) or file system allows, so the \
                           command was ended; send what it prints through a filter";
            return Error::new(ErrorKind::TooLarge, message).with_path(path).with_source(io::Error::from(errno));
        }
        Errno::NOSPC => ErrorKind::StorageFull,
        Errno::DQUOT => ErrorKind::QuotaExceeded,
        Errno::NOENT => ErrorKind::NotFound,
        Errno::ACCESS | Errno::PERM => ErrorKind::PermissionDenied,
        _ => ErrorKind::Unavailable,
    };
    Error::at(kind, path).with_source(io::Error::from(errno))
}

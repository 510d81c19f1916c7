//! Append-only file that receives the complete output of a command.

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
use crate::tokio_runtime::run_blocking;

/// Number of buffered bytes at which the buffer is written, and the time after which it is written anyway.
const FLUSH_THRESHOLD: usize = 256 * 1024;
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// File that receives all output while the command runs.
#[derive(Debug)]
pub(crate) struct FullOutputFile {
    path: VfsPath,
    file: Arc<OwnedFd>,
    buffer: BytesMut,
    /// When the buffer has to be flushed.
    due: Option<Instant>,
    remaining: u64,
}

impl FullOutputFile {
    /// Creates a new file in the directory that `config` names. Neither the file nor its directories may be links.
    pub(crate) async fn create(files: &LocalBackend, config: &ShellConfig, cx: &OpContext) -> Result<Self> {
        static MAX_FD: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "{}-{}-{}.txt",
            Utc::now().format("%Y%m%dT%H%M%S%6f"),
            std::process::id(),
            MAX_FD.fetch_add(1, Ordering::Relaxed)
        );
        let path = config.full_output_directory.child(&name)?;
        // Commands can put links at this path, also to files that they may not write themselves.
        let directory = files.make_directory(cx, &config.full_output_directory).await?;
        let file = run_blocking(move || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::NOFOLLOW;
            rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))
        })
        .await?
        .map_err(|errno| write_error(errno, &path))?;
        Ok(Self {
            path,
            file: Arc::new(file),
            buffer: BytesMut::new(),
            due: None,
            remaining: config.max_full_output_bytes,
        })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &VfsPath {
        &self.path
    }

    /// Returns when [`flush`](Self::flush) is due if nothing else happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Appends `bytes`.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let (fits, over) = bytes.split_at(usize::try_from(self.remaining).unwrap_or(usize::MAX).min(bytes.len()));
        self.remaining -= fits.len() as u64;
        self.buffer.extend_from_slice(fits);
        if !over.is_empty() {
            self.flush().await?;
            return Err(Error::new(
                ErrorKind::TooLarge,
                "writing the full output failed: the command printed more than its output file may hold and was \
                 terminated; filter the output in the command",
            )
            .with_path(&self.path));
        }
        self.due = self.due.or_else(|| Instant::now().checked_add(FLUSH_INTERVAL));
        if self.buffer.len() < FLUSH_THRESHOLD { Ok(()) } else { self.flush().await }
    }

    /// Writes the buffer to the file.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        self.due = None;
        let (buffer, file) = (self.buffer.split().freeze(), Arc::clone(&self.file));
        let write = move || without_size_signal(|| write_all(&file, &buffer)).0;
        run_blocking(write).await?.map_err(|errno| write_error(errno, &self.path))
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

fn write_error(errno: Errno, path: &VfsPath) -> Error {
    let kind = match errno {
        Errno::FBIG => {
            let message = "writing the full output failed: the file would exceed the limit of this process (ulimit -f) or \
                           file system, so the command was terminated; filter the output in the command";
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

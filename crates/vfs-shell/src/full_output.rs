//! A file that has all that a command printed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use chrono::Utc;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use vfs_core::{Backend as _, Error, ErrorKind, OpContext, Result, VfsPath, WriteRequest};
use vfs_local::LocalBackend;

use crate::config::ShellConfig;
use crate::hop::hop;

/// How much is gathered before it is written.
const BATCH: usize = 256 * 1024;

/// A file that is written as a command prints, at its end only.
#[derive(Debug)]
pub(crate) struct FullOutput {
    path: VfsPath,
    file: Arc<OwnedFd>,
    gathered: BytesMut,
    room: u64,
}

impl FullOutput {
    /// Makes a new file in the directory that `config` names.
    pub(crate) async fn create(files: &LocalBackend, config: &ShellConfig, cx: &OpContext) -> Result<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "{}-{}-{}.txt",
            Utc::now().format("%Y%m%dT%H%M%S%6f"),
            std::process::id(),
            LAST.fetch_add(1, Ordering::Relaxed)
        );
        let directory = &config.full_output_directory;
        let path = directory.child(&name)?;
        // The backend makes it, with the directories above it, and keeps it from being anything else.
        files.write(cx, WriteRequest::new(path.clone(), Bytes::new())).await?;
        let directory = files.open_directory(cx, directory).await?;
        let file = hop(move || {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::openat(directory, name, flags, Mode::empty())
        })
        .await?
        .map_err(|errno| failed(errno, &path))?;
        Ok(Self { path, file: Arc::new(file), gathered: BytesMut::new(), room: config.max_full_output_bytes })
    }

    /// The file.
    pub(crate) fn path(&self) -> &VfsPath {
        &self.path
    }

    /// Adds what was printed.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(room) = self.room.checked_sub(bytes.len() as u64) else {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the command printed more than a file for its output may hold, so it was ended; send what it prints \
                 through a filter",
            )
            .with_path(&self.path));
        };
        self.room = room;
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < BATCH { Ok(()) } else { self.flush().await }
    }

    /// Writes what was gathered.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        let (gathered, file) = (self.gathered.split().freeze(), Arc::clone(&self.file));
        hop(move || write_all(&file, &gathered)).await?.map_err(|errno| failed(errno, &self.path))
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
        Errno::NOSPC => ErrorKind::StorageFull,
        Errno::DQUOT => ErrorKind::QuotaExceeded,
        Errno::NOENT => ErrorKind::NotFound,
        Errno::ACCESS | Errno::PERM => ErrorKind::PermissionDenied,
        _ => ErrorKind::Unavailable,
    };
    Error::at(kind, path).with_source(io::Error::from(errno))
}

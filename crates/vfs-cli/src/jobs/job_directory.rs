//! The directory of one job: its record, its output and the socket of its monitor.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;
use vfs_core::shell::JobInfo;
use vfs_core::{
    Backend as _, BackendExt as _, Content, DeleteRequest, Error, ErrorKind, OpContext, ReadRequest, VfsPath,
    WriteMode, WriteRequest,
};
use vfs_local::LocalBackend;

use super::output_log::OutputLog;
use crate::exit::Failure;
use crate::standard_output::StandardOutput;

/// Maximum size of a chunk of output that is read at once, 1 MiB.
const MAX_CHUNK_SIZE: u64 = 1 << 20;

/// Delay before another connection attempt if the backlog of the monitor is full.
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// The open directory of one job.
#[derive(Debug)]
pub(super) struct JobDirectory {
    files: LocalBackend,
    path: VfsPath,
    descriptor: OwnedFd,
}

impl JobDirectory {
    /// Creates the directory of a new job in `jobs`, accessible to this user only.
    pub(super) async fn create(files: &LocalBackend, jobs: &OwnedFd, id: &str) -> Result<Self, Failure> {
        let path = VfsPath::root().child(id)?;
        #[expect(clippy::disallowed_methods, reason = "a backend creates directories that others can read")]
        let created = DirBuilder::new().mode(0o700).create(path_in(jobs, id));
        created.map_err(|error| Failure::Job("the directory of the job cannot be created", error))?;
        Self::open_path(files, path).await
    }

    /// Opens the directory of the job `id`.
    pub(super) async fn open(files: &LocalBackend, id: &str) -> Result<Self, Failure> {
        let path = VfsPath::root().child(id).map_err(|_| unknown_job())?;
        Self::open_path(files, path).await
    }

    async fn open_path(files: &LocalBackend, path: VfsPath) -> Result<Self, Failure> {
        let descriptor = files.open_directory(&OpContext::new(), &path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => unknown_job(),
            _ => error,
        })?;
        Ok(Self { files: files.clone(), path, descriptor })
    }

    /// Returns the path of the directory below that of all jobs.
    pub(super) fn path(&self) -> &VfsPath {
        &self.path
    }

    /// Creates the socket of the monitor and listens at it.
    pub(super) fn listen(&self) -> Result<UnixListener, Failure> {
        let socket = path_in(&self.descriptor, "keeper");
        let bound = UnixListener::bind(&socket).and_then(|listener| {
            #[expect(clippy::disallowed_methods, reason = "no backend sets the mode of a socket")]
            std::fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
            Ok(listener)
        });
        bound.map_err(|error| Failure::Job("the socket of the job cannot be created", error))
    }

    /// Connects to the monitor, or returns `None` if the monitor is not running.
    pub(super) async fn connect(&self) -> Result<Option<UnixStream>, Failure> {
        loop {
            let refused = match UnixStream::connect(path_in(&self.descriptor, "keeper")).await {
                Ok(connection) => return Ok(Some(connection)),
                Err(error) => error,
            };
            match refused.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => return Ok(None),
                // The monitor is running, but its backlog is full.
                io::ErrorKind::WouldBlock => sleep(CONNECT_RETRY_DELAY).await,
                _ => return Err(Failure::Job("the monitor process of the job cannot be reached", refused)),
            }
        }
    }

    /// Reads the record of the job.
    pub(super) async fn read_record(&self) -> Result<JobInfo, Failure> {
        let text = self.files.read_text(self.file("job.json")?.as_str()).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown_job(),
            _ => error,
        })?;
        let invalid = "the record of the job cannot be read; 'vfs jobs forget' removes it";
        Ok(serde_json::from_str(&text).map_err(|error| Error::new(ErrorKind::Internal, invalid).with_source(error))?)
    }

    /// Writes the record of the job.
    pub(super) async fn write_record(&self, job: &JobInfo) -> Result<(), Failure> {
        let failed = |error: serde_json::Error| Failure::Job("the record of the job cannot be written", error.into());
        let text = serde_json::to_vec(job).map_err(failed)?;
        let request = WriteRequest::new(self.file("job.json")?, text).mode(WriteMode::Overwrite);
        self.files.write(&OpContext::new(), request).await?;
        Ok(())
    }

    /// Opens the log of the output for appending.
    pub(super) fn open_output_log(&self) -> Result<OutputLog<File>, Failure> {
        #[expect(clippy::disallowed_methods, reason = "a backend copies the whole file to append to it")]
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(path_in(&self.descriptor, "output"));
        file.map(OutputLog::new).map_err(|error| Failure::Job("the output of the job cannot be stored", error))
    }

    /// Prints the output from offset `next` on, and returns the offset of its end.
    pub(super) async fn print_output(&self, out: &mut StandardOutput, mut next: u64) -> Result<u64, Failure> {
        loop {
            let request = ReadRequest::new(self.file("output")?).bytes(next, None).max_bytes(MAX_CHUNK_SIZE);
            let chunk = match self.files.read(&OpContext::new(), request).await {
                Ok(chunk) => chunk,
                // The output does not exist yet, or ends before `next`.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
                    return Ok(next);
                }
                Err(error) => return Err(error.into()),
            };
            match &chunk.content {
                Content::Text(text) => out.write_all(text.as_bytes())?,
                Content::Binary { bytes, .. } => out.write_all(bytes)?,
            }
            match (chunk.next_byte, chunk.bytes.end) {
                (Some(offset), _) => next = offset,
                (None, end) => return Ok(end.unwrap_or(next)),
            }
        }
    }

    /// Removes the directory.
    pub(super) async fn remove(&self) -> Result<(), Failure> {
        let request = DeleteRequest::new(self.path.clone()).recursive();
        self.files.delete(&OpContext::new(), request).await?;
        Ok(())
    }

    fn file(&self, name: &str) -> Result<VfsPath, Failure> {
        Ok(self.path.child(name)?)
    }
}

/// Returns a short path to `name` in an open directory. The address of a socket is limited to about a hundred bytes, and the
/// directory at a path could be replaced.
fn path_in(directory: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

/// Creates the error for an id that no job has.
pub(crate) fn unknown_job() -> Error {
    Error::new(ErrorKind::NotFound, "there is no such job; 'vfs jobs' lists them")
}

#[cfg(test)]
mod tests {
    use vfs_local::LocalConfig;

    use super::*;

    #[tokio::test]
    async fn connecting_waits_if_the_backlog_of_the_monitor_is_full() {
        let jobs = tempfile::tempdir().expect("a directory");
        let files = LocalConfig::new(jobs.path()).open().expect("it opens");
        let descriptor = files.open_directory(&OpContext::new(), &VfsPath::root()).await.expect("it opens");
        let directory = JobDirectory::create(&files, &descriptor, "job").await.expect("it is created");
        let monitor = directory.listen().expect("it listens");
        rustix::net::listen(&monitor, 1).expect("the backlog is short");
        let mut waiting = Vec::new();
        let refused = loop {
            match UnixStream::connect(path_in(&directory.descriptor, "keeper")).await {
                Ok(caller) => waiting.push(caller),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let mut connecting = Box::pin(directory.connect());
        assert!(futures::poll!(&mut connecting).is_pending(), "the monitor is running");
        let (reached, _) = tokio::join!(connecting, async { monitor.accept().await.expect("the first connection") });
        assert!(reached.expect("no failure").is_some());
        drop(monitor);
        assert!(directory.connect().await.expect("no failure").is_none(), "the monitor has exited");
    }
}

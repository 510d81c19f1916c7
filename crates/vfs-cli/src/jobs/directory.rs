//! What is kept of one job.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;
use vfs_core::{
    Backend as _, BackendExt as _, Content, DeleteRequest, Error, ErrorKind, Job, OpContext, ReadRequest, VfsPath,
    WriteMode, WriteRequest,
};
use vfs_local::LocalBackend;

use super::recording::Recording;
use crate::exit::Failure;
use crate::output::Output;

/// The longest piece of output that is read at once: 1 MiB.
const PIECE: u64 = 1 << 20;

/// How long is waited before a keeper that has too many callers is called again.
const PAUSE: Duration = Duration::from_millis(10);

/// The directory of one job, held open.
#[derive(Debug)]
pub(super) struct Directory {
    files: LocalBackend,
    path: VfsPath,
    held: OwnedFd,
}

impl Directory {
    /// Makes one in `jobs` that nobody else can look into.
    pub(super) async fn make(files: &LocalBackend, jobs: &OwnedFd, id: &str) -> Result<Self, Failure> {
        let path = VfsPath::root().child(id)?;
        #[expect(clippy::disallowed_methods, reason = "what a backend makes, others may look into")]
        let made = DirBuilder::new().mode(0o700).create(below(jobs, id));
        made.map_err(|error| Failure::Job("the directory of the job cannot be made", error))?;
        Self::hold(files, path).await
    }

    /// Opens the one of the job `id`.
    pub(super) async fn open(files: &LocalBackend, id: &str) -> Result<Self, Failure> {
        let path = VfsPath::root().child(id).map_err(|_| unknown())?;
        Self::hold(files, path).await
    }

    async fn hold(files: &LocalBackend, path: VfsPath) -> Result<Self, Failure> {
        let held = files.open_directory(&OpContext::new(), &path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => unknown(),
            _ => error,
        })?;
        Ok(Self { files: files.clone(), path, held })
    }

    /// Where it is among those of all jobs.
    pub(super) fn path(&self) -> &VfsPath {
        &self.path
    }

    /// Makes the socket at which its keeper is asked.
    pub(super) fn listen(&self) -> Result<UnixListener, Failure> {
        let socket = below(&self.held, "keeper");
        let bound = UnixListener::bind(&socket).and_then(|listener| {
            #[expect(clippy::disallowed_methods, reason = "a socket is in no backend")]
            std::fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
            Ok(listener)
        });
        bound.map_err(|error| Failure::Job("the socket of the job cannot be made", error))
    }

    /// Reaches its keeper, where that lives.
    pub(super) async fn keeper(&self) -> Result<Option<UnixStream>, Failure> {
        loop {
            let refused = match UnixStream::connect(below(&self.held, "keeper")).await {
                Ok(keeper) => return Ok(Some(keeper)),
                Err(error) => error,
            };
            match refused.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => return Ok(None),
                // It lives, and more wait for it than the kernel lets wait.
                io::ErrorKind::WouldBlock => sleep(PAUSE).await,
                _ => return Err(Failure::Job("the process that keeps the job cannot be reached", refused)),
            }
        }
    }

    /// What is known of the job.
    pub(super) async fn job(&self) -> Result<Job, Failure> {
        let text = self.files.read_text(self.file("job.json")?.as_str()).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown(),
            _ => error,
        })?;
        let broken = "the record of this job cannot be read; 'vfs jobs forget' removes it";
        Ok(serde_json::from_str(&text).map_err(|error| Error::new(ErrorKind::Internal, broken).with_source(error))?)
    }

    /// Writes what is known of the job.
    pub(super) async fn save(&self, job: &Job) -> Result<(), Failure> {
        let failed = |error: serde_json::Error| Failure::Job("the record of the job cannot be written", error.into());
        let text = serde_json::to_vec(job).map_err(failed)?;
        let request = WriteRequest::new(self.file("job.json")?, text).mode(WriteMode::Overwrite);
        self.files.write(&OpContext::new(), request).await?;
        Ok(())
    }

    /// Begins to write down what it prints.
    pub(super) fn record(&self) -> Result<Recording<File>, Failure> {
        #[expect(clippy::disallowed_methods, reason = "a backend copies all of a file to add to its end")]
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(below(&self.held, "output"));
        file.map(Recording::new).map_err(|error| Failure::Job("the output of the job cannot be kept", error))
    }

    /// Prints its output from `next` on, and returns where that ends.
    pub(super) async fn print(&self, out: &mut Output, mut next: u64) -> Result<u64, Failure> {
        loop {
            let request = ReadRequest::new(self.file("output")?).bytes(next, None).max_bytes(PIECE);
            let piece = match self.files.read(&OpContext::new(), request).await {
                Ok(piece) => piece,
                // Nothing was printed yet, or not so much.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
                    return Ok(next);
                }
                Err(error) => return Err(error.into()),
            };
            match &piece.content {
                Content::Text(text) => out.write_all(text.as_bytes())?,
                Content::Binary { bytes, .. } => out.write_all(bytes)?,
            }
            match (piece.next_byte, piece.bytes.end) {
                (Some(more), _) => next = more,
                (None, end) => return Ok(end.unwrap_or(next)),
            }
        }
    }

    /// Removes it.
    pub(super) async fn remove(&self) -> Result<(), Failure> {
        let request = DeleteRequest::new(self.path.clone()).recursive();
        self.files.delete(&OpContext::new(), request).await?;
        Ok(())
    }

    fn file(&self, name: &str) -> Result<VfsPath, Failure> {
        Ok(self.path.child(name)?)
    }
}

/// A short path to `name` in a directory that is held: the address of a socket has room for some hundred bytes only, and
/// nobody can put another directory in this one's place.
fn below(directory: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

pub(crate) fn unknown() -> Error {
    Error::new(ErrorKind::NotFound, "there is no such job; 'vfs jobs' lists them")
}

#[cfg(test)]
mod tests {
    use vfs_local::LocalConfig;

    use super::*;

    #[tokio::test]
    async fn a_keeper_with_more_callers_than_can_wait_is_called_again() {
        let jobs = tempfile::tempdir().expect("a directory");
        let files = LocalConfig::new(jobs.path()).open().expect("it opens");
        let held = files.open_directory(&OpContext::new(), &VfsPath::root()).await.expect("it opens");
        let directory = Directory::make(&files, &held, "job").await.expect("it is made");
        let keeper = directory.listen().expect("it listens");
        rustix::net::listen(&keeper, 1).expect("few may wait");
        let mut waiting = Vec::new();
        let refused = loop {
            match UnixStream::connect(below(&directory.held, "keeper")).await {
                Ok(caller) => waiting.push(caller),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let mut called = Box::pin(directory.keeper());
        assert!(futures::poll!(&mut called).is_pending(), "it lives, and is called again");
        let (reached, _) = tokio::join!(called, async { keeper.accept().await.expect("the first of all") });
        assert!(reached.expect("no failure").is_some());
        drop(keeper);
        assert!(directory.keeper().await.expect("no failure").is_none(), "it is gone");
    }
}

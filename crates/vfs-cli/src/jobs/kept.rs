//! What is kept of jobs.

use std::io::Write;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use vfs_core::{
    Backend as _, BackendExt as _, Content, DeleteRequest, Error, ErrorKind, Job, JobId, OpContext, ReadRequest,
    VfsPath, WatchRequest, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use crate::exit::Failure;
use crate::output::Output;

/// What asks a keeper to end its job.
pub(super) const STOP: u8 = b's';

/// The longest piece of output that is read at once: 1 MiB.
const PIECE: u64 = 1 << 20;

/// The most output that is kept of a job: 1 GiB.
const MOST: u64 = 1 << 30;

/// A job, and whether it still runs.
#[derive(Debug, Serialize)]
pub(crate) struct Kept {
    #[serde(flatten)]
    pub(crate) job: Job,
    pub(crate) state: State,
}

/// Whether a job still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It does.
    Running,
    /// It has ended.
    Ended,
    /// Its keeper was killed, and its processes with it.
    Lost,
}

/// The jobs of this user.
#[derive(Debug)]
pub(crate) struct Jobs {
    files: LocalBackend,
    root: PathBuf,
}

impl Jobs {
    /// Opens their directory, `$XDG_STATE_HOME/vfs/jobs` or `~/.local/state/vfs/jobs`, and makes it where it is not there.
    pub(crate) fn open() -> Result<Self, Failure> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
        let root = state
            .ok_or(Failure::Usage("jobs are kept below XDG_STATE_HOME or HOME; set one of them"))?
            .join("vfs/jobs");
        make_private(&root)?;
        // What commands print is not worth waiting for the disk.
        let opened = LocalConfig::new(&root).durability(Durability::Atomic).open();
        let files = opened.map_err(|error| Failure::Root(root.clone(), error))?;
        Ok(Self { files, root })
    }

    /// The directory of a job.
    fn directory(&self, id: &str) -> Result<Directory, Failure> {
        let path = VfsPath::root().child(id)?;
        Ok(Directory { files: self.files.clone(), root: self.root.join(id), path, printed: 0 })
    }

    /// A new directory for a job.
    pub(super) fn make(&self, id: &JobId) -> Result<Directory, Failure> {
        let directory = self.directory(id.as_str())?;
        make_private(&directory.root)?;
        Ok(directory)
    }

    /// All jobs, the oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<Kept>, Failure> {
        let mut all = Vec::new();
        for entry in self.files.list("/").await? {
            // One that is being made, or forgotten, has no record.
            match self.kept(entry.path.name().unwrap_or_default()).await {
                Ok(kept) => all.push(kept),
                Err(Failure::Operation(error)) if error.kind() == ErrorKind::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        all.sort_by(|a, b| (a.job.started, &a.job.id).cmp(&(b.job.started, &b.job.id)));
        Ok(all)
    }

    async fn kept(&self, id: &str) -> Result<Kept, Failure> {
        let directory = self.directory(id)?;
        let is_kept = UnixStream::connect(directory.socket()).await.is_ok();
        // The record is read last: a keeper that has gone meanwhile has written how it ended.
        let job = directory.job().await?;
        let state = match job.exit {
            Some(_) => State::Ended,
            None if is_kept => State::Running,
            None => State::Lost,
        };
        Ok(Kept { job, state })
    }

    /// Prints what a job has printed after the first `from` bytes, and to `follow` it, what it goes on to print.
    pub(crate) async fn output(&self, out: &mut Output, id: &str, from: u64, follow: bool) -> Result<(), Failure> {
        let directory = self.directory(id)?;
        let mut changes =
            self.files.as_watch().map(|watch| watch.watch(OpContext::new(), WatchRequest::new(directory.path.clone())));
        let mut next = from;
        loop {
            let state = self.kept(id).await?.state;
            next = directory.print(out, next).await?;
            out.flush()?;
            let change = match &mut changes {
                Some(changes) if follow && state == State::Running => changes.next().await,
                _ => None,
            };
            if change.transpose()?.is_none() {
                return Ok(());
            }
        }
    }

    /// Ends a job and returns once all of its processes are gone.
    pub(crate) async fn stop(&self, id: &str) -> Result<Kept, Failure> {
        let directory = self.directory(id)?;
        if let Ok(mut keeper) = UnixStream::connect(directory.socket()).await {
            // A keeper that is gone by now has no job any more, which is what was asked for.
            let asked = keeper.write_u8(STOP).await;
            let mut nothing = Vec::new();
            let ended = keeper.read_to_end(&mut nothing).await;
            if let (Ok(()), Err(error)) = (asked, ended) {
                return Err(Failure::Runtime(error));
            }
        }
        self.kept(id).await
    }

    /// Removes what is kept of a job that has ended.
    pub(crate) async fn forget(&self, id: &str) -> Result<(), Failure> {
        if self.kept(id).await?.state == State::Running {
            return Err(Failure::Usage("the job runs; stop it first, with 'vfs jobs stop'"));
        }
        let request = DeleteRequest::new(self.directory(id)?.path).recursive();
        self.files.delete(&OpContext::new(), request).await?;
        Ok(())
    }
}

/// What is kept of one job.
#[derive(Debug)]
pub(super) struct Directory {
    files: LocalBackend,
    root: PathBuf,
    path: VfsPath,
    printed: u64,
}

impl Directory {
    /// The socket of its keeper.
    pub(super) fn socket(&self) -> PathBuf {
        self.root.join("keeper")
    }

    fn file(&self, name: &str) -> Result<VfsPath, Failure> {
        Ok(self.path.child(name)?)
    }

    async fn job(&self) -> Result<Job, Failure> {
        let unknown = |error: Error| match error.kind() {
            ErrorKind::NotFound => Error::new(ErrorKind::NotFound, "there is no such job; 'vfs jobs' lists them"),
            _ => error,
        };
        let text = self.files.read_text(self.file("job.json")?.as_str()).await.map_err(unknown)?;
        let broken =
            |error| Error::new(ErrorKind::Internal, "the record of this job cannot be read").with_source(error);
        Ok(serde_json::from_str(&text).map_err(broken)?)
    }

    /// Writes what is known of the job.
    pub(super) async fn save(&self, job: &Job) -> Result<(), Failure> {
        let text = serde_json::to_vec(job).map_err(|error| Failure::Runtime(error.into()))?;
        let request = WriteRequest::new(self.file("job.json")?, text).mode(WriteMode::Overwrite);
        self.files.write(&OpContext::new(), request).await?;
        Ok(())
    }

    /// Adds to its output.
    pub(super) async fn append(&mut self, text: String) -> Result<(), Failure> {
        if self.printed >= MOST {
            return Ok(());
        }
        self.printed += text.len() as u64;
        let request = WriteRequest::new(self.file("output")?, text).mode(WriteMode::Append);
        self.files.write(&OpContext::new(), request).await?;
        Ok(())
    }

    /// Prints its output from `next` on, and returns where that ends.
    async fn print(&self, out: &mut Output, mut next: u64) -> Result<u64, Failure> {
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
}

/// Makes a directory, and those above it, that nobody else can look into.
fn make_private(path: &Path) -> Result<(), Failure> {
    #[expect(clippy::disallowed_methods, reason = "a backend holds a directory that is there")]
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        let message = format!("the directory for jobs cannot be made: {error}");
        Failure::Operation(Error::new(ErrorKind::PermissionDenied, message))
    })
}

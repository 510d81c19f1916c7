//! What is kept of jobs.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, future};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;
use vfs_core::{Backend as _, BackendExt as _, Error, ErrorKind, Job, JobId, OpContext, VfsPath, WatchRequest};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use super::directory::Directory;
use crate::exit::{Failure, tell};
use crate::output::Output;

/// What asks a keeper to end its job.
pub(super) const STOP: u8 = b's';

/// How often one who follows a job looks at it, whatever is told of it.
const LOOK: Duration = Duration::from_secs(1);

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
    /// Its keeper was killed, and its processes with it, or could not write how it ended.
    Lost,
}

/// The jobs of this user.
#[derive(Debug)]
pub(crate) struct Jobs {
    files: LocalBackend,
    held: OwnedFd,
}

impl Jobs {
    /// Opens their directory, and makes it where it is not there.
    pub(super) async fn open_or_make() -> Result<Self, Failure> {
        let root = Self::root()?;
        #[expect(clippy::disallowed_methods, reason = "a backend holds a directory that is there")]
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&root);
        made.map_err(|error| Failure::Jobs(root.clone(), error))?;
        Self::open_at(&root).await
    }

    /// Opens their directory; `None` where there never was a job. Nothing is made, which a read-only system would refuse.
    pub(crate) async fn open() -> Result<Option<Self>, Failure> {
        let root = Self::root()?;
        #[expect(clippy::disallowed_methods, reason = "a backend holds a directory that is there")]
        match root.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Self::open_at(&root).await.map(Some),
        }
    }

    /// Returns where it is: `$XDG_STATE_HOME/vfs/jobs` or `~/.local/state/vfs/jobs`.
    fn root() -> Result<PathBuf, Failure> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
        let unset = Failure::Usage("jobs are kept below XDG_STATE_HOME or HOME; set one of them");
        Ok(state.ok_or(unset)?.join("vfs/jobs"))
    }

    async fn open_at(root: &Path) -> Result<Self, Failure> {
        // What is written here is not worth waiting for the disk.
        let opened = LocalConfig::new(root).durability(Durability::Atomic).open();
        let files = opened.map_err(|error| Failure::Root(root.to_owned(), error))?;
        let held = files.open_directory(&OpContext::new(), &VfsPath::root()).await?;
        check_private(&held, root)?;
        Ok(Self { files, held })
    }

    /// A new directory for a job.
    pub(super) async fn make(&self, id: &JobId) -> Result<Directory, Failure> {
        Directory::make(&self.files, &self.held, id.as_str()).await
    }

    /// All jobs, the oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<Kept>, Failure> {
        let mut all = Vec::new();
        for entry in self.files.list_dir("/").await? {
            // Only the root has no name, and nothing lists itself.
            let Some(id) = entry.path.name() else { continue };
            match self.kept(id).await {
                Ok(kept) => all.push(kept),
                // It is being made or forgotten, or no job's.
                Err(Failure::Operation(error)) if error.kind() == ErrorKind::NotFound => {}
                // That hides none of the others.
                Err(failure) => tell(format_args!("{id}: {failure}")),
            }
        }
        all.sort_by(|a, b| (a.job.started, &a.job.id).cmp(&(b.job.started, &b.job.id)));
        Ok(all)
    }

    async fn kept(&self, id: &str) -> Result<Kept, Failure> {
        let directory = Directory::open(&self.files, id).await?;
        let is_kept = directory.keeper().await?.is_some();
        // The record is read last: a keeper that has gone meanwhile has written how it ended.
        let mut job = directory.job().await?;
        // By its directory it is found, whatever the record says.
        job.id = JobId::new(id);
        let state = match job.exit {
            Some(_) => State::Ended,
            None if is_kept => State::Running,
            None => State::Lost,
        };
        Ok(Kept { job, state })
    }

    /// Prints what a job has printed after the first `from` bytes, and to `follow` it, what it goes on to print.
    pub(crate) async fn output(&self, out: &mut Output, id: &str, from: u64, follow: bool) -> Result<(), Failure> {
        let directory = Directory::open(&self.files, id).await?;
        let mut changes = follow.then(|| self.changes(&directory));
        let mut next = from;
        loop {
            let state = self.kept(id).await?.state;
            next = directory.print(out, next).await?;
            out.flush()?;
            let Some(changes) = changes.as_mut().filter(|_| state == State::Running) else {
                if state == State::Lost {
                    tell(format_args!(
                        "{id}: the process that kept this job is gone, and did not record how the command ended"
                    ));
                }
                return Ok(());
            };
            // Of the end of a keeper that is killed nothing tells.
            let _changed = timeout(LOOK, changes.next()).await;
        }
    }

    /// Tells when something of a job changes; where that cannot be told, it never does.
    fn changes(&self, directory: &Directory) -> BoxStream<'static, ()> {
        let request = WatchRequest::new(directory.path().clone());
        let watched = self.files.as_watch().map(|watch| watch.watch(OpContext::new(), request));
        let told = stream::iter(watched).flatten().take_while(|change| future::ready(change.is_ok()));
        told.map(drop).chain(stream::pending()).boxed()
    }

    /// Ends a job and returns once all of its processes are gone.
    pub(crate) async fn stop(&self, id: &str) -> Result<Kept, Failure> {
        let directory = Directory::open(&self.files, id).await?;
        loop {
            if let Some(mut keeper) = directory.keeper().await? {
                // It may go away at any moment of this, after which its job has ended.
                if keeper.write_u8(STOP).await.is_ok() {
                    let _closed = keeper.read_to_end(&mut Vec::new()).await;
                }
            }
            let kept = self.kept(id).await?;
            if kept.state != State::Running {
                return Ok(kept);
            }
        }
    }

    /// Removes what is kept of a job that has ended, or of which nothing can be known.
    pub(crate) async fn forget(&self, id: &str) -> Result<(), Failure> {
        let directory = Directory::open(&self.files, id).await?;
        let is_kept = directory.keeper().await?.is_some();
        let has_ended = directory.job().await.is_ok_and(|job| job.exit.is_some());
        if is_kept && !has_ended {
            return Err(Failure::Usage("the job runs; stop it first, with 'vfs jobs stop'"));
        }
        directory.remove().await
    }
}

/// Refuses a directory in which others can see or change what is kept.
fn check_private(held: &OwnedFd, root: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::Job("the directory for jobs cannot be looked at", error);
    let found = held.try_clone().and_then(|held| File::from(held).metadata()).map_err(failed)?;
    let (this, _other) = UnixStream::pair().map_err(failed)?;
    let user = this.peer_cred().map_err(failed)?.uid();
    let message = if found.uid() != user {
        format!("the directory for jobs, {root:?}, is another user's; set XDG_STATE_HOME to one of yours")
    } else if found.mode() & 0o077 != 0 {
        format!("others can get at the directory for jobs, {root:?}; take it from them with 'chmod 700'")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::PermissionDenied, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_printed_with_its_state_beside_its_fields() {
        let started = "2025-01-15T10:30:00Z".parse().expect("a time");
        let job = Job::new(JobId::new("j1"), "make", started);
        for (state, word) in [(State::Running, "running"), (State::Ended, "ended"), (State::Lost, "lost")] {
            let json = serde_json::to_string(&Kept { job: job.clone(), state }).expect("JSON");
            let fields = r#""id":"j1","command":"make","started":"2025-01-15T10:30:00Z""#;
            assert_eq!(json, format!(r#"{{{fields},"state":"{word}"}}"#));
        }
    }
}

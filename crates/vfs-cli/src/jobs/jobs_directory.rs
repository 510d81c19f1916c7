//! Registry of the background jobs of this user.

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
use vfs_core::shell::{JobId, JobInfo};
use vfs_core::watch::WatchRequest;
use vfs_core::{Backend as _, BackendExt as _, Error, ErrorKind, OpContext, VfsPath};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use super::job_directory::JobDirectory;
use crate::exit::{Failure, print_message};
use crate::standard_output::StandardOutput;

/// The byte that requests a monitor to stop its job.
pub(super) const STOP_REQUEST: u8 = b's';

/// Interval at which the state of a followed job is checked, even without a change event.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A job and its state.
#[derive(Debug, Serialize)]
pub(crate) struct JobEntry {
    #[serde(flatten)]
    pub(crate) job: JobInfo,
    pub(crate) state: JobState,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobState {
    /// The command is running.
    Running,
    /// The command has ended, and the record has its exit status.
    Ended,
    /// The monitor was killed, together with the processes of the job, or could not record the exit status.
    Lost,
}

/// The directory of all jobs of this user.
#[derive(Debug)]
pub(crate) struct JobsDirectory {
    files: LocalBackend,
    descriptor: OwnedFd,
}

impl JobsDirectory {
    /// Opens the directory of all jobs, and creates it if missing.
    pub(super) async fn open_or_create() -> Result<Self, Failure> {
        let root = Self::root()?;
        #[expect(clippy::disallowed_methods, reason = "a backend needs an existing directory")]
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&root);
        created.map_err(|error| Failure::JobRoot(root.clone(), error))?;
        Self::open_at(&root).await
    }

    /// Opens the directory of all jobs, or returns `None` if there is none. Creates nothing, so that this works on a read-only
    /// file system.
    pub(crate) async fn open() -> Result<Option<Self>, Failure> {
        let root = Self::root()?;
        #[expect(clippy::disallowed_methods, reason = "a backend needs an existing directory")]
        match root.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Self::open_at(&root).await.map(Some),
        }
    }

    /// Returns the host path of the directory: `$XDG_STATE_HOME/vfs/jobs` or `~/.local/state/vfs/jobs`.
    fn root() -> Result<PathBuf, Failure> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
        let unset = Failure::Usage("jobs need a state directory; set XDG_STATE_HOME or HOME");
        Ok(state.ok_or(unset)?.join("vfs/jobs"))
    }

    async fn open_at(root: &Path) -> Result<Self, Failure> {
        // Records of jobs need not survive a power failure.
        let opened = LocalConfig::new(root).durability(Durability::Atomic).open();
        let files = opened.map_err(|error| Failure::Root(root.to_owned(), error))?;
        let descriptor = files.open_directory(&OpContext::new(), &VfsPath::root()).await?;
        check_private(&descriptor, root)?;
        Ok(Self { files, descriptor })
    }

    /// Creates the directory of a new job.
    pub(super) async fn create_job(&self, id: &JobId) -> Result<JobDirectory, Failure> {
        JobDirectory::create(&self.files, &self.descriptor, id.as_str()).await
    }

    /// Returns all jobs, the oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<JobEntry>, Failure> {
        let mut all = Vec::new();
        for file in self.files.list_dir("/").await? {
            // Only the root has no name, and a listing does not contain its own directory.
            let Some(id) = file.path.name() else { continue };
            match self.entry(id).await {
                Ok(entry) => all.push(entry),
                // The directory is being created or removed, or is not that of a job.
                Err(Failure::Operation(error)) if error.kind() == ErrorKind::NotFound => {}
                // One unreadable record must not hide the other jobs.
                Err(failure) => print_message(format_args!("{id}: {failure}")),
            }
        }
        all.sort_by(|a, b| (a.job.started, &a.job.id).cmp(&(b.job.started, &b.job.id)));
        Ok(all)
    }

    async fn entry(&self, id: &str) -> Result<JobEntry, Failure> {
        let directory = JobDirectory::open(&self.files, id).await?;
        let is_monitored = directory.connect().await?.is_some();
        // Read the record after the connection attempt: a monitor that has exited in between has written the exit status.
        let mut job = directory.read_record().await?;
        // The name of the directory is authoritative, because jobs are looked up by it.
        job.id = JobId::new(id);
        let state = match job.exit {
            Some(_) => JobState::Ended,
            None if is_monitored => JobState::Running,
            None => JobState::Lost,
        };
        Ok(JobEntry { job, state })
    }

    /// Prints the output of a job after its first `from` bytes; with `follow`, until the job ends.
    pub(crate) async fn output(
        &self,
        out: &mut StandardOutput,
        id: &str,
        from: u64,
        follow: bool,
    ) -> Result<(), Failure> {
        let directory = JobDirectory::open(&self.files, id).await?;
        let mut changes = follow.then(|| self.changes(&directory));
        let mut next = from;
        loop {
            let state = self.entry(id).await?.state;
            next = directory.print_output(out, next).await?;
            out.flush()?;
            let Some(changes) = changes.as_mut().filter(|_| state == JobState::Running) else {
                if state == JobState::Lost {
                    print_message(format_args!(
                        "{id}: the monitor process of the job is gone and has recorded no exit status"
                    ));
                }
                return Ok(());
            };
            // No change event is sent if a monitor is killed, so the timeout is necessary.
            let _changed = timeout(POLL_INTERVAL, changes.next()).await;
        }
    }

    /// Returns an event for each change in the directory of a job; none if the directory cannot be watched.
    fn changes(&self, directory: &JobDirectory) -> BoxStream<'static, ()> {
        let request = WatchRequest::new(directory.path().clone());
        let events = self.files.as_watch().map(|watch| watch.watch(OpContext::new(), request));
        let changes = stream::iter(events).flatten().take_while(|change| future::ready(change.is_ok()));
        changes.map(drop).chain(stream::pending()).boxed()
    }

    /// Stops a job, and returns when all of its processes have exited.
    pub(crate) async fn stop(&self, id: &str) -> Result<JobEntry, Failure> {
        let directory = JobDirectory::open(&self.files, id).await?;
        loop {
            if let Some(mut connection) = directory.connect().await? {
                // If the monitor exits during the request, its job has ended.
                if connection.write_u8(STOP_REQUEST).await.is_ok() {
                    let _closed = connection.read_to_end(&mut Vec::new()).await;
                }
            }
            let entry = self.entry(id).await?;
            if entry.state != JobState::Running {
                return Ok(entry);
            }
        }
    }

    /// Removes the directory of a job that has ended or whose record cannot be read.
    pub(crate) async fn forget(&self, id: &str) -> Result<(), Failure> {
        let directory = JobDirectory::open(&self.files, id).await?;
        let is_monitored = directory.connect().await?.is_some();
        let has_ended = directory.read_record().await.is_ok_and(|job| job.exit.is_some());
        if is_monitored && !has_ended {
            return Err(Failure::Usage("the job is running; stop it first with 'vfs jobs stop'"));
        }
        directory.remove().await
    }
}

/// Returns an error if other users can access the directory.
fn check_private(descriptor: &OwnedFd, root: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::Job("the directory for jobs cannot be inspected", error);
    let metadata = descriptor.try_clone().and_then(|descriptor| File::from(descriptor).metadata()).map_err(failed)?;
    let (this, _other) = UnixStream::pair().map_err(failed)?;
    let user = this.peer_cred().map_err(failed)?.uid();
    let message = if metadata.uid() != user {
        format!("the directory for jobs, {root:?}, belongs to another user; set XDG_STATE_HOME to a directory of yours")
    } else if metadata.mode() & 0o077 != 0 {
        format!("other users can access the directory for jobs, {root:?}; restrict it with 'chmod 700'")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::PermissionDenied, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_of_a_job_has_its_state_next_to_its_fields() {
        let started = "2025-01-15T10:30:00Z".parse().expect("a time");
        let job = JobInfo::new(JobId::new("j1"), "make", started);
        for (state, word) in [(JobState::Running, "running"), (JobState::Ended, "ended"), (JobState::Lost, "lost")] {
            let json = serde_json::to_string(&JobEntry { job: job.clone(), state }).expect("JSON");
            let fields = r#""id":"j1","command":"make","started":"2025-01-15T10:30:00Z""#;
            assert_eq!(json, format!(r#"{{{fields},"state":"{word}"}}"#));
        }
    }
}

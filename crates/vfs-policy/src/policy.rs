//! The `Policy` layer, and the `PolicyHook` that decides for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Action, Backend, DeleteRequest, ExecuteRequest, Layer, OpContext, ReadRequest, VfsPath, WriteMode, WriteRequest,
};

use crate::approval::Approver;
use crate::backend::PolicyBackend;
use crate::rule::HardLinks;

/// What a policy says of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// It may go on.
    Allow,
    /// It may not.
    Deny {
        /// Why, in words for the model.
        reason: String,
    },
    /// Somebody has to approve it first.
    Ask {
        /// What they are asked.
        prompt: String,
    },
}

/// What is done to one path in the course of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Permission {
    /// Its content, or that it exists, is learnt.
    Read,
    /// It is made or changed.
    Write,
    /// It goes.
    Delete,
    /// A command runs in it.
    Execute,
}

impl Permission {
    /// Every permission, in the order of declaration.
    pub const ALL: &'static [Permission] = &[Self::Read, Self::Write, Self::Delete, Self::Execute];

    /// The stable word for it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Execute => "execute",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Decides what may be done.
///
/// # Behaviour
///
/// * [`check`](Self::check) is asked before every operation, once with the paths as they were named and, where links lead
///   somewhere else, once more with the real ones.
/// * [`check_path`](Self::check_path) is asked about single paths: each one below a directory that is moved, copied or
///   deleted, and each entry that a listing or search would show. There a question counts as a refusal.
/// * Searches ask from the threads of a pool, and wait for the answer.
/// * A hook that looks into the command lines of [`Action::Execute`] and [`Action::ExecuteStream`] reads them with
///   [`CommandLine`](crate::CommandLine); the variables that a request passes are a part of what it runs.
#[async_trait]
pub trait PolicyHook: fmt::Debug + Send + Sync + 'static {
    /// Whether `action` may go on.
    async fn check(&self, cx: &OpContext, action: &Action<'_>) -> Decision;

    /// Whether `permission` is given at `path`. By default, what [`check`](Self::check) says of the simplest operation
    /// that needs it.
    async fn check_path(&self, cx: &OpContext, permission: Permission, path: &VfsPath) -> Decision {
        match permission {
            Permission::Read => self.check(cx, &Action::Read(&ReadRequest::new(path.clone()))).await,
            Permission::Write => {
                let request = WriteRequest::new(path.clone(), "").mode(WriteMode::Overwrite);
                self.check(cx, &Action::Write(&request)).await
            }
            Permission::Delete => self.check(cx, &Action::Delete(&DeleteRequest::new(path.clone()))).await,
            Permission::Execute => {
                let mut request = ExecuteRequest::new("");
                request.cwd = path.clone();
                self.check(cx, &Action::Execute(&request)).await
            }
        }
    }

    /// Whether something below the directory `path` may be read although `path` itself may not, so that it is shown on the
    /// way there. By default, no.
    fn leads_on(&self, _cx: &OpContext, _path: &VfsPath) -> bool {
        false
    }

    /// Whether the answer for something at or below `path` may be another than for `path`. By default, yes.
    fn differs_below(&self, _cx: &OpContext, _path: &VfsPath) -> bool {
        true
    }

    /// What becomes of a file that is known by other names too, under which it may be forbidden. By default, it is refused
    /// to be read.
    fn hard_links(&self) -> HardLinks {
        HardLinks::Deny
    }
}

/// Lets a [`PolicyHook`] decide about every operation.
///
/// # Behaviour
///
/// * Where the hook denies, the operation is `policy_denied` and the backend is not asked. Nothing of a denied file shows
///   in a result, an error, a listing, a search or a diff, and a search does not open it.
/// * What is said of a file that may not be read is the same whether it exists or not: `stat`, `resolve`, reads and changes are
///   `policy_denied`, and a listing or search that begins there is, or finds nothing there.
/// * Where it asks, the operation waits for the [approver](Self::with_approver), who may approve it, deny it or put another
///   request in its place; without one, or after the [timeout](Self::with_approval_timeout), it is `approval_required`.
///   An approval is looked at once more when it comes: what is denied by then stays denied. Of several questions about one
///   operation the first is asked. Waiting for an answer needs the timer of a tokio runtime.
/// * A path is judged as it is named and as it really is when links are followed. A file with several names (hard links)
///   is not read unless the hook says so. The directories and links on the way to the target of a link are not
///   checked, so that a working link reveals that they exist, even if they may not be read.
/// * Methods of layers that are not operations of a backend (`OverlayBackend::diff`, `CheckpointedBackend::undo`) are not subject
///   to any policy.
/// * Deleting, moving and copying a directory needs the permission for all that is in it.
/// * Reading what may be read is filtered, not refused: `ls`, `glob`, `grep` and change feeds leave out what may not be
///   read, silently. A directory that may not be read is shown where it leads to something that may.
/// * Going back to a snapshot, and diffs between two, are refused where anything at all may be denied below the root.
///
/// Between the look at a link and the operation another process may change the link; against that only a backend that is
/// confined to what may be reached helps. A command can do whatever its own process can: see [`RuleSet`](crate::RuleSet).
///
/// ```
/// use std::sync::Arc;
/// use vfs_core::{BackendExt, ErrorKind, Layer};
/// use vfs_policy::{Policy, RuleSet};
/// use vfs_memory::MemoryBackend;
///
/// # futures::executor::block_on(async {
/// let files = MemoryBackend::new();
/// files.create_text("/secrets/key", "hunter2").await?;
///
/// let rules = RuleSet::from_toml("[[rules]]\neffect = 'deny'\npaths = ['/secrets']\n")?;
/// let guarded = Policy::new(Arc::new(rules)).layer(Arc::new(files));
/// assert_eq!(guarded.read_text("/secrets/key").await.expect_err("denied").kind(), ErrorKind::PolicyDenied);
/// assert!(guarded.search("hunter2").await?.is_empty());
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) hook: Arc<dyn PolicyHook>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) approval_timeout: Duration,
}

impl Policy {
    /// Five minutes, how long an approver has unless it is set otherwise.
    pub const DEFAULT_APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);

    /// Lets `hook` decide; nobody approves anything.
    pub fn new(hook: Arc<dyn PolicyHook>) -> Self {
        Self { hook, approver: None, approval_timeout: Self::DEFAULT_APPROVAL_TIMEOUT }
    }

    /// Lets `approver` answer what the hook asks.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets how long an answer may take. Default [`Policy::DEFAULT_APPROVAL_TIMEOUT`].
    #[must_use]
    pub fn with_approval_timeout(mut self, timeout: Duration) -> Self {
        self.approval_timeout = timeout;
        self
    }
}

impl Layer for Policy {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(PolicyBackend::new(inner, self.clone()))
    }
}

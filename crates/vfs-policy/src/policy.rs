//! The `Policy` layer, and the `PolicyHook` that decides for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::operation::RequestRef;
use vfs_core::{DeleteRequest, ExecuteRequest, OpContext, ReadRequest, VfsPath, WriteMode, WriteRequest};

use crate::approval::Approver;
use crate::rule::HardLinks;

/// Decision of a policy about one operation or path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The operation is allowed.
    Allow,
    /// The operation is denied.
    Deny {
        /// Reason, in words for the model.
        reason: String,
    },
    /// The operation needs an approval first.
    Ask {
        /// Question for the approver.
        prompt: String,
    },
}

/// Kind of access to one path in the course of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Permission {
    /// The content of the path, or its existence, becomes known.
    Read,
    /// The path is created or changed.
    Write,
    /// The path is removed.
    Delete,
    /// A command runs in the directory.
    Execute,
}

impl Permission {
    /// All permissions, in the order of declaration.
    pub const ALL: &'static [Permission] = &[Self::Read, Self::Write, Self::Delete, Self::Execute];

    /// Returns the stable word for this permission.
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

/// Decides which operations are allowed.
///
/// # Behaviour
///
/// * [`check`](Self::check) is called before every operation, once with the paths as the caller named them and, if links lead
///   somewhere else, once more with the real paths.
/// * [`check_path`](Self::check_path) is called for single paths: each one below a directory that is moved, copied or deleted,
///   and each entry that a listing or search would show. For an entry of a listing or search, [`Decision::Ask`] counts as a
///   refusal.
/// * Searches call the hook from the threads of a pool, and block until it answers.
/// * A hook that decides about the command lines of [`RequestRef::Execute`] and [`RequestRef::ExecuteStream`] can parse them with
///   [`CommandLine`](crate::CommandLine). The variables that a request passes are part of the command that runs.
#[async_trait]
pub trait PolicyHook: fmt::Debug + Send + Sync + 'static {
    /// Returns the decision about `action`.
    async fn check(&self, cx: &OpContext, action: &RequestRef<'_>) -> Decision;

    /// Returns the decision about `permission` at `path`. The default is the answer of [`check`](Self::check) for the simplest
    /// operation that requires this permission.
    async fn check_path(&self, cx: &OpContext, permission: Permission, path: &VfsPath) -> Decision {
        match permission {
            Permission::Read => self.check(cx, &RequestRef::Read(&ReadRequest::new(path.clone()))).await,
            Permission::Write => {
                let request = WriteRequest::new(path.clone(), "").mode(WriteMode::Overwrite);
                self.check(cx, &RequestRef::Write(&request)).await
            }
            Permission::Delete => self.check(cx, &RequestRef::Delete(&DeleteRequest::new(path.clone()))).await,
            Permission::Execute => {
                let mut request = ExecuteRequest::new("");
                request.cwd = path.clone();
                self.check(cx, &RequestRef::Execute(&request)).await
            }
        }
    }

    /// Returns whether an entry below the directory `path` may be readable although `path` itself is not. Such a directory is
    /// listed, so that a caller finds the way to the entry. Default: `false`.
    fn leads_on(&self, _cx: &OpContext, _path: &VfsPath) -> bool {
        false
    }

    /// Returns whether decisions about paths at or below `path` may differ from the decision about `path`. Default: `true`.
    fn differs_below(&self, _cx: &OpContext, _path: &VfsPath) -> bool {
        true
    }

    /// Returns the treatment of files with several names (hard links): another name may be a forbidden one. Default:
    /// [`HardLinks::Deny`], which refuses to read them.
    fn hard_links(&self) -> HardLinks {
        HardLinks::Deny
    }
}

/// Layer that enforces the decisions of a [`PolicyHook`] on every operation.
///
/// # Behaviour
///
/// * If the hook denies an operation, it fails with `policy_denied` and the backend is not called. Nothing of a denied file
///   appears in a result, an error, a listing, a search or a diff, and a search does not open it.
/// * Answers about an unreadable file are the same whether it exists or not: `stat`, `resolve` and reads fail with
///   `policy_denied`, and so do changes that are denied too; a listing or search that starts there fails so too, or finds nothing.
/// * If only reads are denied, or need an approval, a write or delete is made, and shows whether the file exists
///   (`already_exists`, `not_found`, `created`), but not its version, which depends on the content. Deny all operations to hide a
///   file.
/// * If the hook asks, the operation waits for the [approver](Self::with_approver), who may approve it, deny it or replace the
///   request. Without an approver, or after the [timeout](Self::with_approval_timeout), the operation fails with
///   `approval_required`. The hook is consulted again once an approval has arrived: an operation that is denied by then stays
///   denied. If there are several questions about one operation, the approver gets the first. Waiting for an answer
///   needs the timer of a tokio runtime.
/// * Both the path as named and the real path, with links followed, are checked. A file with several names (hard links) is not
///   read unless the hook allows it. Directories and links on the way to the target of a link are not checked, so a working
///   link reveals that they exist, even if they may not be read.
/// * Methods of layers that are not operations of a backend (`OverlayBackend::diff`, `CheckpointedBackend::undo`) are not subject
///   to any policy.
/// * Deletes, moves and copies of a directory require the permission for every entry in it.
/// * `ls`, `glob`, `grep` and change feeds are filtered, not refused: unreadable entries are silently left out. An unreadable
///   directory is shown if it leads to a readable entry.
/// * Restoring a snapshot, and diffs between two, are refused if anything at all may be denied below the root.
///
/// Another process may change a link between the check and the operation; only a backend that is confined to the allowed files
/// prevents that. A command can do everything that its own process can: see [`RuleSet`](crate::RuleSet).
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
/// assert!(guarded.grep_text("hunter2").await?.is_empty());
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) hook: Arc<dyn PolicyHook>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) approval_timeout: Duration,
    pub(crate) name: &'static str,
}

impl Policy {
    /// Default time that an approver has to answer: five minutes.
    pub const DEFAULT_APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);

    /// Returns a policy that enforces the decisions of `hook`, without an approver.
    pub fn new(hook: Arc<dyn PolicyHook>) -> Self {
        Self { hook, approver: None, approval_timeout: Self::DEFAULT_APPROVAL_TIMEOUT, name: "policy" }
    }

    /// Sets the name of the layer in the `Display` of the backend. Default `policy`.
    #[must_use]
    pub fn with_name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Sets the approver that answers the questions of the hook.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the time limit for an answer of the approver. Default [`Policy::DEFAULT_APPROVAL_TIMEOUT`].
    #[must_use]
    pub fn with_approval_timeout(mut self, timeout: Duration) -> Self {
        self.approval_timeout = timeout;
        self
    }
}

//! Backends under test, and the features that laws need from them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use vfs_core::backend::OperationIdSupport;
use vfs_core::{Backend, VfsPath};

use crate::law_tier::LawTier;

/// One backend with an empty directory in it, and the facts about it that the trait does not show.
#[derive(Clone)]
#[non_exhaustive]
pub struct Target {
    /// The backend. Only the laws use the files at and below `base`.
    pub backend: Arc<dyn Backend>,
    /// An empty directory, where every law works; the root where the whole backend belongs to the law.
    pub base: VfsPath,
    /// Makes links, where the backend can have them.
    pub links: Option<Arc<dyn LinkMaker>>,
    /// A part of the host path below which the files are stored. No message for the model may show it.
    pub host_marker: Option<String>,
    /// Directories that always exist, because something is mounted there.
    pub mounts: Vec<VfsPath>,
    /// The most bytes that a path can have here. Default [`VfsPath::MAX_LEN`].
    pub longest_path: usize,
    guard: Option<Arc<dyn Any + Send + Sync>>,
}

impl Target {
    /// Creates a target of a fresh and empty `backend` that belongs to one law as a whole.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            base: VfsPath::root(),
            links: None,
            host_marker: None,
            mounts: Vec::new(),
            longest_path: VfsPath::MAX_LEN,
            guard: None,
        }
    }

    /// Confines the laws to the directory `base`, which is empty.
    #[must_use]
    pub fn below(mut self, base: VfsPath) -> Self {
        self.base = base;
        self
    }

    /// Lets the laws of links run.
    #[must_use]
    pub fn with_links(mut self, links: Arc<dyn LinkMaker>) -> Self {
        self.links = Some(links);
        self
    }

    /// Names a part of the host path that must not be shown to a model.
    #[must_use]
    pub fn with_host_marker(mut self, marker: impl Into<String>) -> Self {
        self.host_marker = Some(marker.into());
        self
    }

    /// Names directories at which something is mounted; only the [`model`](crate::model) can do with them.
    #[must_use]
    pub fn with_mounts(mut self, mounts: Vec<VfsPath>) -> Self {
        self.mounts = mounts;
        self
    }

    /// Sets the maximum number of bytes of a path, because the backend's own paths are longer.
    #[must_use]
    pub fn with_longest_path(mut self, bytes: usize) -> Self {
        self.longest_path = bytes;
        self
    }

    /// Drops `guard`, such as a temporary directory, together with the target.
    #[must_use]
    pub fn with_guard(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Returns `path`, as laws write it, below the target's own base.
    ///
    /// # Panics
    ///
    /// If it is not a valid path: laws about those parse for themselves.
    pub fn path(&self, path: &str) -> VfsPath {
        self.base.join(path).expect("laws name valid paths")
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("backend", &self.backend)
            .field("base", &self.base)
            .field("links", &self.links.is_some())
            .field("host_marker", &self.host_marker)
            .field("mounts", &self.mounts)
            .field("longest_path", &self.longest_path)
            .field("guard", &self.guard.is_some())
            .finish()
    }
}

/// Makes symbolic links, which no operation of a backend does.
pub trait LinkMaker: Send + Sync {
    /// Puts a link at `at` whose text is `to`.
    ///
    /// # Errors
    ///
    /// The errors of the host.
    fn link(&self, at: &VfsPath, to: &str) -> std::io::Result<()>;

    /// Returns whether a link is at `at`.
    fn is_link(&self, at: &VfsPath) -> bool;
}

/// A feature that a law needs from a target, beside the trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Need {
    /// No feature.
    Nothing,
    /// The backend's root, not only a directory below it.
    OwnRoot,
    /// Directories that can exist without files.
    EmptyDirectories,
    /// Directories that exist only through their files.
    ImpliedDirectories,
    /// Times of files that a write sets.
    SetTimes,
    /// Operation ids that are stored with the change.
    OperationIds,
    /// Times of files that no write sets.
    FixedTimes,
    /// Symbolic links, and a way to make them.
    Links,
    /// A tree for searches.
    TreeProvider,
    /// A change feed.
    Watching,
}

impl Need {
    /// Returns the reason for which `target` lacks the feature, or `None` if it has the feature.
    pub fn missing_in(self, target: &Target) -> Option<&'static str> {
        let capabilities = target.backend.capabilities(&target.base);
        let (is_present, reason) = match self {
            Need::Nothing => (true, ""),
            Need::OwnRoot => (target.base.is_root(), "the laws have only a directory of this backend, not its root"),
            Need::EmptyDirectories => {
                (capabilities.empty_directories, "directories exist only through their files here")
            }
            Need::ImpliedDirectories => (!capabilities.empty_directories, "directories can exist without files here"),
            Need::SetTimes => (capabilities.set_times, "no write sets the time of a file here"),
            Need::OperationIds => (
                capabilities.operation_ids == OperationIdSupport::Stored,
                "operation ids are not stored with the change here",
            ),
            Need::FixedTimes => (!capabilities.set_times, "writes can set the time of a file here"),
            Need::Links => (capabilities.links && target.links.is_some(), "there are no links here"),
            Need::TreeProvider => (target.backend.as_tree_provider().is_some(), "it does not provide a tree"),
            Need::Watching => (target.backend.as_watch().is_some(), "this backend has no change feed"),
        };
        (!is_present).then_some(reason)
    }
}

/// Makes fresh targets of one kind.
#[derive(Clone)]
#[non_exhaustive]
pub struct TargetFactory {
    /// The first part of the names of the trials.
    pub name: &'static str,
    /// The tier, whose laws run by default with those of the tiers before it. Default: [`LawTier::Semantics`], all laws.
    pub tier: LawTier,
    /// Creates a target for one trial.
    pub make: Arc<dyn Fn() -> Target + Send + Sync>,
}

impl TargetFactory {
    /// Calls `make` for each trial.
    pub fn new(name: &'static str, make: impl Fn() -> Target + Send + Sync + 'static) -> Self {
        Self { name, tier: LawTier::Semantics, make: Arc::new(make) }
    }

    /// Runs only the laws of `tier` and the tiers before it, unless the environment requires all.
    #[must_use]
    pub fn tier(mut self, tier: LawTier) -> Self {
        self.tier = tier;
        self
    }
}

impl fmt::Debug for TargetFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetFactory").field("name", &self.name).field("tier", &self.tier).finish_non_exhaustive()
    }
}

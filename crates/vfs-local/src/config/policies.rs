//! Policy enums of a configuration.

/// The files that a path may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Confinement {
    /// Only files below the root: the kernel refuses every way out, links included.
    #[default]
    Root,
    /// Every file that the process may reach: paths are the host's own. This gives no security at all.
    None,
}

/// The failures that an acknowledged write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A power cut: file and directory are synced before the call returns.
    #[default]
    Full,
    /// A crash of the process: either the old file or the new one is complete, but perhaps not yet on the disk. A power
    /// cut soon after may leave a changed file empty.
    Atomic,
}

/// Whether files with more than one hard link may be read.
///
/// A hard link may share its content with a file outside the root. Independent of this setting, a write never changes
/// the content under the other name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HardLinks {
    /// Such files may be read.
    #[default]
    Allow,
    /// Such files are refused.
    Refuse,
}

/// Whether other file systems mounted below the root belong to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MountPolicy {
    /// Other file systems belong to the root.
    #[default]
    Cross,
    /// Other file systems are refused. Needs `openat2`.
    Stay,
}

/// The accesses that a protected path refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtectionLevel {
    /// The path can be read, but not changed.
    ReadOnly,
    /// The path exists, but can be neither read nor changed.
    Hidden,
}

/// How paths are resolved below the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PathResolutionMode {
    /// By the kernel's `openat2` if available, otherwise portably.
    #[default]
    Automatic,
    /// By `cap-std`, one component at a time: slower, and just as confined.
    Portable,
}

/// Whether several holders may share the lock of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileLockMode {
    /// Any number of holders, all of them shared.
    Shared,
    /// One holder.
    Exclusive,
}

//! The choices of a configuration, one enum each.

/// What a path may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Confinement {
    /// Only what lies below the root: the kernel refuses every way out, links included.
    #[default]
    Root,
    /// Everything the process may reach: paths are the host's own. No security at all.
    None,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A power cut: file and directory are synced before the call returns.
    #[default]
    Full,
    /// A crash of the process: the old file or the new one is there whole, but perhaps not yet on the disk. A power cut
    /// soon after may leave a file that was changed empty.
    Atomic,
}

/// Whether files with more than one name may be read.
///
/// A hard link may share its content with a file outside the root. Writing one never changes the other name either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HardLinks {
    /// They may.
    #[default]
    Allow,
    /// They are refused.
    Refuse,
}

/// Whether other file systems mounted below the root belong to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mounts {
    /// They do.
    #[default]
    Cross,
    /// They are refused. Needs `openat2`.
    Stay,
}

/// What becomes of a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// It can be read and not changed.
    ReadOnly,
    /// It is there, and can be neither read nor changed.
    Hidden,
}

/// How paths are resolved below the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// By the kernel's `openat2` where it is there, else portably.
    #[default]
    Automatic,
    /// By `cap-std`, a component at a time: slower, and just as confined.
    Portable,
}

//! Operating-system sandbox: commands in namespaces, under Landlock and a system call filter.
//!
//! [`OsSandbox`] runs untrusted commands on Linux. When it opens, a self-test finds out what the system enforces
//! ([`SandboxReport`]), and a sandbox weaker than its [settings](SandboxConfig) require does not open. [`Workspace`] copies the
//! files of any backend to a directory that such commands can work on, and collects their changes.

mod cgroup;
mod config;
mod file_descriptors;
mod file_version;
mod helper_program;
mod landlock;
mod namespaces;
mod protect;
mod report;
mod sandbox;
mod seccomp;
mod self_test;
mod self_test_cache;
mod workspace;

pub use self::config::{
    HelperLocation, Mount, Network, ProtectedName, ProtectedPath, ProtectionLevel, SandboxConfig, SelfTestPolicy,
    UnixSockets,
};
pub use self::helper_program::sandbox_helper_main;
pub use self::report::guarantee::{Guarantee, Mechanism};
pub use self::report::{EnforcementStatus, GuaranteeResult, SandboxReport};
pub use self::sandbox::OsSandbox;
pub use self::sandbox::backend::OsSandboxBackend;
pub use self::sandbox::sandbox_shell::SandboxShell;
pub use self::workspace::{CollectConflict, CollectResult, Workspace};

/// Former path of all names of this crate.
pub mod os {
    #[doc(no_inline)]
    pub use super::{
        CollectConflict, CollectResult, EnforcementStatus, Guarantee, GuaranteeResult, HelperLocation, Mechanism,
        Mount, Network, OsSandbox, OsSandboxBackend, ProtectedName, ProtectedPath, ProtectionLevel, SandboxConfig,
        SandboxReport, SandboxShell, SelfTestPolicy, UnixSockets, Workspace, sandbox_helper_main,
    };
}

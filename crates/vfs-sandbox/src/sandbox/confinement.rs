//! Confinement that a process applies to itself before it becomes a command.
//!
//! Everything is prepared beforehand: between `fork` and `exec` there are only system calls.

use std::io;
use std::os::fd::OwnedFd;

use landlock::RulesetCreated;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_capabilities_secure_bits, set_no_new_privs, set_thread_groups,
};
use seccompiler::BpfProgram;

use crate::helper_program::termination_signal_handling;

/// Whether a process gives up the privileges of root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PrivilegeHandling {
    /// The process retains them, since bubblewrap needs them and drops them itself.
    #[default]
    Retained,
    /// The process drops them permanently.
    Dropped,
}

/// How the process handles termination signals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TerminationSignalHandling {
    /// By their default action.
    #[default]
    Default,
    /// The process ignores them; the helper restores the default action.
    Ignored,
}

/// The confinement of a process, applied in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Confinement {
    /// The files through which the process, which has one thread, enters its control groups.
    pub(crate) groups: Vec<OwnedFd>,
    pub(crate) termination: TerminationSignalHandling,
    pub(crate) processes: Option<u64>,
    pub(crate) privileges: PrivilegeHandling,
    pub(crate) rules: Option<RulesetCreated>,
    pub(crate) filter: Option<BpfProgram>,
}

impl Confinement {
    pub(crate) fn apply(&self) -> io::Result<()> {
        for group in &self.groups {
            rustix::io::write(group, b"0")?;
        }
        if self.termination == TerminationSignalHandling::Ignored {
            termination_signal_handling::ignore()?;
        }
        if let Some(processes) = self.processes {
            limit_processes(processes)?;
        }
        if self.privileges == PrivilegeHandling::Dropped {
            drop_privileges()?;
        }
        if let Some(rules) = &self.rules {
            let landlock = |_| io::Error::from_raw_os_error(libc::EPERM);
            rules.try_clone()?.restrict_self().map_err(landlock)?;
        }
        if let Some(filter) = &self.filter {
            seccompiler::apply_filter(filter).map_err(|_| io::Error::from_raw_os_error(libc::EPERM))?;
        }
        Ok(())
    }
}

/// Bounds the processes and threads of the user, as far as the kernel enforces the limit.
pub(crate) fn limit_processes(processes: u64) -> io::Result<()> {
    let processes = Some(effective_process_limit(processes));
    Ok(setrlimit(Resource::Nproc, Rlimit { current: processes, maximum: processes })?)
}

/// Returns the effective bound for `processes`: the limit of this process cannot be raised.
pub(crate) fn effective_process_limit(processes: u64) -> u64 {
    getrlimit(Resource::Nproc).maximum.map_or(processes, |existing| existing.min(processes))
}

/// Drops all privileges of root. Since no new privileges can be gained, no program restores them.
fn drop_privileges() -> io::Result<()> {
    set_no_new_privs(true)?;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    if may_change_privileges()? {
        set_thread_groups(&[])?;
        set_capabilities_secure_bits(CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED)?;
        for capability in (0..64).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
            match remove_capability_from_bounding_set(capability) {
                // The kernel has fewer capabilities than the set has bits.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let nothing = CapabilitySet::empty();
    let nothing = CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing };
    Ok(set_capabilities(None, nothing)?)
}

/// Returns whether this process may change its capability sets; root of a container may not.
fn may_change_privileges() -> io::Result<bool> {
    Ok(capabilities(None)?.effective.contains(CapabilitySet::SETPCAP | CapabilitySet::SETGID))
}

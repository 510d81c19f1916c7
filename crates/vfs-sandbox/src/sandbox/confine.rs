//! What a process does to itself before it becomes a command.
//!
//! All of it is made ready beforehand: between `fork` and `exec` there are system calls only.

use std::io;
use std::os::fd::OwnedFd;

use landlock::RulesetCreated;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_capabilities_secure_bits, set_no_new_privs, set_thread_groups,
};
use seccompiler::BpfProgram;

use crate::helper::signals;

/// Whether the process gives up what root may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Privileges {
    /// It keeps it: bubblewrap needs it, and gives it up itself.
    #[default]
    Kept,
    /// It does, for good.
    Dropped,
}

/// Whether the process is ended by being asked to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It is, as every process.
    #[default]
    Heeded,
    /// It is not; the helper takes that back.
    Ignored,
}

/// What is put on, in this order.
#[derive(Debug, Default)]
pub(crate) struct Confine {
    /// Where the process, which has one thread, enters its control groups.
    pub(crate) groups: Vec<OwnedFd>,
    pub(crate) asked: Asked,
    pub(crate) processes: Option<u64>,
    pub(crate) privileges: Privileges,
    pub(crate) rules: Option<RulesetCreated>,
    pub(crate) filter: Option<BpfProgram>,
}

impl Confine {
    pub(crate) fn apply(&self) -> io::Result<()> {
        for group in &self.groups {
            rustix::io::write(group, b"0")?;
        }
        if self.asked == Asked::Ignored {
            signals::ignore()?;
        }
        if let Some(processes) = self.processes {
            limit_processes(processes)?;
        }
        if self.privileges == Privileges::Dropped {
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

/// Bounds the processes and threads of the user, as far as the kernel holds it to that.
pub(crate) fn limit_processes(processes: u64) -> io::Result<()> {
    let processes = Some(possible_processes(processes));
    Ok(setrlimit(Resource::Nproc, Rlimit { current: processes, maximum: processes })?)
}

/// The bound that is put on where `processes` is asked for: none can be above that which this process already has.
pub(crate) fn possible_processes(processes: u64) -> u64 {
    getrlimit(Resource::Nproc).maximum.map_or(processes, |existing| existing.min(processes))
}

/// Nothing that root may do beyond others is left. Since no new privileges may be gained, no program brings it back, not
/// even one that root starts.
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
                // The kernel knows fewer than there could be.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let nothing = CapabilitySet::empty();
    let nothing = CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing };
    Ok(set_capabilities(None, nothing)?)
}

/// Root of a container may lack even that.
fn may_change_privileges() -> io::Result<bool> {
    Ok(capabilities(None)?.effective.contains(CapabilitySet::SETPCAP | CapabilitySet::SETGID))
}

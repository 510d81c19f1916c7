//! Assessment of a self-test: from the observations to the guarantees.

use crate::config::{Network, SandboxConfig, UnixSockets};
use crate::landlock;
use crate::report::guarantee::Guarantee;
use crate::report::{EnforcementStatus, GuaranteeResult, SandboxReport};
use crate::sandbox::confinement::effective_process_limit;
use crate::sandbox::sandbox_setup::{SandboxSetup, SpawnMethod};
use crate::self_test::{SelfTestObservation, SelfTestObservations};

/// Returns the report for a sandbox whose self-test made these observations.
pub(crate) fn report(
    setup: &SandboxSetup,
    observations: &SelfTestObservations,
    no_namespaces: Option<&str>,
) -> SandboxReport {
    let assessment = GuaranteeAssessor { setup, observations, no_namespaces };
    let result = |&guarantee: &Guarantee| GuaranteeResult {
        guarantee,
        enforcement: assessment.enforcement(guarantee),
        required: setup.config.requires(guarantee),
    };
    SandboxReport { results: Guarantee::ALL.iter().map(result).collect() }
}

/// Returns the report for a sandbox that cannot start a command, for this reason.
pub(crate) fn report_unavailable(config: &SandboxConfig, reason: &str) -> SandboxReport {
    let result = |&guarantee: &Guarantee| GuaranteeResult {
        guarantee,
        enforcement: EnforcementStatus::Missing(reason.to_owned()),
        required: config.requires(guarantee),
    };
    SandboxReport { results: Guarantee::ALL.iter().map(result).collect() }
}

/// Inputs of the assessment.
struct GuaranteeAssessor<'a> {
    setup: &'a SandboxSetup,
    observations: &'a SelfTestObservations,
    no_namespaces: Option<&'a str>,
}

impl GuaranteeAssessor<'_> {
    fn enforcement(&self, guarantee: Guarantee) -> EnforcementStatus {
        match guarantee {
            Guarantee::Namespaces => match self.no_namespaces {
                None => EnforcementStatus::Enforced(
                    "bubblewrap: mount, pid, user, ipc, uts, cgroup".to_owned() + self.network_suffix(),
                ),
                Some(why) => EnforcementStatus::Missing(why.to_owned()),
            },
            Guarantee::Seccomp if let Err(why) = &self.setup.filter => EnforcementStatus::Missing(why.clone()),
            Guarantee::Seccomp => self.unless(
                &[SelfTestObservation::Unfiltered],
                "a filter over system calls",
                "the filter does not work",
            ),
            Guarantee::LandlockFiles => {
                self.landlock(1, &[SelfTestObservation::ReadLandlockDecoy, SelfTestObservation::WroteOutside])
            }
            Guarantee::LandlockNetwork if self.setup.config.network == Network::Host => EnforcementStatus::NotRequested,
            Guarantee::LandlockNetwork => self.landlock(4, &[]),
            Guarantee::LandlockScope => self.landlock(6, &[]),
            Guarantee::NoNewPrivileges => self.unless(
                &[SelfTestObservation::MayGainPrivileges],
                "no_new_privs, and no capabilities",
                "programs may gain privileges",
            ),
            Guarantee::ReadOnlySystem
                if !self.is_namespaced() && self.setup.landlock.as_ref().is_ok_and(|version| *version < 3) =>
            {
                EnforcementStatus::Missing(
                    "files of the host can be truncated; preventing that takes namespaces, or Landlock of Linux 6.2"
                        .to_owned(),
                )
            }
            Guarantee::ReadOnlySystem => self.unless(
                &[SelfTestObservation::WroteOutside, SelfTestObservation::WroteSystem],
                self.file_mechanism(),
                "files of the host can be changed",
            ),
            Guarantee::PrivateFiles => {
                self.unless(&[SelfTestObservation::ReadOutside], self.file_mechanism(), "files of the host can be read")
            }
            Guarantee::PrivateTmp => self.unless(
                &[SelfTestObservation::SharedTmp, SelfTestObservation::ReadOutside],
                "a file system in memory for each command",
                "only namespaces provide a private /tmp",
            ),
            Guarantee::NoNetwork => self.network(),
            Guarantee::PrivateProcesses => self.unless(
                &[SelfTestObservation::ReachedProcess],
                self.process_mechanism(),
                "processes outside can be signalled; preventing that takes namespaces, or Landlock of Linux 6.12",
            ),
            Guarantee::HiddenProcesses => self.unless(
                &[SelfTestObservation::SawProcess],
                if self.is_namespaced() { "a private /proc and host name" } else { "Landlock" },
                "processes outside can be seen with their arguments, since this process may not mount a private /proc",
            ),
            Guarantee::ProtectedPaths if self.setup.config.protected.is_empty() => EnforcementStatus::NotRequested,
            Guarantee::ProtectedPaths => self.protected_paths(),
            Guarantee::ProtectedNames if self.setup.config.protected_names.is_empty() => {
                EnforcementStatus::NotRequested
            }
            Guarantee::ProtectedNames => self.protected_names(),
            Guarantee::UnixSockets => self.unix_sockets(),
            Guarantee::HostPaths => EnforcementStatus::Missing(self.host_paths().to_owned()),
            Guarantee::Processes => self.processes(),
            Guarantee::Memory if self.setup.config.memory_bytes.is_none() => EnforcementStatus::NotRequested,
            Guarantee::Memory => from_outcome(self.setup.groups.memory.clone()),
        }
    }

    fn is_namespaced(&self) -> bool {
        matches!(self.setup.method, SpawnMethod::Namespaces(_))
    }

    fn unless(&self, observations: &[SelfTestObservation], how: &str, why: &str) -> EnforcementStatus {
        if observations.iter().any(|observation| self.observations.contains(observation)) {
            return EnforcementStatus::Missing(why.to_owned());
        }
        EnforcementStatus::Enforced(how.to_owned())
    }

    fn network_suffix(&self) -> &'static str {
        if self.setup.config.network == Network::Off { ", network" } else { "" }
    }

    fn file_mechanism(&self) -> &'static str {
        if self.is_namespaced() { "only the mounts are visible" } else { "Landlock" }
    }

    fn process_mechanism(&self) -> &'static str {
        if self.is_namespaced() { "a process namespace" } else { "Landlock" }
    }

    fn landlock(&self, needs: i32, observations: &[SelfTestObservation]) -> EnforcementStatus {
        match &self.setup.landlock {
            Err(why) => EnforcementStatus::Missing(why.clone()),
            Ok(version) if *version < needs => EnforcementStatus::Missing(format!(
                "the kernel has version {version} of the Landlock interface, and {needs} is needed; use a newer kernel"
            )),
            Ok(version) => {
                self.unless(observations, &format!("version {version} of the interface"), "the rules are not enforced")
            }
        }
    }

    fn network(&self) -> EnforcementStatus {
        if self.setup.config.network == Network::Host {
            return EnforcementStatus::NotRequested;
        }
        if self.is_namespaced() {
            return self.unless(&[SelfTestObservation::HasNetwork], "an empty network namespace", "there is a network");
        }
        self.unless(
            &[SelfTestObservation::HasNetwork, SelfTestObservation::CreatedUnixSocket],
            "the filter, which allows no sockets except pairs",
            "sockets can be created",
        )
    }

    fn protected_paths(&self) -> EnforcementStatus {
        let SpawnMethod::Namespaces(namespaces) = &self.setup.method else {
            let why = "only namespaces can protect a part of a writable directory; protect nothing, or allow \
                       namespaces";
            return EnforcementStatus::Missing(why.to_owned());
        };
        from_outcome(namespaces.verifies_binds().map(|()| "mounts over the protected paths".to_owned()))
    }

    fn protected_names(&self) -> EnforcementStatus {
        let SpawnMethod::Namespaces(namespaces) = &self.setup.method else {
            let why = "only namespaces can protect a part of a writable directory; protect no names, or allow \
                       namespaces";
            return EnforcementStatus::Missing(why.to_owned());
        };
        match namespaces.nested() {
            Ok(()) => self.unless(
                &[SelfTestObservation::ReadCoveredDecoy],
                "mounts over entries that exist when a command starts; entries that commands create are reported",
                "the mounts of the helper do not hide the entries below them",
            ),
            Err(why) => EnforcementStatus::Missing(format!("{why}; only the helper can cover entries deep in a tree")),
        }
    }

    fn unix_sockets(&self) -> EnforcementStatus {
        if self.setup.config.unix_sockets == UnixSockets::Allow && self.is_namespaced() {
            return match &self.setup.landlock {
                Ok(version) if *version >= landlock::UNIX_SOCKETS => {
                    EnforcementStatus::Enforced(format!("version {version} of the Landlock interface"))
                }
                _ => EnforcementStatus::Missing(
                    "the settings allow unix sockets: sockets that exist when a command starts are covered, but one that \
                     the host creates below a mount later can be reached; deny them, or use Linux 7.1 with Landlock"
                        .to_owned(),
                ),
            };
        }
        if let Err(why) = &self.setup.filter {
            return EnforcementStatus::Missing(why.clone());
        }
        self.unless(
            &[SelfTestObservation::Unfiltered, SelfTestObservation::CreatedUnixSocket],
            "the filter, which allows no unix sockets except pairs",
            "unix sockets can be created",
        )
    }

    fn host_paths(&self) -> &'static str {
        if self.is_namespaced() {
            "/proc/self/mountinfo has the path of each mount on the host, and Linux cannot hide that; mount directories \
             whose paths are not secret"
        } else {
            "without namespaces, commands see directories at their paths on the host"
        }
    }

    fn processes(&self) -> EnforcementStatus {
        let Some(bound) = self.setup.config.processes.map(effective_process_limit) else {
            return EnforcementStatus::NotRequested;
        };
        match &self.setup.groups.processes {
            Ok(how) => EnforcementStatus::Enforced(how.clone()),
            Err(why) if rustix::process::getuid().is_root() => {
                EnforcementStatus::Missing(format!("{why}; no other bound of the kernel applies to root"))
            }
            Err(_)
                if self.is_namespaced()
                    && self.setup.landlock.is_ok()
                    && !self.observations.contains(&SelfTestObservation::UnboundedProcesses) =>
            {
                EnforcementStatus::Enforced(format!(
                    "at {bound} for each command, by the kernel's limit for a user namespace"
                ))
            }
            Err(_) if !self.is_namespaced() => EnforcementStatus::Enforced(format!(
                "at {bound} with all other processes of the user, by the kernel's limit for a user"
            )),
            Err(why) => EnforcementStatus::Missing(why.clone()),
        }
    }
}

fn from_outcome(outcome: Result<String, String>) -> EnforcementStatus {
    match outcome {
        Ok(how) => EnforcementStatus::Enforced(how),
        Err(why) => EnforcementStatus::Missing(why),
    }
}

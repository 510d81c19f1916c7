//! From what a command could do to what is enforced.

use crate::config::{Network, SandboxConfig, UnixSockets};
use crate::landlock;
use crate::report::guarantee::Belt;
use crate::report::{Finding, Holding, SandboxReport};
use crate::sandbox::confine::possible_processes;
use crate::sandbox::setup::{Setup, Way};
use crate::self_test::{Deed, Deeds};

/// What a sandbox enforces whose command could do `deeds`.
pub(crate) fn report(setup: &Setup, deeds: &Deeds, no_namespaces: Option<&str>) -> SandboxReport {
    let judge = Judge { setup, deeds, no_namespaces };
    let finding = |&belt: &Belt| Finding { belt, holding: judge.holding(belt), required: setup.config.requires(belt) };
    SandboxReport { findings: Belt::ALL.iter().map(finding).collect() }
}

/// What a sandbox enforces that cannot be started, for this reason: nothing.
pub(crate) fn nothing(config: &SandboxConfig, reason: &str) -> SandboxReport {
    let finding =
        |&belt: &Belt| Finding { belt, holding: Holding::Missing(reason.to_owned()), required: config.requires(belt) };
    SandboxReport { findings: Belt::ALL.iter().map(finding).collect() }
}

struct Judge<'a> {
    setup: &'a Setup,
    deeds: &'a Deeds,
    no_namespaces: Option<&'a str>,
}

impl Judge<'_> {
    fn holding(&self, belt: Belt) -> Holding {
        match belt {
            Belt::Namespaces => match self.no_namespaces {
                None => {
                    Holding::Enforced("bubblewrap: mount, pid, user, ipc, uts, cgroup".to_owned() + self.network_word())
                }
                Some(why) => Holding::Missing(why.to_owned()),
            },
            Belt::Seccomp if let Err(why) = &self.setup.filter => Holding::Missing(why.clone()),
            Belt::Seccomp => self.unless(&[Deed::Unfiltered], "a filter over system calls", "the filter does not work"),
            Belt::LandlockFiles => self.landlock(1, &[Deed::TookBait, Deed::WroteOutside]),
            Belt::LandlockNetwork if self.setup.config.network == Network::Host => Holding::NotAsked,
            Belt::LandlockNetwork => self.landlock(4, &[]),
            Belt::LandlockScope => self.landlock(6, &[]),
            Belt::NoNewPrivileges => {
                self.unless(&[Deed::MayGain], "no_new_privs, and no capabilities", "programs may gain privileges")
            }
            Belt::ReadOnlySystem
                if !self.is_namespaced() && self.setup.landlock.as_ref().is_ok_and(|version| *version < 3) =>
            {
                Holding::Missing(
                    "files of the host can be cut; that takes namespaces, or Landlock of Linux 6.2".to_owned(),
                )
            }
            Belt::ReadOnlySystem => self.unless(
                &[Deed::WroteOutside, Deed::WroteSystem],
                self.files_by(),
                "files of the host can be changed",
            ),
            Belt::PrivateFiles => self.unless(&[Deed::ReadOutside], self.files_by(), "files of the host can be read"),
            Belt::PrivateTmp => self.unless(
                &[Deed::SharedTmp, Deed::ReadOutside],
                "a file system in memory for each command",
                "only namespaces give commands a /tmp of their own",
            ),
            Belt::NoNetwork => self.network(),
            Belt::PrivateProcesses => self.unless(
                &[Deed::ReachedProcess],
                self.processes_by(),
                "processes outside can be signalled; that takes namespaces, or Landlock of Linux 6.12",
            ),
            Belt::HiddenProcesses => self.unless(
                &[Deed::SawProcess],
                if self.is_namespaced() { "a /proc and a name of their own" } else { "Landlock" },
                "processes outside can be seen with their arguments, as this process may mount no /proc of their own",
            ),
            Belt::ProtectedPaths if self.setup.config.protected.is_empty() => Holding::NotAsked,
            Belt::ProtectedPaths => self.protected_paths(),
            Belt::ProtectedNames if self.setup.config.protected_names.is_empty() => Holding::NotAsked,
            Belt::ProtectedNames => self.protected_names(),
            Belt::UnixSockets => self.unix_sockets(),
            Belt::HostPaths => Holding::Missing(self.host_paths().to_owned()),
            Belt::Processes => self.processes(),
            Belt::Memory if self.setup.config.memory_bytes.is_none() => Holding::NotAsked,
            Belt::Memory => by_words(self.setup.groups.memory.clone()),
        }
    }

    fn is_namespaced(&self) -> bool {
        matches!(self.setup.way, Way::Namespaces(_))
    }

    fn unless(&self, deeds: &[Deed], how: &str, why: &str) -> Holding {
        if deeds.iter().any(|deed| self.deeds.contains(deed)) {
            return Holding::Missing(why.to_owned());
        }
        Holding::Enforced(how.to_owned())
    }

    fn network_word(&self) -> &'static str {
        if self.setup.config.network == Network::Off { ", network" } else { "" }
    }

    fn files_by(&self) -> &'static str {
        if self.is_namespaced() { "only what is mounted is there" } else { "Landlock" }
    }

    fn processes_by(&self) -> &'static str {
        if self.is_namespaced() { "a process namespace" } else { "Landlock" }
    }

    fn landlock(&self, needs: i32, deeds: &[Deed]) -> Holding {
        match &self.setup.landlock {
            Err(why) => Holding::Missing(why.clone()),
            Ok(version) if *version < needs => Holding::Missing(format!(
                "the kernel has version {version} of Landlock's interface and this takes {needs}; use a newer kernel"
            )),
            Ok(version) => self.unless(deeds, &format!("version {version} of the interface"), "the rules do not hold"),
        }
    }

    fn network(&self) -> Holding {
        if self.setup.config.network == Network::Host {
            return Holding::NotAsked;
        }
        if self.is_namespaced() {
            return self.unless(&[Deed::FoundNetwork], "a network namespace with nothing in it", "there is a network");
        }
        self.unless(
            &[Deed::FoundNetwork, Deed::MadeUnixSocket],
            "the filter, which lets no socket be made but pairs",
            "sockets can be made",
        )
    }

    fn protected_paths(&self) -> Holding {
        let Way::Namespaces(namespaces) = &self.setup.way else {
            let why = "only namespaces can keep a part of a directory that may be changed; protect nothing, or allow \
                       namespaces";
            return Holding::Missing(why.to_owned());
        };
        by_words(namespaces.covers_are_known().map(|()| "mounts over them".to_owned()))
    }

    fn protected_names(&self) -> Holding {
        let Way::Namespaces(namespaces) = &self.setup.way else {
            let why = "only namespaces can keep a part of a directory that may be changed; protect no names, or allow \
                       namespaces";
            return Holding::Missing(why.to_owned());
        };
        match namespaces.nested() {
            Ok(()) => self.unless(
                &[Deed::ReadDecoy],
                "mounts over what has them when a command starts; what commands make is reported",
                "the mounts that the helper makes do not hold",
            ),
            Err(why) => Holding::Missing(format!("{why}; the helper covers what is deep in a tree")),
        }
    }

    fn unix_sockets(&self) -> Holding {
        if self.setup.config.unix_sockets == UnixSockets::Allow && self.is_namespaced() {
            return match &self.setup.landlock {
                Ok(version) if *version >= landlock::UNIX_SOCKETS => {
                    Holding::Enforced(format!("version {version} of Landlock's interface"))
                }
                _ => Holding::Missing(
                    "the settings allow unix sockets: those that are there when a command starts are covered, and one that \
                     the host makes below a mount later can be reached; deny them, or use Linux 7.1 with Landlock"
                        .to_owned(),
                ),
            };
        }
        if let Err(why) = &self.setup.filter {
            return Holding::Missing(why.clone());
        }
        self.unless(
            &[Deed::Unfiltered, Deed::MadeUnixSocket],
            "the filter, which lets no unix sockets be made but pairs",
            "unix sockets can be made",
        )
    }

    fn host_paths(&self) -> &'static str {
        if self.is_namespaced() {
            "/proc/self/mountinfo names where the host has each mount, and Linux cannot hide that; mount directories whose \
             paths are no secret"
        } else {
            "without namespaces, commands see directories where the host has them"
        }
    }

    fn processes(&self) -> Holding {
        let Some(bound) = self.setup.config.processes.map(possible_processes) else { return Holding::NotAsked };
        match &self.setup.groups.processes {
            Ok(how) => Holding::Enforced(how.clone()),
            Err(why) if rustix::process::getuid().is_root() => {
                Holding::Missing(format!("{why}; the kernel holds root to no other bound"))
            }
            Err(_)
                if self.is_namespaced()
                    && self.setup.landlock.is_ok()
                    && !self.deeds.contains(&Deed::UnboundedProcesses) =>
            {
                Holding::Enforced(format!("at {bound} for each command, by the kernel's limit for a user namespace"))
            }
            Err(_) if !self.is_namespaced() => Holding::Enforced(format!(
                "at {bound} with all other processes of the user, by the kernel's limit for a user"
            )),
            Err(why) => Holding::Missing(why.clone()),
        }
    }
}

fn by_words(known: Result<String, String>) -> Holding {
    match known {
        Ok(how) => Holding::Enforced(how),
        Err(why) => Holding::Missing(why),
    }
}

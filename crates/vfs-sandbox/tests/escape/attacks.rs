//! Attacks that a command attempts from inside. Each returns `done`, or the error with which it failed.

mod files;
mod kernel;
mod limits;
mod network;
mod processes;
mod protected;

/// Facts about the world outside that an attacker has.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The working directory of the attacker.
    pub(crate) inside: String,
    /// A directory that the attacker may not access, with a file `secret`.
    pub(crate) outside: String,
    /// A process of the same user.
    pub(crate) victim: i32,
    /// Port of a server on 127.0.0.1, for TCP and UDP.
    pub(crate) port: u16,
    /// Port of a server on ::1.
    pub(crate) port_v6: u16,
    /// Name of an abstract socket.
    pub(crate) name: String,
}

impl Target {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let Self { inside, outside, victim, port, port_v6, name } = self.clone();
        vec![inside, outside, victim.to_string(), port.to_string(), port_v6.to_string(), name]
    }

    pub(crate) fn parse(arguments: &[String]) -> Self {
        let number = |index: usize| arguments[index].parse().expect("a number");
        Self {
            inside: arguments[0].clone(),
            outside: arguments[1].clone(),
            victim: number(2),
            port: u16::try_from(number(3)).expect("a port"),
            port_v6: u16::try_from(number(4)).expect("a port"),
            name: arguments[5].clone(),
        }
    }

    fn secret(&self) -> String {
        format!("{}/secret", self.outside)
    }

    fn planted(&self) -> String {
        format!("{}/planted", self.outside)
    }
}

/// Mechanisms that confine the commands of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Confinement {
    /// All mechanisms.
    All,
    /// Namespaces alone.
    Namespaces,
    /// Landlock alone.
    Landlock,
    /// The filter alone.
    Seccomp,
    /// Landlock and the filter, as on systems that forbid namespaces.
    WithoutNamespaces,
}

impl Confinement {
    pub(crate) const ALL: [Self; 5] =
        [Self::All, Self::Namespaces, Self::Landlock, Self::Seccomp, Self::WithoutNamespaces];
}

/// Errors with which an attack may fail, separated by `|`, under each confinement that has to prevent it.
pub(crate) type ExpectedErrors = &'static [(Confinement, &'static str)];

/// One attempt to get out.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Target) -> String,
    pub(crate) expected: ExpectedErrors,
    /// Additional settings of the sandbox.
    pub(crate) setting: Setting,
}

/// Settings of the sandbox that an attack needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Usual,
    /// Maximum number of processes.
    Processes(u64),
    /// Maximum number of bytes of memory.
    Memory(u64),
    /// Maximum number of bytes of each file, and of `/tmp`.
    Disk(u64),
    /// A terminal.
    Terminal,
    /// Unix sockets.
    UnixSockets,
    /// Unix sockets and the network of the host, to which abstract sockets belong.
    UnixSocketsAndNetwork,
}

pub(crate) fn all() -> Vec<Attack> {
    [files::ATTACKS, protected::ATTACKS, processes::ATTACKS, network::ATTACKS, kernel::ATTACKS, limits::ATTACKS]
        .into_iter()
        .flatten()
        .map(|&(name, run, expected, setting)| Attack { name, run, expected, setting })
        .collect()
}

type Row = (&'static str, fn(&Target) -> String, ExpectedErrors, Setting);

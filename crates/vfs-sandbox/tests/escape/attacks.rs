//! What a command tries from inside. Each attack tells `done`, or by which error it failed.

mod files;
mod kernel;
mod limits;
mod network;
mod processes;
mod protected;

/// What an attacker knows of the world outside.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The directory that it may work in.
    pub(crate) inside: String,
    /// A directory that it may not; it holds `secret`.
    pub(crate) outside: String,
    /// A process of the same user.
    pub(crate) victim: i32,
    /// Where a server listens on 127.0.0.1, by TCP and by UDP.
    pub(crate) port: u16,
    /// Where one listens on ::1.
    pub(crate) port_v6: u16,
    /// The name of an abstract socket.
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
    /// The other settings of its sandbox.
    pub(crate) setting: Setting,
}

/// What an attack needs to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Usual,
    /// At most so many processes.
    Processes(u64),
    /// At most so many bytes of memory.
    Memory(u64),
    /// At most so many bytes of each file, and of `/tmp`.
    Disk(u64),
    /// A terminal.
    Terminal,
    /// Unix sockets of its own.
    UnixSockets,
    /// The same, and the network of the host, which abstract sockets belong to.
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

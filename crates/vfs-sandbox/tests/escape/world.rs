//! Files, servers and a process outside of a sandbox, and the check that attacks did not change them.
#![expect(clippy::disallowed_methods, reason = "the world outside consists of files of the host")]

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::attacks::Target;
use crate::system::call;

/// Key of a segment of memory that processes of the host share.
pub(crate) const SHARED_KEY: i32 = 0x7666_7331;

/// The segment of shared memory, removed with this value.
pub(crate) struct Shared(i64);

impl Shared {
    pub(crate) fn make() -> Self {
        let flags = libc::IPC_CREAT as usize | 0o600;
        Self(call(libc::SYS_shmget, [SHARED_KEY as usize, 1, flags, 0, 0, 0]).expect("shared memory"))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        call(libc::SYS_shmctl, [self.0 as usize, libc::IPC_RMID as usize, 0, 0, 0, 0]).expect("removed");
    }
}

/// The working directory of attacks, a directory beside it, servers and a process.
pub(crate) struct World {
    directory: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    tcp_v6: Option<TcpListener>,
    udp: UdpSocket,
    unix: UnixListener,
    /// A socket in the working directory.
    unix_inside: UnixListener,
    datagrams: UnixDatagram,
    abstract_name: String,
    abstract_socket: UnixListener,
}

const FILES: &[(&str, &str)] = &[
    ("outside/secret", "secret\n"),
    ("inside/.env", "PASSWORD=secret\n"),
    ("inside/.git/config", "[core]\n"),
    ("inside/.git/HEAD", "ref: refs/heads/main\n"),
    ("inside/.git/hooks/post-commit", "#!/bin/sh\n"),
    ("inside/deep/app/.env", "PASSWORD=deep\n"),
    ("inside/deep/repository/.git/config", "[core]\n"),
    ("inside/deep/repository/.git/hooks/post-commit", "#!/bin/sh\n"),
    ("inside/deep/worktree/.git", "gitdir: ../repository/.git\n"),
    ("inside/deep/bare/HEAD", "ref: refs/heads/main\n"),
    ("inside/deep/bare/config", "[core]\n"),
    ("inside/deep/bare/objects/file", ""),
    ("inside/deep/bare/refs/file", ""),
];

impl World {
    pub(crate) fn make() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("vfs-escape-").tempdir()?;
        for (path, content) in FILES {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory"))?;
            fs::write(path, content)?;
        }
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind(tcp.local_addr()?)?;
        let abstract_name = directory.path().file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        let address = SocketAddr::from_abstract_name(&abstract_name)?;
        let world = Self {
            victim: Command::new("sleep").arg("1000").stdout(Stdio::null()).process_group(0).spawn()?,
            tcp,
            // A machine may lack IPv6.
            tcp_v6: TcpListener::bind("[::1]:0").ok(),
            udp,
            unix: UnixListener::bind(directory.path().join("outside/socket"))?,
            unix_inside: UnixListener::bind(directory.path().join("inside/deep/socket"))?,
            datagrams: UnixDatagram::bind(directory.path().join("outside/datagrams"))?,
            abstract_name,
            abstract_socket: UnixListener::bind_addr(&address)?,
            directory,
        };
        world.tcp.set_nonblocking(true)?;
        if let Some(tcp) = &world.tcp_v6 {
            tcp.set_nonblocking(true)?;
        }
        world.udp.set_nonblocking(true)?;
        world.unix.set_nonblocking(true)?;
        world.unix_inside.set_nonblocking(true)?;
        world.datagrams.set_nonblocking(true)?;
        world.abstract_socket.set_nonblocking(true)?;
        Ok(world)
    }

    pub(crate) fn inside(&self) -> PathBuf {
        self.directory.path().join("inside")
    }

    pub(crate) fn target(&self) -> Target {
        let path = |name: &str| self.directory.path().join(name).to_str().expect("UTF-8").to_owned();
        let port = |tcp: &TcpListener| tcp.local_addr().expect("an address").port();
        Target {
            inside: path("inside"),
            outside: path("outside"),
            victim: i32::try_from(self.victim.id()).expect("a process"),
            port: port(&self.tcp),
            port_v6: self.tcp_v6.as_ref().map_or(1, port),
            name: self.abstract_name.clone(),
        }
    }

    /// Returns descriptions of everything that an attack changed.
    pub(crate) fn damage(&mut self) -> Vec<String> {
        let mut damage = Vec::new();
        for (path, content) in FILES {
            let found = fs::read_to_string(self.directory.path().join(path));
            if found.as_deref().ok() != Some(*content) {
                damage.push(format!("{path} is {found:?}"));
            }
        }
        damage.extend(self.unexpected());
        for missing in ["inside/absent", "inside/none"] {
            if fs::symlink_metadata(self.directory.path().join(missing)).is_ok() {
                damage.push(format!("{missing} is there"));
            }
        }
        for planted in ["/usr/bin/planted-by-escape-test", "/planted-by-escape-test"] {
            if Path::new(planted).exists() {
                let removed = fs::remove_file(planted);
                damage.push(format!("{planted} is there ({removed:?})"));
            }
        }
        if let Ok(Some(ended)) = self.victim.try_wait() {
            damage.push(format!("the process outside has ended: {ended}"));
        }
        let heard = [
            ("a connection by TCP", self.tcp.accept().is_ok()),
            ("a connection by TCP over IPv6", self.tcp_v6.as_ref().is_some_and(|tcp| tcp.accept().is_ok())),
            ("a datagram", self.udp.recv(&mut [0; 8]).is_ok()),
            ("a connection to the unix socket", self.unix.accept().is_ok()),
            ("a connection to the unix socket inside", self.unix_inside.accept().is_ok()),
            ("a datagram to the unix socket", self.datagrams.recv(&mut [0; 8]).is_ok()),
            ("a connection to the abstract socket", self.abstract_socket.accept().is_ok()),
        ];
        damage.extend(heard.iter().filter(|(_, heard)| *heard).map(|(what, _)| format!("{what} arrived")));
        damage
    }

    /// Returns descriptions of files that an attack created, and of modes that it changed.
    fn unexpected(&self) -> Vec<String> {
        let names = |directory: &str| -> Vec<String> {
            let entries = fs::read_dir(self.directory.path().join(directory)).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let expected = [
            ("", &["inside", "outside"][..]),
            ("outside", &["secret", "socket", "datagrams"]),
            ("inside/.git", &["config", "HEAD", "hooks"]),
            ("inside/.git/hooks", &["post-commit"]),
            ("inside/deep/repository/.git", &["config", "hooks"]),
            ("inside/deep/repository/.git/hooks", &["post-commit"]),
            ("inside/deep/bare", &["HEAD", "config", "objects", "refs"]),
        ];
        let found = expected.iter().flat_map(|(directory, expected)| {
            let new = names(directory).into_iter().filter(|name| !expected.contains(&name.as_str()));
            new.map(move |name| format!("{directory}/{name} is there"))
        });
        let mut found: Vec<String> = found.collect();
        use std::os::unix::fs::PermissionsExt as _;
        for name in ["outside/secret", "inside/.env", "inside/.git/hooks/post-commit"] {
            let mode =
                fs::metadata(self.directory.path().join(name)).map(|metadata| metadata.permissions().mode() & 0o7777);
            if !matches!(mode, Ok(0o644 | 0o600)) {
                found.push(format!("{name} has the mode {mode:?}"));
            }
        }
        found
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // An attack may have ended the process.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

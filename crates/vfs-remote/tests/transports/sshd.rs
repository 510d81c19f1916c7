//! SSH server of the tests, with its own keys, run as the user of the tests.

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use vfs_remote::{HostKeyPolicy, Ssh, SshConfig};

use crate::{HANG_TIMEOUT, program, silent};

pub(crate) struct Sshd {
    pub(crate) directory: TempDir,
    pub(crate) port: u16,
    server: Child,
}

/// Returns a program that the server needs and that is not installed, if any.
pub(crate) fn missing() -> Option<&'static str> {
    ["sshd", "ssh", "ssh-keygen"].into_iter().find(|name| program(name).is_none())
}

impl Sshd {
    pub(crate) fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        for key in ["host", "user", "stranger", "other-host"] {
            make_key(&directory.path().join(key));
        }
        let at = |name: &str| directory.path().join(name);
        std::fs::copy(at("user.pub"), at("authorized")).expect("a file");
        // A system service would have created this empty directory.
        if !Path::new("/run/sshd").exists() {
            let _ = std::fs::create_dir("/run/sshd");
        }
        let port = vfs_testkit::server_port();
        let server = serve(directory.path(), port, "host");
        let this = Self { directory, port, server };
        this.know_host("host.pub");
        this
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Sets the host key by which clients recognise the server.
    pub(crate) fn know_host(&self, key: &str) {
        let key = std::fs::read_to_string(self.path(key)).expect("a key");
        std::fs::write(self.path("known"), format!("[127.0.0.1]:{} {key}", self.port)).expect("a file");
    }

    pub(crate) fn config(&self) -> SshConfig {
        let known_hosts = self.path("known").display().to_string();
        SshConfig::new("127.0.0.1")
            .port(self.port)
            .identity_file(self.path("user"))
            .config_file("none")
            .host_keys(HostKeyPolicy::Known)
            .connect_timeout(HANG_TIMEOUT)
            .option("UserKnownHostsFile", format!("\"{known_hosts}\""))
            .option("GlobalKnownHostsFile", "none")
    }

    pub(crate) fn place(&self) -> Ssh {
        Ssh::new(self.config()).expect("a transport")
    }

    /// Kills the server and all its sessions.
    pub(crate) fn kill(&mut self) {
        self.cut();
        self.server.kill().expect("a signal");
        self.server.wait().expect("an end");
    }

    /// Kills all sessions, but not the server.
    pub(crate) fn cut(&self) {
        // Kill parents first, as they would close the connection properly if their children exited first.
        for pid in self.processes() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        children(self.server.id()).len()
    }

    /// Returns the server's processes below its first, without those of the sessions' commands.
    fn processes(&self) -> Vec<u32> {
        let mut all = children(self.server.id());
        let second: Vec<u32> = all.iter().flat_map(|pid| children(*pid)).filter(|pid| is_sshd(*pid)).collect();
        all.extend(second);
        all
    }

    /// Starts the server again on the same port.
    pub(crate) fn restart(&mut self) {
        self.server = serve(self.directory.path(), self.port, "host");
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if matches!(self.server.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

fn make_key(path: &Path) {
    let made = silent(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(path));
    assert!(made, "no key could be made");
}

fn serve(directory: &Path, port: u16, key: &str) -> Child {
    let at = |name: &str| directory.join(name).display().to_string();
    let settings = [
        format!("Port {port}"),
        "ListenAddress 127.0.0.1".to_owned(),
        format!("HostKey {}", at(key)),
        format!("AuthorizedKeysFile {}", at("authorized")),
        "PidFile none".to_owned(),
        "StrictModes no".to_owned(),
        "UsePAM no".to_owned(),
        "PasswordAuthentication no".to_owned(),
        "KbdInteractiveAuthentication no".to_owned(),
        "PermitRootLogin prohibit-password".to_owned(),
        format!("Banner {}", at("banner")),
        String::new(),
    ];
    std::fs::write(at("banner"), "Do not enter.\n").expect("a file");
    std::fs::write(at("settings"), settings.join("\n")).expect("a file");
    let log = std::fs::File::create(at("log")).expect("a file");
    let sshd = program("sshd").expect("sshd");
    let mut server = Command::new(sshd)
        .args(["-D", "-e", "-f", &at("settings")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .expect("a server");
    let end = Instant::now() + HANG_TIMEOUT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let is_up = matches!(server.try_wait(), Ok(None)) && Instant::now() < end;
        assert!(is_up, "no server: {}", std::fs::read_to_string(at("log")).unwrap_or_default());
        std::thread::sleep(Duration::from_millis(10));
    }
    server
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

fn is_sshd(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("sshd"))
}

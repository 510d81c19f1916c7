//! An SSH server of this machine, for tests, as the user who runs them.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use vfs_remote::{HostKeyPolicy, Ssh, SshConfig};

use crate::programs::{found, missing_of};

/// Longest that a test waits for the server. Only a test that fails waits as long, however busy the machine is.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// A server with keys of its own on the loopback device. It ends with this process, whatever ends that, and so do its files:
/// a shell waits for the end of its input, which this process holds open.
#[derive(Debug)]
pub struct Sshd {
    directory: PathBuf,
    port: u16,
    _keeper: Child,
}

/// Starts the server, and takes it down again.
const KEEP: &str = r#""$1" -D -e -f "$2/settings" >"$2/log" 2>&1 & cat >/dev/null; kill $!; wait; rm -rf "$2""#;

impl Sshd {
    /// The program that is missing for it, if one is.
    pub fn missing() -> Option<String> {
        missing_of(&["sshd", "ssh", "ssh-keygen"])
    }

    /// The one server of this process.
    pub fn running() -> &'static Self {
        static RUNNING: OnceLock<Sshd> = OnceLock::new();
        RUNNING.get_or_init(Self::start)
    }

    fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("vfs-sshd-").tempdir().expect("a directory can be made").keep();
        for key in ["host", "user"] {
            make_key(&directory.join(key));
        }
        fs::create_dir(directory.join("home")).expect("a directory can be made");
        fs::copy(directory.join("user.pub"), directory.join("authorized")).expect("a file can be copied");
        let port = vfs_testkit::server_port();
        let host = fs::read_to_string(directory.join("host.pub")).expect("a key was made");
        fs::write(directory.join("known"), format!("[127.0.0.1]:{port} {host}")).expect("a file can be written");
        fs::write(directory.join("settings"), settings(&directory, port)).expect("a file can be written");
        // A server of root separates its privileges in a directory that the system's service would make.
        // Others cannot make it, and do not need it.
        drop(fs::create_dir_all("/run/sshd"));
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEP, "keep"])
            .arg(found("sshd").expect("it was looked for"))
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell can be started");
        wait_for(port, &directory);
        Self { directory, port, _keeper: keeper }
    }

    /// A connection to it.
    pub fn connect(&self) -> Ssh {
        let known_hosts = self.directory.join("known").display().to_string();
        let config = SshConfig::new("127.0.0.1")
            .port(self.port)
            .identity_file(self.directory.join("user"))
            .config_file("none")
            .host_keys(HostKeyPolicy::Known)
            .connect_timeout(HANG_TIMEOUT)
            .option("UserKnownHostsFile", format!("\"{known_hosts}\""))
            .option("GlobalKnownHostsFile", "none");
        Ssh::new(config).expect("the settings are valid")
    }
}

fn make_key(path: &Path) {
    let mut command = Command::new(found("ssh-keygen").expect("it was looked for"));
    let made = command.args(["-q", "-t", "ed25519", "-N", "", "-C", "laws", "-f"]).arg(path).status();
    assert!(made.expect("it can be run").success(), "no key could be made");
}

fn settings(directory: &Path, port: u16) -> String {
    let at = |name: &str| directory.join(name).display().to_string();
    [
        format!("Port {port}"),
        "ListenAddress 127.0.0.1".to_owned(),
        format!("HostKey {}", at("host")),
        format!("AuthorizedKeysFile {}", at("authorized")),
        "PidFile none".to_owned(),
        "StrictModes no".to_owned(),
        "UsePAM no".to_owned(),
        "PasswordAuthentication no".to_owned(),
        "KbdInteractiveAuthentication no".to_owned(),
        "PermitRootLogin prohibit-password".to_owned(),
        "MaxStartups 100".to_owned(),
        // What the user's own shell does when it starts is not what is looked at.
        format!("SetEnv HOME={}\n", at("home")),
    ]
    .join("\n")
}

fn wait_for(port: u16, directory: &Path) {
    let start = Instant::now();
    loop {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let mut greeting = [0; 4];
            if stream.read_exact(&mut greeting).is_ok() && &greeting == b"SSH-" {
                return;
            }
        }
        let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
        assert!(start.elapsed() < HANG_TIMEOUT, "the server does not answer: {log}");
        sleep(Duration::from_millis(20));
    }
}

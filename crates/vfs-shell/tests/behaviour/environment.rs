//! Environment of commands, and isolation from the state of this process.

use std::collections::BTreeMap;

use vfs_core::ExecuteRequest;
use vfs_core::shell::TerminalSize;
use vfs_shell::ShellConfig;

use super::Place;

/// Returns the variables that a command sees, except those that shells set by themselves.
async fn variables(place: &Place, request: ExecuteRequest) -> BTreeMap<String, String> {
    let response = place.run(request).await;
    assert_eq!(response.exit_code, Some(0), "{response:?}");
    response
        .stdout
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .map(|(name, value)| (name.to_owned(), value.trim_end().to_owned()))
        .collect()
}

fn of<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

const PATH: (&str, &str) = ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
const LANG: (&str, &str) = ("LANG", "C.UTF-8");

#[tokio::test]
async fn environment_combines_settings_and_request() {
    let place = Place::new();
    assert_eq!(variables(&place, ExecuteRequest::new("env")).await, of([PATH, LANG]));
    let passed = ExecuteRequest::new("env").env("A", "").env("B", "two words $HOME").env("LANG", "C");
    let expected = of([PATH, ("LANG", "C"), ("A", ""), ("B", "two words $HOME")]);
    assert_eq!(variables(&place, passed).await, expected);
    let at_a_terminal = ExecuteRequest::new("env").terminal(TerminalSize::default());
    assert_eq!(variables(&place, at_a_terminal).await, of([PATH, LANG, ("TERM", "xterm-256color")]));
    let set = Place::with(ShellConfig::new().environment(BTreeMap::new()).env("ONLY", "this"));
    assert_eq!(variables(&set, ExecuteRequest::new("/usr/bin/env")).await, of([("ONLY", "this")]));
}

#[tokio::test]
async fn inherited_variables_exclude_secrets() {
    // Cargo sets variables for tests; all are passed on, except those that look like secrets.
    let place = Place::with(ShellConfig::new().secret("cargo_pkg_*"));
    let inherited = variables(&place, ExecuteRequest::new("env").inherit_env().env("A", "1")).await;
    assert_eq!(inherited.get("A").map(String::as_str), Some("1"));
    assert_eq!(inherited.get("PATH"), std::env::var("PATH").ok().as_ref());
    assert_eq!(inherited.get("CARGO_MANIFEST_DIR"), std::env::var("CARGO_MANIFEST_DIR").ok().as_ref());
    assert!(std::env::var("CARGO_PKG_NAME").is_ok());
    assert!(!inherited.keys().any(|name| name.starts_with("CARGO_PKG_")), "{inherited:?}");
    assert!(!variables(&place, ExecuteRequest::new("env")).await.contains_key("CARGO_MANIFEST_DIR"));
}

#[tokio::test]
async fn commands_inherit_no_descriptors_or_signal_state() {
    let place = Place::new();
    // Descriptor that a careless library left open without close-on-exec.
    let leaked = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).expect("opened");
    let response = place.sh("ls -1 /proc/self/fd; grep -E '^Sig(Blk|Ign)|^ShdPnd' /proc/self/status; cut -d' ' -f6 /proc/self/stat; echo $$").await;
    drop(leaked);
    let lines: Vec<&str> = response.output.lines().collect();
    // The fourth descriptor is the directory that `ls` reads.
    assert_eq!(lines[..4], ["0", "1", "2", "3"], "{lines:?}");
    let mask = |name: &str| {
        let mask = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        u64::from_str_radix(mask.expect("the field exists"), 16).expect("a mask")
    };
    // The C library reserves signals 32 and 33: a process that it spawns may ignore them, and no process may change that.
    let own = 0b11 << 31;
    assert_eq!((mask("SigBlk"), mask("SigIgn") & !own), (0, 0), "this process ignores SIGPIPE: {lines:?}");
    assert_eq!(lines[lines.len() - 2], lines[lines.len() - 1], "a session of its own: {lines:?}");
}

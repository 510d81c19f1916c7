//! Errors of a command that needs a feature which the build lacks.

#![cfg(not(feature = "full"))]

use std::fs;
use std::path::Path;
use std::process::Command;

const INSTALL_HINT: &str = "; install vfs with 'cargo install --locked vfs-cli --features full', or use a released binary from \
                            https://github.com/agent-vfs/agent-vfs/releases";

/// Runs the command, which has to fail with one line that names `feature` and the way to install it.
fn assert_missing(feature: &str, arguments: &[&str], directory: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    let output = command.current_dir(directory).args(arguments).output().expect("the command runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    assert!(message.contains(&format!("'{feature}'")), "{arguments:?}: {message}");
    assert!(message.trim_end().ends_with(INSTALL_HINT), "{arguments:?}: {message}");
}

#[test]
fn a_missing_feature_is_named_with_the_way_to_get_it() {
    let directory = tempfile::tempdir().expect("a directory");
    for (feature, is_missing, arguments) in [
        ("sandbox", cfg!(not(feature = "sandbox")), &["exec", "--sandbox", "--", "true"][..]),
        ("sandbox", cfg!(not(feature = "sandbox")), &["sandbox", "check"]),
        ("virtual-shell", cfg!(not(feature = "virtual-shell")), &["exec", "--virtual", "true"]),
        ("sqlite", cfg!(not(feature = "sqlite")), &["store", "copy", "--json", "memory:", "sqlite:/nowhere/a.db"]),
        ("sqlite", cfg!(not(feature = "sqlite")), &["store", "check", "sqlite:missing.db"]),
        ("sqlite", cfg!(not(feature = "sqlite")), &["store", "backup", "sqlite:missing.db", "copy.db"]),
        ("sqlite", cfg!(not(feature = "sqlite")), &["--store", "sqlite:missing.db", "ls", "/"]),
        ("postgres", cfg!(not(feature = "postgres")), &["store", "stats", "postgres://me@127.0.0.1:1/files"]),
        ("redis", cfg!(not(feature = "redis")), &["store", "stats", "redis://127.0.0.1:1/0"]),
        ("object-store", cfg!(not(feature = "object-store")), &["store", "stats", "s3://bucket?region=eu-1"]),
        ("gcp", cfg!(not(feature = "gcp")), &["store", "stats", "gs://b"]),
        ("azure", cfg!(not(feature = "azure")), &["store", "stats", "az://c"]),
    ] {
        if is_missing {
            assert_missing(feature, arguments, directory.path());
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the configuration is written from outside of the command")]
fn a_missing_store_of_a_configuration_is_named_alike() {
    if cfg!(feature = "gcp") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("vfs.toml"), "[default]\ntype = 'store'\nurl = 'gs://b'\n").expect("a file");
    assert_missing("gcp", &["--config", "vfs.toml", "ls", "/"], directory.path());
}

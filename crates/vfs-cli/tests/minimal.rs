//! Errors of a command that needs a feature which the build lacks.

#![cfg(not(feature = "full"))]

use std::process::{Command, Output};

fn vfs(arguments: &[&str]) -> Output {
    let root = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.arg("--root").arg(root.path()).args(arguments).output().expect("the command runs")
}

#[test]
fn a_missing_feature_is_named_with_the_way_to_get_it() {
    for (feature, is_missing, arguments) in [
        ("sandbox", cfg!(not(feature = "sandbox")), &["exec", "--sandbox", "--", "true"][..]),
        ("sandbox", cfg!(not(feature = "sandbox")), &["sandbox", "check"]),
        ("virtual-shell", cfg!(not(feature = "virtual-shell")), &["exec", "--virtual", "true"]),
        ("sqlite", cfg!(not(feature = "sqlite")), &["store", "copy", "--json", "memory:", "sqlite:/nowhere/a.db"]),
        ("postgres", cfg!(not(feature = "postgres")), &["store", "stats", "postgres://me@127.0.0.1:1/files"]),
        ("redis", cfg!(not(feature = "redis")), &["store", "stats", "redis://127.0.0.1:1/0"]),
        ("object-store", cfg!(not(feature = "object-store")), &["store", "stats", "s3://bucket?region=eu-1"]),
    ] {
        if !is_missing {
            continue;
        }
        let output = vfs(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        assert!(message.contains(&format!("{feature}'")), "{arguments:?}: {message}");
    }
}

//! Tests that run in namespaces of their own, where this machine lets an ordinary user make them.

use std::process::Command;

/// Tells a test that it runs there.
const INSIDE: &str = "VFS_TEST_INSIDE_NAMESPACES";

fn prepared(preparation: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{preparation} && exec \"$@\"");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
    command
}

/// Runs `test`, the test of this name, in new namespaces of users and mounts after the shell's commands `preparation`.
pub(crate) fn run_after(preparation: &str, name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    if !prepared(preparation).arg("true").status().is_ok_and(|status| status.success()) {
        println!("left out: it needs unshare(1), namespaces of users, and `{preparation}` in them");
        return;
    }
    let program = std::env::current_exe().expect("the test runs");
    let mut again = prepared(preparation);
    again.arg(program).args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let output = again.output().expect("it runs again");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&output.stderr));
}

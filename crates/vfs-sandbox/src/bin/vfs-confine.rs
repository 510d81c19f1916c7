//! Puts Landlock on inside a sandbox, just before a command starts there. It is run by `vfs-sandbox`, not by people.

use std::io::Write as _;

fn main() -> std::process::ExitCode {
    vfs_sandbox::become_confine_if_asked();
    // There is nobody to tell where this cannot be written.
    let _ = writeln!(
        std::io::stderr(),
        "vfs-confine is started by sandboxes of agent-vfs; there is nothing to run by hand"
    );
    std::process::ExitCode::from(2)
}

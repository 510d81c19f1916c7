//! Helper program that applies Landlock inside a sandbox, just before a command starts.
//!
//! Only `vfs-sandbox` starts it.

use std::io::Write as _;

fn main() -> std::process::ExitCode {
    vfs_sandbox::sandbox_helper_main();
    // A failure to write the message cannot be reported either.
    let _ = writeln!(std::io::stderr(), "vfs-confine is started by sandboxes of agent-vfs and cannot be used by hand");
    std::process::ExitCode::from(2)
}

//! Command `vfs sandbox check`: reports what the sandbox enforces.

use std::io::Write;
use std::path::Path;

use vfs_sandbox::OsSandbox;

use crate::args::SandboxArgs;
use crate::exit::{Exit, Failure};
use crate::shell_selection;
use crate::standard_output::StandardOutput;

pub(super) async fn check(
    out: &mut StandardOutput,
    root: Option<&Path>,
    args: SandboxArgs,
    json: bool,
) -> Result<Exit, Failure> {
    shell_selection::check_root(root)?;
    let config = shell_selection::sandbox_config(root, args)?;
    let report = OsSandbox::check(config).await?;
    if json {
        out.json(&report)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(if report.missing().next().is_none() { Exit::Success } else { Exit::Refused })
}

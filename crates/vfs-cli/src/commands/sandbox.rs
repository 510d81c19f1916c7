//! `vfs sandbox check`.

use std::io::Write;
use std::path::Path;

use vfs_sandbox::OsSandbox;

use crate::args::SandboxArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session;

pub(super) async fn check(
    out: &mut Output,
    root: Option<&Path>,
    args: SandboxArgs,
    json: bool,
) -> Result<Exit, Failure> {
    session::check_root(root)?;
    let config = session::sandbox_config(root, args)?;
    let report = OsSandbox::check(config).await?;
    if json {
        out.json(&report)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(if report.missing().next().is_none() { Exit::Success } else { Exit::Refused })
}

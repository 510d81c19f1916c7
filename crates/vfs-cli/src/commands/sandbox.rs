//! Command `vfs sandbox check`: reports what the sandbox enforces.

use std::path::Path;

use crate::args::SandboxArgs;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;
use crate::{sandbox, shell_selection};

pub(super) async fn check(
    out: &mut StandardOutput,
    root: Option<&Path>,
    args: SandboxArgs,
    json: bool,
) -> Result<Exit, Failure> {
    shell_selection::check_root(root)?;
    sandbox::check(out, root, args, json).await
}

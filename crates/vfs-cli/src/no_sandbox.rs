//! The error of `vfs exec --sandbox` in a build without the feature `sandbox`.

use std::path::Path;
use std::sync::Arc;

use vfs_core::{Backend, VfsPath};

use crate::args::SandboxArgs;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

const MISSING: Failure = Failure::MissingFeature("sandbox");

pub(crate) fn run_if_helper() {}

pub(crate) fn below_workspace(_path: &VfsPath) -> Option<&str> {
    None
}

pub(crate) fn path_of_root(_root: Option<&Path>, _args: SandboxArgs) -> Result<VfsPath, Failure> {
    Err(MISSING)
}

pub(crate) async fn check(
    _out: &mut StandardOutput,
    _root: Option<&Path>,
    _args: SandboxArgs,
    _json: bool,
) -> Result<Exit, Failure> {
    Err(MISSING)
}

pub(crate) async fn open(_root: Option<&Path>, _args: SandboxArgs) -> Result<Arc<dyn Backend>, Failure> {
    Err(MISSING)
}

//! ripgrep: a process for every search, as `vfs` is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::run::{checked, first_line, say};
use crate::timing::{Answer, Sample};

const VERSION: &str = "15.2.0";

/// The `rg` that is named, or one installed into the cache.
pub(super) fn prepare(named: Option<&Path>, cache: &Path) -> Result<PathBuf> {
    let home = cache.join("rg");
    let program = named.map_or_else(|| home.join("bin/rg"), Path::to_owned);
    if named.is_none() && !program.is_file() {
        say(format_args!("installing ripgrep {VERSION}"));
        let crate_version = format!("ripgrep@{VERSION}");
        checked(Command::new("cargo").args(["install", "--quiet", "--locked", &crate_version, "--root"]).arg(&home))?;
    }
    let version = version(&program)?;
    ensure!(version.starts_with("ripgrep 15.2."), "{} is {version}, not {VERSION}", program.display());
    Ok(program)
}

/// What it says of its version.
pub(super) fn version(program: &Path) -> Result<String> {
    checked(Command::new(program).arg("--version")).map(|text| text.lines().next().unwrap_or_default().to_owned())
}

/// Runs a program in `root` with its output to a file, from start to end; the answer is the lines of the output.
///
/// Exit code 1 is a search that found nothing.
pub(crate) fn spawned(program: &Path, root: &Path, arguments: &[String], output: &Path) -> Result<Sample> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root).stdin(Stdio::null()).stderr(Stdio::null());
    command.stdout(File::create(output)?);
    let start = Instant::now();
    let status = command.status()?;
    let wall = start.elapsed().as_secs_f64();
    ensure!(matches!(status.code(), Some(0 | 1)), "{} failed ({status})", program.display());
    let lines = std::fs::read(output)?.iter().filter(|&&byte| byte == b'\n').count();
    Ok(Sample { wall, answer: Answer::complete(lines), ..Sample::default() })
}

/// The arguments of a search for a literal. Without a path, `rg` would read its standard input.
pub(crate) fn grep_arguments(literal: &str) -> Vec<String> {
    let flags = ["--no-config", "-n", "--with-filename", "--no-heading", "-F", "--", literal, "./"];
    flags.map(str::to_owned).to_vec()
}

/// The arguments that list the files which match a glob.
pub(crate) fn glob_arguments(pattern: &str) -> Vec<String> {
    ["--no-config", "--files", "-g", pattern, "./"].map(str::to_owned).to_vec()
}

/// The version of a tool that the report names, where there is one.
pub(crate) fn tool(name: &str) -> Option<String> {
    first_line(Command::new(name).arg("--version"))
}

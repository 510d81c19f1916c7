//! deepagents, in a Python environment of its own.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::partner::Partner;
use crate::run::{checked, say};

const REQUIREMENT: &str = "deepagents>=0.7,<0.8";
const PROGRAM: &str = include_str!("rival.py");

/// How it is started: each process may have to be a fresh one.
#[derive(Debug, Clone)]
pub(crate) struct Deepagents {
    python: PathBuf,
    program: PathBuf,
    path: OsString,
}

impl Deepagents {
    /// The environment that is named, or one made in the cache. It searches with `rg`.
    pub(super) fn prepare(named: Option<&Path>, cache: &Path, rg: &Path) -> Result<Self> {
        let environment = named.map_or_else(|| cache.join("python"), Path::to_owned);
        let python = environment.join("bin/python");
        if named.is_none() && !environment.join("ready").exists() {
            say(format_args!("installing {REQUIREMENT}"));
            checked(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
            checked(Command::new(&python).args(["-m", "pip", "install", "--quiet", REQUIREMENT]))?;
            fs::write(environment.join("ready"), "")?;
        }
        let program = cache.join("rival.py");
        fs::write(&program, PROGRAM)?;
        let rg = fs::canonicalize(rg)?;
        let first = rg.parent().context("a program lies in a directory")?.to_owned();
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([first].into_iter().chain(env::split_paths(&others)))?;
        Ok(Self { python, program, path })
    }

    /// A fresh process.
    pub(crate) fn start(&self) -> Result<Partner> {
        Partner::start(Command::new(&self.python).arg(&self.program).env("PATH", &self.path)).context("deepagents")
    }
}

//! Eino's backends, built into a Go program of our own.
//!
//! Only the files that the backend in memory needs are taken, into the cache: the whole module needs some thirty others,
//! of which the backend uses one, doublestar. Of the backend for the disk only the glob is taken, word for word: the rest
//! needs a renderer of PDF files, and a Go that is newer than Debian's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::partner::Partner;
use crate::run::{checked, first_line, say};

const MODULE: &str = "github.com/cloudwego/eino";
const VERSION: &str = "v0.9.13";
const DISK_MODULE: &str = "github.com/cloudwego/eino-ext/adk/backend/local";
const DISK_VERSION: &str = "v0.2.6";
const DOUBLESTAR: &str = "github.com/bmatcuk/doublestar/v4";
const DOUBLESTAR_VERSION: &str = "v4.10.0";
const PROGRAM: &str = include_str!("rival.go");

/// What stands around the glob of the backend for the disk.
const DISK_PROGRAM: &str = r#"package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/cloudwego/eino/adk/filesystem"
)

const defaultRootPath = "/"

type Local struct{}

func init() {
	disk = &Local{}
}

"#;

/// What the backend needs of its module.
const NEEDED: &[&str] = &[
    "adk/filesystem/backend.go",
    "adk/filesystem/backend_inmemory.go",
    "schema/stream.go",
    "schema/select.go",
    "internal/safe/panic.go",
];

/// The program, and what it is made of.
#[derive(Debug)]
pub(crate) struct Eino {
    program: PathBuf,
    made_of: String,
    disk: Result<(), String>,
}

/// Checkouts that are there already.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Checkouts {
    /// A checkout of eino [default: what Go fetches]
    #[arg(long, value_name = "DIR")]
    eino: Option<PathBuf>,
    /// A checkout of eino-ext, with the backend for the disk [default: what Go fetches]
    #[arg(long, value_name = "DIR")]
    eino_ext: Option<PathBuf>,
    /// A checkout of doublestar, which eino needs [default: what Go fetches]
    #[arg(long, value_name = "DIR")]
    doublestar: Option<PathBuf>,
}

impl Eino {
    /// Builds the program from the checkouts that are named, or from what Go fetches.
    pub(super) fn prepare(named: &Checkouts, cache: &Path) -> Result<Self> {
        let source = named.eino.clone().map_or_else(|| downloaded(MODULE, VERSION, cache), Ok)?;
        let project = cache.join("eino");
        if project.exists() {
            fs::remove_dir_all(&project)?;
        }
        say(format_args!("building the Go program around {}", source.display()));
        for file in NEEDED {
            let target = project.join("eino").join(file);
            fs::create_dir_all(target.parent().context("a file lies in a directory")?)?;
            fs::copy(source.join(file), target).with_context(|| format!("{file} in {}", source.display()))?;
        }
        let require = format!("require {DOUBLESTAR} {DOUBLESTAR_VERSION}\n");
        fs::write(project.join("eino/go.mod"), format!("module {MODULE}\n\ngo 1.18\n\n{require}"))?;
        let mut module = format!("module compare\n\ngo 1.18\n\nrequire {MODULE} {VERSION}\n{require}");
        module += &format!("\nreplace {MODULE} => ./eino\n");
        if let Some(directory) = &named.doublestar {
            module += &format!("replace {DOUBLESTAR} => {}\n", fs::canonicalize(directory)?.display());
        }
        fs::write(project.join("go.mod"), module)?;
        fs::write(project.join("main.go"), PROGRAM)?;
        let disk = disk_program(named.eino_ext.as_deref(), cache)
            .and_then(|program| Ok(fs::write(project.join("disk.go"), program)?))
            .map_err(|error| format!("eino's backend for the disk: {error:#}"));
        checked(Command::new("go").args(["build", "-mod=mod", "-o", "rival", "."]).current_dir(&project))?;
        let made_of = [
            ("eino", &named.eino, VERSION),
            ("eino-ext", &named.eino_ext, DISK_VERSION),
            ("doublestar", &named.doublestar, DOUBLESTAR_VERSION),
        ]
        .map(|(name, checkout, fetched)| format!("{name} {}", version(checkout.as_deref(), fetched)));
        Ok(Self { program: fs::canonicalize(project.join("rival"))?, made_of: made_of.join(", "), disk })
    }

    /// Whether the glob on disk is built in, or why it is not.
    pub(super) fn disk(&self) -> Result<(), String> {
        self.disk.clone()
    }

    /// The running program.
    pub(super) fn start(&self) -> Result<Partner> {
        Partner::start(&mut Command::new(&self.program)).context("eino")
    }

    /// The versions of what the program was built from.
    pub(super) fn made_of(&self) -> &str {
        &self.made_of
    }
}

/// The glob of the backend for the disk, as a file of the program.
fn disk_program(named: Option<&Path>, cache: &Path) -> Result<String> {
    let source = match named {
        Some(checkout) => checkout.join("adk/backend/local"),
        None => downloaded(DISK_MODULE, DISK_VERSION, cache)?,
    };
    let text = fs::read_to_string(source.join("local.go"))?;
    let glob = function(&text, "func (s *Local) GlobInfo(").context("local.go has no GlobInfo any more")?;
    Ok(format!("{DISK_PROGRAM}{glob}"))
}

/// A function of a Go file: `gofmt` ends it with the next brace at the start of a line.
fn function<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let end = "\n}\n";
    let from = text.find(start)?;
    let length = text[from..].find(end)?;
    Some(&text[from..from + length + end.len()])
}

/// Where Go has put a module.
fn downloaded(module: &str, version: &str, cache: &Path) -> Result<PathBuf> {
    /// What Go says of the module, whether it could fetch it or not.
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Download {
        dir: Option<PathBuf>,
        error: Option<String>,
    }
    let wanted = format!("{module}@{version}");
    let output = Command::new("go").args(["mod", "download", "-json", &wanted]).current_dir(cache).output()?;
    let Download { dir, error } = serde_json::from_slice(&output.stdout).context("go mod download")?;
    dir.with_context(|| format!("no checkout is named, and Go fetches none: {}", error.unwrap_or_default()))
}

/// What a checkout calls its version, or the one that was fetched.
fn version(checkout: Option<&Path>, fetched: &str) -> String {
    let Some(directory) = checkout else { return fetched.to_owned() };
    // A tag with a path is that of some other module in the same checkout.
    let describe = ["describe", "--tags", "--always", "--exclude", "*/*"];
    first_line(Command::new("git").args(describe).current_dir(directory))
        .unwrap_or_else(|| "of an unknown version".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_goes_to_its_last_brace() {
        let text = "package a\n\nfunc one() {\n\tif x {\n\t}\n}\n\nfunc two() {\n}\n";
        assert_eq!(function(text, "func one("), Some("func one() {\n\tif x {\n\t}\n}\n"));
        assert_eq!(function(text, "func three("), None);
    }
}

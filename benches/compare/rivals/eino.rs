//! Eino's in-memory backend, built into a Go program of our own.
//!
//! Only the files that the backend needs are taken, into the cache: the whole module needs some thirty others, of which
//! the backend uses one, doublestar.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::partner::Partner;
use crate::run::{checked, first_line, say};

const MODULE: &str = "github.com/cloudwego/eino";
const VERSION: &str = "v0.9.13";
const DOUBLESTAR: &str = "github.com/bmatcuk/doublestar/v4";
const DOUBLESTAR_VERSION: &str = "v4.10.0";
const PROGRAM: &str = include_str!("rival.go");

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
}

impl Eino {
    /// Builds the program from the checkouts that are named, or from what Go fetches.
    pub(super) fn prepare(named: Option<&Path>, doublestar: Option<&Path>, cache: &Path) -> Result<Self> {
        let source = named.map_or_else(|| downloaded(cache), |directory| Ok(directory.to_owned()))?;
        let project = cache.join("eino");
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
        if let Some(directory) = doublestar {
            let directory = fs::canonicalize(directory)?;
            module += &format!("replace {DOUBLESTAR} => {}\n", directory.display());
        }
        fs::write(project.join("go.mod"), module)?;
        fs::write(project.join("main.go"), PROGRAM)?;
        checked(Command::new("go").args(["build", "-mod=mod", "-o", "rival", "."]).current_dir(&project))?;
        let program = fs::canonicalize(project.join("rival"))?;
        let eino = named.map_or_else(|| VERSION.to_owned(), checkout);
        let doublestar = doublestar.map_or_else(|| DOUBLESTAR_VERSION.to_owned(), checkout);
        Ok(Self { program, made_of: format!("eino {eino} with doublestar {doublestar}") })
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

/// Where Go has put the module.
fn downloaded(cache: &Path) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Download {
        #[serde(rename = "Dir")]
        directory: PathBuf,
    }
    let wanted = format!("{MODULE}@{VERSION}");
    let answer = checked(Command::new("go").args(["mod", "download", "-json", &wanted]).current_dir(cache))
        .with_context(|| format!("Go cannot fetch {wanted}; name a checkout with --eino"))?;
    let download: Download = serde_json::from_str(&answer)?;
    ensure!(download.directory.is_dir(), "Go says that {wanted} is in {}", download.directory.display());
    Ok(download.directory)
}

fn checkout(directory: &Path) -> String {
    first_line(Command::new("git").args(["describe", "--tags", "--always"]).current_dir(directory))
        .unwrap_or_else(|| "of an unknown version".into())
}

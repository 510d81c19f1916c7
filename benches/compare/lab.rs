//! What rows need: corpora, rivals, a runtime, our command. Each is prepared when it is first needed.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use tokio::runtime::Runtime;
use vfs_core::VfsPath;
use vfs_memory::MemoryBackend;

use crate::corpora;
use crate::rivals::Rivals;
use crate::run::{checked, say};

/// A corpus, or why it cannot be had.
type Prepared<T> = OnceCell<Result<T, String>>;

/// The place where rows are measured.
#[derive(Debug)]
pub(crate) struct Lab {
    /// Who we race.
    pub(crate) rivals: Rivals,
    /// What our calls run on, in this process.
    pub(crate) runtime: Rc<Runtime>,
    cache: PathBuf,
    named_linux: Option<PathBuf>,
    named_vfs: Option<PathBuf>,
    linux: Prepared<PathBuf>,
    sources: Prepared<PathBuf>,
    modules: Prepared<PathBuf>,
    lines: Prepared<PathBuf>,
    memory: Prepared<MemoryBackend>,
    vfs: Prepared<PathBuf>,
}

impl Lab {
    /// A lab that keeps its things in `cache`.
    pub(crate) fn new(cache: &Path, rivals: Rivals, linux: Option<PathBuf>, vfs: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            rivals,
            runtime: Rc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?),
            cache: cache.to_owned(),
            named_linux: linux,
            named_vfs: vfs,
            linux: OnceCell::new(),
            sources: OnceCell::new(),
            modules: OnceCell::new(),
            lines: OnceCell::new(),
            memory: OnceCell::new(),
            vfs: OnceCell::new(),
        })
    }

    /// Corpus L.
    pub(crate) fn linux(&self) -> Result<PathBuf> {
        prepared(&self.linux, || match &self.named_linux {
            Some(named) => {
                ensure!(named.join("Makefile").is_file(), "{} does not hold a kernel", named.display());
                Ok(fs::canonicalize(named)?)
            }
            None => corpora::linux(&self.cache),
        })
    }

    /// Corpus S on disk.
    pub(crate) fn sources(&self) -> Result<PathBuf> {
        prepared(&self.sources, || corpora::sources(&self.cache))
    }

    /// Corpus P.
    pub(crate) fn modules(&self) -> Result<PathBuf> {
        prepared(&self.modules, || corpora::modules(&self.cache))
    }

    /// Corpus B.
    pub(crate) fn lines(&self) -> Result<PathBuf> {
        prepared(&self.lines, || corpora::lines(&self.cache))
    }

    /// Corpus S in memory.
    pub(crate) fn memory(&self) -> Result<MemoryBackend> {
        prepared(&self.memory, || {
            let root = self.sources()?;
            let mut files = Vec::new();
            load(&root, &VfsPath::root(), &mut files)?;
            Ok(MemoryBackend::from_files(files)?)
        })
    }

    /// Our command, as it is released.
    pub(crate) fn vfs(&self) -> Result<PathBuf> {
        prepared(&self.vfs, || match &self.named_vfs {
            Some(named) => Ok(fs::canonicalize(named)?),
            None => built(),
        })
    }

    /// An empty directory of this name.
    pub(crate) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let directory = self.cache.join("scratch").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}

fn prepared<T: Clone>(cell: &Prepared<T>, prepare: impl FnOnce() -> Result<T>) -> Result<T> {
    cell.get_or_init(|| prepare().map_err(|error| format!("{error:#}"))).clone().map_err(|reason| anyhow!(reason))
}

fn load(host: &Path, path: &VfsPath, files: &mut Vec<(VfsPath, Bytes)>) -> Result<()> {
    for entry in fs::read_dir(host)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = path.join(name.to_str().context("the corpus has plain names")?)?;
        if entry.file_type()?.is_dir() {
            load(&entry.path(), &path, files)?;
        } else {
            files.push((path, fs::read(entry.path())?.into()));
        }
    }
    Ok(())
}

/// Where builds of this workspace go: this program lies two levels below.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.ancestors().nth(2).context("a program that cargo built lies in its target directory")?.to_owned())
}

fn built() -> Result<PathBuf> {
    say(format_args!("building vfs"));
    let target = target_directory()?;
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--quiet", "--profile", "dist", "-p", "vfs-cli", "--features", "full", "--target-dir"])
        .arg(&target);
    checked(cargo.current_dir(env!("CARGO_MANIFEST_DIR")))?;
    Ok(target.join("dist/vfs"))
}

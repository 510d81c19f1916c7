//! Who we race. A rival that cannot be prepared is not run, with the reason; nothing else stops for it.

mod deepagents;
mod eino;
mod partner;
mod ripgrep;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use anyhow::Result;
use eino::{Checkouts, Eino};

pub(crate) use deepagents::Deepagents;
pub(crate) use partner::Partner;
pub(crate) use ripgrep::{glob_arguments, grep_arguments, spawned, tool};

/// Where rivals are, for those that need not be fetched.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Named {
    /// The `rg` to race [default: ripgrep 15.2.0, installed into the cache]
    #[arg(long, value_name = "PATH")]
    rg: Option<PathBuf>,
    /// A Python environment with deepagents 0.7 [default: one made in the cache]
    #[arg(long, value_name = "DIR")]
    python_venv: Option<PathBuf>,
    #[command(flatten)]
    eino: Checkouts,
}

/// The rivals, each prepared when it is first needed. The error is why one is not run.
#[derive(Debug)]
pub(crate) struct Rivals {
    named: Named,
    cache: PathBuf,
    rg: OnceCell<Result<PathBuf, String>>,
    deepagents: OnceCell<Result<Deepagents, String>>,
    deepagents_process: OnceCell<Result<Partner, String>>,
    eino: OnceCell<Result<(Eino, Partner), String>>,
}

impl Rivals {
    /// The rivals, none of them prepared.
    pub(crate) fn new(named: Named, cache: &Path) -> Self {
        Self {
            named,
            cache: cache.to_owned(),
            rg: OnceCell::new(),
            deepagents: OnceCell::new(),
            deepagents_process: OnceCell::new(),
            eino: OnceCell::new(),
        }
    }

    /// ripgrep's program.
    pub(crate) fn rg(&self) -> Result<&Path, String> {
        let rg = self.rg.get_or_init(|| {
            ripgrep::prepare(self.named.rg.as_deref(), &self.cache).map_err(|error| format!("ripgrep: {error:#}"))
        });
        rg.as_deref().map_err(Clone::clone)
    }

    /// deepagents, for a process of one's own.
    pub(crate) fn deepagents(&self) -> Result<&Deepagents, String> {
        let prepared = self.deepagents.get_or_init(|| {
            let rg = self.rg()?;
            Deepagents::prepare(self.named.python_venv.as_deref(), &self.cache, rg)
                .map_err(|error| format!("deepagents: {error:#}"))
        });
        prepared.as_ref().map_err(Clone::clone)
    }

    /// deepagents, in the process that stays.
    pub(crate) fn deepagents_process(&self) -> Result<Partner, String> {
        let start = || self.deepagents()?.start().map_err(|error| format!("{error:#}"));
        self.deepagents_process.get_or_init(start).clone()
    }

    /// Eino in memory, in the process that stays.
    pub(crate) fn eino(&self) -> Result<Partner, String> {
        let (_, partner) = self.eino_built()?;
        Ok(partner.clone())
    }

    /// Eino, where its glob on disk is built in.
    pub(crate) fn eino_on_disk(&self) -> Result<Partner, String> {
        let (eino, partner) = self.eino_built()?;
        eino.disk().map(|()| partner.clone())
    }

    fn eino_built(&self) -> Result<&(Eino, Partner), String> {
        let built = self.eino.get_or_init(|| {
            let eino = Eino::prepare(&self.named.eino, &self.cache);
            let started = eino.and_then(|eino| eino.start().map(|partner| (eino, partner)));
            started.map_err(|error| format!("eino: {error:#}"))
        });
        built.as_ref().map_err(Clone::clone)
    }

    /// What each rival that took part says of its version, and why the others did not.
    pub(crate) fn versions(&self) -> Vec<String> {
        let mut versions = Vec::new();
        let told = |name: &str, version: Result<String, String>| {
            version.unwrap_or_else(|reason| format!("{name}: not run ({reason})"))
        };
        if self.rg.get().is_some() {
            let version = self.rg().and_then(|rg| ripgrep::version(rg).map_err(|error| error.to_string()));
            versions.push(told("ripgrep", version));
        }
        if self.deepagents.get().is_some() {
            let version = self.deepagents_process().and_then(|python| python.version().map_err(|e| e.to_string()));
            versions.push(told("deepagents", version));
        }
        if self.eino.get().is_some() {
            let version = self.eino_built().and_then(|(eino, partner)| {
                let go = partner.version().map_err(|error| error.to_string())?;
                Ok(format!("{}, {go}", eino.made_of()))
            });
            versions.push(told("eino", version));
        }
        versions
    }
}

//! Keeping an agent out of what its own layers keep, and from rewriting the rules that hold for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_core::{Backend, ErrorKind, Layer as _, PathMapping, VfsPath};
use vfs_policy::{HardLinks, Policy, Rule, RuleEffect, RuleSet};

use super::stores::{Kind, Stores};
use crate::built::{Place, Placed};
use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::host;
use crate::tables::LayerTable;

/// What is kept from agents, wherever it is shown.
#[derive(Debug)]
pub(super) struct Guard {
    /// Stores: nobody sees them.
    hidden: Vec<(PathBuf, Kind)>,
    /// Files that say what holds: nobody changes them.
    fixed: Vec<PathBuf>,
    fixed_at: FixedAt,
    /// What the namespace calls the fixed files that it shows.
    shown: Vec<VfsPath>,
}

/// Where changes of fixed files are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FixedAt {
    /// At the directory: the policy is there anyway where a store is hidden.
    Place,
    /// Interceptor everything: with an overlay, a change would be accepted there, and stop the commit later.
    Everywhere,
}

impl Guard {
    pub(super) async fn new(config: &Config, base: &Path, stores: &Stores) -> Result<Self, ConfigError> {
        let mut files: Vec<PathBuf> = config.file().map(Path::to_owned).into_iter().collect();
        let named = config.tables.all_layers().filter_map(|layer| layer.get_ref().rules_file());
        files.extend(named.map(|file| base.join(file.get_ref())));
        let mut fixed = Vec::new();
        for file in files {
            match host::real_names(&file).await {
                Ok(names) => fixed.extend(names),
                // One that is missing is told of where it is read.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // Where it really is has to be known, or it could not be kept from being changed.
                Err(error) => {
                    let message = format!("it cannot be told where '{}' really is", file.display());
                    return Err(ConfigError::new(ConfigErrorKind::Open, message).because(error));
                }
            }
        }
        let has_overlay = config.tables.all_layers().any(|layer| matches!(layer.get_ref(), LayerTable::Overlay(_)));
        let fixed_at = if has_overlay { FixedAt::Everywhere } else { FixedAt::Place };
        Ok(Self {
            hidden: stores.reals().map(|(real, kind)| (real.to_owned(), kind)).collect(),
            fixed,
            fixed_at,
            shown: Vec::new(),
        })
    }

    /// `files`, which show the directory `shown` at `place`, without what is to be hidden there.
    pub(super) fn around_place(
        &mut self,
        files: Arc<dyn Backend>,
        shown: &Path,
        place: &PathMapping,
        policies: &mut Vec<Placed<RuleSet>>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let mut rules = Vec::new();
        for (path, kind) in self.hidden.iter().filter_map(|(real, kind)| Some((path_in(shown, real)?, kind))) {
            rules.push(hide(&path?, *kind));
        }
        for path in self.fixed.iter().filter_map(|real| path_in(shown, real)) {
            let path = path?;
            if self.fixed_at == FixedAt::Place {
                rules.push(fix(&path));
            }
            // Where a scope does not show it, nobody can name it.
            self.shown.extend(place.to_outer(&path));
        }
        guarded(files, rules, Placed::new((), Place::Mount, place.clone()), policies)
    }

    /// `files`, which are everything, with what may not be changed.
    pub(super) fn around_everything(
        &self,
        files: Arc<dyn Backend>,
        policies: &mut Vec<Placed<RuleSet>>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let rebase = PathMapping::new(VfsPath::root(), VfsPath::root());
        let rules = match self.fixed_at {
            FixedAt::Place => Vec::new(),
            FixedAt::Everywhere => self.shown.iter().map(fix).collect(),
        };
        guarded(files, rules, Placed::new((), Place::Everywhere, rebase), policies)
    }

    /// What the namespace calls the files that nobody may change, as far as places are open by now.
    pub(super) fn fixed(&self) -> &[VfsPath] {
        &self.shown
    }
}

/// What `real` is called in the directory `shown`; `None` where it is elsewhere.
fn path_in(shown: &Path, real: &Path) -> Option<Result<VfsPath, ConfigError>> {
    let relative = real.strip_prefix(shown).ok()?;
    let parsed = match relative.to_str() {
        Some(relative) => VfsPath::root().join(relative),
        None => Err(vfs_core::Error::of(ErrorKind::InvalidPath)),
    };
    Some(parsed.map_err(|error| {
        let message = format!("'{}' lies where an agent sees it, and cannot be hidden", real.display());
        ConfigError::new(ConfigErrorKind::Conflict, message).because(error)
    }))
}

fn hide(path: &VfsPath, kind: Kind) -> Rule {
    let rule = Rule::new(RuleEffect::Deny).path(literal(path));
    let rule = match kind {
        // The files that it is rotated into, and what it sets aside.
        Kind::Log => rule.path(format!("{}.*", literal(path))),
        Kind::Directory | Kind::Database => rule,
    };
    rule.name("store").reason("files of another kind are kept here")
}

fn fix(path: &VfsPath) -> Rule {
    let rule = Rule::new(RuleEffect::Deny).path(literal(path)).operation("write").operation("delete");
    rule.name("configuration").reason("this file says what may be done here; only people change it")
}

/// Rules that hide or fix files are about files. A policy denies every command that no rule allows, and whether a command may
/// run is for the policies of the file to say.
fn no_word_about_commands() -> Rule {
    Rule::new(RuleEffect::Allow).operation("execute").name("commands")
}

/// A glob that matches `path` and nothing else.
fn literal(path: &VfsPath) -> String {
    let mut glob = String::new();
    for character in path.as_str().chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\' | ',') {
            glob.push('\\');
        }
        glob.push(character);
    }
    glob
}

fn guarded(
    files: Arc<dyn Backend>,
    mut rules: Vec<Rule>,
    placed: Placed<()>,
    policies: &mut Vec<Placed<RuleSet>>,
) -> Result<Arc<dyn Backend>, ConfigError> {
    if rules.is_empty() {
        return Ok(files);
    }
    rules.push(no_word_about_commands());
    let rules = RuleSet::new(rules).map_err(|error| {
        let message = "the stores lie where an agent sees them, and cannot be hidden; keep them elsewhere";
        ConfigError::new(ConfigErrorKind::Conflict, message).because(error)
    })?;
    // Agents make no hard links, so that those which are there are no way into a store.
    let part = rules.with_hard_links(HardLinks::Allow);
    let guarded = Policy::new(Arc::new(part.clone())).layer(files);
    let mut placed = placed.with(part);
    placed.is_guard = true;
    policies.push(placed);
    Ok(guarded)
}

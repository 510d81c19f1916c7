//! What can be said of a file without looking at the disk, beyond the form of each value.

use std::ops::Range;

use toml::Spanned;
use vfs_core::Operation;
use vfs_policy::RuleSet;
use vfs_store::NamespaceSource;

use crate::error::{ConfigError, ConfigErrorKind};
use crate::source::Source;
use crate::suggest::similar;
use crate::tables::{
    BackendTable, DurableTable, FileTable, LayerTable, PolicyTable, QuotaTable, RetryTable, RuleTable, RulesTable,
};

/// Refuses what does not go together in a file.
pub(crate) fn file(source: &Source, file: &FileTable) -> Result<(), ConfigError> {
    let check = Check(source);
    check.mounts(file)?;
    let mounted = file.mounts.iter().map(|mount| (&mount.backend, &mount.layers));
    for (backend, layers) in [(&file.default.backend, &file.default.layers)].into_iter().chain(mounted) {
        if let BackendTable::Store(durable) = backend.get_ref() {
            check.durable(durable, backend.span())?;
            check.kept_apart(durable, layers.iter().chain(&file.layers))?;
        }
    }
    for layer in file.all_layers() {
        check.layer(layer)?;
    }
    for layer in &file.layers {
        if matches!(layer.get_ref(), LayerTable::Scoped(_)) {
            let message = "`scoped` shows one directory of one place; put it into the `layers` of that place";
            return Err(check.conflict(layer.span(), message));
        }
    }
    Ok(())
}

/// Compiles rules, so that a faulty one is told by its place.
pub(crate) fn rule_set(source: &Source, rules: &RulesTable) -> Result<RuleSet, ConfigError> {
    for rule in &rules.rules {
        Check(source).rule(rule)?;
    }
    let compiled = RuleSet::new(rules.rules.iter().map(|rule| rule.get_ref().to_rule()));
    let mut compiled = compiled
        .map_err(|error| source.error(ConfigErrorKind::Invalid, 0..0, "the rules cannot be used").because(error))?;
    if let Some(effect) = rules.default {
        compiled = compiled.otherwise(effect.into());
    }
    if let Some(hard_links) = rules.hard_links {
        compiled = compiled.with_hard_links(hard_links.into());
    }
    if let Some(effect) = rules.not_understood {
        compiled = compiled.with_not_understood(effect.into());
    }
    Ok(compiled)
}

struct Check<'a>(&'a Source);

impl Check<'_> {
    fn conflict(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        self.0.error(ConfigErrorKind::Conflict, span, message)
    }

    fn mounts(&self, file: &FileTable) -> Result<(), ConfigError> {
        for (index, mount) in file.mounts.iter().enumerate() {
            let path = mount.path.get_ref();
            if path.is_root() {
                let message = "what is at '/' is described in [default]; mount at a directory below";
                return Err(self.conflict(mount.path.span(), message));
            }
            if file.mounts[..index].iter().any(|earlier| earlier.path.get_ref() == path) {
                let message = format!("something is mounted at '{path}' already; give each mount a path of its own");
                return Err(self.conflict(mount.path.span(), message));
            }
        }
        Ok(())
    }

    fn durable(&self, durable: &DurableTable, span: Range<usize>) -> Result<(), ConfigError> {
        if durable.url.is_some() == durable.url_env.is_some() {
            let message = "a store needs either a `url` or a `url_env`, the variable that has it";
            return Err(self.conflict(span, message));
        }
        let Some(namespace) = &durable.namespace else { return Ok(()) };
        let read = NamespaceSource::template(namespace.get_ref());
        read.map(drop).map_err(|error| self.0.error(ConfigErrorKind::Invalid, namespace.span(), error.message()))
    }

    /// Refuses layers that keep something by its path where the path is another file for each caller.
    fn kept_apart<'a>(
        &self,
        durable: &DurableTable,
        mut layers: impl Iterator<Item = &'a Spanned<LayerTable>>,
    ) -> Result<(), ConfigError> {
        let Some(namespace) = durable.namespace.as_ref().filter(|namespace| namespace.get_ref().contains('{')) else {
            return Ok(());
        };
        let keeps = |layer: &&Spanned<LayerTable>| {
            matches!(layer.get_ref(), LayerTable::Overlay(_) | LayerTable::Checkpoints(_))
        };
        match layers.find(keeps) {
            None => Ok(()),
            Some(_) => {
                let message = "an overlay or checkpoints around this would show one caller's files to others; name one \
                               namespace for all, or put the layer around another place";
                Err(self.conflict(namespace.span(), message))
            }
        }
    }

    fn layer(&self, layer: &Spanned<LayerTable>) -> Result<(), ConfigError> {
        match layer.get_ref() {
            LayerTable::Policy(policy) => self.policy(policy, layer.span()),
            LayerTable::Quota(quota) => self.quota(quota, layer.span()),
            LayerTable::Retry(retry) => self.retry(retry, layer.span()),
            _ => Ok(()),
        }
    }

    fn policy(&self, policy: &PolicyTable, span: Range<usize>) -> Result<(), ConfigError> {
        let has_settings = policy.default.is_some() || policy.hard_links.is_some() || policy.not_understood.is_some();
        let has_own = policy.rules.is_some() || has_settings;
        match &policy.rules_file {
            Some(file) if has_own => {
                let message = "give either `rules_file`, or `rules`, `default`, `hard_links` and `not_understood` here";
                Err(self.conflict(file.span(), message))
            }
            None if !has_own => Err(self.conflict(span, "a policy needs `rules`, a `rules_file` or a `default`")),
            _ => policy.rules.iter().flatten().try_for_each(|rule| self.rule(rule)),
        }
    }

    fn rule(&self, rule: &Spanned<RuleTable>) -> Result<(), ConfigError> {
        rule.get_ref().operations.iter().try_for_each(|word| self.operation(word))?;
        let compiled = RuleSet::new([rule.get_ref().to_rule()]);
        compiled.map(drop).map_err(|error| {
            let message = error.message().trim_start_matches("rule 1").trim_start_matches(": ").to_owned();
            self.0.error(ConfigErrorKind::Invalid, rule.span(), message)
        })
    }

    fn operation(&self, word: &Spanned<String>) -> Result<(), ConfigError> {
        // The words for permissions are operations, too.
        let names: Vec<_> = Operation::ALL.iter().map(|operation| operation.code()).collect();
        let written = word.get_ref().as_str();
        if names.contains(&written) {
            return Ok(());
        }
        let message = match similar(written, names.iter().copied(), 1).first() {
            Some(near) => format!("unknown operation `{written}`; did you mean `{near}`?"),
            None => format!("unknown operation `{written}`, expected one of `{}`", names.join("`, `")),
        };
        Err(self.0.error(ConfigErrorKind::Invalid, word.span(), message))
    }

    fn quota(&self, quota: &QuotaTable, span: Range<usize>) -> Result<(), ConfigError> {
        let of_actors = quota.per_actor.as_ref().is_some_and(|limits| !limits.is_empty());
        if of_actors || !quota.overall().is_empty() {
            return Ok(());
        }
        let message = "a quota needs a limit: `max_bytes`, `max_files`, `max_file_size` or `max_operations`";
        Err(self.conflict(span, message))
    }

    fn retry(&self, retry: &RetryTable, span: Range<usize>) -> Result<(), ConfigError> {
        match (retry.min_delay, retry.max_delay) {
            (Some(min), Some(max)) if min.0 > max.0 => {
                Err(self.conflict(span, "`min_delay` is the first wait and `max_delay` the longest; swap them"))
            }
            _ => Ok(()),
        }
    }
}

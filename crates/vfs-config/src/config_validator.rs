//! Validation of settings against each other, without access to the host.

use std::ops::Range;

use toml::Spanned;
use vfs_core::Operation;
use vfs_core::suggest::similar;
use vfs_policy::RuleSet;
use vfs_store::NamespaceSource;

use crate::config_text::ConfigText;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::tables::{
    BackendTable, ConfigFileTable, LayerTable, PolicyTable, QuotaTable, RetryTable, RuleTable, RulesTable,
    StoreBackendTable,
};

/// Returns an error if settings of a configuration file contradict each other.
pub(crate) fn check_config(source: &ConfigText, file: &ConfigFileTable) -> Result<(), ConfigError> {
    let validator = ConfigValidator(source);
    validator.mounts(file)?;
    let mounted = file.mounts.iter().map(|mount| (&mount.backend, &mount.layers));
    for (backend, layers) in [(&file.default.backend, &file.default.layers)].into_iter().chain(mounted) {
        if let BackendTable::Store(store) = backend.get_ref() {
            validator.store_backend(store, backend.span())?;
            validator.shared_namespace(store, layers.iter().chain(&file.layers))?;
        }
    }
    for layer in file.all_layers() {
        validator.layer(layer)?;
    }
    for layer in &file.layers {
        if matches!(layer.get_ref(), LayerTable::Scoped(_)) {
            let message =
                "`scoped` is not possible around the namespace; move it to the `layers` of a mount or of [default]";
            return Err(validator.conflict(layer.span(), message));
        }
    }
    Ok(())
}

/// Compiles rules; an error names the position of the faulty rule.
pub(crate) fn compile_rules(source: &ConfigText, rules: &RulesTable) -> Result<RuleSet, ConfigError> {
    for rule in &rules.rules {
        ConfigValidator(source).rule(rule)?;
    }
    let compiled = RuleSet::new(rules.rules.iter().map(|rule| rule.get_ref().to_rule()));
    let mut compiled = compiled
        .map_err(|error| source.error(ConfigErrorKind::Invalid, 0..0, "the rules cannot be used").with_cause(error))?;
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

/// Checks the settings of one configuration file against each other.
struct ConfigValidator<'a>(&'a ConfigText);

impl ConfigValidator<'_> {
    fn conflict(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        self.0.error(ConfigErrorKind::Conflict, span, message)
    }

    fn mounts(&self, file: &ConfigFileTable) -> Result<(), ConfigError> {
        for (index, mount) in file.mounts.iter().enumerate() {
            let path = mount.path.get_ref();
            if path.is_root() {
                let message = "the files at '/' are described in [default]; mount at a directory below";
                return Err(self.conflict(mount.path.span(), message));
            }
            if file.mounts[..index].iter().any(|earlier| earlier.path.get_ref() == path) {
                let message =
                    format!("another backend is mounted at '{path}' already; give each mount a path of its own");
                return Err(self.conflict(mount.path.span(), message));
            }
        }
        Ok(())
    }

    fn store_backend(&self, store: &StoreBackendTable, span: Range<usize>) -> Result<(), ConfigError> {
        if store.url.is_some() == store.url_env.is_some() {
            let message = "a store needs either a `url` or a `url_env`, the environment variable with the URL";
            return Err(self.conflict(span, message));
        }
        let Some(namespace) = &store.namespace else { return Ok(()) };
        let template = NamespaceSource::template(namespace.get_ref());
        template.map(drop).map_err(|error| self.0.error(ConfigErrorKind::Invalid, namespace.span(), error.message()))
    }

    /// Refuses layers that store versions by path if the same path is a different file for each caller.
    fn shared_namespace<'a>(
        &self,
        store: &StoreBackendTable,
        mut layers: impl Iterator<Item = &'a Spanned<LayerTable>>,
    ) -> Result<(), ConfigError> {
        let Some(namespace) = store.namespace.as_ref().filter(|namespace| namespace.get_ref().contains('{')) else {
            return Ok(());
        };
        let stores_versions = |layer: &&Spanned<LayerTable>| {
            matches!(layer.get_ref(), LayerTable::Overlay(_) | LayerTable::Checkpoints(_))
        };
        match layers.find(stores_versions) {
            None => Ok(()),
            Some(_) => {
                let message = "an overlay or checkpoint layer around this store would show the files of one caller to others; \
                               use one namespace for all, or move the layer to another mount";
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
        let has_inline_rules = policy.rules.is_some() || has_settings;
        match &policy.rules_file {
            Some(file) if has_inline_rules => {
                let message = "give either `rules_file`, or `rules`, `default`, `hard_links` and `not_understood` here";
                Err(self.conflict(file.span(), message))
            }
            None if !has_inline_rules => {
                Err(self.conflict(span, "a policy needs `rules`, a `rules_file` or a `default`"))
            }
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
        // Every permission is the name of an operation, too.
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
        let has_actor_limit = quota.per_actor.as_ref().is_some_and(|limits| !limits.is_empty());
        if has_actor_limit || !quota.overall().is_empty() {
            return Ok(());
        }
        let message = "a quota needs a limit: `max_bytes`, `max_files`, `max_file_size` or `max_operations`";
        Err(self.conflict(span, message))
    }

    fn retry(&self, retry: &RetryTable, span: Range<usize>) -> Result<(), ConfigError> {
        match (retry.min_delay, retry.max_delay) {
            (Some(min), Some(max)) if min.0 > max.0 => {
                Err(self.conflict(span, "`min_delay` is longer than `max_delay`; swap them"))
            }
            _ => Ok(()),
        }
    }
}

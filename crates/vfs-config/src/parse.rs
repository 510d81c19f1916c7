//! Parser of configuration and rules files.
//!
//! Serde's internally tagged enums, `{ type = "name", key = value }`, lose the positions of keys. So the parser first rewrites the
//! document to externally tagged enums, `{ name = { key = value } }`, which keep them.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};
use vfs_core::suggest::similar;

use crate::config_text::ConfigText;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::suggest;
use crate::tables::{ConfigFileTable, RulesTable};

/// Parses a configuration file.
pub(crate) fn parse_config(source: &ConfigText) -> Result<ConfigFileTable, ConfigError> {
    let mut document = document(source)?;
    let table = document.get_mut();
    // Values of another form are left to `decode`, which refuses them.
    if let Some(default) = table.get_mut("default") {
        tag_backend(source, default)?;
    }
    if let Some(DeValue::Array(mounts)) = table.get_mut("mounts").map(Spanned::get_mut) {
        mounts.iter_mut().try_for_each(|mount| tag_backend(source, mount))?;
    }
    tag_layers(source, table)?;
    decode(source, document)
}

/// Parses a rules file.
pub(crate) fn parse_rules(source: &ConfigText) -> Result<RulesTable, ConfigError> {
    decode(source, document(source)?)
}

fn document(source: &ConfigText) -> Result<Spanned<DeTable<'_>>, ConfigError> {
    DeTable::parse(source.text()).map_err(|error| parse_error(source, ConfigErrorKind::Syntax, &error))
}

fn decode<T: DeserializeOwned>(source: &ConfigText, document: Spanned<DeTable<'_>>) -> Result<T, ConfigError> {
    T::deserialize(Deserializer::from(document)).map_err(|error| parse_error(source, ConfigErrorKind::Invalid, &error))
}

/// Moves the keys of the backend of `mount` into a table of their own: `{ backend = { type = { .. } }, .. }`.
fn tag_backend(source: &ConfigText, mount: &mut Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
    let span = mount.span();
    let DeValue::Table(table) = mount.get_mut() else { return Ok(()) };
    tag_layers(source, table)?;
    let mut own = DeTable::new();
    for key in ["path", "layers"] {
        if let Some((key, value)) = table.remove_entry(key) {
            own.insert(key, value);
        }
    }
    let backend = tag_by_type(source, std::mem::take(table), span.clone(), "local, memory or store")?;
    own.insert(Spanned::new(span.clone(), Cow::Borrowed("backend")), Spanned::new(span, backend));
    *table = own;
    Ok(())
}

/// Rewrites all `layers` of `table` to the form `{ type = { .. } }`.
fn tag_layers(source: &ConfigText, table: &mut DeTable<'_>) -> Result<(), ConfigError> {
    let Some(DeValue::Array(layers)) = table.get_mut("layers").map(Spanned::get_mut) else { return Ok(()) };
    for layer in layers.iter_mut() {
        let span = layer.span();
        if let DeValue::Table(table) = layer.get_mut() {
            let named = tag_by_type(source, std::mem::take(table), span, "policy, overlay, audit, ...")?;
            *layer.get_mut() = named;
        }
    }
    Ok(())
}

/// Converts an error of the parser. For an unknown key or value it names the most similar one that is possible, or all of them.
fn parse_error(source: &ConfigText, kind: ConfigErrorKind, error: &toml::de::Error) -> ConfigError {
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let span = error.span().unwrap_or_default();
    let extra_keys = match source.key(&span) {
        Some(key) if message.starts_with("unknown field ") => rewritten_keys(&key),
        _ => &[],
    };
    let message = match message.as_str() {
        "missing field `default`" => format!("{message}: the table [default] describes the files at '/'"),
        _ => suggest::reword(&message, extra_keys).unwrap_or(message),
    };
    source.error(kind, span, message)
}

/// Returns the keys that are possible next to the unknown key `key` but missing in the error of serde, because the rewriting has
/// moved them.
fn rewritten_keys(key: &str) -> &'static [&'static str] {
    let Some((table, _)) = key.rsplit_once('.') else { return &[] };
    let name = table.rsplit('.').next().unwrap_or(table);
    match name.split_once('[').map_or((name, ""), |(name, index)| (name, index)) {
        ("default", "") => &["type", "layers"],
        ("mounts", _) => &["type", "path", "layers"],
        ("layers", _) => &["type"],
        _ => &[],
    }
}

/// Removes the key `type` from `table` and returns the form `{ type = { .. } }`.
fn tag_by_type<'a>(
    source: &ConfigText,
    mut table: DeTable<'a>,
    span: Range<usize>,
    examples: &str,
) -> Result<DeValue<'a>, ConfigError> {
    let invalid = |span, message: String| Err(source.error(ConfigErrorKind::Invalid, span, message));
    let Some((_, word)) = table.remove_entry("type") else {
        let misspelt = table.keys().find(|key| !similar(key.get_ref(), ["type"], 1).is_empty());
        return match misspelt {
            Some(key) => invalid(key.span(), format!("unknown field `{}`; did you mean `type`?", key.get_ref())),
            None => invalid(span, format!("missing field `type`, which is one of: {examples}")),
        };
    };
    let word_span = word.span();
    let DeValue::String(name) = word.into_inner() else {
        return invalid(word_span, format!("`type` is a string, one of: {examples}"));
    };
    let mut named = DeTable::new();
    named.insert(Spanned::new(word_span, name), Spanned::new(span, DeValue::Table(table)));
    Ok(DeValue::Table(named))
}

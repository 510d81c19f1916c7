//! From text to tables.
//!
//! Derived tables of the form `{ type = "name", key = value }` forget where in the text their keys stand. So the document is
//! put into the form `{ name = { key = value } }` first, which serde reads without forgetting.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::error::{ConfigError, ConfigErrorKind};
use crate::source::Source;
use crate::suggest::similar;
use crate::tables::{FileTable, RulesTable};

/// Reads a whole file.
pub(crate) fn file(source: &Source) -> Result<FileTable, ConfigError> {
    let mut document = document(source)?;
    let table = document.get_mut();
    for (key, place) in [("default", false), ("mounts", true)] {
        let Some(value) = table.get_mut(key) else { continue };
        match value.get_mut() {
            DeValue::Array(places) if place => places.iter_mut().try_for_each(|place| with_backend(source, place))?,
            DeValue::Table(_) if !place => with_backend(source, value)?,
            // What has another form is refused below.
            _ => {}
        }
    }
    with_layers(source, table)?;
    decode(source, document)
}

/// Reads a file of rules.
pub(crate) fn rules(source: &Source) -> Result<RulesTable, ConfigError> {
    decode(source, document(source)?)
}

fn document(source: &Source) -> Result<Spanned<DeTable<'_>>, ConfigError> {
    DeTable::parse(source.text()).map_err(|fault| source.fault(ConfigErrorKind::Syntax, &fault))
}

fn decode<T: DeserializeOwned>(source: &Source, document: Spanned<DeTable<'_>>) -> Result<T, ConfigError> {
    T::deserialize(Deserializer::from(document)).map_err(|fault| source.fault(ConfigErrorKind::Invalid, &fault))
}

/// Puts `place`, which has the keys of a backend beside its own, into the form `{ backend = { type = { .. } }, .. }`.
fn with_backend(source: &Source, place: &mut Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
    let span = place.span();
    let DeValue::Table(table) = place.get_mut() else { return Ok(()) };
    with_layers(source, table)?;
    let mut own = DeTable::new();
    for key in ["path", "layers"] {
        if let Some((key, value)) = table.remove_entry(key) {
            own.insert(key, value);
        }
    }
    let backend = by_type(source, std::mem::take(table), span.clone(), "local, memory or store")?;
    own.insert(Spanned::new(span.clone(), Cow::Borrowed("backend")), Spanned::new(span, backend));
    *table = own;
    Ok(())
}

/// Puts all of the `layers` of `table` into the form `{ type = { .. } }`.
fn with_layers(source: &Source, table: &mut DeTable<'_>) -> Result<(), ConfigError> {
    let Some(DeValue::Array(layers)) = table.get_mut("layers").map(Spanned::get_mut) else { return Ok(()) };
    for layer in layers.iter_mut() {
        let span = layer.span();
        if let DeValue::Table(table) = layer.get_mut() {
            let named = by_type(source, std::mem::take(table), span, "policy, overlay, audit, ...")?;
            *layer.get_mut() = named;
        }
    }
    Ok(())
}

/// Returns the keys that can stand beside the unknown one at `key` and that are not in the list of serde, because they were taken
/// out of the table before serde read it.
pub(crate) fn keys_beside(key: &str) -> &'static [&'static str] {
    let Some((table, _)) = key.rsplit_once('.') else { return &[] };
    let name = table.rsplit('.').next().unwrap_or(table);
    match name.split_once('[').map_or((name, ""), |(name, index)| (name, index)) {
        ("default", "") => &["type", "layers"],
        ("mounts", _) => &["type", "path", "layers"],
        ("layers", _) => &["type"],
        _ => &[],
    }
}

fn by_type<'a>(
    source: &Source,
    mut table: DeTable<'a>,
    span: Range<usize>,
    examples: &str,
) -> Result<DeValue<'a>, ConfigError> {
    let invalid = |span, message: String| Err(source.error(ConfigErrorKind::Invalid, span, message));
    let Some((_, word)) = table.remove_entry("type") else {
        let misspelt = table.keys().find(|key| !similar(key.get_ref(), ["type"], 1).is_empty());
        return match misspelt {
            Some(key) => invalid(key.span(), format!("unknown field `{}`; did you mean `type`?", key.get_ref())),
            None => invalid(span, format!("missing field `type`, which says what this is: {examples}")),
        };
    };
    let word_span = word.span();
    let DeValue::String(name) = word.into_inner() else {
        return invalid(word_span, format!("`type` is a string: {examples}"));
    };
    let mut named = DeTable::new();
    named.insert(Spanned::new(word_span, name), Spanned::new(span, DeValue::Table(table)));
    Ok(DeValue::Table(named))
}

//! File types, as defined by ripgrep's own table.

use ignore::types::{FileTypeDef, Types, TypesBuilder};
use vfs_core::{Error, Result};

/// Common names of languages, each with its name in the table.
const TYPE_ALIASES: [(&str, &str); 11] = [
    ("bash", "sh"),
    ("c#", "cs"),
    ("c++", "cpp"),
    ("dockerfile", "docker"),
    ("golang", "go"),
    ("javascript", "js"),
    ("latex", "tex"),
    ("makefile", "make"),
    ("objective-c", "objc"),
    ("terraform", "tf"),
    ("text", "txt"),
];

/// Returns the names that [`GrepRequest::file_types`](vfs_core::GrepRequest::file_types) accepts, sorted.
///
/// ```
/// assert!(vfs_search::file_type_names().iter().any(|name| name == "rust"));
/// ```
pub fn file_type_names() -> Vec<String> {
    definitions().iter().map(|definition| definition.name().to_owned()).collect()
}

/// Returns a matcher for files of the types `names`.
pub(crate) fn select(names: &[String]) -> Result<Types> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let definitions = builder.definitions();
    for name in names {
        if name != "all" && !definitions.iter().any(|definition| definition.name() == name) {
            return Err(unknown_type(name, &definitions));
        }
        builder.select(name);
    }
    builder.build().map_err(|error| Error::invalid_argument("`file_types` cannot be used together").with_source(error))
}

fn definitions() -> Vec<FileTypeDef> {
    TypesBuilder::new().add_defaults().definitions()
}

fn unknown_type(name: &str, definitions: &[FileTypeDef]) -> Error {
    const MAX_HINTS: usize = 5;
    let shown = &name[..name.floor_char_boundary(100)];
    let extension = format!("*.{}", name.trim_start_matches(['*', '.']));
    let alias = TYPE_ALIASES.iter().filter(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|(_, target)| *target);
    let by_extension = definitions.iter().filter(|definition| definition.globs().contains(&extension));
    let prefix: String = name.chars().take(2).collect();
    let by_prefix =
        definitions.iter().filter(|definition| !prefix.is_empty() && definition.name().starts_with(&prefix));
    let mut hints: Vec<&str> = Vec::new();
    for hint in alias.chain(by_extension.chain(by_prefix).map(FileTypeDef::name)) {
        if hints.len() < MAX_HINTS && !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    let hint = if hints.is_empty() { String::new() } else { format!("; did you mean {}?", hints.join(", ")) };
    Error::invalid_argument(format!(
        "`file_types` has the unknown type '{shown}'; the names are those of `rg --type-list`, such as rust, py, make{hint}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_match_by_ripgreps_table() {
        for (name, file, expected) in
            [("rust", "a.rs", true), ("rust", "a.py", false), ("make", "Makefile", true), ("py", "x.pyi", true)]
        {
            let types = select(&[name.to_owned()]).expect("a known type");
            assert_eq!(types.matched(file, false).is_whitelist(), expected, "{name} {file}");
        }
    }

    #[test]
    fn aliases_lead_to_names_of_the_table_and_are_not_names_themselves() {
        let names = file_type_names();
        assert!(TYPE_ALIASES.iter().all(|(alias, target)| {
            names.iter().any(|name| name == target) && !names.iter().any(|name| name == alias)
        }));
    }

    #[test]
    fn the_error_for_an_unknown_type_suggests_similar_names() {
        for (name, hint) in
            [("rs", "rust"), (".rs", "rust"), ("pyth", "python"), ("JavaScript", "did you mean js?"), ("c++", "cpp")]
        {
            let error = select(&[name.to_owned()]).expect_err("unknown");
            assert_eq!(error.kind(), vfs_core::ErrorKind::InvalidArgument);
            assert!(error.message().contains(name) && error.message().contains(hint), "{error}");
        }
        assert!(select(&["x".repeat(1 << 20)]).expect_err("unknown").for_model().len() < 2048);
    }
}

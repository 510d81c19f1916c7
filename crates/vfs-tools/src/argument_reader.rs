//! Arguments of a call, read leniently.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use vfs_core::VfsPath;
use vfs_core::suggest::similar;

use crate::argument_error::{ArgumentError, allowed, cut};
use crate::arguments::{Argument, Arguments};
use crate::parameter::{Parameter, ParameterKind, Presence};

/// Maximum number of unknown names that are noted, one each.
const MAX_NOTES: usize = 3;

/// Maximum size in bytes of the copies of fields that belong into the objects of a list.
const MAX_COPIED_BYTES: usize = 16 << 20;

/// Reads arguments, as [`Arguments::read`] says.
pub(crate) fn read(
    arguments: &Value,
    parameters: &'static [Parameter],
    working_directory: &VfsPath,
) -> Result<Arguments, ArgumentError> {
    let parsed: Value;
    let object = match arguments {
        Value::Object(object) => object,
        Value::Null => &Map::new(),
        Value::String(text) if text.trim().is_empty() => &Map::new(),
        Value::String(text) => {
            parsed =
                serde_json::from_str(text).map_err(|error| ArgumentError::not_an_object(arguments, Some(&error)))?;
            let Value::Object(object) = &parsed else { return Err(ArgumentError::not_an_object(&parsed, None)) };
            object
        }
        _ => return Err(ArgumentError::not_an_object(arguments, None)),
    };
    let moved = fields_moved_into_list(object, parameters);
    let reader = Reader { working_directory, unknown: RefCell::default() };
    let mut arguments = reader.object(moved.as_ref().unwrap_or(object), parameters, "")?;
    arguments.notes = reader.unknown.into_inner();
    if let Some(further) = arguments.notes.len().checked_sub(MAX_NOTES).filter(|further| *further > 0) {
        arguments.notes.truncate(MAX_NOTES);
        arguments.notes.push(format!("{further} further names are not parameters and were ignored"));
    }
    Ok(arguments)
}

/// Returns `object` with the fields that belong into the objects of a list, if it has any: models write
/// `{"path": "/a", "edits": [{"old": "x", "new": "y"}]}`, or leave out the list for a single object.
fn fields_moved_into_list(object: &Map<String, Value>, parameters: &'static [Parameter]) -> Option<Map<String, Value>> {
    // The fields of a list that may be left out could be meant for another one.
    let (list, fields) = parameters.iter().find_map(|parameter| match parameter.kind {
        ParameterKind::List(ParameterKind::Object(fields)) if parameter.presence == Presence::Required => {
            Some((parameter, *fields))
        }
        _ => None,
    })?;
    let field = |name: &str| find(fields, name).map(|(field, _)| field.name);
    // An empty value must not hide one that is given in another place or by another name.
    let is_given =
        |name: &str, value: &Value| find(fields, name).is_none_or(|(field, _)| !is_left_out(value, &field.kind));
    let (mut outer, mut rest): (Map<_, _>, Map<_, _>) =
        object.clone().into_iter().partition(|(name, _)| find(parameters, name).is_none() && field(name).is_some());
    if outer.is_empty() {
        return None;
    }
    outer.retain(|name, value| is_given(name, value));
    let name = object.keys().find(|name| find(parameters, name).is_some_and(|(found, _)| found.name == list.name));
    let given = name.and_then(|name| rest.remove(name)).filter(|value| !is_left_out(value, &list.kind));
    let given = given.map(|value| within_text(&value, |value| value.is_array() || value.is_object()).unwrap_or(value));
    let mut items = match given {
        None => vec![Value::Object(Map::new())],
        Some(Value::Array(items)) => items,
        Some(single) => vec![single],
    };
    let size: usize = outer.values().map(|value| value.as_str().map_or(1, str::len)).sum();
    if size.saturating_mul(items.len()) > MAX_COPIED_BYTES {
        return None;
    }
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.retain(|name, value| is_given(name, value));
        // A parameter's own name goes before an alias.
        let (own, aliases): (Vec<_>, Vec<_>) =
            outer.iter().partition(|(name, _)| find(fields, name).is_some_and(|(_, is_own_name)| is_own_name));
        for (name, value) in own.into_iter().chain(aliases) {
            if !item.keys().any(|own| field(own) == field(name)) {
                item.insert(name.clone(), value.clone());
            }
        }
    }
    rest.insert(list.name.to_owned(), items.into());
    Some(rest)
}

struct Reader<'a> {
    working_directory: &'a VfsPath,
    /// Notes about unknown names.
    unknown: RefCell<Vec<String>>,
}

impl Reader<'_> {
    /// Reads an object at `place`, such as `edits[2]`, which is empty for the arguments themselves.
    fn object(
        &self,
        object: &Map<String, Value>,
        parameters: &'static [Parameter],
        place: &str,
    ) -> Result<Arguments, ArgumentError> {
        let mut arguments = Arguments::default();
        let mut given = BTreeMap::new();
        for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            match find(parameters, name) {
                // An empty value of a name must not hide that of another one.
                Some((parameter, _)) if is_left_out(value, &parameter.kind) => {}
                Some((parameter, is_own_name)) => {
                    if is_own_name || !given.contains_key(parameter.name) {
                        given.insert(parameter.name, (name, value));
                    }
                }
                None => self.unknown.borrow_mut().push(unknown_name(name, parameters)),
            }
        }
        for parameter in parameters {
            let place =
                if place.is_empty() { parameter.name.to_owned() } else { format!("{place}.{}", parameter.name) };
            match given.get(parameter.name) {
                Some((name, value)) => match self.argument(value, &parameter.kind, &place) {
                    Ok(argument) => drop(arguments.values.insert(parameter.name, argument)),
                    // The schema does not say what a hidden parameter takes.
                    Err(_) if parameter.presence == Presence::Hidden => {
                        self.unknown.borrow_mut().push(unknown_name(name, parameters));
                    }
                    Err(error) => return Err(error),
                },
                None if parameter.presence == Presence::Required => {
                    return Err(ArgumentError::missing(&place, &parameter.kind));
                }
                None => {}
            }
        }
        Ok(arguments)
    }

    fn argument(&self, value: &Value, kind: &ParameterKind, place: &str) -> Result<Argument, ArgumentError> {
        let refused = || ArgumentError::refused(place, &allowed(kind), value);
        match kind {
            ParameterKind::Text | ParameterKind::Glob => text(value).map(Argument::Text).ok_or_else(refused),
            ParameterKind::Range => range(value).map(Argument::Text).ok_or_else(refused),
            ParameterKind::Path => self.path(value.as_str().ok_or_else(refused)?, place),
            ParameterKind::Boolean => boolean(value).map(Argument::Boolean).ok_or_else(refused),
            ParameterKind::Integer { min, max } => {
                let number = integer(value).filter(|number| (min..=max).contains(&number));
                number.map(Argument::Integer).ok_or_else(refused)
            }
            ParameterKind::Choice(choices) => {
                let written = value.as_str().ok_or_else(refused)?.trim();
                let choice = choices.iter().find(|choice| choice.eq_ignore_ascii_case(written));
                choice.map(|choice| Argument::Text((*choice).to_owned())).ok_or_else(refused)
            }
            ParameterKind::List(of) => {
                let parsed = within_text(value, |value| value.is_array());
                let values = match parsed.as_ref().unwrap_or(value) {
                    Value::Array(values) => values.as_slice(),
                    single => std::slice::from_ref(single),
                };
                let items = values.iter().enumerate().map(|(index, item)| {
                    let place = if values.len() == 1 && !value.is_array() {
                        place.to_owned()
                    } else {
                        format!("{place}[{index}]")
                    };
                    self.argument(item, of, &place)
                });
                items.collect::<Result<_, _>>().map(Argument::List)
            }
            ParameterKind::Object(parameters) => {
                let parsed = within_text(value, Value::is_object);
                let object = parsed.as_ref().unwrap_or(value).as_object().ok_or_else(refused)?;
                self.object(object, parameters, place).map(Argument::Object)
            }
        }
    }

    fn path(&self, written: &str, place: &str) -> Result<Argument, ArgumentError> {
        let path = written.strip_prefix("file://").unwrap_or(written);
        let parsed = VfsPath::parse(path).and_then(|parsed| {
            if path.starts_with('/') { Ok(parsed) } else { self.working_directory.join(parsed.relative()) }
        });
        parsed.map(Argument::Path).map_err(|error| {
            let words = error.for_model();
            ArgumentError::new(format!("`{place}`: {}", words.strip_prefix("Error: ").unwrap_or(&words)))
        })
    }
}

/// Returns the parameter that `name` stands for, and whether it is the parameter's own name.
fn find(parameters: &'static [Parameter], name: &str) -> Option<(&'static Parameter, bool)> {
    let name = folded(name);
    let own = parameters.iter().find(|parameter| folded(parameter.name) == name);
    let alias = || parameters.iter().find(|parameter| parameter.aliases.iter().any(|alias| folded(alias) == name));
    own.map(|parameter| (parameter, true)).or_else(|| Some((alias()?, false)))
}

/// Returns `name` without what models spell differently: case, `_` and `-`.
fn folded(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

fn unknown_name(name: &str, parameters: &[Parameter]) -> String {
    let name = cut(&name.escape_debug().to_string());
    let shown = parameters.iter().filter(|parameter| parameter.presence != Presence::Hidden);
    match similar(&name, shown.map(|parameter| parameter.name), 1).first() {
        Some(nearest) => format!("`{name}` is not a parameter and was ignored; did you mean `{nearest}`?"),
        None => format!("`{name}` is not a parameter and was ignored"),
    }
}

fn is_left_out(value: &Value, kind: &ParameterKind) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => !matches!(kind, ParameterKind::Text | ParameterKind::Glob) && text.trim().is_empty(),
        Value::Array(values) => *kind == ParameterKind::Range && values.is_empty(),
        _ => false,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Returns a range as text: `[20, 60]` is `20-60`, `[20, -1]` and `[20, null]` the rest from 20 on, and `[-40, -1]` the last 40.
fn range(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => match within_text(value, Value::is_array) {
            Some(list) => range(&list),
            None => Some(text.clone()),
        },
        Value::Array(values) => match values.as_slice() {
            [single] if !single.is_array() => range(single),
            [start, end] => Some(match (integer(start)?, if end.is_null() { -1 } else { integer(end)? }) {
                (start, -1) if start < 0 => start.to_string(),
                (start, -1) => format!("{start}-"),
                (start, end) => format!("{start}-{end}"),
            }),
            _ => None,
        },
        _ => integer(value).map(|number| number.to_string()),
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => match number.as_i64()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| whole(text.parse().ok()?))
        }
        _ => None,
    }
}

/// Returns `number` if it is a whole number that a double represents exactly.
fn whole(number: f64) -> Option<i64> {
    const MAX_EXACT: f64 = (1_u64 << 53) as f64;
    (number.fract() == 0.0 && number.abs() <= MAX_EXACT).then_some(number as i64)
}

/// Returns the JSON in a text if it has the expected shape.
fn within_text(value: &Value, is_expected: impl Fn(&Value) -> bool) -> Option<Value> {
    let text = value.as_str()?.trim();
    let parsed: Value = text.starts_with(['[', '{']).then(|| serde_json::from_str(text).ok())??;
    is_expected(&parsed).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const EDIT: &[Parameter] = &[
        Parameter::required("old", ParameterKind::Text, "").aliases(&["old_string", "oldText"]),
        Parameter::required("new", ParameterKind::Text, "").aliases(&["new_string"]),
    ];
    const PARAMETERS: &[Parameter] = &[
        Parameter::required("path", ParameterKind::Path, "").aliases(&["file_path"]),
        Parameter::optional("limit", ParameterKind::Integer { min: 1, max: 1000 }, "").aliases(&["max_count"]),
        Parameter::optional("regex", ParameterKind::Boolean, ""),
        Parameter::optional("show", ParameterKind::Choice(&["lines", "files"]), ""),
        Parameter::optional("text", ParameterKind::Text, ""),
        Parameter::optional("lines", ParameterKind::Range, ""),
        Parameter::hidden("offset", ParameterKind::Integer { min: 0, max: i64::MAX }),
        Parameter::optional("edits", ParameterKind::List(&ParameterKind::Object(EDIT)), ""),
    ];

    fn read(arguments: Value) -> Result<Arguments, String> {
        let directory = VfsPath::parse("/project").expect("a valid path");
        Arguments::read(&arguments, PARAMETERS, &directory).map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_values_are_read_as_models_write_them() {
        for (written, name, expected) in [
            (json!({ "path": "/a" }), "path", json!("/a")),
            (json!({ "file_path": "a/b" }), "path", json!("/project/a/b")),
            (json!({ "FilePath": "/a " }), "path", json!("/a ")),
            (json!({ "path": "file:///a" }), "path", json!("/a")),
            (json!({ "path": "/a", "file_path": "/b" }), "path", json!("/a")),
            (json!({ "path": "", "file_path": "/b" }), "path", json!("/b")),
            (json!("{\"path\": \"/a\", \"limit\": 3}"), "limit", json!(3)),
            (json!({ "path": "/a", "max_count": " 7 " }), "limit", json!(7)),
            (json!({ "path": "/a", "limit": 7.0 }), "limit", json!(7)),
            (json!({ "path": "/a", "limit": "7.0" }), "limit", json!(7)),
            (json!({ "path": "/a", "limit": null }), "limit", json!(null)),
            (json!({ "path": "/a", "limit": "" }), "limit", json!(null)),
            (json!({ "path": "/a", "regex": "True" }), "regex", json!(true)),
            (json!({ "path": "/a", "regex": 0 }), "regex", json!(false)),
            (json!({ "path": "/a", "show": "Files" }), "show", json!("files")),
            (json!({ "path": "/a", "text": "" }), "text", json!("")),
            (json!({ "path": "/a", "text": 12 }), "text", json!("12")),
            (json!({ "path": "/a", "lines": "20-60" }), "lines", json!("20-60")),
            (json!({ "path": "/a", "lines": [20, 60] }), "lines", json!("20-60")),
            (json!({ "path": "/a", "lines": ["20", -1] }), "lines", json!("20-")),
            (json!({ "path": "/a", "lines": [20, null] }), "lines", json!("20-")),
            (json!({ "path": "/a", "lines": "[20, null]" }), "lines", json!("20-")),
            (json!({ "path": "/a", "lines": "[-40, -1]" }), "lines", json!("-40")),
            (json!({ "path": "/a", "lines": [-40, -1] }), "lines", json!("-40")),
            (json!({ "path": "/a", "lines": [7] }), "lines", json!("7")),
            (json!({ "path": "/a", "lines": ["20-60"] }), "lines", json!("20-60")),
            (json!({ "path": "/a", "lines": 20.0 }), "lines", json!("20")),
            (json!({ "path": "/a", "lines": [] }), "lines", json!(null)),
            (json!({ "path": "/a", "offset": 3 }), "offset", json!(3)),
        ] {
            let arguments = read(written.clone()).expect("it is read");
            let value = match arguments.get(name) {
                None => Value::Null,
                Some(Argument::Text(text)) => json!(text),
                Some(Argument::Path(path)) => json!(path.as_str()),
                Some(Argument::Boolean(value)) => json!(value),
                Some(Argument::Integer(value)) => json!(value),
                Some(other) => panic!("{other:?}"),
            };
            assert_eq!((value, arguments.notes()), (expected, &[][..]), "{written}");
        }
    }

    #[test]
    fn a_list_of_objects_may_be_a_single_one_or_json_in_a_text() {
        let edit = json!({ "old_string": "a", "new": "b" });
        for edits in [
            json!([edit]),
            edit.clone(),
            json!(format!("[{edit}]")),
            json!(edit.to_string()),
            json!([edit.to_string()]),
        ] {
            let arguments = read(json!({ "path": "/a", "edits": edits })).expect("it is read");
            let [Argument::Object(edit)] = arguments.list("edits") else { panic!("{arguments:?}") };
            assert_eq!((edit.text("old"), edit.text("new")), (Some("a"), Some("b")));
        }
    }

    #[test]
    fn an_error_says_which_argument_what_came_and_what_is_allowed() {
        for (written, expected) in [
            (json!({}), "`path` is missing; it has to be a path"),
            (json!(null), "`path` is missing; it has to be a path"),
            (json!([1]), "the arguments have to be a JSON object; got a list of 1"),
            (
                json!("no"),
                "the arguments have to be a JSON object; got the text \"no\", which is no JSON: expected ident at line 1 column 2",
            ),
            (json!({ "path": ["/a"] }), "`path` has to be a path; got a list of 1"),
            (json!({ "path": "/a", "limit": 0 }), "`limit` has to be a whole number from 1 to 1000; got 0"),
            (json!({ "path": "/a", "limit": 1e300 }), "`limit` has to be a whole number from 1 to 1000; got 1e+300"),
            (
                json!({ "path": "/a", "limit": "many" }),
                "`limit` has to be a whole number from 1 to 1000; got the text \"many\"",
            ),
            (json!({ "path": "/a", "regex": 2 }), "`regex` has to be `true` or `false`; got 2"),
            (
                json!({ "path": "/a", "show": "all" }),
                "`show` has to be one of \"lines\", \"files\"; got the text \"all\"",
            ),
            (json!({ "path": "/a", "text": {} }), "`text` has to be a text; got an object"),
            (
                json!({ "path": "/a", "lines": [1, 2, 3] }),
                "`lines` has to be a range such as '20-60', '20-' or '-40'; got a list of 3",
            ),
            (
                json!({ "path": "/a", "edits": [{ "old": "a", "new": "b" }, { "old": "a" }] }),
                "`edits[1].new` is missing; it has to be a text",
            ),
            (json!({ "path": "/a", "edits": [3] }), "`edits[0]` has to be an object with `old`, `new`; got 3"),
        ] {
            assert_eq!(read(written.clone()).expect_err("it is refused"), expected, "{written}");
        }
        let error = read(json!({ "path": "/../a" })).expect_err("it is refused");
        assert!(error.starts_with("`path`: ") && error.contains(".."), "{error}");
        assert!(read(json!({ "path": "/a", "show": "x".repeat(1 << 20) })).expect_err("it is refused").len() < 200);
    }

    #[test]
    fn the_home_directory_and_drives_are_no_relative_paths() {
        for path in ["~/a", "C:\\a", "../a"] {
            let error = read(json!({ "path": path })).expect_err("it is refused");
            assert!(error.starts_with("`path`: ") && !error.contains("//"), "{error}");
        }
    }

    #[test]
    fn many_unknown_names_are_counted() {
        let arguments = read(json!({ "path": "/a", "edits": [{ "old": "", "new": "", "more": 1 }], "x": 1 }));
        assert_eq!(arguments.expect("it is read").notes().len(), 2);
        let mut many = unknown_arguments(9);
        many.insert("path".to_owned(), json!("/a"));
        let arguments = read(many.into()).expect("it is read");
        assert_eq!(
            arguments.notes().last().map(String::as_str),
            Some("6 further names are not parameters and were ignored")
        );
        assert!(arguments.notes().iter().all(|note| !note.contains('\n')));
    }

    fn unknown_arguments(count: usize) -> Map<String, Value> {
        (0..count).map(|number| (format!("name\n{number}"), json!(1))).collect()
    }

    #[test]
    fn an_unknown_name_is_noted_with_the_nearest() {
        let arguments = read(json!({ "path": "/a", "limits": 3, "something_else": 4 })).expect("it is read");
        assert_eq!(
            arguments.notes(),
            [
                "`limits` is not a parameter and was ignored; did you mean `limit`?",
                "`something_else` is not a parameter and was ignored",
            ]
        );
        assert_eq!(arguments.integer("limit"), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            let name =
                prop_oneof![Just("path".to_owned()), Just("edits".to_owned()), Just("limit".to_owned()), ".{0,9}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..6).prop_map(|entries| Value::from(Map::from_iter(entries))),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_arguments_panic_and_errors_are_short(arguments in any_json()) {
            if let Err(error) = read(arguments) {
                prop_assert!(error.chars().count() < 2000, "{error}");
            }
        }
    }
}

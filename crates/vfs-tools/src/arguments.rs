//! Arguments of a call.

use std::collections::BTreeMap;

use serde_json::Value;
use vfs_core::VfsPath;

use crate::argument_error::ArgumentError;
use crate::argument_reader;
use crate::parameter::{Parameter, ParameterKind};

/// The arguments of a call by the names of their parameters.
///
/// # Behaviour
///
/// * Names are accepted in any case, with or without `_` and `-`, and by their aliases. If a name is given twice, the name of the
///   parameter itself goes before an alias, unless its value leaves it out.
/// * A number or boolean may be a text (`"3"`, `"true"`), and a number may have a fraction of zero. A list or object may be JSON in a
///   text, and a single value stands for a list of one. Texts of one of several choices are accepted in any case.
/// * `null` leaves a parameter out, and so does an empty text or range unless the parameter is a text or a pattern.
/// * A path may be relative to the working directory, and may be a `file:` URL.
/// * An unknown name is a [note](Self::notes), and its value is ignored. The same holds for a value that a hidden parameter does
///   not take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments {
    pub(crate) values: BTreeMap<&'static str, Argument>,
    pub(crate) notes: Vec<String>,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Argument {
    /// A text or a choice.
    Text(String),
    /// A path.
    Path(VfsPath),
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A list.
    List(Vec<Argument>),
    /// An object.
    Object(Arguments),
}

impl Arguments {
    /// Reads `arguments`, the JSON object of a call or a text that has one, for `parameters`. Relative paths start at
    /// `working_directory`.
    ///
    /// # Errors
    ///
    /// For the first parameter that is missing or whose value cannot be read, and for something that is no object.
    pub fn read(
        arguments: &Value,
        parameters: &'static [Parameter],
        working_directory: &VfsPath,
    ) -> Result<Self, ArgumentError> {
        argument_reader::read(arguments, parameters, working_directory)
    }

    /// Returns what the model should know about its arguments, such as an unknown name, each in one line.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the argument of the parameter `name`, or `None` if it was left out.
    pub fn get(&self, name: &str) -> Option<&Argument> {
        self.values.get(name)
    }

    /// Returns the text or choice of the parameter `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Argument::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the path of the parameter `name`.
    pub fn path(&self, name: &str) -> Option<&VfsPath> {
        match self.get(name)? {
            Argument::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the boolean of the parameter `name`.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Argument::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the whole number of the parameter `name`.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Argument::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the number of the parameter `name`, whose lowest value is 0 or more.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.integer(name).and_then(|number| u64::try_from(number).ok())
    }

    /// Returns the text of the parameter `name`.
    ///
    /// # Errors
    ///
    /// If it was left out.
    pub(crate) fn required_text(&self, name: &str) -> Result<String, ArgumentError> {
        self.text(name).map(str::to_owned).ok_or_else(|| ArgumentError::missing(name, &ParameterKind::Text))
    }

    /// Returns the path of the parameter `name`.
    ///
    /// # Errors
    ///
    /// If it was left out.
    pub(crate) fn required_path(&self, name: &str) -> Result<VfsPath, ArgumentError> {
        self.path(name).cloned().ok_or_else(|| ArgumentError::missing(name, &ParameterKind::Path))
    }

    /// Returns the path of the parameter `name`, or the root if it was left out.
    pub(crate) fn path_or_root(&self, name: &str) -> VfsPath {
        self.path(name).cloned().unwrap_or_else(VfsPath::root)
    }

    /// Returns the list of the parameter `name`, which is empty if it was left out.
    pub fn list(&self, name: &str) -> &[Argument] {
        match self.get(name) {
            Some(Argument::List(values)) => values,
            _ => &[],
        }
    }
}

//! Parameters of a tool, as data.

/// A parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// The name that the schema shows.
    pub name: &'static str,
    /// Other names that are accepted, such as those of other tools.
    pub aliases: &'static [&'static str],
    /// The values that it takes.
    pub kind: ParameterKind,
    /// Whether it may be left out.
    pub presence: Presence,
    /// The description for the model.
    pub description: &'static str,
}

impl Parameter {
    /// Creates a parameter that has to be given.
    pub const fn required(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        Self { name, aliases: &[], kind, presence: Presence::Required, description }
    }

    /// Creates a parameter that may be left out.
    pub const fn optional(name: &'static str, kind: ParameterKind, description: &'static str) -> Self {
        Self { presence: Presence::Optional, ..Self::required(name, kind, description) }
    }

    /// Creates a parameter that may be left out and that the schema does not show.
    pub const fn hidden(name: &'static str, kind: ParameterKind) -> Self {
        Self { presence: Presence::Hidden, ..Self::required(name, kind, "") }
    }

    /// Sets other names that are accepted.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

/// Whether a parameter may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Presence {
    /// It has to be given.
    Required,
    /// It may be left out; `null` and an empty text or range count as left out, except that a text or pattern may be empty.
    Optional,
    /// It may be left out, and is not in the schema: models know it from other tools. A value that it does not take is ignored with a
    /// note, as an unknown name is.
    Hidden,
}

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// A text.
    Text,
    /// A range of numbers as text, such as `20-60`. A number, or a list of one or two, is the text that it means.
    Range,
    /// A path, absolute or below the working directory.
    Path,
    /// A pattern of paths, such as `src/**/*.rs`.
    Glob,
    /// `true` or `false`.
    Boolean,
    /// A whole number within these bounds, which belong to it.
    Integer {
        /// The lowest value.
        min: i64,
        /// The highest value.
        max: i64,
    },
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of values.
    List(&'static ParameterKind),
    /// An object with these parameters.
    Object(&'static [Parameter]),
}

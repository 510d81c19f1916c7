//! Random operations and their generators.

use proptest::prelude::*;

/// Treatment of an existing target by a write, rename or copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTargetMode {
    /// The target must not exist.
    CreateNew,
    /// The target is replaced.
    Overwrite,
    /// The content is appended; for a rename or copy the same as `Overwrite`.
    Append,
    /// The target must have its current version; for a rename or copy the same as `CreateNew`.
    IfCurrent,
    /// On a version that never was; of a rename or copy the same as `CreateNew`.
    IfStale,
}

/// One operation of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelStep {
    /// A write.
    Write {
        /// The file.
        path: String,
        /// The new content.
        content: String,
        /// The treatment of an existing file.
        mode: ExistingTargetMode,
    },
    /// An edit of one replacement.
    Edit {
        /// The file.
        path: String,
        /// The text to replace.
        old: String,
        /// The replacement.
        new: String,
        /// Whether all occurrences are replaced.
        all: bool,
    },
    /// A read of a window.
    Read {
        /// The file.
        path: String,
        /// The number of lines to skip.
        offset: u64,
        /// The maximum number of lines to read.
        limit: u64,
    },
    /// A delete.
    Delete {
        /// The file or directory.
        path: String,
        /// Whether all entries below are included.
        recursive: bool,
    },
    /// A delete of an empty directory.
    DeleteEmpty {
        /// The directory.
        path: String,
    },
    /// A rename.
    Rename {
        /// The source.
        from: String,
        /// The target.
        to: String,
        /// The treatment of an existing target.
        mode: ExistingTargetMode,
    },
    /// A copy.
    Copy {
        /// The source.
        from: String,
        /// The target.
        to: String,
        /// The treatment of an existing target.
        mode: ExistingTargetMode,
    },
    /// A listing.
    Ls {
        /// The directory.
        path: String,
        /// Whether all entries below are included.
        recursive: bool,
    },
    /// A glob of a name below the base.
    Glob {
        /// The name.
        name: String,
    },
    /// A search for a literal below the base.
    Grep {
        /// The literal.
        literal: String,
    },
}

/// Generates few paths, so that steps affect the same ones: one name is the beginning of another, some are files here and
/// directories there.
fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["/a", "/b", "/a/a", "/a/b", "/a-b", "/a/b/c", "/b/é x", "/c/d/e", "/c/d", "/c"])
        .prop_map(str::to_owned)
}

/// Generates texts of few characters, so that they repeat and overlap.
fn content() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "é", "\n", "\r\n"]), 0..10)
        .prop_map(|parts| parts.concat())
}

fn mode() -> impl Strategy<Value = ExistingTargetMode> {
    use ExistingTargetMode::{Append, CreateNew, IfCurrent, IfStale, Overwrite};
    prop::sample::select(vec![CreateNew, Overwrite, Overwrite, Append, IfCurrent, IfStale])
}

fn step() -> impl Strategy<Value = ModelStep> {
    let literal = prop::sample::select(vec!["a", "b", "ab", "aa", "é", "ba"]).prop_map(str::to_owned);
    let new = prop::sample::select(vec!["", "x", "a", "aab"]).prop_map(str::to_owned);
    let name = prop::sample::select(vec!["a", "b", "*", "?", "a*", "e", "é x", "[ab]"]).prop_map(str::to_owned);
    prop_oneof![
        6 => (path(), content(), mode()).prop_map(|(path, content, mode)| ModelStep::Write { path, content, mode }),
        4 => (path(), literal.clone(), new, any::<bool>())
            .prop_map(|(path, old, new, all)| ModelStep::Edit { path, old, new, all }),
        2 => (path(), 0..4_u64, 0..4_u64).prop_map(|(path, offset, limit)| ModelStep::Read { path, offset, limit }),
        2 => (path(), any::<bool>()).prop_map(|(path, recursive)| ModelStep::Delete { path, recursive }),
        1 => path().prop_map(|path| ModelStep::DeleteEmpty { path }),
        3 => (path(), path(), mode()).prop_map(|(from, to, mode)| ModelStep::Rename { from, to, mode }),
        3 => (path(), path(), mode()).prop_map(|(from, to, mode)| ModelStep::Copy { from, to, mode }),
        1 => (path(), any::<bool>()).prop_map(|(path, recursive)| ModelStep::Ls { path, recursive }),
        1 => name.prop_map(|name| ModelStep::Glob { name }),
        1 => literal.prop_map(|literal| ModelStep::Grep { literal }),
    ]
}

/// Generates up to forty random operations.
pub fn steps() -> impl Strategy<Value = Vec<ModelStep>> {
    prop::collection::vec(step(), 1..40)
}

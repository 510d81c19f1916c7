//! Data model of one rule.

use serde::{Deserialize, Serialize};

/// What a rule says of what it covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleEffect {
    /// It may be done.
    #[default]
    Allow,
    /// It may not.
    Deny,
    /// Somebody has to approve it.
    Ask,
}

/// What becomes of files that have several names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HardLinks {
    /// They are not read: one of the other names may be a denied one.
    #[default]
    Deny,
    /// They are read by the rules for the name that is asked for.
    Allow,
}

/// One rule, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Rule {
    /// What a person calls it, in explanations and records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it says of what it covers.
    pub effect: RuleEffect,
    /// Permissions (`read`, `write`, `delete`, `execute`) and single operations (`rename`, `glob`, `upload`, ...). `grep`
    /// includes `grep_stream`, by which `vfs grep` searches.
    /// Default: all but `execute`, which has to be named where it is to be allowed. Denied or asked about, `write` includes
    /// `delete`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// Globs. One without a `/` is matched against names at any depth; one with a `/` against whole paths. Each covers
    /// what it matches and everything below. Default: everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Command lines, as words with wildcards: `git status`, `ls *`, `rm *`. A rule with some is about running commands and
    /// nothing else; how they are matched, [`RuleSet`](crate::RuleSet) says. Default: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Globs of who asks; who has no name is the empty one, which only `*` matches. Default: everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<String>,
    /// Why, in words for the model or for who is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Rule {
    /// A rule that covers everything.
    pub fn new(effect: RuleEffect) -> Self {
        Self { effect, ..Self::default() }
    }

    /// Narrows it to these paths too.
    #[must_use]
    pub fn path(mut self, glob: impl Into<String>) -> Self {
        self.paths.push(glob.into());
        self
    }

    /// Narrows it to this permission or operation too.
    #[must_use]
    pub fn operation(mut self, word: impl Into<String>) -> Self {
        self.operations.push(word.into());
        self
    }

    /// Narrows it to these commands too.
    #[must_use]
    pub fn command(mut self, pattern: impl Into<String>) -> Self {
        self.commands.push(pattern.into());
        self
    }

    /// Narrows it to these actors too.
    #[must_use]
    pub fn actor(mut self, glob: impl Into<String>) -> Self {
        self.actors.push(glob.into());
        self
    }

    /// Gives it a name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Says why.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

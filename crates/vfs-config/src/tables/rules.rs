//! Rules of a policy.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use vfs_policy::{HardLinks, Rule, RuleEffect};

/// Rules in order: the first that covers something decides about it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesTable {
    /// What becomes of what no rule covers. Default: `allow`. Commands always take a rule.
    pub(crate) default: Option<EffectWord>,
    /// What becomes of files that have several names. Default: `deny`, where anything is denied at all.
    pub(crate) hard_links: Option<HardLinksWord>,
    /// What becomes of command lines that rules with `commands` do not understand. Default: `ask`.
    pub(crate) not_understood: Option<EffectWord>,
    /// The rules.
    #[serde(default)]
    #[schemars(with = "Vec<RuleTable>")]
    pub(crate) rules: Vec<Spanned<RuleTable>>,
}

/// A rule.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleTable {
    /// What it says of what it covers.
    effect: EffectWord,
    /// What it is called in explanations.
    name: Option<String>,
    /// Permissions (`read`, `write`, `delete`, `execute`) and single operations (`rename`, `grep`, ...). Default: all, but
    /// for `execute`, which has to be named to be allowed.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(crate) operations: Vec<Spanned<String>>,
    /// Globs. One without a `/` is matched against names at any depth; one with a `/` against whole paths. Each covers what
    /// it matches and everything below. Default: everything.
    #[serde(default)]
    paths: Vec<String>,
    /// Command lines, as words with wildcards: `git status`, `ls *`, `rm *`. A rule with some is about running commands and
    /// nothing else. One that allows covers a line only if every command in it is one of these; one that denies or asks
    /// covers it if any may be. Of expansions, assignments, the shell's grammar, and programs that run others, such as
    /// `env` and `xargs`, it understands nothing: see `not_understood`. Default: any.
    #[serde(default)]
    commands: Vec<String>,
    /// Globs of who asks. Default: everybody.
    #[serde(default)]
    actors: Vec<String>,
    /// Why, in words for the model or for who is asked.
    reason: Option<String>,
}

impl RuleTable {
    pub(crate) fn to_rule(&self) -> Rule {
        let mut rule = Rule::new(self.effect.into());
        rule.name.clone_from(&self.name);
        rule.operations = self.operations.iter().map(|word| word.get_ref().clone()).collect();
        rule.paths.clone_from(&self.paths);
        rule.commands.clone_from(&self.commands);
        rule.actors.clone_from(&self.actors);
        rule.reason.clone_from(&self.reason);
        rule
    }
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EffectWord {
    /// It may be done.
    Allow,
    /// It may not.
    Deny,
    /// Somebody has to approve it.
    Ask,
}

impl From<EffectWord> for RuleEffect {
    fn from(word: EffectWord) -> Self {
        match word {
            EffectWord::Allow => Self::Allow,
            EffectWord::Deny => Self::Deny,
            EffectWord::Ask => Self::Ask,
        }
    }
}

/// What becomes of files that have several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PolicyHardLinks")]
pub(crate) enum HardLinksWord {
    /// They are not read: one of the other names may be a denied one.
    Deny,
    /// They are read by the rules for the name that is asked for.
    Allow,
}

impl From<HardLinksWord> for HardLinks {
    fn from(word: HardLinksWord) -> Self {
        match word {
            HardLinksWord::Deny => Self::Deny,
            HardLinksWord::Allow => Self::Allow,
        }
    }
}

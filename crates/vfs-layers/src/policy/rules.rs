//! The built-in rules.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::{Action, Error, ErrorKind, OpContext, Operation, Result, VfsPath};
use vfs_search::GlobPattern;

use super::needs::{lists, needs};
use super::pattern::{Case, PathPattern};
use super::{Decision, Permission, PolicyHook};

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
    /// Permissions (`read`, `write`, `delete`, `execute`) and single operations (`rename`, `glob`, `upload`, ...).
    /// Default: all but `execute`, which has to be named where it is to be allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// Globs. One without a `/` is matched against names at any depth; one with a `/` against whole paths. Each covers
    /// what it matches and everything below. Default: everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
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

/// Rules in order: the first that covers something decides about it.
///
/// # Behaviour
///
/// * A rule covers an operation by its permissions as well as by its own word: `read` is about downloads, searches, the
///   source of a copy or rename and the place of an edit, `write` about uploads and targets.
/// * Rules that deny or ask match paths whatever the case of their letters; rules that allow match them as they are
///   written. So on a file system that folds case, other cases do not get past a denial. Other spellings that a file
///   system may take for the same, by Unicode normalisation, are other names to a rule.
/// * Commands are denied unless a rule that names `execute` allows them: what a command does, no rule about paths can see.
/// * What no rule covers is the default's, which allows.
///
/// In TOML:
///
/// ```
/// use vfs_layers::RuleSet;
///
/// let rules = RuleSet::from_toml(r#"
///     default = "allow"
///
///     [[rules]]
///     name = "no secrets"
///     effect = "deny"
///     paths = ["/secrets", ".env", "*.pem"]
///
///     [[rules]]
///     effect = "ask"
///     operations = ["delete"]
///     actors = ["intern-*"]
///     reason = "an intern wants to delete something"
/// "#)?;
/// assert_eq!(rules.rules().len(), 2);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct RuleSet {
    written: Written,
    compiled: Vec<Compiled>,
}

/// The rules as they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    default: RuleEffect,
    hard_links: HardLinks,
    rules: Vec<Rule>,
}

/// A rule, ready to match.
#[derive(Debug, Clone)]
struct Compiled {
    effect: RuleEffect,
    permissions: Vec<Permission>,
    operations: BTreeSet<Operation>,
    covers_all_operations: bool,
    paths: Vec<PathPattern>,
    actors: Vec<GlobPattern>,
}

/// Which rule decided, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) effect: RuleEffect,
    /// Its place in the list; `None` for the default.
    pub(super) rule: Option<usize>,
}

/// One thing that is asked of the rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) actor: Option<&'a str>,
    pub(super) operation: Option<Operation>,
    pub(super) permission: Permission,
    pub(super) path: &'a VfsPath,
}

impl RuleSet {
    /// Rules that are asked in this order; what none covers is allowed.
    ///
    /// # Errors
    ///
    /// `invalid_pattern` and `invalid_argument`, with the number of the rule.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        Self::try_from(Written { rules: rules.into_iter().collect(), ..Written::default() })
    }

    /// Reads rules from TOML.
    ///
    /// # Errors
    ///
    /// `invalid_argument`, naming the line, for what is not TOML or not a rule, and those of [`RuleSet::new`].
    pub fn from_toml(text: &str) -> Result<Self> {
        let written: Written = toml::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Self::try_from(written)
    }

    /// Reads rules from JSON.
    ///
    /// # Errors
    ///
    /// As [`RuleSet::from_toml`].
    pub fn from_json(text: &str) -> Result<Self> {
        let written: Written = serde_json::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Self::try_from(written)
    }

    /// Sets what becomes of what no rule covers. Default [`RuleEffect::Allow`].
    #[must_use]
    pub fn otherwise(mut self, effect: RuleEffect) -> Self {
        self.written.default = effect;
        self
    }

    /// Sets what becomes of files that have several names. Default [`HardLinks::Deny`].
    #[must_use]
    pub fn with_hard_links(mut self, hard_links: HardLinks) -> Self {
        self.written.hard_links = hard_links;
        self
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.written.rules
    }

    pub(super) fn decide(&self, question: Question<'_>) -> Verdict {
        let rule = self.compiled.iter().position(|rule| rule.covers(question));
        let effect = match rule {
            Some(rule) => self.compiled[rule].effect,
            // What no rule says of commands is not said by a default either.
            None if question.permission == Permission::Execute && self.written.default == RuleEffect::Allow => {
                RuleEffect::Deny
            }
            None => self.written.default,
        };
        Verdict { effect, rule }
    }

    fn decision(&self, verdict: Verdict, question: Question<'_>) -> Decision {
        if verdict.effect == RuleEffect::Allow {
            return Decision::Allow;
        }
        let rule = verdict.rule.map(|rule| &self.written.rules[rule]);
        let said = rule.and_then(|rule| rule.reason.clone());
        match verdict.effect {
            RuleEffect::Allow => Decision::Allow,
            RuleEffect::Deny => Decision::Deny {
                reason: said.unwrap_or_else(|| match (question.permission, rule) {
                    (Permission::Execute, None) => "no rule allows commands".to_owned(),
                    (permission, _) => format!("{permission} is not allowed here"),
                }),
            },
            RuleEffect::Ask => Decision::Ask {
                prompt: said.unwrap_or_else(|| format!("allow {} of {}?", question.permission, question.path)),
            },
        }
    }

    fn leads(&self, actor: Option<&str>, path: &VfsPath) -> bool {
        let question = Question { actor, operation: None, permission: Permission::Read, path };
        let last = self.decide(question).rule.unwrap_or(self.compiled.len());
        // Only rules that come before the one that denies the directory can say another thing below it.
        let mut earlier = self.compiled[..last].iter().filter(|rule| rule.effect != RuleEffect::Deny);
        earlier.any(|rule| rule.is_about(question) && rule.reaches(path))
    }
}

impl Compiled {
    fn new(rule: &Rule) -> Result<Self> {
        let mut compiled = Self {
            effect: rule.effect,
            permissions: Vec::new(),
            operations: BTreeSet::new(),
            covers_all_operations: rule.operations.is_empty(),
            paths: rule.paths.iter().map(|glob| PathPattern::new(glob)).collect::<Result<_>>()?,
            actors: rule.actors.iter().map(|glob| GlobPattern::new(glob)).collect::<Result<_>>()?,
        };
        for word in &rule.operations {
            let permission = Permission::ALL.iter().find(|permission| permission.code() == word);
            match permission {
                Some(permission) => compiled.permissions.push(*permission),
                None => drop(compiled.operations.insert(Operation::from_str(word)?)),
            }
        }
        Ok(compiled)
    }

    fn case(&self) -> Case {
        if self.effect == RuleEffect::Allow { Case::Sensitive } else { Case::Insensitive }
    }

    /// Whether the rule is about who asks, and about what is done.
    fn is_about(&self, question: Question<'_>) -> bool {
        let actor = question.actor.unwrap_or_default();
        let is_actors = self.actors.is_empty() || self.actors.iter().any(|glob| glob.matches(actor));
        let is_operations = if self.covers_all_operations {
            // To allow commands takes a word; to deny everything denies commands too.
            question.permission != Permission::Execute || self.effect != RuleEffect::Allow
        } else {
            self.permissions.contains(&question.permission)
                || question.operation.is_some_and(|operation| self.operations.contains(&operation))
        };
        is_actors && is_operations
    }

    fn covers(&self, question: Question<'_>) -> bool {
        self.is_about(question)
            && (self.paths.is_empty() || self.paths.iter().any(|glob| glob.covers(question.path, self.case())))
    }

    fn reaches(&self, directory: &VfsPath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|glob| glob.reaches(directory, self.case()))
    }
}

impl TryFrom<Written> for RuleSet {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        let compiled = written.rules.iter().enumerate().map(|(index, rule)| {
            Compiled::new(rule).map_err(|error| {
                let name = rule.name.as_ref().map(|name| format!(" ('{name}')")).unwrap_or_default();
                Error::new(error.kind(), format!("rule {}{name}: {}", index + 1, error.message()))
            })
        });
        let compiled = compiled.collect::<Result<_>>()?;
        Ok(Self { written, compiled })
    }
}

impl From<RuleSet> for Written {
    fn from(rules: RuleSet) -> Self {
        rules.written
    }
}

fn unreadable(message: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the rules cannot be read: {}", message.trim()))
}

#[async_trait]
impl PolicyHook for RuleSet {
    async fn check(&self, cx: &OpContext, action: &Action<'_>) -> Decision {
        let mut asks = Decision::Allow;
        for need in needs(action) {
            let question = Question {
                actor: cx.actor(),
                operation: Some(action.operation()),
                permission: need.permission,
                path: need.path,
            };
            let verdict = self.decide(question);
            match self.decision(verdict, question) {
                Decision::Allow => {}
                _ if lists(action) && self.leads(cx.actor(), need.path) => {}
                ask @ Decision::Ask { .. } => asks = ask,
                deny @ Decision::Deny { .. } => return deny,
            }
        }
        asks
    }

    async fn check_path(&self, cx: &OpContext, permission: Permission, path: &VfsPath) -> Decision {
        let question = Question { actor: cx.actor(), operation: None, permission, path };
        self.decision(self.decide(question), question)
    }

    fn leads_on(&self, cx: &OpContext, path: &VfsPath) -> bool {
        self.leads(cx.actor(), path)
    }

    fn differs_below(&self, _cx: &OpContext, path: &VfsPath) -> bool {
        // Everything lies below the root, so it is asked about no pattern; it is asked about before every operation.
        self.compiled.iter().any(|rule| !rule.paths.is_empty() && (path.is_root() || rule.reaches(path)))
    }

    fn hard_links(&self) -> HardLinks {
        let denies = |effect| effect != RuleEffect::Allow;
        // Where nothing is denied, no other name of a file can be a denied one.
        let may_hide = denies(self.written.default) || self.written.rules.iter().any(|rule| denies(rule.effect));
        if may_hide { self.written.hard_links } else { HardLinks::Allow }
    }
}

//! Dry-run evaluation of rules: which rule decides, and why.

use serde::Serialize;
use vfs_core::{ExecuteRequest, Operation, Result, VfsPath};

use crate::command_parser::RequestedCommand;
use crate::policy::Permission;
use crate::rule::RuleEffect;
use crate::rule_set::{RuleQuery, RuleSet};

/// Effect of a rule set on one permission at one path, with the rule that decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The path in question.
    pub path: VfsPath,
    /// The permission in question.
    pub permission: Permission,
    /// The resulting effect.
    pub effect: RuleEffect,
    /// Number of the rule that decides, from 1; `None` for the default, and for a rule that no user has written.
    pub rule: Option<usize>,
    /// The mount whose policy decides; `None` for a policy around everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<VfsPath>,
    /// Name of the deciding rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reason: the text of the rule, or the part of a command line that is not understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RuleSet {
    /// Returns the effect of these rules on `word`, a permission or an operation, at `path` for `actor`.
    ///
    /// # Behaviour
    ///
    /// For an operation with two paths, such as a rename, `path` stands for both. The result has one explanation for each
    /// required permission; the operation goes on only if all are allowed. Rules about single commands are not evaluated: use
    /// [`explain_command`](Self::explain_command).
    ///
    /// # Errors
    ///
    /// `invalid_argument` if `word` is neither a permission nor an operation.
    pub fn explain(&self, actor: Option<&str>, word: &str, path: &VfsPath) -> Result<Vec<Explanation>> {
        let permission = Permission::ALL.iter().find(|permission| permission.code() == word);
        let (operation, permissions) = match (permission, word.parse::<Operation>()) {
            (_, Ok(operation)) => (Some(operation), permissions(operation)),
            (Some(permission), Err(_)) => (None, vec![*permission]),
            (None, Err(error)) => return Err(error),
        };
        let has_commands = self.rules().iter().any(|rule| !rule.commands.is_empty());
        let explained = permissions.into_iter().map(|permission| {
            let mut explained = self.explained(RuleQuery { actor, operation, permission, path, command: None });
            if permission == Permission::Execute && has_commands && explained.reason.is_none() {
                explained.reason =
                    Some("other rules decide about single commands; ask about a command line".to_owned());
            }
            explained
        });
        Ok(explained.collect())
    }

    /// Returns the effect of these rules on the command of `request` for `actor`.
    pub fn explain_command(&self, actor: Option<&str>, request: &ExecuteRequest) -> Explanation {
        let command = RequestedCommand::new(request);
        let (operation, permission) = (Some(Operation::Execute), Permission::Execute);
        self.explained(RuleQuery { actor, operation, permission, path: &request.cwd, command: Some(&command) })
    }

    fn explained(&self, query: RuleQuery<'_>) -> Explanation {
        let verdict = self.decide(query);
        let rule = verdict.rule.map(|rule| &self.rules()[rule]);
        Explanation {
            path: query.path.clone(),
            permission: query.permission,
            effect: verdict.effect,
            rule: verdict.rule.map(|rule| rule + 1),
            mount: None,
            name: rule.and_then(|rule| rule.name.clone()),
            reason: self.reason(verdict),
        }
    }
}

/// Returns the permissions that `operation` requires.
fn permissions(operation: Operation) -> Vec<Permission> {
    use Permission::{Delete, Execute, Read, Write};
    match operation {
        Operation::Write | Operation::Upload => vec![Write],
        Operation::Edit => vec![Read, Write],
        Operation::Delete | Operation::Forget => vec![Delete],
        Operation::Rename => vec![Read, Delete, Write],
        Operation::Copy => vec![Read, Write],
        Operation::Execute | Operation::ExecuteStream | Operation::Jobs | Operation::JobOutput | Operation::StopJob => {
            vec![Execute]
        }
        Operation::Restore => vec![Write, Delete],
        _ => vec![Read],
    }
}

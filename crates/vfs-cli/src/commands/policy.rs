//! Command `vfs policy explain`: explains decisions of policies.

use std::io::Write;

use vfs_core::{Backend as _, ExecuteRequest, ResolveRequest, VfsPath};
use vfs_policy::{Explanation, RuleEffect};

use crate::args::ExplainArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) async fn explain(
    session: &BackendSession,
    out: &mut StandardOutput,
    args: ExplainArgs,
) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    let mut decisions = decisions(session, &args, &path)?;
    let real = real_path(session, &args.operation, &path).await?;
    if let Some(real) = &real {
        decisions.extend(self::decisions(session, &args, real)?);
    }
    for decision in &decisions {
        if args.json { out.json(decision)? } else { writeln!(out, "{}", explanation_line(decision, &path))? }
    }
    let outcome = decisions.iter().map(|decision| decision.effect).max_by_key(|effect| precedence(*effect));
    match outcome {
        _ if args.json => {}
        None => writeln!(out, "{}: allowed, because no policy applies", escape(path.as_str()))?,
        Some(effect) if decisions.len() > 1 => {
            writeln!(out, "{} {}: {}", args.operation, escape(path.as_str()), effect_name(effect))?;
        }
        Some(_) => {}
    }
    Ok(if outcome.is_none_or(|effect| effect == RuleEffect::Allow) { Exit::Success } else { Exit::Refused })
}

/// Returns one explanation for each permission at `path`: that of the policy that decides, because all policies have to allow it.
fn decisions(session: &BackendSession, args: &ExplainArgs, path: &VfsPath) -> Result<Vec<Explanation>, Failure> {
    let (configured, actor) = (session.configured()?, session.cx.actor());
    let explanations = match &args.command {
        None => configured.explain(actor, &args.operation, path)?,
        Some(_) if !matches!(args.operation.as_str(), "execute" | "execute_stream") => {
            return Err(Failure::Usage("--command needs the operation 'execute'; leave out --command"));
        }
        Some(command) => configured.explain_command(actor, &ExecuteRequest::new(command).cwd(path.clone()))?,
    };
    let mut decisions: Vec<Explanation> = Vec::new();
    for explanation in explanations {
        let has_same_permission = |decision: &&mut Explanation| decision.permission == explanation.permission;
        match decisions.iter_mut().find(has_same_permission) {
            None => decisions.push(explanation),
            Some(decision) => {
                let weight = |explanation: &Explanation| {
                    (precedence(explanation.effect), explanation.rule.is_some() || explanation.name.is_some())
                };
                if weight(&explanation) > weight(decision) {
                    *decision = explanation;
                }
            }
        }
    }
    Ok(decisions)
}

/// Resolves links in `path`; returns `None` without links, for operations on links themselves, and if the path cannot be resolved.
async fn real_path(session: &BackendSession, operation: &str, path: &VfsPath) -> Result<Option<VfsPath>, Failure> {
    if matches!(operation, "delete" | "rename" | "execute" | "execute_stream") {
        return Ok(None);
    }
    let composite = &session.configured()?.composite;
    let resolved = composite.resolve(&session.cx, ResolveRequest::new(path.clone())).await;
    Ok(resolved.ok().map(|resolved| resolved.path).filter(|real| real != path))
}

fn precedence(effect: RuleEffect) -> u8 {
    match effect {
        RuleEffect::Allow => 0,
        RuleEffect::Deny => 2,
        _ => 1,
    }
}

fn effect_name(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Allow => "allowed",
        RuleEffect::Deny => "denied",
        _ => "approval required",
    }
}

/// Formats `explanation` as a line; `argument` is the path from the arguments.
fn explanation_line(explanation: &Explanation, argument: &VfsPath) -> String {
    let Explanation { path, permission, effect, rule, mount, name, reason, .. } = explanation;
    let mut line = format!("{permission} {}", escape(path.as_str()));
    if path != argument {
        line.push_str(&format!(", the target of {}", escape(argument.as_str())));
    }
    line.push_str(&match (rule, name) {
        (Some(rule), _) => format!(": {} by rule {rule}", effect_name(*effect)),
        // A rule with a name but without a number is a built-in one.
        (None, Some(_)) => format!(": {} by a built-in rule", effect_name(*effect)),
        (None, None) => format!(": {} by default", effect_name(*effect)),
    });
    if let Some(mount) = mount.as_ref().filter(|_| rule.is_some() || name.is_none()) {
        line.push_str(&format!(" of the mount '{}'", escape(mount.as_str())));
    }
    if let Some(name) = name {
        line.push_str(&format!(" '{}'", escape(name)));
    }
    if let Some(reason) = reason {
        line.push_str(&format!(": {}", escape(reason)));
    }
    line
}

//! `vfs policy`.

use std::io::Write;

use vfs_core::{Backend as _, ExecuteRequest, ResolveRequest, VfsPath};
use vfs_policy::{Explanation, RuleEffect};

use crate::args::ExplainArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

pub(super) async fn explain(session: &Session, out: &mut Output, args: ExplainArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    let mut decisions = decisions(session, &args, &path)?;
    let real = real_path(session, &args.operation, &path).await?;
    if let Some(real) = &real {
        decisions.extend(self::decisions(session, &args, real)?);
    }
    for decision in &decisions {
        if args.json { out.json(decision)? } else { writeln!(out, "{}", line(decision, &path))? }
    }
    let outcome = decisions.iter().map(|decision| decision.effect).max_by_key(|effect| strictness(*effect));
    match outcome {
        _ if args.json => {}
        None => writeln!(out, "{}: allowed, as no policy is around it", escaped(path.as_str()))?,
        Some(effect) if decisions.len() > 1 => {
            writeln!(out, "{} {}: {}", args.operation, escaped(path.as_str()), word(effect))?;
        }
        Some(_) => {}
    }
    Ok(if outcome.is_none_or(|effect| effect == RuleEffect::Allow) { Exit::Success } else { Exit::Refused })
}

/// Returns one explanation for each permission at `path`: that of the policy which decides, as all policies have to allow it.
fn decisions(session: &Session, args: &ExplainArgs, path: &VfsPath) -> Result<Vec<Explanation>, Failure> {
    let (built, actor) = (session.built()?, session.cx.actor());
    let explained = match &args.command {
        None => built.explain(actor, &args.operation, path)?,
        Some(_) if !matches!(args.operation.as_str(), "execute" | "execute_stream") => {
            return Err(Failure::Usage("--command is about 'execute'; leave it out for other operations"));
        }
        Some(command) => built.explain_command(actor, &ExecuteRequest::new(command).cwd(path.clone()))?,
    };
    let mut decisions: Vec<Explanation> = Vec::new();
    for explanation in explained {
        let of_same = |decision: &&mut Explanation| decision.permission == explanation.permission;
        match decisions.iter_mut().find(of_same) {
            None => decisions.push(explanation),
            Some(decision) => {
                let weight = |explanation: &Explanation| {
                    (strictness(explanation.effect), explanation.rule.is_some() || explanation.name.is_some())
                };
                if weight(&explanation) > weight(decision) {
                    *decision = explanation;
                }
            }
        }
    }
    Ok(decisions)
}

/// Returns where `path` leads if a link is in it; `None` for operations on a link itself, and if nobody may know.
async fn real_path(session: &Session, operation: &str, path: &VfsPath) -> Result<Option<VfsPath>, Failure> {
    if matches!(operation, "delete" | "rename" | "execute" | "execute_stream") {
        return Ok(None);
    }
    let composite = &session.built()?.composite;
    let resolved = composite.resolve(&session.cx, ResolveRequest::new(path.clone())).await;
    Ok(resolved.ok().map(|resolved| resolved.path).filter(|real| real != path))
}

fn strictness(effect: RuleEffect) -> u8 {
    match effect {
        RuleEffect::Allow => 0,
        RuleEffect::Deny => 2,
        _ => 1,
    }
}

fn word(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Allow => "allowed",
        RuleEffect::Deny => "denied",
        _ => "asked",
    }
}

/// Returns `explanation` as a line; `asked` is the path that the caller named.
fn line(explanation: &Explanation, asked: &VfsPath) -> String {
    let Explanation { path, permission, effect, rule, mount, name, reason, .. } = explanation;
    let mut line = format!("{permission} {}", escaped(path.as_str()));
    if path != asked {
        line.push_str(&format!(", where {} leads", escaped(asked.as_str())));
    }
    line.push_str(&match (rule, name) {
        (Some(rule), _) => format!(": {} by rule {rule}", word(*effect)),
        // Only a rule has a name; one without a number is in no file.
        (None, Some(_)) => format!(": {} by a rule of vfs", word(*effect)),
        (None, None) => format!(": {} by default", word(*effect)),
    });
    if let Some(mount) = mount.as_ref().filter(|_| rule.is_some() || name.is_none()) {
        line.push_str(&format!(" of the mount '{}'", escaped(mount.as_str())));
    }
    if let Some(name) = name {
        line.push_str(&format!(" '{}'", escaped(name)));
    }
    if let Some(reason) = reason {
        line.push_str(&format!(": {}", escaped(reason)));
    }
    line
}

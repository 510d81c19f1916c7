//! `vfs policy`.

use std::io::{self, Write};

use vfs_layers::{Explanation, RuleEffect};

use crate::args::ExplainArgs;
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

pub(super) fn explain(session: &Session, out: &mut Output, args: ExplainArgs) -> Result<Exit, Failure> {
    let path = session.path(&args.path)?;
    let explained = session.built()?.explain(session.cx.actor(), &args.operation, &path)?;
    for explanation in &explained {
        if args.json { out.json(explanation)? } else { print(out, explanation)? }
    }
    if explained.is_empty() && !args.json {
        writeln!(out, "{}: allowed, as no policy is around it", escaped(path.as_str()))?;
    }
    let is_allowed = explained.iter().all(|explanation| explanation.effect == RuleEffect::Allow);
    Ok(if is_allowed { Exit::Success } else { Exit::Refused })
}

fn print(out: &mut Output, explanation: &Explanation) -> io::Result<()> {
    let Explanation { path, permission, effect, rule, name, reason, .. } = explanation;
    let done = match effect {
        RuleEffect::Allow => "allowed",
        RuleEffect::Deny => "denied",
        _ => "asked",
    };
    write!(out, "{permission} {}: {done} by ", escaped(path.as_str()))?;
    match rule {
        Some(rule) => write!(out, "rule {rule}")?,
        None => write!(out, "default")?,
    }
    if let Some(name) = name {
        write!(out, " '{}'", escaped(name))?;
    }
    match reason {
        Some(reason) => writeln!(out, ": {}", escaped(reason)),
        None => writeln!(out),
    }
}

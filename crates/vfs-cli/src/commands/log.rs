//! Command `vfs log`: prints or verifies an audit log.

use std::collections::VecDeque;
use std::io::{self, Write};

use chrono::SecondsFormat;
use vfs_core::Error;
use vfs_layers::{AuditHead, AuditLogReader, AuditRecord};

use crate::args::{BackendArgs, LogArgs};
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::layers_at_mount;
use crate::standard_output::StandardOutput;

const NO_AUDIT: &str = "there is no layer of the type 'audit' here; 'vfs config example' shows one";

pub(super) async fn run(backend: &BackendArgs, out: &mut StandardOutput, args: LogArgs) -> Result<Exit, Failure> {
    let logs = BackendSession::audit_logs(backend).await?;
    let log = layers_at_mount::find_outermost(&logs, args.of.mount.as_deref(), NO_AUDIT)?;
    let parts = log.layer.parts().await?;
    if args.verify {
        let verification = verify(parts, args.until.as_deref()).await?;
        return Ok(report(out, args.json, &verification)?);
    }
    show(out, parts, &args).await
}

async fn show(out: &mut StandardOutput, mut parts: AuditLogReader, args: &LogArgs) -> Result<Exit, Failure> {
    let print = |out: &mut StandardOutput, record: &AuditRecord| {
        if args.json { out.json(record) } else { print_line(out, record) }
    };
    let mut last = VecDeque::new();
    let mut damage = None;
    while let (None, Some(part)) = (&damage, parts.next_part().await?) {
        damage = part.damage;
        let Some(limit) = args.limit else {
            part.records.iter().try_for_each(|record| print(out, record))?;
            continue;
        };
        last.extend(part.records);
        last.drain(..last.len().saturating_sub(limit));
    }
    last.iter().try_for_each(|record| print(out, record))?;
    damage.map_or(Ok(Exit::Success), |damage| Err(damage.into()))
}

/// The result of the verification of a log.
enum LogVerification {
    /// The hash chain is intact up to this head, and the record with the number `until` has the given hash.
    Intact { head: AuditHead, until: Option<u64> },
    /// The hash chain is broken from this record on.
    Broken { sequence: u64, fault: String },
}

/// Verifies the hash chain file by file, and that a record has the hash `until`.
async fn verify(mut parts: AuditLogReader, until: Option<&str>) -> Result<LogVerification, Error> {
    let mut head = AuditHead::start();
    let mut sequence = until.filter(|until| *until == head.hash).map(|_| head.sequence);
    while let Some(part) = parts.next_part().await? {
        let record = part.records.iter().find(|record| until == Some(record.hash.as_str()));
        sequence = sequence.or(record.map(|record| record.sequence));
        head = match head.follow(&part.records) {
            Ok(head) => head,
            Err(error) => return Ok(LogVerification::Broken { sequence: error.sequence, fault: error.to_string() }),
        };
        if let Some(damage) = part.damage {
            return Ok(LogVerification::Broken { sequence: head.sequence + 1, fault: damage.message().to_owned() });
        }
    }
    if until.is_some() && sequence.is_none() {
        let fault = format!(
            "no record up to the last one, number {}, has the given hash: the log was truncated before that record, or \
             rewritten",
            head.sequence
        );
        return Ok(LogVerification::Broken { sequence: head.sequence + 1, fault });
    }
    Ok(LogVerification::Intact { head, until: sequence })
}

fn report(out: &mut StandardOutput, json: bool, verification: &LogVerification) -> io::Result<Exit> {
    match verification {
        LogVerification::Intact { head, until } => {
            if json {
                let mut value = serde_json::json!({ "sequence": head.sequence, "hash": head.hash });
                if let Some(until) = until {
                    value["until"] = (*until).into();
                }
                out.json(&value)?;
            } else {
                write!(out, "{} records are intact; the head is {}", head.sequence, head.hash)?;
                match until {
                    Some(until) => writeln!(out, "; the given hash is that of record {until}")?,
                    None => writeln!(out)?,
                }
            }
            Ok(Exit::Success)
        }
        LogVerification::Broken { sequence, fault } => {
            if json {
                out.json(&serde_json::json!({ "sequence": sequence, "fault": fault }))?;
            } else {
                writeln!(out, "{}", escape(fault))?;
            }
            Ok(Exit::Refused)
        }
    }
}

fn print_line(out: &mut StandardOutput, record: &AuditRecord) -> io::Result<()> {
    let time = record.time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let actor = escape(record.actor.as_deref().unwrap_or("-"));
    let AuditRecord { sequence, operation, outcome, .. } = record;
    write!(out, "{sequence:>6}  {time}  {actor}  {}  {operation}", outcome.code())?;
    if let Some(path) = &record.path {
        write!(out, " {}", escape(path.as_str()))?;
    }
    if let Some(to) = &record.to {
        write!(out, " to {}", escape(to.as_str()))?;
    }
    if let Some(lost) = record.lost {
        write!(out, ": {lost} records are missing before this one")?;
    }
    match &record.detail {
        Some(detail) => writeln!(out, ": {}", escape(detail)),
        None => writeln!(out),
    }
}

//! `vfs log`.

use std::collections::VecDeque;
use std::io::{self, Write};

use chrono::SecondsFormat;
use vfs_core::Error;
use vfs_layers::{AuditHead, AuditParts, AuditRecord};

use crate::args::{LogArgs, Place};
use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

const NO_AUDIT: &str = "there is no layer of the type 'audit' here; see docs/vfs.example.toml";

pub(super) async fn run(place: &Place, out: &mut Output, args: LogArgs) -> Result<Exit, Failure> {
    let logs = Session::audit_logs(place).await?;
    let log = layers::outermost(&logs, args.of.mount.as_deref(), NO_AUDIT)?;
    let parts = log.part.parts().await?;
    if args.verify {
        let verdict = verify(parts, args.until.as_deref()).await?;
        return Ok(report(out, args.json, &verdict)?);
    }
    show(out, parts, &args).await
}

async fn show(out: &mut Output, mut parts: AuditParts, args: &LogArgs) -> Result<Exit, Failure> {
    let print =
        |out: &mut Output, record: &AuditRecord| if args.json { out.json(record) } else { print_line(out, record) };
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

/// What a log was found to be.
enum Verdict {
    /// It is as it was written, up to this head; and the record with this number has the hash that was given.
    Intact { head: AuditHead, until: Option<u64> },
    /// It is not, from this record on.
    Broken { sequence: u64, fault: String },
}

/// Checks the log file by file, and that it had the head `until` once.
async fn verify(mut parts: AuditParts, until: Option<&str>) -> Result<Verdict, Error> {
    let mut head = AuditHead::start();
    let mut found = until.filter(|until| *until == head.hash).map(|_| head.sequence);
    while let Some(part) = parts.next_part().await? {
        let held = part.records.iter().find(|record| until == Some(record.hash.as_str()));
        found = found.or(held.map(|record| record.sequence));
        head = match head.follow(&part.records) {
            Ok(head) => head,
            Err(broken) => return Ok(Verdict::Broken { sequence: broken.sequence, fault: broken.to_string() }),
        };
        if let Some(damage) = part.damage {
            return Ok(Verdict::Broken { sequence: head.sequence + 1, fault: damage.message().to_owned() });
        }
    }
    if until.is_some() && found.is_none() {
        let fault = format!(
            "no record up to the last one, number {}, has the hash that was given: the log was cut off before it, or written \
             anew",
            head.sequence
        );
        return Ok(Verdict::Broken { sequence: head.sequence + 1, fault });
    }
    Ok(Verdict::Intact { head, until: found })
}

fn report(out: &mut Output, json: bool, verdict: &Verdict) -> io::Result<Exit> {
    match verdict {
        Verdict::Intact { head, until } => {
            if json {
                let mut value = serde_json::json!({ "sequence": head.sequence, "hash": head.hash });
                if let Some(until) = until {
                    value["until"] = (*until).into();
                }
                out.json(&value)?;
            } else {
                write!(out, "{} records are as they were written; the head is {}", head.sequence, head.hash)?;
                match until {
                    Some(until) => writeln!(out, "; the given one is that of record {until}")?,
                    None => writeln!(out)?,
                }
            }
            Ok(Exit::Success)
        }
        Verdict::Broken { sequence, fault } => {
            if json {
                out.json(&serde_json::json!({ "sequence": sequence, "fault": fault }))?;
            } else {
                writeln!(out, "{}", escaped(fault))?;
            }
            Ok(Exit::Refused)
        }
    }
}

fn print_line(out: &mut Output, record: &AuditRecord) -> io::Result<()> {
    let time = record.time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let actor = escaped(record.actor.as_deref().unwrap_or("-"));
    let AuditRecord { sequence, operation, outcome, .. } = record;
    write!(out, "{sequence:>6}  {time}  {actor}  {}  {operation}", outcome.code())?;
    if let Some(path) = &record.path {
        write!(out, " {}", escaped(path.as_str()))?;
    }
    if let Some(to) = &record.to {
        write!(out, " to {}", escaped(to.as_str()))?;
    }
    if let Some(lost) = record.lost {
        write!(out, ": {lost} records are missing before this one")?;
    }
    match &record.detail {
        Some(detail) => writeln!(out, ": {}", escaped(detail)),
        None => writeln!(out),
    }
}

//! `vfs log`.

use std::io::{self, Write};

use chrono::SecondsFormat;
use vfs_core::Error;
use vfs_layers::{AuditRecord, verify};

use crate::args::{LogArgs, Place};
use crate::exit::{Exit, Failure};
use crate::layers;
use crate::output::Output;
use crate::session::Session;

const NO_AUDIT: &str = "there is no layer of the type 'audit' here; see docs/vfs.example.toml";

pub(super) async fn run(place: &Place, out: &mut Output, args: LogArgs) -> Result<Exit, Failure> {
    let logs = Session::audit_logs(place).await?;
    let log = layers::outermost(&logs, args.of.mount.as_deref(), NO_AUDIT)?;
    let (records, damage) = log.part.records_before_damage().await?;
    if args.verify {
        return Ok(verified(out, args.json, &records, damage)?);
    }
    let first = args.limit.map_or(0, |limit| records.len().saturating_sub(limit));
    for record in &records[first..] {
        if args.json { out.json(record)? } else { print(out, record)? }
    }
    damage.map_or(Ok(Exit::Success), |damage| Err(damage.into()))
}

fn verified(out: &mut Output, json: bool, records: &[AuditRecord], damage: Option<Error>) -> io::Result<Exit> {
    let (sequence, fault) = match (verify(records), damage) {
        (Ok(head), None) => {
            if json {
                out.json(&head)?;
            } else {
                writeln!(out, "{} records are as they were written; the head is {}", head.sequence, head.hash)?;
            }
            return Ok(Exit::Success);
        }
        (Ok(head), Some(damage)) => (head.sequence + 1, damage.message().to_owned()),
        (Err(broken), _) => (broken.sequence, broken.to_string()),
    };
    if json {
        out.json(&serde_json::json!({ "sequence": sequence, "fault": fault }))?;
    } else {
        writeln!(out, "{fault}")?;
    }
    Ok(Exit::Refused)
}

fn print(out: &mut Output, record: &AuditRecord) -> io::Result<()> {
    let time = record.time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let actor = record.actor.as_deref().unwrap_or("-");
    let AuditRecord { sequence, operation, outcome, .. } = record;
    write!(out, "{sequence:>6}  {time}  {actor}  {}  {operation}", outcome.code())?;
    if let Some(path) = &record.path {
        write!(out, " {path}")?;
    }
    if let Some(to) = &record.to {
        write!(out, " to {to}")?;
    }
    match &record.detail {
        Some(detail) => writeln!(out, ": {}", detail.escape_debug()),
        None => writeln!(out),
    }
}

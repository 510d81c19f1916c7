//! `vfs log`.

use std::io::{self, Write};

use chrono::SecondsFormat;
use vfs_layers::{AuditRecord, verify};

use crate::args::LogArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

const NO_AUDIT: &str = "there is no layer of the type 'audit' here; see docs/vfs.example.toml";

pub(super) async fn run(session: &Session, out: &mut Output, args: LogArgs) -> Result<Exit, Failure> {
    let layer = session.layer(&session.built()?.audits, args.of.mount.as_deref(), NO_AUDIT)?;
    let records = layer.part.sink.records().await?;
    if args.verify {
        return Ok(verified(out, args.json, &records)?);
    }
    let first = args.limit.map_or(0, |limit| records.len().saturating_sub(limit));
    for record in &records[first..] {
        if args.json { out.json(record)? } else { print(out, record)? }
    }
    Ok(Exit::Success)
}

fn verified(out: &mut Output, json: bool, records: &[AuditRecord]) -> io::Result<Exit> {
    match verify(records) {
        Ok(head) if json => out.json(&head)?,
        Ok(head) => writeln!(out, "{} records are as they were written; the head is {}", head.sequence, head.hash)?,
        Err(broken) => {
            if json {
                out.json(&serde_json::json!({ "sequence": broken.sequence, "fault": broken.to_string() }))?;
            } else {
                writeln!(out, "{broken}")?;
            }
            return Ok(Exit::Refused);
        }
    }
    Ok(Exit::Success)
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

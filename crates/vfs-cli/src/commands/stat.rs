//! Command `vfs stat`: prints the metadata of a file.

use std::io::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use vfs_core::{Backend, StatRequest};

use crate::args::StatArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: StatArgs) -> Result<Exit, Failure> {
    let info = session.backend.stat(&session.cx, StatRequest::new(session.path(&args.path)?)).await?;
    if args.json {
        out.json(&info)?;
        return Ok(Exit::Success);
    }
    writeln!(out, "path:     {}", escape(info.path.as_str()))?;
    writeln!(out, "kind:     {}", if info.is_dir { "directory" } else { "file" })?;
    if !info.is_dir {
        writeln!(out, "size:     {} bytes", info.size)?;
    }
    if let Some(at) = info.modified_at {
        writeln!(out, "modified: {}", rfc3339(at))?;
    }
    if let Some(at) = info.created_at {
        writeln!(out, "created:  {}", rfc3339(at))?;
    }
    if let Some(version) = info.version {
        writeln!(out, "version:  {version}")?;
    }
    Ok(Exit::Success)
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

//! Commands in the background, which outlive the process that started them.
//!
//! Each has a process of its own that keeps it, and a directory with what is known of it: `job.json`, `output`, and the
//! socket `keeper`, by which one sees that its keeper lives, and asks it to end.

mod directory;
mod keeper;
mod kept;
mod recording;

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use vfs_core::JobId;

pub(crate) use self::keeper::keep;
pub(crate) use self::kept::{Jobs, Kept, State};
use crate::exit::Failure;

/// What a keeper says once its command runs.
const STARTED: &[u8] = b"started\n";

/// Starts a keeper that is called as this process was, and returns once its command runs.
pub(crate) fn start() -> Result<JobId, Failure> {
    let failed = |error| Failure::Job("the process that keeps the job cannot be started", error);
    let id = JobId::new(format!("{:08x}", fastrand::u32(..)));
    let program = std::env::current_exe().map_err(failed)?;
    let mut keeper = Command::new(program);
    keeper.arg("--keep-job").arg(id.as_str()).args(std::env::args_os().skip(1));
    keeper.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What a terminal sends to this command is not for its jobs.
    let mut keeper = keeper.process_group(0).spawn().map_err(failed)?;
    let mut said = Vec::new();
    if let Some(stdout) = &mut keeper.stdout {
        stdout.take(STARTED.len() as u64).read_to_end(&mut said).map_err(failed)?;
    }
    if said == STARTED {
        return Ok(id);
    }
    let ended = keeper.wait_with_output().map_err(failed)?;
    Err(Failure::Keeper(String::from_utf8_lossy(&ended.stderr).into_owned(), ended.status))
}

/// Tells whoever started this process that its command runs.
fn tell_started() -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(STARTED)?;
    Ok(stdout.flush()?)
}

//! Commands in the background, which outlive the process that started them.
//!
//! Each has a process of its own that keeps it, and a directory with what is known of it: `job.json`, `output`, and the
//! socket `keeper`, by which one sees that its keeper lives, and asks it to end.

mod directory;
mod keeper;
mod kept;
mod recording;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use uuid::Uuid;
use vfs_core::JobId;

pub(crate) use self::directory::unknown;
pub(crate) use self::keeper::keep;
pub(crate) use self::kept::{Jobs, Kept, State};
use crate::exit::Failure;

/// What a keeper says once its command runs.
const STARTED: &[u8] = b"started\n";

/// The option by which a process is started as the keeper of a job.
const KEEP_JOB: &str = "--keep-job";

/// Returns the arguments of this process, the name of the program included.
///
/// A keeper that is started without a command reads its arguments from standard input. It lives as long as its job, and
/// every user of the machine can list the arguments of its processes: a variable of `--env` or the password in the URL of
/// a store must not be among them.
pub(crate) fn arguments() -> io::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, option, _id] = &arguments[..]
        && option.as_os_str() == OsStr::new(KEEP_JOB)
    {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        let incomplete = || {
            let message = "it does not hold all arguments of a job; start jobs with 'vfs exec --background'";
            io::Error::new(io::ErrorKind::UnexpectedEof, message)
        };
        arguments.extend(decode_arguments(&bytes).ok_or_else(incomplete)?);
    }
    Ok(arguments)
}

/// Encodes the number of arguments and then each of them, ended by the one byte that none can hold.
fn encode_arguments(arguments: impl Iterator<Item = OsString>) -> Vec<u8> {
    let arguments: Vec<_> = arguments.collect();
    let count = OsString::from(arguments.len().to_string());
    let fields = std::iter::once(count).chain(arguments);
    fields.flat_map(|field| field.into_vec().into_iter().chain([0])).collect()
}

/// Returns the arguments, or `None` if some are missing: if the writer is killed, the pipe ends as if it had written all.
fn decode_arguments(bytes: &[u8]) -> Option<Vec<OsString>> {
    let mut fields = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
    let count: usize = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let arguments: Vec<_> = fields.map(|argument| OsStr::from_bytes(argument).to_owned()).collect();
    (arguments.len() == count).then_some(arguments)
}

/// Starts a keeper that is called as this process was, and returns once its command runs.
pub(crate) fn start() -> Result<JobId, Failure> {
    let failed = |error| Failure::Job("the process that keeps the job cannot be started", error);
    let id = JobId::new(format!("{:08x}", Uuid::new_v4().as_fields().0));
    let program = std::env::current_exe().map_err(failed)?;
    let mut keeper = Command::new(program);
    keeper.arg(KEEP_JOB).arg(id.as_str());
    keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What a terminal sends to this command is not for its jobs.
    let mut keeper = keeper.process_group(0).spawn().map_err(failed)?;
    if let Some(mut stdin) = keeper.stdin.take() {
        // If the keeper ends before it has read all of this, its own message says why.
        let _unread = stdin.write_all(&encode_arguments(std::env::args_os().skip(1)));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_back_as_they_were_given() {
        let given: Vec<OsString> = ["exec", "", "--env", "A=b\nc", "é"].map(OsString::from).into();
        let given: Vec<OsString> = given.into_iter().chain([OsString::from_vec(vec![0xff, b' '])]).collect();
        let bytes = encode_arguments(given.clone().into_iter());
        assert_eq!(decode_arguments(&bytes), Some(given));
        for cut in 0..bytes.len() {
            assert_eq!(decode_arguments(&bytes[..cut]), None, "{:?}", &bytes[..cut]);
        }
        for damaged in [&b"1\0a\0b\0"[..], b"x\0a\0", b"\0"] {
            assert_eq!(decode_arguments(damaged), None, "{damaged:?}");
        }
    }
}

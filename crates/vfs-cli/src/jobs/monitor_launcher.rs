//! Launcher of monitor processes, which pass their arguments through a pipe.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use uuid::Uuid;
use vfs_core::shell::JobId;

use crate::exit::Failure;

/// The line that a monitor prints once its command runs.
const STARTED_LINE: &[u8] = b"started\n";

/// The option that starts a process as the monitor of a job.
const MONITOR_OPTION: &str = "--keep-job";

/// Returns the arguments of this process, the name of the program included.
///
/// A monitor that is started without a command reads its arguments from standard input. A monitor lives as long as its job,
/// and every user of the host can list the arguments of processes, so these must not contain a variable of `--env` or the
/// password in the URL of a store.
pub(crate) fn arguments() -> io::Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, option, _id] = &arguments[..]
        && option.as_os_str() == OsStr::new(MONITOR_OPTION)
    {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        let incomplete = || {
            let message = "the arguments of the job are incomplete; start jobs with 'vfs exec --background'";
            io::Error::new(io::ErrorKind::UnexpectedEof, message)
        };
        arguments.extend(decode_arguments(&bytes).ok_or_else(incomplete)?);
    }
    Ok(arguments)
}

/// Encodes the number of arguments and then each argument, terminated by NUL, which no argument can contain.
fn encode_arguments(arguments: impl Iterator<Item = OsString>) -> Vec<u8> {
    let arguments: Vec<_> = arguments.collect();
    let count = OsString::from(arguments.len().to_string());
    let fields = std::iter::once(count).chain(arguments);
    fields.flat_map(|field| field.into_vec().into_iter().chain([0])).collect()
}

/// Decodes arguments, or returns `None` if some are missing. The count is necessary because the pipe also ends if the writer is
/// killed.
fn decode_arguments(bytes: &[u8]) -> Option<Vec<OsString>> {
    let mut fields = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
    let count: usize = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let arguments: Vec<_> = fields.map(|argument| OsStr::from_bytes(argument).to_owned()).collect();
    (arguments.len() == count).then_some(arguments)
}

/// Starts a monitor with the arguments of this process, and returns once its command runs.
pub(crate) fn start() -> Result<JobId, Failure> {
    let failed = |error| Failure::Job("the monitor process of the job cannot be started", error);
    let id = JobId::new(format!("{:08x}", Uuid::new_v4().as_fields().0));
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg(MONITOR_OPTION).arg(id.as_str());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Signals of the terminal to this command must not reach its jobs.
    let mut monitor = command.process_group(0).spawn().map_err(failed)?;
    if let Some(mut stdin) = monitor.stdin.take() {
        // If the monitor exits before it has read all arguments, its own message says why.
        let _ignored = stdin.write_all(&encode_arguments(std::env::args_os().skip(1)));
    }
    let mut line = Vec::new();
    if let Some(stdout) = &mut monitor.stdout {
        stdout.take(STARTED_LINE.len() as u64).read_to_end(&mut line).map_err(failed)?;
    }
    if line == STARTED_LINE {
        return Ok(id);
    }
    let output = monitor.wait_with_output().map_err(failed)?;
    Err(Failure::Monitor(String::from_utf8_lossy(&output.stderr).into_owned(), output.status))
}

/// Reports to the parent process that the command runs.
pub(super) fn report_started() -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(STARTED_LINE)?;
    Ok(stdout.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_arguments_equal_the_encoded_ones() {
        let arguments: Vec<OsString> = ["exec", "", "--env", "A=b\nc", "é"].map(OsString::from).into();
        let arguments: Vec<OsString> = arguments.into_iter().chain([OsString::from_vec(vec![0xff, b' '])]).collect();
        let bytes = encode_arguments(arguments.clone().into_iter());
        assert_eq!(decode_arguments(&bytes), Some(arguments));
        for cut in 0..bytes.len() {
            assert_eq!(decode_arguments(&bytes[..cut]), None, "{:?}", &bytes[..cut]);
        }
        for damaged in [&b"1\0a\0b\0"[..], b"x\0a\0", b"\0"] {
            assert_eq!(decode_arguments(damaged), None, "{damaged:?}");
        }
    }
}

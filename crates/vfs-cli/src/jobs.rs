//! Background jobs: commands that outlive the process that started them.
//!
//! Each job has a monitor process that runs its command, and a directory with `job.json`, `output` and the socket `keeper`. The
//! monitor is alive if it accepts connections at the socket; a connection can also request the job to stop.

mod job_directory;
mod launcher;
mod monitor;
mod output_log;
mod registry;

pub(crate) use self::job_directory::unknown_job;
pub(crate) use self::launcher::{arguments, start};
pub(crate) use self::monitor::run_monitored;
pub(crate) use self::registry::{JobEntry, JobRegistry, JobState};

//! Background jobs: commands that outlive the process that started them.
//!
//! Each job has a monitor process that runs its command, and a directory with `job.json`, `output` and the socket `keeper`. The
//! monitor is alive if it accepts connections at the socket; a connection can also request the job to stop.

mod job_directory;
mod job_monitor;
mod jobs_directory;
mod monitor_launcher;
mod output_log;

pub(crate) use self::job_directory::unknown_job;
pub(crate) use self::job_monitor::run_monitored;
pub(crate) use self::jobs_directory::{JobEntry, JobState, JobsDirectory};
pub(crate) use self::monitor_launcher::{arguments, start};

//! What commands print, in bounded memory: for those who write a [`Shell`](crate::Shell).

mod decoder;
mod head_and_tail;
mod job_log;

pub use decoder::Decoder;
pub use head_and_tail::HeadAndTail;
pub use job_log::JobLog;

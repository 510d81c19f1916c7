//! Bounded buffers for the output of commands, for implementers of [`Shell`](crate::Shell).

mod head_tail_buffer;
mod ring_log;
mod utf8_stream_decoder;

pub use head_tail_buffer::HeadTailBuffer;
pub use ring_log::RingLog;
pub use utf8_stream_decoder::Utf8StreamDecoder;

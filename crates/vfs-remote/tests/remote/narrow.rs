//! Narrow transport: small limits for scripts, input and output.

use std::fmt;

use async_trait::async_trait;
use vfs_core::Result;
use vfs_remote::{LocalProcess, RemoteExec, RemoteOutput, ScriptInvocation, TransportLimits};

/// A local process with enforced limits.
#[derive(Debug, Clone)]
pub(crate) struct Narrow {
    process: LocalProcess,
    transport: TransportLimits,
}

impl Narrow {
    /// Creates a transport with the limits of the process itself.
    pub(crate) fn wide(process: LocalProcess) -> Self {
        Self { transport: process.transport(), process }
    }

    /// Limits standard input to 64 KiB.
    pub(crate) fn with_little_input(mut self) -> Self {
        self.transport.max_stdin_bytes = 64 << 10;
        self
    }

    /// Returns whether limits are enforced.
    pub(crate) fn is_narrow(&self) -> bool {
        self.transport.max_output_bytes != u64::MAX
    }

    /// Creates a transport without standard input, with limits of 96 KiB for scripts and 1 MiB for outputs.
    pub(crate) fn new(process: LocalProcess) -> Self {
        let mut transport = process.transport();
        transport.max_script_bytes = 96 << 10;
        transport.max_stdin_bytes = 0;
        transport.max_output_bytes = 1 << 20;
        Self { process, transport }
    }
}

impl fmt::Display for Narrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.process, f)
    }
}

#[async_trait]
impl RemoteExec for Narrow {
    fn transport(&self) -> TransportLimits {
        self.transport
    }

    async fn run(&self, mut invocation: ScriptInvocation) -> Result<RemoteOutput> {
        assert!(invocation.script.len() <= self.transport.max_script_bytes, "{} bytes", invocation.script.len());
        assert!(invocation.stdin.len() as u64 <= self.transport.max_stdin_bytes, "{} bytes", invocation.stdin.len());
        assert!(invocation.max_output_bytes < 1 << 30, "the buffer in memory is bounded");
        invocation.max_output_bytes = invocation.max_output_bytes.min(self.transport.max_output_bytes);
        self.process.run(invocation).await
    }
}

//! Fault-injecting transport: banners, truncated, mixed-up and lost answers.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::{Error, ErrorKind, Result};
use vfs_remote::{LocalProcess, RemoteExec, RemoteExit, RemoteOutput, ScriptInvocation, TransportLimits};

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// A login shell prints a banner first, on both outputs.
    Banners,
    /// Standard output is lost after this number of thousandths.
    Cut(usize),
    /// The script runs, and its response is lost.
    AnswerLost,
    /// The script does not run.
    NotRun,
    /// The script runs, and its response is that of another call.
    Mixed,
    /// The script is ended by a signal before it begins.
    Killed,
    /// Standard input ends in the middle.
    InputCut,
    /// The script runs twice.
    Repeated,
}

/// A local process, with faults in its calls.
#[derive(Debug, Clone)]
pub(crate) struct FaultInjector {
    process: LocalProcess,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    fault: Mutex<Fault>,
    calls: AtomicUsize,
    output_bytes: AtomicUsize,
    last: Mutex<Bytes>,
}

impl FaultInjector {
    pub(crate) fn new(process: LocalProcess) -> Self {
        let state = State {
            fault: Mutex::new(Fault::None),
            calls: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            last: Mutex::default(),
        };
        Self { process, state: Arc::new(state) }
    }

    /// Sets the fault of the following calls.
    pub(crate) fn set(&self, fault: Fault) {
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Returns the number of scripts since the last call.
    pub(crate) fn calls(&self) -> usize {
        self.state.calls.swap(0, Ordering::Relaxed)
    }

    /// Returns the number of bytes that scripts printed since the last call of this method.
    pub(crate) fn output_bytes(&self) -> usize {
        self.state.output_bytes.swap(0, Ordering::Relaxed)
    }
}

impl fmt::Display for FaultInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fault_injector")
    }
}

#[async_trait]
impl RemoteExec for FaultInjector {
    fn transport(&self) -> TransportLimits {
        self.process.transport()
    }

    async fn run(&self, mut invocation: ScriptInvocation) -> Result<RemoteOutput> {
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        let fault = *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Fault::NotRun => return Err(Error::new(ErrorKind::Unavailable, "no way there")),
            Fault::Killed => return Ok(RemoteOutput::new(RemoteExit::Signalled(9), Bytes::new(), Bytes::new())),
            Fault::InputCut => invocation.stdin = invocation.stdin.slice(..invocation.stdin.len() / 2),
            Fault::Repeated => drop(self.process.run(invocation.clone()).await?),
            _ => {}
        }
        let mut completed = self.process.run(invocation).await?;
        let real = completed.stdout.clone();
        self.state.output_bytes.fetch_add(real.len(), Ordering::Relaxed);
        match fault {
            Fault::Banners => {
                completed.stdout = [b"Welcome!\n\0vfs:\n", &real[..]].concat().into();
                completed.stderr = [b"motd: No such file or directory\n", &completed.stderr[..]].concat().into();
                completed.stdout_bytes = completed.stdout.len() as u64;
                completed.stderr_bytes = completed.stderr.len() as u64;
            }
            Fault::Cut(thousandths) => completed.stdout = real.slice(..real.len() * thousandths / 1000),
            Fault::AnswerLost => return Err(Error::new(ErrorKind::Unavailable, "no way back")),
            Fault::Mixed => {
                let mut last = self.state.last.lock().unwrap_or_else(PoisonError::into_inner);
                completed.stdout = std::mem::replace(&mut *last, real);
            }
            _ => {}
        }
        Ok(completed)
    }
}

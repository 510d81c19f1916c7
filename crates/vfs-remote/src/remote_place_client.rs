//! Script execution for one backend: concurrency limit, retries, caches and per-path locks.

mod line_index_cache;
mod recent_file_cache;
mod striped_path_locks;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{sleep, timeout};
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

pub(crate) use self::line_index_cache::CachedLineIndex;
use self::line_index_cache::LineIndexCache;
use self::recent_file_cache::RecentFileCache;
use self::striped_path_locks::StripedPathLocks;
use crate::config::RemoteConfig;
use crate::exec::{RemoteExec, RemoteOutput, ScriptInvocation};
use crate::script::Script;
use crate::script::error::{is_overtaken, labelled, unanswered};
use crate::script::place_features::{PlaceFeatures, QUESTIONS};
use crate::script::reply::Reply;

/// Maximum number of attempts of an operation that concurrent changes overtake.
pub(crate) const ATTEMPTS: u32 = 32;

/// Time that a cancelled caller waits for a change in progress, to return the outcome of the change.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Size in bytes that is reserved in a script for everything but the content of a file.
pub(crate) const SCRIPT_ROOM: usize = 24 << 10;

/// Maximum size of a response, which is buffered in memory: 64 MiB.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// A place that is reached through a [`RemoteExec`], with caches of its files and locks of their paths.
#[derive(Debug)]
pub(crate) struct RemotePlaceClient<E> {
    pub(crate) execute: E,
    pub(crate) config: RemoteConfig,
    pub(crate) locks: StripedPathLocks,
    pub(crate) lines: LineIndexCache,
    pub(crate) recent: RecentFileCache,
    features: OnceCell<PlaceFeatures>,
    scripts: Semaphore,
}

/// The response of a script, with its standard error.
#[derive(Debug)]
pub(crate) struct ScriptResponse {
    pub(crate) reply: Reply,
    pub(crate) stderr: Bytes,
    /// Whether the response is only a prefix, which is valid if [`Script::counts_in_part`] is set.
    pub(crate) is_cut: bool,
}

impl ScriptResponse {
    /// Returns the reply, unless it names a failure.
    pub(crate) fn done(self, path: &VfsPath) -> Result<Reply> {
        match self.reply.failure() {
            Some(label) => Err(labelled(label, &self.stderr, path)),
            None => Ok(self.reply),
        }
    }

    /// Returns whether the operation has to start again because concurrent changes overtook it before it changed
    /// anything.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.reply.get(b'k').is_none() && self.reply.failure().is_some_and(|label| is_overtaken(label, &self.stderr))
    }
}

impl<E: RemoteExec> RemotePlaceClient<E> {
    pub(crate) fn new(execute: E, config: RemoteConfig) -> Self {
        let scripts = Semaphore::new(config.concurrency.get());
        let (locks, lines, recent) = (StripedPathLocks::new(), LineIndexCache::default(), RecentFileCache::default());
        Self { execute, config, locks, lines, recent, features: OnceCell::new(), scripts }
    }

    /// Returns the features of the tools in the place.
    pub(crate) async fn features(&self) -> Result<&PlaceFeatures> {
        self.features
            .get_or_try_init(|| async {
                if !self.config.root.starts_with('/') || self.config.root.contains('\0') {
                    return Err(Error::invalid_argument("the root of a sandbox is an absolute path in it"));
                }
                let mut script = Script::new(&self.config.root, "");
                script.push(QUESTIONS);
                let answer = self.run(script).await?;
                PlaceFeatures::of(&answer.done(&VfsPath::root())?)
            })
            .await
    }

    /// Creates a script that starts in the root and has the functions that inspect entries.
    pub(crate) async fn script(&self, cx: &OpContext, path: &VfsPath) -> Result<Script> {
        self.script_with(cx, path, |_| String::new()).await
    }

    /// Creates a script as [`script`](Self::script) does, with further functions that depend on the place's features.
    pub(crate) async fn script_with(
        &self,
        cx: &OpContext,
        path: &VfsPath,
        functions: impl FnOnce(&PlaceFeatures) -> String,
    ) -> Result<Script> {
        let features =
            run_until_cancelled(cx, path, self.features()).await.flatten().map_err(|error| error.or_path(path))?;
        let mut script = Script::new(&self.config.root, &(features.inspection_functions() + &functions(features)));
        script.push("top");
        Ok(script)
    }

    /// Runs a script that changes nothing, and can be cancelled at any time.
    pub(crate) async fn query(&self, cx: &OpContext, path: &VfsPath, script: Script) -> Result<ScriptResponse> {
        run_until_cancelled(cx, path, self.run(script)).await.flatten().map_err(|error| error.or_path(path))
    }

    /// Runs a script as [`query`](Self::query) does, and returns its reply.
    pub(crate) async fn query_reply(&self, cx: &OpContext, path: &VfsPath, script: Script) -> Result<Reply> {
        self.query(cx, path, script).await?.done(path)
    }

    /// Returns the maximum size of the response to a script, in bytes.
    pub(crate) fn max_answer_bytes(&self) -> u64 {
        self.execute.transport().max_output_bytes.min(MAX_ANSWER_BYTES)
    }

    async fn run(&self, mut script: Script) -> Result<ScriptResponse> {
        script.push("finish");
        let max = self.execute.transport().max_script_bytes;
        if script.text.len() > max {
            let message =
                format!("the request needs a script of over {max} bytes, the limit of the transport; request less");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let mut invocation = ScriptInvocation::new(script.text);
        invocation.beginning = script.beginning;
        invocation.stdin = script.stdin;
        invocation.timeout = self.config.timeout;
        invocation.max_output_bytes = self.max_answer_bytes();
        // The semaphore is never closed.
        let _permit = self.scripts.acquire().await.ok();
        let RemoteOutput { stdout, stderr, exit, truncated, .. } = self.execute.run(invocation).await?;
        match Reply::parse(&script.marker, &stdout) {
            Ok(reply) => Ok(ScriptResponse { reply, stderr, is_cut: false }),
            Err(_) if truncated && script.counts_in_part => {
                Ok(ScriptResponse { reply: Reply::beginning(&script.marker, &stdout), stderr, is_cut: true })
            }
            Err(_) if truncated => {
                let message = "the response exceeds the limit of the transport; request less";
                Err(Error::new(ErrorKind::TooLarge, message))
            }
            Err(_) => Err(unanswered(exit, &stderr)),
        }
    }
}

impl<E: RemoteExec> RemotePlaceClient<E> {
    /// Runs a script that changes files. A change in progress is completed even if the caller is cancelled.
    pub(crate) async fn change(
        self: &Arc<Self>,
        cx: &OpContext,
        path: &VfsPath,
        script: Script,
    ) -> Result<ScriptResponse> {
        cx.check().map_err(|error| error.or_path(path))?;
        let Ok(runtime) = Handle::try_current() else {
            return self.run(script).await.map_err(|error| error.or_path(path));
        };
        let place = Arc::clone(self);
        let mut task = runtime.spawn(async move { place.run(script).await });
        let outcome = match run_until_cancelled(cx, path, &mut task).await {
            Ok(outcome) => outcome,
            Err(error) => timeout(SETTLE_TIMEOUT, &mut task).await.map_err(|_| error)?,
        };
        let answer = outcome.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Internal, "the change did not complete; read the file before the next change")
                .with_source(error))
        });
        answer.map_err(|error| error.or_path(path))
    }

    /// Runs a change with the script that `make` returns, and repeats it while concurrent changes overtake it.
    pub(crate) async fn settle<F>(
        self: &Arc<Self>,
        cx: &OpContext,
        path: &VfsPath,
        mut make: impl FnMut() -> F + Send,
    ) -> Result<ScriptResponse>
    where
        F: Future<Output = Result<Script>> + Send,
    {
        let mut attempt = 0;
        loop {
            let answer = self.change(cx, path, make().await?).await?;
            attempt += 1;
            if !answer.is_overtaken() || attempt == ATTEMPTS {
                return Ok(answer);
            }
            backoff(cx, path, attempt).await?;
        }
    }
}

/// Waits before another attempt: exponential backoff with full jitter.
pub(crate) async fn backoff(cx: &OpContext, path: &VfsPath, attempts: u32) -> Result<()> {
    let max = Duration::from_millis(1).saturating_mul(1 << attempts.min(6));
    run_until_cancelled(cx, path, sleep(max.mul_f64(fastrand::f64()))).await
}

//! Script execution for one backend: concurrency limit, retries, caches and per-path locks.

mod key_locks;
mod line_indexes;
mod recent_files;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{sleep, timeout};
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};
use vfs_search::run_until_cancelled;

use self::key_locks::Turns;
pub(crate) use self::line_indexes::FileKnowledge;
use self::line_indexes::LineIndexes;
use self::recent_files::Recent;
use crate::config::RemoteConfig;
use crate::exec::{Invocation, RemoteExec, RemoteOutput};
use crate::script::Script;
use crate::script::error::{is_overtaken, labelled, unanswered};
use crate::script::probe::{Abilities, QUESTIONS};
use crate::script::reply::Reply;

/// How often an operation that others overtook is begun again.
pub(crate) const ATTEMPTS: u32 = 32;

/// How long a caller who has given up is kept, so that a change that was begun is settled when it is told.
const SETTLING: Duration = Duration::from_secs(5);

/// Room in a script beside a file's content.
pub(crate) const SCRIPT_ROOM: usize = 24 << 10;

/// Most bytes of an answer, which is held in memory: 64 MiB.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// A place and what is known of it.
#[derive(Debug)]
pub(crate) struct Place<E> {
    pub(crate) execute: E,
    pub(crate) config: RemoteConfig,
    pub(crate) turns: Turns,
    pub(crate) lines: LineIndexes,
    pub(crate) recent: Recent,
    abilities: OnceCell<Abilities>,
    scripts: Semaphore,
}

/// What an operation was answered, with what else was printed.
#[derive(Debug)]
pub(crate) struct ScriptResponse {
    pub(crate) reply: Reply,
    pub(crate) stderr: Bytes,
    /// Whether it is only the beginning, of a script that counts in part.
    pub(crate) is_cut: bool,
}

impl ScriptResponse {
    /// The answer, unless it names a failure.
    pub(crate) fn done(self, path: &VfsPath) -> Result<Reply> {
        match self.reply.failure() {
            Some(label) => Err(labelled(label, &self.stderr, path)),
            None => Ok(self.reply),
        }
    }

    /// Whether the operation is to be begun again: others overtook it before anything was done.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.reply.get(b'k').is_none() && self.reply.failure().is_some_and(|label| is_overtaken(label, &self.stderr))
    }
}

impl<E: RemoteExec> Place<E> {
    pub(crate) fn new(execute: E, config: RemoteConfig) -> Self {
        let scripts = Semaphore::new(config.concurrency.get());
        let (turns, lines, recent) = (Turns::new(), LineIndexes::default(), Recent::default());
        Self { execute, config, turns, lines, recent, abilities: OnceCell::new(), scripts }
    }

    /// What the tools here can do.
    pub(crate) async fn abilities(&self) -> Result<&Abilities> {
        self.abilities
            .get_or_try_init(|| async {
                if !self.config.root.starts_with('/') || self.config.root.contains('\0') {
                    return Err(Error::invalid_argument("the root of a sandbox is an absolute path in it"));
                }
                let mut script = Script::new(&self.config.root, "");
                script.push(QUESTIONS);
                let answer = self.run(script).await?;
                Abilities::of(&answer.done(&VfsPath::root())?)
            })
            .await
    }

    /// A script that stands in the root and can look at entries.
    pub(crate) async fn script(&self, cx: &OpContext, path: &VfsPath) -> Result<Script> {
        self.script_with(cx, path, |_| String::new()).await
    }

    /// The same, with functions that the place's abilities make.
    pub(crate) async fn script_with(
        &self,
        cx: &OpContext,
        path: &VfsPath,
        functions: impl FnOnce(&Abilities) -> String,
    ) -> Result<Script> {
        let abilities =
            run_until_cancelled(cx, path, self.abilities()).await.flatten().map_err(|error| error.or_path(path))?;
        let mut script = Script::new(&self.config.root, &(abilities.looking() + &functions(abilities)));
        script.push("top");
        Ok(script)
    }

    /// Asks for something that changes nothing, and can be given up at any time.
    pub(crate) async fn ask(&self, cx: &OpContext, path: &VfsPath, script: Script) -> Result<ScriptResponse> {
        run_until_cancelled(cx, path, self.run(script)).await.flatten().map_err(|error| error.or_path(path))
    }

    /// As [`ask`](Self::ask), as the operation's own answer.
    pub(crate) async fn ask_done(&self, cx: &OpContext, path: &VfsPath, script: Script) -> Result<Reply> {
        self.ask(cx, path, script).await?.done(path)
    }

    /// Most bytes of an answer to a script.
    pub(crate) fn max_answer_bytes(&self) -> u64 {
        self.execute.transport().max_output_bytes.min(MAX_ANSWER_BYTES)
    }

    async fn run(&self, mut script: Script) -> Result<ScriptResponse> {
        script.push("finish");
        let most = self.execute.transport().max_script_bytes;
        if script.text.len() > most {
            let message =
                format!("the request needs a script of more than the {most} bytes that fit through to the sandbox");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let mut invocation = Invocation::new(script.text);
        invocation.beginning = script.beginning;
        invocation.stdin = script.stdin;
        invocation.timeout = self.config.timeout;
        invocation.max_output_bytes = self.max_answer_bytes();
        // It is never closed.
        let _turn = self.scripts.acquire().await.ok();
        let RemoteOutput { stdout, stderr, exit, truncated, .. } = self.execute.run(invocation).await?;
        match Reply::parse(&script.marker, &stdout) {
            Ok(reply) => Ok(ScriptResponse { reply, stderr, is_cut: false }),
            Err(_) if truncated && script.counts_in_part => {
                Ok(ScriptResponse { reply: Reply::beginning(&script.marker, &stdout), stderr, is_cut: true })
            }
            Err(_) if truncated => {
                let message = "the answer is more than fits through from the sandbox; ask for less";
                Err(Error::new(ErrorKind::TooLarge, message))
            }
            Err(_) => Err(unanswered(exit, &stderr)),
        }
    }
}

impl<E: RemoteExec> Place<E> {
    /// Changes something. What was begun goes to its end even where the caller gives up.
    pub(crate) async fn change(self: &Arc<Self>, cx: &OpContext, path: &VfsPath, script: Script) -> Result<ScriptResponse> {
        cx.check().map_err(|error| error.or_path(path))?;
        let Ok(runtime) = Handle::try_current() else {
            return self.run(script).await.map_err(|error| error.or_path(path));
        };
        let place = Arc::clone(self);
        let mut task = runtime.spawn(async move { place.run(script).await });
        let outcome = match run_until_cancelled(cx, path, &mut task).await {
            Ok(outcome) => outcome,
            Err(error) => timeout(SETTLING, &mut task).await.map_err(|_| error)?,
        };
        let answer = outcome.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Internal, "a change ended in the middle; look at what it left")
                .with_source(error))
        });
        answer.map_err(|error| error.or_path(path))
    }

    /// Makes a change anew, by the script that `make` gives, for as long as others overtake it.
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
            make_way(cx, path, attempt).await?;
        }
    }
}

/// Lets others go first: a random part of a time that doubles.
pub(crate) async fn make_way(cx: &OpContext, path: &VfsPath, attempts: u32) -> Result<()> {
    let most = Duration::from_millis(1).saturating_mul(1 << attempts.min(6));
    run_until_cancelled(cx, path, sleep(most.mul_f64(fastrand::f64()))).await
}

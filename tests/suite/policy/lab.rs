//! A directory with secrets in it, and an agent that may not see them.

use std::fmt::Debug;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use vfs_composite::CompositeBackend;
use vfs_core::{Backend, ErrorKind, Layer, OpContext, Result};
use vfs_layers::{Audit, MemorySink, Trace};
use vfs_local::LocalConfig;
use vfs_policy::{Policy, RuleSet};
use vfs_shell::{LocalShellBackend, ShellConfig};

/// Content of every denied file.
pub(crate) const SECRET: &str = "hunter2-is-the-key";

const RULES: &str = r#"
    [[rules]]
    effect = "deny"
    paths = ["/secrets/**", "/alias/secrets", ".env", "*.pem"]
"#;

/// Result of an attack: everything that the agent saw, and requests that should have been refused and were not.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) seen: String,
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    /// Records an answer of any kind.
    pub(crate) fn sees<T: Debug>(&mut self, answer: &Result<T>) {
        self.seen.push_str(&format!("{answer:?}\n"));
        if let Err(error) = answer {
            self.seen.push_str(&format!("{error} {}\n", error.for_model()));
        }
    }

    /// Records an answer that has to be a refusal by the policy.
    pub(crate) fn refused<T: Debug>(&mut self, answer: &Result<T>) {
        self.sees(answer);
        match answer {
            Err(error) if error.kind() == ErrorKind::PolicyDenied => {}
            other => self.failures.push(format!("not refused: {other:?}")),
        }
    }
}

pub(crate) struct Lab {
    pub(crate) files: Arc<dyn Backend>,
    pub(crate) host: TempDir,
    pub(crate) cx: OpContext,
    runtime: Runtime,
    records: Arc<MemorySink>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let rules = RuleSet::from_toml(RULES).expect("the rules are valid");
        Self::with(|inner| Policy::new(Arc::new(rules.clone())).layer(inner))
    }

    pub(crate) fn unguarded() -> Self {
        Self::with(|inner| inner)
    }

    /// The directory as the default, the same again at `/alias`, and the layer `guard` over both.
    fn with(guard: impl Fn(Arc<dyn Backend>) -> Arc<dyn Backend>) -> Self {
        let host = tempfile::tempdir().expect("a temporary directory can be made");
        for (path, text) in FILES {
            let at = host.path().join(path);
            fs::create_dir_all(at.parent().expect("it is below the root")).expect("a directory can be made");
            fs::write(at, text).expect("a file can be written");
        }
        for (at, to) in [
            ("public/link", "../secrets/key"),
            ("public/dir", "../secrets"),
            ("public/chain", "dir"),
            ("public/new", "../secrets/new"),
        ] {
            symlink(to, host.path().join(at)).expect("a link can be made");
        }
        fs::hard_link(host.path().join("secrets/key"), host.path().join("public/hard")).expect("a link can be made");
        let local = LocalConfig::new(host.path()).open().expect("the root can be opened");
        let shell = LocalShellBackend::with_files(local.clone(), ShellConfig::new());
        let composite = CompositeBackend::new(Arc::new(shell))
            .with_mount("/alias", Arc::new(local))
            .and_then(|files| files.with_executor("/"))
            .expect("the mounts are valid");
        let records = Arc::new(MemorySink::new());
        let audit = Audit::new(Arc::<MemorySink>::clone(&records));
        let files = Trace::new().layer(audit.layer(guard(Arc::new(composite))));
        let runtime = Runtime::new().expect("a runtime can be built");
        Self { files, host, cx: OpContext::new().with_actor("agent"), runtime, records }
    }

    pub(crate) fn run(&self, attack: BoxFuture<'_, Outcome>) -> Outcome {
        self.runtime.block_on(attack)
    }

    /// The audit's records, if the secret is in them.
    pub(crate) fn traces(&self) -> Option<String> {
        let records = format!("{:?}", self.records.records());
        records.contains(SECRET).then_some(records)
    }

    /// How the denied files differ from what they were, if they do.
    pub(crate) fn difference(&self) -> Option<String> {
        for (path, text) in FILES.iter().filter(|(_, text)| text.contains(SECRET)) {
            let now = fs::read_to_string(self.host.path().join(path)).ok();
            if now.as_deref() != Some(text) {
                return Some(format!("{path} is {now:?}"));
            }
        }
        let new = self.host.path().join("secrets/new");
        new.exists().then(|| "a file was made among the secrets".to_owned())
    }
}

const FILES: &[(&str, &str)] = &[
    ("secrets/key", "the key: hunter2-is-the-key\n"),
    ("secrets/deep/.dot", "dot: hunter2-is-the-key\n"),
    (".env", "KEY=hunter2-is-the-key\n"),
    ("public/.env", "KEY=hunter2-is-the-key\n"),
    ("public/cert.pem", "-----hunter2-is-the-key-----\n"),
    ("mixed/open.txt", "open\n"),
    ("mixed/sub/.env", "KEY=hunter2-is-the-key\n"),
    ("public/notes.txt", "notes\nof the key\n"),
];

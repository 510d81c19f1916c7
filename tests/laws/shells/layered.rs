//! Shells behind what passes them on.

use std::sync::Arc;
use std::time::Duration;

use vfs_composite::CompositeBackend;
use vfs_core::{Backend, Layer, VfsPath};
use vfs_layers::{Audit, ConcurrencyLimit, Delay, MemorySink, Quota, QuotaLimits, Retry, Timeout, Trace};
use vfs_memory::MemoryBackend;
use vfs_policy::{Policy, Rule, RuleEffect, RuleSet};
use vfs_testkit::{LawTier, ShellFactory, ShellFeature, ShellTarget, StrictBackend};

type Change = fn(ShellTarget) -> ShellTarget;

/// `subject` behind each.
pub(crate) fn over(subject: fn() -> ShellFactory) -> Vec<ShellFactory> {
    let changes: [(&str, Change); 5] = [
        ("strict", |target| around(target, |inner| Arc::new(StrictBackend::new(inner)))),
        ("policy", |target| around(target, |inner| allow_commands().layer(inner))),
        ("wrapped", |target| around(target, wrapped)),
        ("composite", |target| around(target, |inner| composite(inner, "/"))),
        ("mounted", |target| {
            // The shell of a mount knows its files below a root of its own.
            let mut target = target.without(&[ShellFeature::SamePaths]);
            target.files.backend = composite(target.files.backend, "/mounted");
            target.files.base = VfsPath::parse("/mounted").expect("a valid path");
            target
        }),
    ];
    let named = |(name, change)| {
        let factory = subject();
        let name = format!("{}-{name}", factory.name);
        factory.seen_through(name, change).tier(LawTier::Wrapper)
    };
    changes.into_iter().map(named).collect()
}

fn around(mut target: ShellTarget, layer: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>) -> ShellTarget {
    target.files.backend = layer(target.files.backend);
    target
}

/// Every command is allowed, which takes a rule of its own; another rule concerns nothing the laws do.
fn allow_commands() -> Policy {
    let commands = Rule::new(RuleEffect::Allow).operation("execute");
    let elsewhere = Rule::new(RuleEffect::Deny).path("never-named-*").path("/never/named/**");
    Policy::new(Arc::new(RuleSet::new([commands, elsewhere]).expect("the rules are valid")))
}

/// Everything that only looks, waits or counts, one around the other.
fn wrapped(inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
    let layers: [Box<dyn Layer>; 7] = [
        Box::new(Delay::new(Duration::ZERO)),
        Box::new(Quota::new(QuotaLimits::new().max_bytes(1 << 30))),
        Box::new(Retry::new()),
        Box::new(ConcurrencyLimit::new(64)),
        Box::new(Timeout::new(Duration::from_secs(55))),
        Box::new(Audit::new(Arc::new(MemorySink::new()))),
        Box::new(Trace::new()),
    ];
    layers.into_iter().fold(inner, |inner, layer| layer.layer(inner))
}

/// A namespace in which what is at `at` runs the commands.
fn composite(executor: Arc<dyn Backend>, at: &str) -> Arc<dyn Backend> {
    let files = match at {
        "/" => CompositeBackend::new(executor),
        _ => {
            let files = CompositeBackend::new(Arc::new(MemoryBackend::new()));
            files.with_mount(at, executor).expect("the place is free")
        }
    };
    Arc::new(files.with_executor(at).expect("it has a shell"))
}

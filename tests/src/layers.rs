//! Layers over backends, as targets of the laws.

use std::sync::Arc;
use std::time::Duration;

use vfs_composite::CompositeBackend;
use vfs_core::{Backend, Layer, VfsPath};
use vfs_layers::{
    Audit, Cache, ConcurrencyLimit, Delay, MemorySink, Quota, QuotaLimits, Retry, Scoped, Timeout, Trace,
};
use vfs_local::{Durability, LocalConfig};
use vfs_memory::MemoryBackend;
use vfs_policy::{Policy, Rule, RuleEffect, RuleSet};
use vfs_testkit::{LawTier, Target, TargetFactory};
use vfs_versions::{Checkpoints, OverlayBackend};

use crate::{HostLinks, LOCK_TIMEOUT, directory};

/// Each layer over memory, and those that look at links over a disk.
///
/// One layer that does nothing, one that looks at every path, and the overlay run the laws of every tier: what a layer can
/// break is in those of wrappers. A layer that lets nothing be written has no target, since laws begin with files of their own.
pub(crate) fn targets() -> Vec<TargetFactory> {
    let mut targets = vec![
        over_memory("trace", || Box::new(Trace::new())),
        over_memory("policy-rules", || Box::new(deny_elsewhere())),
        TargetFactory::new("overlay", || Target::new(Arc::new(OverlayBackend::new(Arc::new(MemoryBackend::new()))))),
        TargetFactory::new("overlay-local", overlay_over_local).tier(LawTier::Storage),
        TargetFactory::new("policy-rules-local", || over_local(&deny_elsewhere(), "")).tier(LawTier::Storage),
    ];
    let wrappers = [
        over_memory("timeout", || Box::new(Timeout::new(Duration::from_secs(50)))),
        over_memory("retry", || Box::new(Retry::new())),
        over_memory("concurrency-limit", || Box::new(ConcurrencyLimit::new(4))),
        over_memory("delay", || Box::new(Delay::new(Duration::ZERO))),
        over_memory("audit", || Box::new(Audit::new(Arc::new(MemorySink::new())))),
        over_memory("quota", || Box::new(Quota::new(QuotaLimits::new().max_bytes(1 << 30)))),
        over_memory("cache", || Box::new(Cache::new(1 << 20))),
        over_memory("policy", || Box::new(allow_all())),
        TargetFactory::new("checkpoints", checkpoints),
        TargetFactory::new("scoped", || scoped(over(&Scoped::new(path(SCOPE))))),
        TargetFactory::new("overlay-composite", overlay_over_composite),
        TargetFactory::new("policy-local", || over_local(&allow_all(), "")),
        TargetFactory::new("scoped-local", || scoped(over_local(&Scoped::new(path(SCOPE)), SCOPE))),
    ];
    targets.extend(wrappers.map(|wrapper| wrapper.tier(LawTier::Wrapper)));
    targets
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn allow_all() -> Policy {
    Policy::new(Arc::new(RuleSet::default()))
}

/// Rules that concern nothing the laws do, so that all the looking at paths is done for nothing.
fn deny_elsewhere() -> Policy {
    let rule = Rule::new(RuleEffect::Deny).path("never-named-*").path("/never/named/**");
    Policy::new(Arc::new(RuleSet::new([rule]).expect("the rule is valid")))
}

fn over_memory(name: &'static str, layer: fn() -> Box<dyn Layer>) -> TargetFactory {
    TargetFactory::new(name, move || over(&*layer()))
}

/// The directory that is shown as a root.
const SCOPE: &str = "/deep/scope";

fn scoped(target: Target) -> Target {
    target.with_longest_path(VfsPath::MAX_LEN - SCOPE.len())
}

fn over(layer: &dyn Layer) -> Target {
    Target::new(layer.layer(Arc::new(MemoryBackend::new())))
}

fn checkpoints() -> Target {
    let store = Arc::new(MemoryBackend::new());
    over(&Checkpoints::new(store, VfsPath::root()))
}

/// Without a maker of links: one on the disk cannot lead to a file that is only in the overlay.
fn overlay_over_local() -> Target {
    let root = directory();
    let local = LocalConfig::new(root.path()).lock_timeout(LOCK_TIMEOUT).open().expect("the root can be opened");
    Target::new(Arc::new(OverlayBackend::new(Arc::new(local)))).with_host_marker("vfs-laws-").with_guard(root)
}

fn overlay_over_composite() -> Target {
    let composite = CompositeBackend::new(Arc::new(MemoryBackend::new()))
        .with_mount("/mounted", Arc::new(MemoryBackend::new()))
        .expect("a place that is free");
    Target::new(Arc::new(OverlayBackend::new(Arc::new(composite)))).below(path("/mounted"))
}

/// `layer` over a fresh directory, of which it shows `below`.
fn over_local(layer: &dyn Layer, below: &str) -> Target {
    let root = directory();
    let shown = root.path().join(below.trim_start_matches('/'));
    std::fs::create_dir_all(&shown).expect("a directory can be made");
    let local = LocalConfig::new(root.path())
        .durability(Durability::Atomic)
        .lock_timeout(LOCK_TIMEOUT)
        .open()
        .expect("the root can be opened");
    let backend: Arc<dyn Backend> = layer.layer(Arc::new(local));
    Target::new(backend)
        .with_host_marker("vfs-laws-")
        .with_links(Arc::new(HostLinks { root: shown, at: VfsPath::root() }))
        .with_guard(root)
}

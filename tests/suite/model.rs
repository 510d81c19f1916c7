//! Random operations on every backend.

use proptest::test_runner::{Config, TestRunner};
use vfs_testkit::model;

/// Enough to meet most pairs of operations on most pairs of names; a run on disk takes seconds.
const CASES: u32 = 64;

fn check_random_steps(name: &str) {
    let factory = vfs_tests::target(name);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let run = TestRunner::new(config).run(&model::steps(), |steps| {
        model::check(&(factory.make)(), &steps);
        Ok(())
    });
    if let Err(failure) = run {
        panic!("{name}: {failure}");
    }
}

/// Targets in which nothing can be written.
const READ_ONLY: &[&str] = &["read-only"];

macro_rules! on_every_backend {
    ($($module:ident $name:literal;)+) => {$(
        mod $module {
            #[test]
            fn random_operations_do_what_the_reference_does() {
                super::check_random_steps($name);
            }

            #[test]
            fn changes_on_versions_are_never_lost() {
                vfs_testkit::model::check_concurrently(&(vfs_tests::target($name).make)(), 8, 12);
            }
        }
    )+

        #[test]
        fn every_backend_is_here() {
            let names = vfs_tests::targets().into_iter().map(|target| target.name);
            let names: Vec<_> = names.filter(|name| !READ_ONLY.contains(name)).collect();
            assert_eq!(names, [$($name),+]);
        }
    };
}

on_every_backend! {
    memory "memory";
    state_pure "state-pure";
    state_session "state-session";
    local "local";
    local_host "local-host";
    strict "strict";
    composite_alone "composite-alone";
    composite_default "composite-default";
    composite_state "composite-state";
    composite_local "composite-local";
    composite_nested "composite-nested";
    timeout "timeout";
    retry "retry";
    concurrency_limit "concurrency-limit";
    latency "latency";
    trace "trace";
    audit "audit";
    quota "quota";
    cache "cache";
    checkpoints "checkpoints";
    policy "policy";
    policy_rules "policy-rules";
    scoped "scoped";
    overlay "overlay";
    overlay_local "overlay-local";
    overlay_composite "overlay-composite";
    policy_local "policy-local";
    policy_rules_local "policy-rules-local";
    scoped_local "scoped-local";
}

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
            let names: Vec<_> = vfs_tests::targets().into_iter().map(|target| target.name).collect();
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
    virtual_shell "virtual-shell";
    composite_alone "composite-alone";
    composite_default "composite-default";
    composite_state "composite-state";
    composite_local "composite-local";
    composite_nested "composite-nested";
    trace "trace";
    policy_rules "policy-rules";
    overlay "overlay";
    overlay_local "overlay-local";
    policy_rules_local "policy-rules-local";
    timeout "timeout";
    retry "retry";
    concurrency_limit "concurrency-limit";
    delay "delay";
    audit "audit";
    quota "quota";
    cache "cache";
    policy "policy";
    checkpoints "checkpoints";
    scoped "scoped";
    overlay_composite "overlay-composite";
    policy_local "policy-local";
    scoped_local "scoped-local";
}

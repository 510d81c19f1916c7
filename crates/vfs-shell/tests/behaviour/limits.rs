//! Resource limits of commands.

use vfs_core::ExecuteRequest;
use vfs_shell::{Limits, ShellConfig};

use super::{HANG_TIMEOUT, Place};

fn limited(limits: Limits) -> Place {
    Place::with(ShellConfig::new().limits(limits))
}

#[tokio::test]
async fn processor_time_is_bounded() {
    let place = limited(Limits::default().cpu_seconds(1));
    let response = place.run(ExecuteRequest::new("while :; do :; done").timeout(HANG_TIMEOUT)).await;
    assert_eq!((response.signal, response.timed_out), (Some(24), false), "SIGXCPU: {response:?}");
}

#[tokio::test]
async fn memory_is_bounded() {
    let place = limited(Limits::default().memory_bytes(64 << 20));
    let response = place.sh("head -c 200000000 /dev/zero | tail -c 190000000 | wc -c; echo alive").await;
    assert!(!response.stdout.contains("190000000") && response.stdout.contains("alive"), "{response:?}");
}

#[tokio::test]
async fn files_are_bounded_in_size_and_number() {
    let place = limited(Limits::default().file_bytes(10_000));
    place.sh("head -c 50000 /dev/zero > large").await;
    assert_eq!(std::fs::metadata(place.host("large")).expect("it is there").len(), 10_000);
    let place = limited(Limits::default().open_files(8));
    let all = "exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null 7</dev/null && echo some; cat </dev/null";
    let response = place.sh(&format!("ulimit -n; ulimit -Hn; sh -c '{all}'")).await;
    assert_eq!(response.stdout, "8\n8\nsome\n");
    assert_ne!(response.exit_code, Some(0));
}

#[tokio::test]
async fn a_limit_is_never_raised() {
    let place = limited(Limits::default().open_files(u64::MAX));
    let (ours, theirs) = (rustix::process::getrlimit(rustix::process::Resource::Nofile), place.sh("ulimit -Hn").await);
    assert_eq!(theirs.stdout.trim(), ours.maximum.map_or("unlimited".to_owned(), |most| most.to_string()));
}

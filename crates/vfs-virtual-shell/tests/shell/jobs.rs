//! Background jobs.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::shell::{JobId, JobOutputRequest, JobsRequest, StopJobRequest};
use vfs_core::{BackendExt, ErrorKind, ExecuteRequest, OpContext, Shell as _};
use vfs_memory::MemoryBackend;
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::support::{TIMES, in_memory};

async fn begin(files: &VirtualShell, cx: &OpContext, command: &str) -> JobId {
    let answer = files.execute(cx, ExecuteRequest::new(command).background()).await.expect("it starts");
    answer.job.expect("an id")
}

#[tokio::test]
async fn a_job_is_polled_to_its_end() {
    let (files, cx) = (in_memory(), OpContext::new());
    files.create_text("/wait", "").await.expect("a new file");
    let id = begin(&files, &cx, "echo one; while [ -e wait ]; do sleep 0.01; done; echo two; exit 4").await;
    let poll = |cursor| JobOutputRequest::new(id.clone()).from(cursor).wait(Duration::from_secs(60));
    let first = files.job_output(&cx, poll(0)).await.expect("output");
    assert_eq!((first.output.as_str(), first.cursor, first.exit), ("one\n", 4, None));
    assert_eq!(files.jobs(&cx, JobsRequest::new()).await.expect("listed")[0].exit, None);
    files.delete_file("/wait").await.expect("removed");
    let second = files.job_output(&cx, poll(first.cursor)).await.expect("output");
    assert_eq!((second.output.as_str(), second.missed_bytes), ("two\n", 0));
    let exit = loop {
        let last = files.job_output(&cx, poll(second.cursor)).await.expect("output");
        assert_eq!(last.output, "");
        if let Some(exit) = last.exit {
            break exit;
        }
    };
    assert_eq!(exit.exit_code, Some(4));
    let listed = files.jobs(&cx, JobsRequest::new()).await.expect("listed");
    assert_eq!(listed[0].exit.and_then(|exit| exit.exit_code), Some(4));
    assert!(listed[0].command.starts_with("echo one"));
}

#[tokio::test]
async fn a_job_is_stopped_and_outlives_its_call() {
    let files = in_memory();
    let mut times = TIMES.into_iter();
    let id = loop {
        let time = times.next().expect("a job starts in this time");
        let (cx, request) = (OpContext::new().with_timeout(time), ExecuteRequest::new("while :; do sleep 0.01; done"));
        match files.execute(&cx, request.background()).await {
            Err(error) if error.kind() == ErrorKind::Timeout => {}
            answer => {
                tokio::time::sleep_until(cx.deadline().expect("it is set").into()).await;
                break answer.expect("it starts").job.expect("an id");
            }
        }
    };
    let cx = OpContext::new();
    assert_eq!(files.jobs(&cx, JobsRequest::new()).await.expect("listed")[0].exit, None);
    let job = files.stop_job(&cx, StopJobRequest::new(id.clone())).await.expect("stopped");
    assert_eq!(job.exit.and_then(|exit| exit.signal), Some(9));
    let again = files.stop_job(&cx, StopJobRequest::new(id)).await.expect("it stays as it is");
    assert_eq!(again.exit, job.exit);
}

#[tokio::test]
async fn a_job_is_visible_only_to_its_actor_and_session() {
    let files = in_memory();
    let (ours, theirs) = (OpContext::new().with_actor("a").with_session("1"), OpContext::new().with_actor("b"));
    let id = begin(&files, &ours, "sleep 100").await;
    assert!(files.jobs(&theirs, JobsRequest::new()).await.expect("listed").is_empty());
    let error = files.stop_job(&theirs, StopJobRequest::new(id.clone())).await.expect_err("not theirs");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = files.job_output(&theirs, JobOutputRequest::new(id.clone())).await.expect_err("not theirs");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    files.stop_job(&ours, StopJobRequest::new(id)).await.expect("stopped");
}

#[tokio::test]
async fn jobs_of_other_owners_do_not_evict_ours() {
    let files = in_memory();
    let (ours, theirs) = (OpContext::new().with_actor("a"), OpContext::new().with_actor("b"));
    let finish = async |cx: &OpContext| {
        let id = begin(&files, cx, "true").await;
        while files.jobs(cx, JobsRequest::new()).await.expect("listed").iter().any(|job| job.exit.is_none()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        id
    };
    let id = finish(&ours).await;
    for _ in 0..70 {
        finish(&theirs).await;
    }
    assert_eq!(files.jobs(&ours, JobsRequest::new()).await.expect("listed")[0].id, id);
    let listed = files.jobs(&theirs, JobsRequest::new()).await.expect("listed");
    assert!((64..=65).contains(&listed.len()), "{}", listed.len());
}

#[tokio::test]
async fn jobs_are_bounded_in_number_and_memory() {
    let config = VirtualShellConfig::new().max_concurrent(1);
    let (files, cx) = (VirtualShell::new(Arc::new(MemoryBackend::new()), config), OpContext::new());
    let id = begin(&files, &cx, "for i in {1..30}; do seq 10000; done; sleep 100").await;
    let error = files.execute(&cx, ExecuteRequest::new("true").background()).await.expect_err("one at a time");
    assert_eq!(error.kind(), ErrorKind::Busy);
    let mut cursor = 0;
    while cursor < 30 * 48_894 {
        let request = JobOutputRequest::new(id.clone()).from(cursor).wait(Duration::from_secs(60));
        cursor = files.job_output(&cx, request).await.expect("output").cursor;
    }
    let first = files.job_output(&cx, JobOutputRequest::new(id.clone())).await.expect("output");
    assert_eq!(first.missed_bytes, 30 * 48_894 - (1 << 20));
    files.stop_job(&cx, StopJobRequest::new(id)).await.expect("stopped");
}

#[tokio::test]
async fn jobs_end_with_the_shell() {
    let memory = Arc::new(MemoryBackend::new());
    let files = VirtualShell::new(Arc::clone(&memory) as _, VirtualShellConfig::new());
    begin(&files, &OpContext::new(), "while :; do echo x >> log; sleep 0.001; done").await;
    while !memory.exists("/log").await.expect("looked at") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(files);
    let mut size = None;
    for _ in 0..1_000 {
        let now = memory.stat_path("/log").await.expect("it is there").size;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if size.replace(now) == Some(now) {
            return;
        }
    }
    panic!("it goes on");
}

//! The wrappers of the testkit, around a real backend.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use vfs_core::{BackendExt, ErrorKind};
use vfs_memory::MemoryBackend;
use vfs_testkit::{Counting, Faulty, Intercepted, Operation, Slow};

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be built").block_on(future)
}

#[test]
fn counting_counts_each_operation() -> vfs_core::Result<()> {
    let counting = Arc::new(Counting::default());
    let files = Intercepted::new(Arc::new(MemoryBackend::new()), Arc::clone(&counting) as _);
    run(async {
        files.create_text("/a", "one\n").await?;
        files.read_text("/a").await?;
        files.read_text("/a").await?;
        files.edit_text("/a", "one", "two").await?;
        assert_eq!(files.read_text("/missing").await.map_err(|error| error.kind()), Err(ErrorKind::NotFound));
        let calls =
            [Operation::Write, Operation::Read, Operation::Edit, Operation::Delete].map(|op| counting.calls(op));
        assert_eq!((calls, counting.total()), ([1, 3, 1, 0], 5));
        Ok(())
    })
}

#[test]
fn a_faulty_operation_fails_so_often_and_changes_nothing_then() -> vfs_core::Result<()> {
    let memory = MemoryBackend::new();
    let faulty = Arc::new(Faulty::new(Operation::Write, ErrorKind::StorageFull, 2));
    let files = Intercepted::new(Arc::new(memory.clone()), faulty);
    run(async {
        for _ in 0..2 {
            let error = files.create_text("/a", "x").await.expect_err("it is to fail");
            assert_eq!((error.kind(), error.path()), (ErrorKind::StorageFull, Some("/a")));
            assert!(!memory.exists("/a").await?);
        }
        files.create_text("/a", "x").await?;
        assert!(memory.exists("/a").await?);
        Ok(())
    })
}

#[test]
fn a_slow_operation_takes_its_time() {
    let delay = Duration::from_millis(20);
    let files = Intercepted::new(Arc::new(MemoryBackend::new()), Arc::new(Slow { delay }));
    let start = Instant::now();
    assert!(run(files.exists("/a")).is_ok_and(|exists| !exists));
    assert!(start.elapsed() >= delay);
}

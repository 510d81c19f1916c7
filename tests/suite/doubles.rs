//! The layer of the testkit, around a real backend.

use std::sync::Arc;

use tokio::runtime::Builder;
use vfs_core::operation::Intercepted;
use vfs_core::{BackendExt, ErrorKind, Operation};
use vfs_memory::MemoryBackend;
use vfs_testkit::CallCounter;

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be built").block_on(future)
}

#[test]
fn counting_counts_each_operation() -> vfs_core::Result<()> {
    let counting = Arc::new(CallCounter::default());
    let files = Intercepted::new(Arc::new(MemoryBackend::new()), Arc::clone(&counting));
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

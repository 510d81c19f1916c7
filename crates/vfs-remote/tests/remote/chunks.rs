//! Chunked writes and reads: number of scripts, staged files, faults.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use libtest_mimic::Trial;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use vfs_core::chunks::read_chunks;
use vfs_core::{Backend, ErrorKind, FileWriter, OpContext, OpenWriterRequest, ReadRequest, Result, VfsPath, WriteMode};
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};

use crate::fault_injector::{Fault, FaultInjector};
use crate::places::directory;
use crate::runtime::trials;
use crate::tools::HANG_TIMEOUT;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        "chunks":
        small_chunks_share_a_script,
        a_dropped_writer_removes_its_staged_file,
        a_part_that_is_lost_or_repeated_fails_the_writer,
        a_busy_commit_can_be_repeated,
        a_file_over_the_streamed_limit_is_refused,
        a_chunk_of_a_large_file_costs_only_its_range,
    ]
}

const MIB: usize = 1 << 20;

struct Fixture {
    root: TempDir,
    transport: FaultInjector,
    backend: SandboxBackend<FaultInjector>,
}

impl Fixture {
    async fn new(configure: impl FnOnce(RemoteConfig) -> RemoteConfig) -> Result<Self> {
        let root = directory();
        let transport = FaultInjector::new(LocalProcess::new());
        let config = configure(RemoteConfig::new(root.path().to_str().expect("it is UTF-8")));
        let backend = SandboxBackend::connect(transport.clone(), config).await?;
        transport.calls();
        Ok(Self { root, transport, backend })
    }

    async fn open(&self, path: &str) -> Result<Box<dyn FileWriter>> {
        let request = OpenWriterRequest::new(VfsPath::parse(path)?).mode(WriteMode::Overwrite);
        self.backend.open_writer(&OpContext::new(), request).await
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.path()).expect("it can be listed");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    async fn wait_for_names(&self, expected: &[&str]) {
        let end = Instant::now() + HANG_TIMEOUT;
        while self.names() != expected {
            assert!(Instant::now() < end, "{:?} instead of {expected:?}", self.names());
            sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

async fn small_chunks_share_a_script() -> Result<()> {
    let files = Fixture::new(|config| config).await?;
    let mut writer = files.open("/small").await?;
    for _ in 0..100 {
        writer.write(Bytes::from_static(b"line\n")).await?;
    }
    assert_eq!((files.transport.calls(), writer.commit().await?.size), (0, 500));
    assert_eq!(files.transport.calls(), 1, "a small file is one write");
    let mut writer = files.open("/large").await?;
    for number in 0..10 {
        writer.write(Bytes::from(vec![number; MIB])).await?;
    }
    assert_eq!(files.names().len(), 2, "the staged file is beside the small one");
    assert_eq!(writer.commit().await?.size, 10 * MIB as u64);
    drop(writer);
    assert_eq!(files.transport.calls(), 4, "three parts and a commit");
    let written = std::fs::read(files.root.path().join("large")).expect("it can be read");
    assert!((0..10).flat_map(|number| vec![number; MIB]).eq(written), "all chunks in their order");
    assert_eq!(files.names().len(), 2);
    Ok(())
}

async fn a_dropped_writer_removes_its_staged_file() -> Result<()> {
    let files = Fixture::new(|config| config).await?;
    let mut writer = files.open("/a").await?;
    writer.write(Bytes::from(vec![1; 5 * MIB])).await?;
    assert_eq!(files.names().len(), 1);
    drop(writer);
    files.wait_for_names(&[]).await;
    // If the future of a write is dropped, the script completes in the place, and the staged file is removed after
    // that.
    let mut writer = files.open("/a").await?;
    futures::future::select(writer.write(Bytes::from(vec![1; 5 * MIB])), std::future::ready(())).await;
    let error = writer.commit().await.expect_err("a chunk may be missing");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    drop(writer);
    files.wait_for_names(&[]).await;
    Ok(())
}

async fn a_part_that_is_lost_or_repeated_fails_the_writer() -> Result<()> {
    let files = Fixture::new(|config| config).await?;
    for fault in [Fault::Repeated, Fault::InputCut, Fault::NotRun, Fault::AnswerLost, Fault::Cut(500)] {
        let mut writer = files.open("/a").await?;
        writer.write(Bytes::from(vec![1; 5 * MIB])).await?;
        files.transport.set(fault);
        let error = writer.write(Bytes::from(vec![2; 5 * MIB])).await.expect_err("a part is not as it was sent");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}: {error:?}");
        files.transport.set(Fault::None);
        assert_eq!(writer.commit().await.expect_err("it failed").kind(), ErrorKind::InvalidArgument);
        drop(writer);
        files.wait_for_names(&[]).await;
    }
    let mut writer = files.open("/a").await?;
    writer.write(Bytes::from(vec![1; 5 * MIB])).await?;
    let staged = files.root.path().join(&files.names()[0]);
    std::fs::write(staged, "another size").expect("it can be written");
    let error = writer.commit().await.expect_err("the staged file is not the content");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    Ok(())
}

async fn a_busy_commit_can_be_repeated() -> Result<()> {
    let files = Fixture::new(|config| config.lock_timeout(std::time::Duration::from_secs(1))).await?;
    for size in [10, 6 * MIB] {
        let mut writer = files.open("/a").await?;
        writer.write(Bytes::from(vec![7; size])).await?;
        let lock = files.root.path().join(".vfs-tmp-r-a");
        std::fs::write(&lock, "another\n").expect("it can be written");
        assert_eq!(writer.commit().await.expect_err("it is locked").kind(), ErrorKind::Busy);
        std::fs::remove_file(lock).expect("it was made");
        assert_eq!(writer.commit().await?.size, size as u64);
        drop(writer);
        assert_eq!(files.names(), ["a"]);
    }
    Ok(())
}

async fn a_file_over_the_streamed_limit_is_refused() -> Result<()> {
    let files = Fixture::new(|config| config.max_file_size(1000).max_streamed_size(2000)).await?;
    let mut writer = files.open("/a").await?;
    writer.write(Bytes::from(vec![1; 2000])).await?;
    assert_eq!(writer.commit().await?.size, 2000);
    let mut writer = files.open("/a").await?;
    let error = writer.write(Bytes::from(vec![1; 2001])).await.expect_err("it is over the limit");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(files.backend.capabilities(&VfsPath::root()).max_streamed_size, 2000);
    Ok(())
}

async fn a_chunk_of_a_large_file_costs_only_its_range() -> Result<()> {
    let files = Fixture::new(|config| config).await?;
    let large = std::fs::File::create(files.root.path().join("large")).expect("it can be made");
    large.set_len(64 << 30).expect("a sparse file");
    let backend: Arc<dyn Backend> = Arc::new(files.backend.clone());
    // The first range that does not begin at offset 0 also needs the first block, for the type of the content.
    let request = ReadRequest::new(VfsPath::parse("/large")?).bytes(10 << 30, Some((10 << 30) + 10)).max_bytes(10);
    _ = read_chunks(Arc::clone(&backend), OpContext::new(), request).try_collect::<Vec<_>>().await?;
    assert_eq!(files.transport.calls(), 2);
    let printed = files.transport.output_bytes();
    assert!(printed < 192 << 10, "{printed} bytes for ten");
    for (start, chunk) in [(0, MIB as u64), (50 << 30, 4 * MIB as u64), ((50 << 30) + 12_345, 4 * MIB as u64 + 1)] {
        let request =
            ReadRequest::new(VfsPath::parse("/large")?).bytes(start, Some(start + 2 * chunk)).max_bytes(chunk);
        files.transport.output_bytes();
        let chunks: Vec<_> = read_chunks(Arc::clone(&backend), OpContext::new(), request).try_collect().await?;
        assert_eq!(chunks.iter().map(|chunk| chunk.content.as_bytes().len() as u64).sum::<u64>(), 2 * chunk);
        assert_eq!(files.transport.calls(), 2, "one script a chunk");
        let printed = files.transport.output_bytes() as u64;
        assert!(printed < 2 * (chunk + (192 << 10)), "{printed} bytes for two chunks of {chunk} at {start}");
    }
    Ok(())
}

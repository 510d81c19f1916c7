//! A directory as the root.

use std::sync::Arc;

use vfs_core::{
    Backend, BackendExt, DeleteRequest, ErrorKind, Layer, LsRequest, OpContext, RenameRequest, Result, VfsPath,
};
use vfs_layers::Scoped;
use vfs_memory::MemoryBackend;

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

#[tokio::test]
async fn paths_outside_cannot_be_named_and_the_root_exists_before_its_directory() -> Result<()> {
    let (memory, cx) = (MemoryBackend::new(), OpContext::new());
    memory.create_text("/other/secret", "secret\n").await?;
    memory.create_text("/.gitignore", "*.log\n").await?;
    let own = Scoped::new(path("/agents/one")).layer(Arc::new(memory.clone()));
    assert!(own.ls(&cx, LsRequest::new(path("/"))).await?.entries.is_empty());
    assert!(own.stat_path("/").await?.is_dir);
    let error = own.write_text("/", "x").await.expect_err("a directory");
    assert_eq!((error.kind(), error.path()), (ErrorKind::IsADirectory, Some("/")));

    own.create_text("/a.log", "word\n").await?;
    assert_eq!(memory.read_text("/agents/one/a.log").await?, "word\n");
    let found = own.grep_text("word").await?;
    assert_eq!(found.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["/a.log"]);
    assert!(own.grep_text("secret").await?.is_empty());
    assert!(own.read_text("/../other/secret").await.is_err());
    let error = own.read_text("/nothing").await.expect_err("missing");
    assert_eq!(error.for_model(), "Error: File '/nothing' not found");

    let moved = own.rename(&cx, RenameRequest::new(path("/"), path("/x"))).await.expect_err("the root");
    let deleted = own.delete(&cx, DeleteRequest::new(path("/")).recursive()).await.expect_err("the root");
    assert_eq!([moved.kind(), deleted.kind()], [ErrorKind::InvalidArgument; 2]);
    assert!(own.as_shell().is_none() && own.as_snapshots().is_none());
    Ok(())
}

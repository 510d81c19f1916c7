//! Undo over disks, on which a content that is written again has a new version, and a link may be put in the place of a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_composite::CompositeBackend;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, Error, ErrorKind, Interceptor, Layer, OpContext, Operation, RenameRequest, Result,
};
use vfs_memory::MemoryBackend;
use vfs_policy::{Rule, RuleEffect};
use vfs_versions::{CheckpointedBackend, Checkpoints};

use crate::links::{deny, disk, path, run};

fn checkpoints(store: &Arc<MemoryBackend>, files: Arc<dyn Backend>) -> CheckpointedBackend {
    Checkpoints::new(Arc::<MemoryBackend>::clone(store), path("/checkpoints")).over(files)
}

/// Performs each rename, and after it an action of another process. The response may be lost.
#[derive(Debug)]
struct InterferedRename {
    root: PathBuf,
    action: fn(&Path) -> std::io::Result<()>,
    loses_response: bool,
}

impl Interceptor for InterferedRename {
    fn name(&self) -> &'static str {
        "interfered-rename"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let output = request.send(inner, cx).await?;
        if Q::OPERATION != Operation::Rename {
            return Ok(output);
        }
        (self.action)(&self.root).expect("the directory is ours");
        if self.loses_response { Err(Error::of(ErrorKind::Unavailable)) } else { Ok(output) }
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[test]
fn a_moved_file_whose_place_a_link_has_taken_is_restored() {
    let replace_file = |root: &Path| {
        fs::remove_file(root.join("y/sub/g"))?;
        symlink("..", root.join("y/sub/g"))
    };
    let replace_directory = |root: &Path| {
        fs::remove_dir_all(root.join("y/sub"))?;
        symlink("/", root.join("y/sub"))
    };
    let replace_file_by_link_to_another = |root: &Path| {
        fs::remove_file(root.join("y/sub/g"))?;
        symlink("../../x/h", root.join("y/sub/g"))
    };
    for action in [replace_file as fn(&Path) -> _, replace_directory, replace_file_by_link_to_another] {
        run(async {
            let (root, base) = disk(&[("x/sub/g", "g"), ("x/h", "h")], &[]);
            let interfered = InterferedRename { root: root.path().to_owned(), action, loses_response: true };
            let store = Arc::default();
            let lost = checkpoints(&store, Arc::new(Intercepted::new(Arc::clone(&base), Arc::new(interfered))));
            let renamed = lost.rename(&OpContext::new(), RenameRequest::new(path("/x"), path("/y"))).await;
            assert_eq!(renamed.expect_err("the response was lost").kind(), ErrorKind::Unavailable);
            let files = checkpoints(&store, base);
            files.undo(&OpContext::new(), 1).await?;
            assert!(!root.path().join("x/sub/g").is_symlink());
            assert_eq!((files.read_text("/x/sub/g").await?, files.read_text("/x/h").await?), ("g".into(), "h".into()));
            assert!(!files.exists("/y/h").await?);
            Ok(())
        });
    }
}

#[test]
fn a_moved_file_that_is_lost_is_kept_although_another_source_is_written_again_as_it_was() {
    let rewrite = |root: &Path| {
        fs::create_dir(root.join("x"))?;
        fs::write(root.join("x/g"), "other")?;
        fs::write(root.join("x/h"), "h")?;
        fs::write(root.join("y/g"), "other")?;
        fs::remove_file(root.join("y/h"))
    };
    run(async {
        let (root, base) = disk(&[("x/g", "g"), ("x/h", "h")], &[]);
        let interfered = InterferedRename { root: root.path().to_owned(), action: rewrite, loses_response: true };
        let store = Arc::default();
        let lost = checkpoints(&store, Arc::new(Intercepted::new(Arc::clone(&base), Arc::new(interfered))));
        lost.rename(&OpContext::new(), RenameRequest::new(path("/x"), path("/y"))).await.expect_err("it is lost");
        let files = checkpoints(&store, base);
        let refused = files.undo(&OpContext::new(), 1).await.expect_err("a content would be lost");
        assert_eq!((refused.kind(), refused.path()), (ErrorKind::Conflict, Some("/x/g")));
        fs::remove_file(root.path().join("x/g")).expect("the directory is ours");
        files.undo(&OpContext::new(), 1).await?;
        assert_eq!((files.read_text("/x/g").await?, files.read_text("/x/h").await?), ("g".into(), "h".into()));
        assert_eq!(files.read_text("/y/g").await?, "other", "the file of another process stays");
        Ok(())
    });
}

#[test]
fn a_file_that_is_removed_right_after_an_undo_moved_it_is_restored() {
    let remove = |root: &Path| match fs::remove_file(root.join("x/g")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    run(async {
        let (root, base) = disk(&[("x/g", "g"), ("x/h", "h")], &[]);
        let interfered = InterferedRename { root: root.path().to_owned(), action: remove, loses_response: false };
        let files = checkpoints(&Arc::default(), Arc::new(Intercepted::new(base, Arc::new(interfered))));
        files.rename(&OpContext::new(), RenameRequest::new(path("/x"), path("/y"))).await?;
        files.undo(&OpContext::new(), 1).await?;
        assert_eq!((files.read_text("/x/g").await?, files.read_text("/x/h").await?), ("g".into(), "h".into()));
        assert!(!files.exists("/y").await?);
        Ok(())
    });
}

#[test]
fn a_rename_that_was_rolled_back_has_no_record_and_leaves_older_operations_undoable() {
    run(async {
        let ((_one, one), (_two, two)) = (disk(&[("a", "new")], &[]), disk(&[("b", "older")], &[]));
        let one = deny(Rule::new(RuleEffect::Deny).operation("delete")).layer(one);
        let mounts =
            CompositeBackend::new(Arc::new(MemoryBackend::new())).with_mount("/1", one)?.with_mount("/2", two)?;
        let files = checkpoints(&Arc::default(), Arc::new(mounts));
        files.write_text("/2/b", "old").await?;
        let rename = RenameRequest::new(path("/1/a"), path("/2/b")).overwrite();
        let refused = files.rename(&OpContext::new(), rename).await.expect_err("the source cannot be removed");
        assert_eq!(refused.kind(), ErrorKind::PolicyDenied);
        assert_eq!(files.history(&OpContext::new()).await?.len(), 1);
        files.undo(&OpContext::new(), 1).await?;
        assert_eq!((files.read_text("/1/a").await?, files.read_text("/2/b").await?), ("new".into(), "older".into()));
        Ok(())
    });
}

//! Tests of workspaces whose backend is an overlay, with commands in a sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use vfs_core::snapshots::SnapshotDiffKind;
use vfs_core::{BackendExt as _, ErrorKind, OpContext, VfsPath};
use vfs_memory::MemoryBackend;
use vfs_sandbox::{HelperLocation, OsSandbox, SandboxConfig, Workspace};
use vfs_versions::OverlayBackend;

use super::{Outcome, own, run};

pub(crate) async fn overlay() -> Outcome {
    let cx = OpContext::new();
    let project = Arc::new(MemoryBackend::new());
    project.create_text("/project/src/main.rs", "fn main() {}\n").await?;
    project.create_text("/project/old", "old\n").await?;
    project.create_text("/project/run", "#!/bin/sh\necho ran > \"$1\"\n").await?;
    project.create_text("/elsewhere", "x").await?;
    let overlay = OverlayBackend::new(Arc::<MemoryBackend>::clone(&project) as _);
    overlay.edit_text("/project/src/main.rs", "main", "start").await?;
    let from = VfsPath::parse("/project")?;
    let mut workspace = Workspace::checkout(&cx, Arc::new(overlay.clone()), from, std::env::temp_dir()).await?;
    let directory = workspace.directory().to_owned();
    let config = SandboxConfig::new(&directory).helper(HelperLocation::At(own()));
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended =
        run(&sandbox, "ls; cat src/main.rs; ./run made; rm old; touch run; echo '// end' >> src/main.rs").await?;
    assert_eq!(ended.output, "old\nrun\nsrc\nfn start() {}\n", "{ended:?}");

    let found = workspace.changes(&cx).await?;
    let kinds: Vec<_> = found.changes.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    let expected = [
        ("/project/made", SnapshotDiffKind::Added),
        ("/project/old", SnapshotDiffKind::Removed),
        ("/project/src/main.rs", SnapshotDiffKind::Changed),
    ];
    assert_eq!(kinds, expected);
    assert!(found.changes.unified().contains("+// end"), "{}", found.changes.unified());
    assert_eq!(overlay.read_text("/project/old").await?, "old\n");

    let collected = workspace.collect(&cx).await?;
    assert_eq!(collected.changes, found.changes);
    assert_eq!(overlay.read_text("/project/made").await?, "ran\n");
    assert_eq!(overlay.read_text("/project/src/main.rs").await?, "fn start() {}\n// end\n");
    assert_eq!(overlay.read_text("/project/old").await.expect_err("removed").kind(), ErrorKind::NotFound);
    assert_eq!(project.read_text("/project/src/main.rs").await?, "fn main() {}\n");
    assert!(workspace.changes(&cx).await?.changes.is_empty());

    overlay.discard(&cx).await?;
    assert_eq!(overlay.read_text("/project/old").await?, "old\n");
    drop(workspace);
    assert!(!directory.exists());
    Ok(())
}

pub(crate) async fn conflicts() -> Outcome {
    let cx = OpContext::new();
    let files = Arc::new(MemoryBackend::new());
    for name in ["/both", "/here", "/deleted"] {
        files.create_text(name, "before\n").await?;
    }
    let mut workspace =
        Workspace::checkout(&cx, Arc::<MemoryBackend>::clone(&files) as _, VfsPath::root(), std::env::temp_dir())
            .await?;
    for name in ["both", "here", "deleted", "new"] {
        fs::write(workspace.directory().join(name), "inside\n")?;
    }
    symlink("/etc/passwd", workspace.directory().join("out"))?;
    files.edit_text("/both", "before", "outside").await?;
    files.delete_file("/deleted").await?;
    files.create_text("/new", "outside\n").await?;
    for collected in [workspace.changes(&cx).await?, workspace.collect(&cx).await?] {
        let changed: Vec<_> = collected.changes.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(changed, ["/here"]);
        let mut conflicts: Vec<_> = collected.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        conflicts.sort_unstable();
        assert_eq!(conflicts, ["/both", "/deleted", "/new"]);
        assert_eq!(collected.problems.len(), 1, "{:?}", collected.problems);
        assert_eq!(collected.problems[0].path, "/out");
    }
    assert_eq!(files.read_text("/both").await?, "outside\n");
    assert_eq!(files.read_text("/new").await?, "outside\n");
    assert_eq!(files.read_text("/here").await?, "inside\n");
    Ok(())
}

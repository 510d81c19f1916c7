//! The same project, but nothing is written to it until somebody says so.

use std::sync::Arc;

use agent_vfs::versions::{Checkpoints, CommitResult, OverlayBackend};
use agent_vfs::{Backend, BackendExt, CompositeBackend, LocalBackend, OpContext, Result, VfsPath};

use super::memories::Memories;
use super::{answer, call, say};

/// Works on `project`, in which `file` is a source file, with `memories` beside it.
pub(super) async fn run(
    project: &LocalBackend,
    file: &VfsPath,
    memories: &Memories,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    say(
        "Second act. The project again, under an overlay: what the agent writes stays off the disk. Its memories, which \
         are in a durable store, lie beside it in the same namespace.",
    );
    let store = tempfile::tempdir()?;
    let store: Arc<dyn Backend> = Arc::new(LocalBackend::open(store.path())?);
    let journal = VfsPath::parse("/commits")?;
    let overlay = OverlayBackend::new(Arc::new(project.clone())).with_journal(Arc::clone(&store), journal);
    let namespace =
        CompositeBackend::new(Arc::new(overlay.clone())).with_mount("/memories", Arc::new(memories.files()?))?;
    for mount in namespace.mounts() {
        answer(&format!("{} is {}", mount.path, mount.backend));
    }
    let files = Checkpoints::new(store, VfsPath::parse("/checkpoints")?).over(Arc::new(namespace));
    let cx = OpContext::new().with_actor("agent");

    work(&files, file.as_str()).await?;
    say("What differs from the project, which is still as it was:");
    let diff = overlay.diff(&cx).await?;
    answer(&diff.unified());

    say("The last step was a mistake. It takes that one back.");
    call("undo 1");
    let undone = files.undo(&cx, 1).await?;
    answer(&format!("{} step taken back", undone.entries.len()));
    answer(&format!("/NOTES.md is there: {}", files.exists("/NOTES.md").await?));

    sub_agents(&overlay, file).await?;
    commit(&overlay, project, file).await?;
    memories.recall_elsewhere()
}

async fn work(files: &dyn Backend, file: &str) -> Result<()> {
    say("It notes what it is about to do, edits the file, and writes one more.");
    call("write /memories/plan.md");
    files.write_text("/memories/plan.md", "1. name the limit in the docs\n2. commit\n").await?;
    call(&format!("edit {file}"));
    files
        .edit_text(file, "/// The maximum size of a path in bytes,", "/// The most bytes that a path can have,")
        .await?;
    call("write /NOTES.md");
    files.create_text("/NOTES.md", "nobody asked for this\n").await?;
    Ok(())
}

async fn sub_agents(overlay: &OverlayBackend, file: &VfsPath) -> Result<()> {
    say("Two others start from here, each on a fork. They change different files, and one that both want.");
    let cx = OpContext::new();
    let (first, second) = (overlay.fork(), overlay.fork());
    first.create_text("/docs/first.md", "written by the first\n").await?;
    first.edit_text(file.as_str(), "/// Returns the path as text.", "/// Returns the path, as text.").await?;
    second.create_text("/docs/second.md", "written by the second\n").await?;
    second.edit_text(file.as_str(), "/// Returns the path as text.", "/// Returns the text of the path.").await?;
    for (name, fork) in [("first", first), ("second", second)] {
        call(&format!("merge the {name} fork"));
        let merge = overlay.merge(&cx, &fork).await?;
        let paths = |paths: &[VfsPath]| paths.iter().map(VfsPath::as_str).collect::<Vec<_>>().join(", ");
        answer(&format!("merged: {}; in conflict: {}", paths(&merge.merged), paths(&merge.conflicts)));
    }
    Ok(())
}

async fn commit(overlay: &OverlayBackend, project: &LocalBackend, file: &VfsPath) -> Result<()> {
    say(
        "Everything is as it should be, so it goes to the disk: all of it, or, had somebody changed one of the files, none.",
    );
    call("commit");
    match overlay.commit(&OpContext::new()).await? {
        CommitResult::Applied(changes) => {
            for change in &changes.changes {
                answer(&format!("{:?} {}", change.kind, change.path));
            }
        }
        CommitResult::Conflicts(conflicts) => answer(&format!("{} files were changed meanwhile", conflicts.len())),
        _ => {}
    }
    let is_there = project.read_text(file.as_str()).await?.contains("/// Returns the path, as text.");
    answer(&format!("the first one's words are in the project now: {is_there}"));
    Ok(())
}

//! Ignore rules and hidden names across mounts.

use vfs_core::search::{EntryKinds, Skipped};
use vfs_core::{GlobRequest, GrepOutput, GrepRequest, GrepResult};

use super::super::LawResult;
use super::law_helpers::{NamespaceFixture, path};
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

namespace_laws! {
    "NS16" rules_above_a_mount_hold_in_it,
    "NS16" rules_of_a_mount_hold_in_it_and_in_what_is_mounted_below,
    "NS16" a_mount_can_be_ignored_as_a_whole,
    "NS17" a_hidden_mount_is_skipped_and_counted_once,
    "NS17" a_mount_in_a_hidden_directory_is_skipped_and_counted_once,
}

/// Asserts that glob and grep, whether collected or streamed, find `files` below `start`, and leave out as much.
async fn finds(t: &Target, start: &str, files: &[&str], hidden: u64, ignored: u64) -> LawResult {
    let found = t.glob(GlobRequest::new("*").path(path(start))).await?;
    let grepped = t.grep(GrepRequest::regex("^").output(GrepOutput::Files).path(path(start))).await?;
    assert_eq!(t.names(&found.entries), files, "below {start}");
    assert_eq!(names(&grepped), files, "below {start}");
    let counts = |skipped: Skipped| (skipped.hidden, skipped.ignored);
    assert_eq!(counts(found.skipped), (hidden, ignored), "hidden and ignored below {start}");
    assert_eq!(found.skipped, grepped.skipped, "below {start}");
    Ok(())
}

fn names(grepped: &GrepResult) -> Vec<&str> {
    grepped.files.iter().map(|file| file.path.as_str()).collect()
}

async fn rules_above_a_mount_hold_in_it(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, mounts } = n.parts(&["/in/m"]);
    default.put("/.gitignore", "*.log\n/in/m/target/\n").await?;
    default.put("/in/.ignore", "secret\n!keep.log\n").await?;
    mounts[0].put_each(&["/a.log", "/d/b.log", "/d/keep.log", "/target/x", "/d/target/y", "/secret", "/z"]).await?;
    let shown = ["/in/m/d/keep.log", "/in/m/d/target/y", "/in/m/z"];
    finds(&files, "/", &shown, 2, 4).await?;
    finds(&files, "/in", &shown, 1, 4).await?;
    finds(&files, "/in/m", &shown, 0, 4).await?;
    finds(&files, "/in/m/d", &shown[..2], 0, 1).await?;
    let all = files.glob(GlobRequest::new("*").no_ignore()).await?;
    assert_eq!((all.entries.len(), all.skipped.ignored), (7, 0));
    assert_eq!(files.level("/in/m").await?.len(), 5, "a listing leaves out nothing");
    Ok(())
}

async fn rules_of_a_mount_hold_in_it_and_in_what_is_mounted_below(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, mounts, .. } = n.parts(&["/a", "/a/deep/b", "/c"]);
    mounts[0].put("/.gitignore", "*.log\n/deep/b/target\n").await?;
    mounts[1].put("/.gitignore", "!keep.log\n").await?;
    files.put_each(&["/a/x.log", "/a/deep/b/y.log", "/a/deep/b/keep.log", "/a/deep/b/target/z"]).await?;
    files.put_each(&["/c/x.log", "/x.log", "/deep/b/target"]).await?;
    let shown = ["/a/deep/b/keep.log", "/c/x.log", "/deep/b/target", "/x.log"];
    finds(&files, "/", &shown, 2, 3).await?;
    finds(&files, "/a/deep/b", &shown[..1], 1, 2).await?;
    finds(&files, "/c", &shown[1..2], 0, 0).await
}

async fn a_mount_can_be_ignored_as_a_whole(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, default, .. } = n.parts(&["/m", "/other/m"]);
    default.put("/.gitignore", "/m/\n/other\n").await?;
    files.put_each(&["/m/a", "/m/b", "/other/m/c", "/other/d", "/z"]).await?;
    finds(&files, "/", &["/z"], 1, 2).await?;
    let all = files.glob(GlobRequest::new("*").no_ignore()).await?;
    assert_eq!(files.names(&all.entries), ["/m/a", "/m/b", "/other/d", "/other/m/c", "/z"]);
    Ok(())
}

async fn a_hidden_mount_is_skipped_and_counted_once(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/.secret", "/m/.cache"]);
    files.put_each(&["/.secret/a", "/.secret/b", "/m/.cache/c", "/m/d"]).await?;
    finds(&files, "/", &["/m/d"], 2, 0).await?;
    finds(&files, "/m", &["/m/d"], 1, 0).await?;
    finds(&files, "/.secret", &["/.secret/a", "/.secret/b"], 0, 0).await?;
    let all = files.glob(GlobRequest::new("*").hidden()).await?;
    assert_eq!(files.names(&all.entries), ["/.secret/a", "/.secret/b", "/m/.cache/c", "/m/d"]);
    assert!(all.skipped.is_empty());
    assert_eq!(files.level("/").await?, ["/.secret", "/m"], "a listing hides nothing");
    let directories = files.globbed(GlobRequest::new("*").kinds(EntryKinds::Directories)).await?;
    assert_eq!(directories, ["/m"]);
    Ok(())
}

async fn a_mount_in_a_hidden_directory_is_skipped_and_counted_once(n: &NamespaceFactory) -> LawResult {
    let NamespaceFixture { files, .. } = n.parts(&["/.config/one", "/.config/two"]);
    files.put_each(&["/.config/one/a", "/.config/two/b", "/z"]).await?;
    finds(&files, "/", &["/z"], 1, 0).await?;
    finds(&files, "/.config", &["/.config/one/a", "/.config/two/b"], 0, 0).await
}

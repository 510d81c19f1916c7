//! Open trees, on backends that provide them.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vfs_core::search::EntryKinds;
use vfs_core::tree::{ChildKind, Directory, LookupResult, OpenTreeRequest, SearchableContent, Tree, TreeUse};
use vfs_core::{ErrorKind, FileInfo, GlobRequest, LsRequest, ResolveRequest, ResolveResult, Result, VfsPath};

use super::LawResult;
use super::law_helpers::cx;
use crate::target::Target;

laws! { "lend" in Storage:
    "B1" TreeProvider a_lent_tree_lists_what_a_listing_shows in Smoke,
    "B1" TreeProvider a_lent_tree_shows_what_a_glob_finds in Wrapper,
    "B2" TreeProvider a_lent_tree_opens_the_files in Wrapper,
    "B2" TreeProvider a_lent_tree_reports_the_real_paths_of_its_entries in Wrapper,
    "B3" TreeProvider only_the_requested_names_are_listed,
    "B4" TreeProvider a_missing_start_fails_at_the_lookup_and_not_at_the_opening,
}

const PURPOSES: [TreeUse; 3] = [TreeUse::List, TreeUse::Glob, TreeUse::Grep];

async fn open_tree(t: &Target, start: &str, purpose: TreeUse) -> Result<Arc<dyn Tree>> {
    let searchable = t.backend.as_tree_provider().expect("the law needs a backend that provides a tree");
    searchable.open_tree(&cx(), OpenTreeRequest::new(t.path(start), purpose)).await
}

/// Looks at a tree where that may block.
async fn looking<T: Send + 'static>(look: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(look).await.expect("nothing in it panics")
}

/// One entry of an open tree.
#[derive(Debug)]
struct WalkedEntry {
    info: FileInfo,
    real: ResolveResult,
    /// Content of a file.
    content: Option<Bytes>,
}

fn directory(tree: &Arc<dyn Tree>, path: &VfsPath) -> Result<Arc<dyn Directory>> {
    Arc::clone(tree).lookup(path)?.into_dir(path)
}

fn content(dir: &dyn Directory, name: &str) -> Result<Bytes> {
    match dir.open_file(name, ChildKind::File)? {
        SearchableContent::Bytes { bytes, .. } => Ok(bytes),
        SearchableContent::Reader { mut reader, .. } => {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).expect("the file can be read");
            Ok(bytes.into())
        }
    }
}

/// Collects all that is below `dir`.
fn walk(dir: &dyn Directory, path: &VfsPath, entries: &mut Vec<WalkedEntry>) -> Result<()> {
    let listing = dir.list()?;
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    for (name, kind) in listing.iter() {
        let below = path.child(name)?;
        let (info, real) = (dir.stat(name, below.clone())?, dir.resolve(name)?);
        assert_eq!(info.is_dir, kind == ChildKind::Directory, "{below}");
        let content = if info.is_dir { None } else { Some(content(dir, name)?) };
        entries.push(WalkedEntry { info, real, content });
        if kind == ChildKind::Directory {
            walk(&*dir.open_dir(name, &below)?, &below, entries)?;
        }
    }
    Ok(())
}

/// Returns everything below `start` in a tree that is opened there, by path.
async fn everything(t: &Target, start: &str, purpose: TreeUse) -> Result<Vec<WalkedEntry>> {
    let (tree, at) = (open_tree(t, start, purpose).await?, t.path(start));
    looking(move || {
        let mut entries = Vec::new();
        walk(&*directory(&tree, &at)?, &at, &mut entries)?;
        entries.sort_by(|a, b| a.info.path.cmp(&b.info.path));
        Ok(entries)
    })
    .await
}

fn infos(entries: Vec<WalkedEntry>) -> Vec<FileInfo> {
    entries.into_iter().map(|entry| entry.info).collect()
}

async fn put_tree(t: &Target) -> LawResult {
    t.put("/.gitignore", "*.log\n").await?;
    t.put("/d/binary", b"\0\xff".to_vec()).await?;
    t.put_each(&["/.hidden/x", "/a.log", "/d/a b", "/d/e/f", "/d-x", "/empty/none"]).await?;
    t.put("/d/nothing", "").await.map(drop)
}

async fn a_lent_tree_lists_what_a_listing_shows(t: &Target) -> LawResult {
    put_tree(t).await?;
    for purpose in PURPOSES {
        for start in ["/", "/d", "/d/e"] {
            let listed = t.ls(LsRequest::new(t.path(start)).recursive()).await?;
            assert_eq!(infos(everything(t, start, purpose).await?), listed.entries, "{start} for {purpose:?}");
        }
    }
    Ok(())
}

async fn a_lent_tree_shows_what_a_glob_finds(t: &Target) -> LawResult {
    put_tree(t).await?;
    let all = GlobRequest::new("**").kinds(EntryKinds::All).hidden().no_ignore();
    let found = t.glob(all).await?;
    assert_eq!(infos(everything(t, "/", TreeUse::Glob).await?), found.entries);
    Ok(())
}

async fn a_lent_tree_opens_the_files(t: &Target) -> LawResult {
    put_tree(t).await?;
    for entry in everything(t, "/", TreeUse::Grep).await? {
        if let Some(content) = entry.content {
            let path = t.name(&entry.info.path);
            assert_eq!(content, t.bytes(&path).await?, "{path}");
        }
    }
    let (tree, file, base) = (open_tree(t, "/d/a b", TreeUse::Grep).await?, t.path("/d/a b"), t.base.clone());
    looking(move || {
        let entry = Arc::clone(&tree).lookup(&file)?;
        let LookupResult::File { dir, name } = entry else { panic!("a file is found as a file, not as a directory") };
        assert_eq!((name.as_str(), content(&*dir, &name)?), ("a b", "/d/a b\n".into()));
        assert!(directory(&tree, &base)?.open_file("d", ChildKind::File).is_err(), "a directory is no file");
        Ok(())
    })
    .await
}

async fn a_lent_tree_reports_the_real_paths_of_its_entries(t: &Target) -> LawResult {
    put_tree(t).await?;
    for entry in everything(t, "/", TreeUse::List).await? {
        let resolved = t.backend.resolve(&cx(), ResolveRequest::new(entry.info.path)).await?;
        assert_eq!(entry.real, resolved);
    }
    Ok(())
}

async fn only_the_requested_names_are_listed(t: &Target) -> LawResult {
    put_tree(t).await?;
    let (tree, start) = (open_tree(t, "/d", TreeUse::Glob).await?, t.path("/d"));
    looking(move || {
        let names = ["e", "missing", "a b", "d"].map(str::to_owned);
        let listing = directory(&tree, &start)?.list_only(&names)?;
        let mut listed: Vec<_> = listing.iter().collect();
        listed.sort_unstable_by_key(|entry| entry.0);
        listed.dedup();
        assert_eq!(listed, [("a b", ChildKind::File), ("e", ChildKind::Directory)]);
        Ok(())
    })
    .await
}

async fn a_missing_start_fails_at_the_lookup_and_not_at_the_opening(t: &Target) -> LawResult {
    put_tree(t).await?;
    for purpose in PURPOSES {
        for start in ["/missing", "/missing/deeper", "/d/missing"] {
            let (tree, at) = (open_tree(t, start, purpose).await?, t.path(start));
            let entry = looking(move || tree.lookup(&at).map(drop)).await;
            assert_eq!(entry.map_err(|error| error.kind()), Err(ErrorKind::NotFound), "{start} for {purpose:?}");
        }
    }
    Ok(())
}

//! `Tree` of a place, for searches, over batched listings and contents.

pub(crate) mod content_prefetcher;
pub(crate) mod directory_listing;

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use bytes::{Buf as _, Bytes};
use tokio::runtime::Handle;
use vfs_core::search::{HiddenNames, IgnoreMode};
use vfs_core::tree::{self, ChildKind, Listing, LookupResult, SearchableContent, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, OpContext, ResolveResult, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::read::keeps_changing;
use crate::operations::stat::{self, facts};
use crate::remote_place_client::RemotePlaceClient;
use crate::script::PathResolutionMode;
use crate::script::entry_metadata::{EntryMetadata, special_file};
use crate::script::reply::Reply;
use crate::tree::content_prefetcher::{ContentPrefetcher, LARGE};
use crate::tree::directory_listing::{
    DirectoryListing, HeavyDirectoryHandling, ListingDepth, ListingsByPath, SearchRoot,
};

/// The files of the place, for one search.
///
/// Calls wait for the place on the caller's thread, which belongs to a search pool and may block.
#[derive(Debug)]
pub(crate) struct RemoteTree<E> {
    place: Arc<RemotePlaceClient<E>>,
    cx: OpContext,
    runtime: Handle,
    /// The directories that were listed before the search began.
    listed_directories: ListingsByPath,
    contents: ContentPrefetcher,
}

/// A directory, with its entries once it was listed.
#[derive(Debug)]
struct RemoteDir<E> {
    tree: Arc<RemoteTree<E>>,
    path: VfsPath,
    listed: OnceLock<Arc<DirectoryListing>>,
}

impl<E: RemoteExec> RemoteTree<E> {
    /// Creates a tree, and lists the directories at and below `path` to the depth `max_depth`, in one response. If
    /// nothing exists at `path`, the search reports that.
    pub(crate) async fn new(
        place: &Arc<RemotePlaceClient<E>>,
        cx: &OpContext,
        path: &VfsPath,
        max_depth: ListingDepth,
    ) -> Result<Self> {
        stat::refuse_reserved(path)?;
        let listed_directories = match place.list(cx, path, max_depth).await {
            Ok(SearchRoot::Directory(listed_directories)) => listed_directories,
            Ok(SearchRoot::File) => HashMap::new(),
            Err(error) => match error.kind() {
                // If the tree is too large for one response, each directory is listed when the search enters it.
                ErrorKind::TooLarge | ErrorKind::NotFound | ErrorKind::NotADirectory => HashMap::new(),
                _ => return Err(error),
            },
        };
        let runtime = Handle::try_current().map_err(|error| {
            Error::new(ErrorKind::Unsupported, "a search in a sandbox needs a tokio runtime").with_source(error)
        })?;
        let contents = ContentPrefetcher::of(&listed_directories);
        Ok(Self { place: Arc::clone(place), cx: cx.clone(), runtime, listed_directories, contents })
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Returns the metadata of the entry at `path`, following links.
    fn stat_path(&self, path: &VfsPath) -> Result<EntryMetadata> {
        stat::refuse_reserved(path)?;
        self.wait(async {
            let mut script = self.place.script(&self.cx, path).await?;
            script.walk(PathResolutionMode::Followed, path).push("facts");
            facts(&self.place.query_reply(&self.cx, path, script).await?, path)
        })
    }
}

/// Maximum number of links that one script follows.
const LINKS: usize = 64;

/// Maximum number of links of a directory that are read in advance.
const MAX_LINKS: usize = 1024;

impl<E: RemoteExec> Tree for RemoteTree<E> {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        if self.listed_directories.contains_key(path) {
            return Ok(LookupResult::Directory(RemoteDir::new(&self, path.clone())));
        }
        let facts = self.stat_path(path)?;
        Ok(match (facts.kind, path.parent(), path.name()) {
            (ChildKind::Directory, ..) => LookupResult::Directory(RemoteDir::new(&self, path.clone())),
            (ChildKind::File, Some(dir), Some(name)) => {
                LookupResult::File { dir: RemoteDir::new(&self, dir), name: name.to_owned() }
            }
            _ => return Err(special_file().with_path(path)),
        })
    }
}

impl<E: RemoteExec> RemoteDir<E> {
    fn new(tree: &Arc<RemoteTree<E>>, path: VfsPath) -> Arc<Self> {
        Arc::new(Self { tree: Arc::clone(tree), path, listed: OnceLock::new() })
    }

    fn facts(&self, name: &str) -> Option<&EntryMetadata> {
        self.listed.get()?.entries.get(name)
    }

    fn directory(&self) -> Result<&Arc<DirectoryListing>> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let listed = match self.tree.listed_directories.get(&self.path) {
            Some(listed_directories) => Arc::clone(listed_directories),
            None => {
                let response = self.tree.wait(self.tree.place.list(&self.tree.cx, &self.path, ListingDepth::Level))?;
                let SearchRoot::Directory(mut listed) = response else {
                    return Err(Error::of(ErrorKind::NotADirectory));
                };
                listed.remove(&self.path).unwrap_or_default()
            }
        };
        Ok(self.listed.get_or_init(|| listed))
    }

    /// Returns the metadata of the target of the link `name`. The first call reads all links of the directory.
    fn link_target(&self, name: &str) -> Result<EntryMetadata> {
        let path = self.path.child(name)?;
        let directory = self.directory()?;
        let links = match directory.links.get() {
            Some(links) => links,
            None => {
                let targets = self.tree.wait(self.read_links(directory))?;
                directory.links.get_or_init(|| targets)
            }
        };
        links.get(name).cloned().unwrap_or_else(|| self.tree.stat_path(&path))
    }

    async fn read_links(&self, directory: &DirectoryListing) -> Result<HashMap<String, Result<EntryMetadata>>> {
        let mut targets = HashMap::new();
        let names: Vec<_> = directory.link_names().take(MAX_LINKS).collect();
        for names in names.chunks(LINKS) {
            let mut script = self.tree.place.script(&self.tree.cx, &self.path).await?;
            let mut paths = Vec::with_capacity(names.len());
            for name in names {
                let path = self.path.child(name)?;
                script.push("say '#'\n( T=").walk(PathResolutionMode::Followed, &path).push("facts )");
                paths.push(path);
            }
            let answer = self.tree.place.query(&self.tree.cx, &self.path, script).await?;
            let parts: Vec<Reply> = answer.reply.parts(b'#').collect();
            for ((name, path), reply) in names.iter().zip(paths).zip(parts) {
                let part = crate::remote_place_client::ScriptResponse { reply, stderr: Bytes::new(), is_cut: false };
                let found = part.done(&path).and_then(|reply| facts(&reply, &path));
                targets.insert((*name).to_owned(), found);
            }
        }
        Ok(targets)
    }
}

impl<E: RemoteExec> tree::Directory for RemoteDir<E> {
    fn list(&self) -> Result<Listing> {
        Ok(self.directory()?.listing())
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        Ok(self.directory()?.only(names))
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn tree::Directory>> {
        match self.facts(name) {
            Some(facts) if facts.kind == ChildKind::Directory => Ok(Self::new(&self.tree, path.clone())),
            _ => {
                let facts = self.tree.stat_path(&self.path.child(name)?)?;
                match facts.kind {
                    ChildKind::Directory => Ok(Self::new(&self.tree, path.clone())),
                    _ => Err(Error::at(ErrorKind::NotADirectory, path)),
                }
            }
        }
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        Ok(self.link_target(name)?.kind)
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        match self.facts(name) {
            Some(facts) if facts.kind == ChildKind::Link => self.link_target(name)?.info(path),
            Some(facts) => facts.info(path),
            None => self.tree.stat_path(&self.path.child(name)?)?.info(path),
        }
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        let RemoteTree { place, cx, runtime, contents, .. } = &*self.tree;
        let path = self.path.child(name)?;
        let listed = self.facts(name).filter(|facts| facts.kind == ChildKind::File && kind == ChildKind::File);
        match listed {
            Some(facts) if facts.size > LARGE => {}
            Some(_) => {
                if let Some(content) = contents.open(place, cx, runtime, &path)? {
                    return Ok(content.into());
                }
            }
            None => stat::refuse_reserved(&path)?,
        }
        let count = place.max_blocks().min(FIRST_BLOCKS);
        let first = self.tree.wait(place.part(cx, &path, 0, count))?;
        let (size, content) = (first.facts.size, first.content);
        if (content.len() as u64) < count << 16 && content.len() as u64 >= size {
            return Ok(content.into());
        }
        let (tree, at) = (Arc::clone(&self.tree), content.len() as u64);
        Ok(SearchableContent::reader(RemoteFileReader { tree, path, facts: first.facts, at, block: content }, size))
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.tree.wait(stat::resolve(&self.tree.place, &self.tree.cx, self.path.child(name)?))
    }
}

/// Number of blocks of a large file that are fetched at once: 1 MiB.
const FIRST_BLOCKS: u64 = 16;

/// A large file, read part by part as it is searched.
struct RemoteFileReader<E> {
    tree: Arc<RemoteTree<E>>,
    path: VfsPath,
    facts: EntryMetadata,
    /// Offset of the next part.
    at: u64,
    block: Bytes,
}

impl<E: RemoteExec> RemoteFileReader<E> {
    fn next_block(&mut self) -> Result<Bytes> {
        // If the parts so far are not a whole number of blocks, the last one has ended the file.
        if !self.at.is_multiple_of(1 << 16) {
            return Ok(Bytes::new());
        }
        let RemoteTree { place, cx, .. } = &*self.tree;
        let count = place.max_blocks().min(FIRST_BLOCKS);
        let part = self.tree.wait(place.part(cx, &self.path, self.at >> 16, count))?;
        if part.facts != self.facts {
            return Err(keeps_changing(&self.path));
        }
        self.at += part.content.len() as u64;
        Ok(part.content)
    }
}

impl<E: RemoteExec> Read for RemoteFileReader<E> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.block.is_empty() {
            self.block = self.next_block().map_err(io::Error::other)?;
        }
        let count = buffer.len().min(self.block.len());
        self.block.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// Returns the listing depth of a search that may enter any directory, with or without hidden ones.
pub(crate) fn everything(hidden: HiddenNames, ignore: IgnoreMode) -> ListingDepth {
    let shows_hidden = hidden != HiddenNames::Skip || ignore == IgnoreMode::Disregard;
    ListingDepth::All(if shows_hidden { HeavyDirectoryHandling::Entered } else { HeavyDirectoryHandling::Skipped })
}

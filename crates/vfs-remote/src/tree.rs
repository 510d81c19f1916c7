//! `Tree` of a place, for searches, over batched listings and contents.

pub(crate) mod contents;
pub(crate) mod listing;

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use bytes::{Buf as _, Bytes};
use tokio::runtime::Handle;
use vfs_core::tree::{ChildKind, Listing, Located, Opened, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, HiddenNames, OpContext, Resolved, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::read::keeps_changing;
use crate::operations::stat::{self, facts};
use crate::place::Place;
use crate::script::Walk;
use crate::script::facts::{Facts, special_file};
use crate::script::reply::Reply;
use crate::tree::contents::{Contents, LARGE};
use crate::tree::listing::{Directories, Directory, Hidden, Reach, SearchStart};

/// The files of the place, for one search.
///
/// Calls wait for the place on the thread of the caller: one of a search pool, which may block.
#[derive(Debug)]
pub(crate) struct RemoteTree<E> {
    place: Arc<Place<E>>,
    cx: OpContext,
    runtime: Handle,
    /// The directories that were listed before the search began.
    listed_directories: Directories,
    contents: Contents,
}

/// A directory, and what is in it once that was looked at.
#[derive(Debug, Clone)]
pub(crate) struct RemoteDir(Arc<DirInner>);

#[derive(Debug)]
struct DirInner {
    path: VfsPath,
    listed: OnceLock<Arc<Directory>>,
}

impl RemoteDir {
    fn new(path: VfsPath) -> Self {
        Self(Arc::new(DirInner { path, listed: OnceLock::new() }))
    }

    fn facts(&self, name: &str) -> Option<&Facts> {
        self.0.listed.get()?.entries.get(name)
    }
}

impl<E: RemoteExec> RemoteTree<E> {
    /// A tree of which what is at and below `path` is listed as far as `reach` says, in one answer. That nothing is there is
    /// for the search to find.
    pub(crate) async fn new(place: &Arc<Place<E>>, cx: &OpContext, path: &VfsPath, reach: Reach) -> Result<Self> {
        stat::refuse_reserved(path)?;
        let listed_directories = match place.list(cx, path, reach).await {
            Ok(SearchStart::Directory(listed_directories)) => listed_directories,
            Ok(SearchStart::File) => HashMap::new(),
            Err(error) => match error.kind() {
                // Of a tree that is too large for one answer each directory is listed as it is reached.
                ErrorKind::TooLarge | ErrorKind::NotFound | ErrorKind::NotADirectory => HashMap::new(),
                _ => return Err(error),
            },
        };
        let runtime = Handle::try_current().map_err(|error| {
            Error::new(ErrorKind::Unsupported, "a search in a sandbox needs a tokio runtime").with_source(error)
        })?;
        let contents = Contents::of(&listed_directories);
        Ok(Self { place: Arc::clone(place), cx: cx.clone(), runtime, listed_directories, contents })
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    fn directory<'a>(&self, dir: &'a RemoteDir) -> Result<&'a Arc<Directory>> {
        if let Some(listed) = dir.0.listed.get() {
            return Ok(listed);
        }
        let listed = match self.listed_directories.get(&dir.0.path) {
            Some(listed_directories) => Arc::clone(listed_directories),
            None => {
                let response = self.wait(self.place.list(&self.cx, &dir.0.path, Reach::Level))?;
                let SearchStart::Directory(mut listed) = response else {
                    return Err(Error::of(ErrorKind::NotADirectory));
                };
                listed.remove(&dir.0.path).unwrap_or_default()
            }
        };
        Ok(dir.0.listed.get_or_init(|| listed))
    }

    /// The facts of what `path` leads to.
    fn found(&self, path: &VfsPath) -> Result<Facts> {
        stat::refuse_reserved(path)?;
        self.wait(async {
            let mut script = self.place.script(&self.cx, path).await?;
            script.walk(Walk::Followed, path).push("facts");
            facts(&self.place.query_reply(&self.cx, path, script).await?, path)
        })
    }

    /// Returns the target of the link `name` of `dir`; all links of a directory are read at once.
    fn followed(&self, dir: &RemoteDir, name: &str) -> Result<Facts> {
        let path = dir.0.path.child(name)?;
        let directory = self.directory(dir)?;
        let links = match directory.links.get() {
            Some(links) => links,
            None => {
                let targets = self.wait(self.read_links(dir, directory))?;
                directory.links.get_or_init(|| targets)
            }
        };
        links.get(name).cloned().unwrap_or_else(|| self.found(&path))
    }

    async fn read_links(&self, dir: &RemoteDir, directory: &Directory) -> Result<HashMap<String, Result<Facts>>> {
        let mut targets = HashMap::new();
        let names: Vec<_> = directory.link_names().take(MAX_LINKS).collect();
        for names in names.chunks(LINKS) {
            let mut script = self.place.script(&self.cx, &dir.0.path).await?;
            let mut paths = Vec::with_capacity(names.len());
            for name in names {
                let path = dir.0.path.child(name)?;
                script.push("say '#'\n( T=").walk(Walk::Followed, &path).push("facts )");
                paths.push(path);
            }
            let answer = self.place.query(&self.cx, &dir.0.path, script).await?;
            let parts: Vec<Reply> = answer.reply.parts(b'#').collect();
            for ((name, path), reply) in names.iter().zip(paths).zip(parts) {
                let part = crate::place::ScriptResponse { reply, stderr: Bytes::new(), is_cut: false };
                let found = part.done(&path).and_then(|reply| facts(&reply, &path));
                targets.insert((*name).to_owned(), found);
            }
        }
        Ok(targets)
    }
}

/// Most links that are followed by one script.
const LINKS: usize = 64;

/// Most links of a directory that are read at once.
const MAX_LINKS: usize = 1024;

impl<E: RemoteExec> Tree for RemoteTree<E> {
    type Dir = RemoteDir;

    fn locate(&self, path: &VfsPath) -> Result<Located<RemoteDir>> {
        if self.listed_directories.contains_key(path) {
            return Ok(Located::Directory(RemoteDir::new(path.clone())));
        }
        let facts = self.found(path)?;
        Ok(match (facts.kind, path.parent(), path.name()) {
            (ChildKind::Directory, ..) => Located::Directory(RemoteDir::new(path.clone())),
            (ChildKind::File, Some(dir), Some(name)) => {
                Located::File { dir: RemoteDir::new(dir), name: name.to_owned() }
            }
            _ => return Err(special_file().with_path(path)),
        })
    }

    fn list(&self, dir: &RemoteDir) -> Result<Listing> {
        Ok(self.directory(dir)?.listing())
    }

    fn list_only(&self, dir: &RemoteDir, names: &[String]) -> Result<Listing> {
        Ok(self.directory(dir)?.only(names))
    }

    fn enter(&self, dir: &RemoteDir, name: &str, path: &VfsPath) -> Result<RemoteDir> {
        match dir.facts(name) {
            Some(facts) if facts.kind == ChildKind::Directory => Ok(RemoteDir::new(path.clone())),
            _ => {
                let facts = self.found(&dir.0.path.child(name)?)?;
                match facts.kind {
                    ChildKind::Directory => Ok(RemoteDir::new(path.clone())),
                    _ => Err(Error::at(ErrorKind::NotADirectory, path)),
                }
            }
        }
    }

    fn follow(&self, dir: &RemoteDir, name: &str) -> Result<ChildKind> {
        Ok(self.followed(dir, name)?.kind)
    }

    fn info(&self, dir: &RemoteDir, name: &str, path: VfsPath) -> Result<FileInfo> {
        match dir.facts(name) {
            Some(facts) if facts.kind == ChildKind::Link => self.followed(dir, name)?.info(path),
            Some(facts) => facts.info(path),
            None => self.found(&dir.0.path.child(name)?)?.info(path),
        }
    }

    fn open(&self, dir: &RemoteDir, name: &str, kind: ChildKind) -> Result<Opened> {
        let path = dir.0.path.child(name)?;
        let listed = dir.facts(name).filter(|facts| facts.kind == ChildKind::File && kind == ChildKind::File);
        match listed {
            Some(facts) if facts.size > LARGE => {}
            Some(_) => {
                if let Some(content) = self.contents.open(&self.place, &self.cx, &self.runtime, &path)? {
                    return Ok(content.into());
                }
            }
            None => stat::refuse_reserved(&path)?,
        }
        let count = self.place.most_blocks().min(FIRST_BLOCKS);
        let first = self.wait(self.place.part(&self.cx, &path, 0, count))?;
        let (size, content) = (first.facts.size, first.content);
        if (content.len() as u64) < count << 16 && content.len() as u64 >= size {
            return Ok(content.into());
        }
        let rest = Rest {
            place: Arc::clone(&self.place),
            cx: self.cx.clone(),
            runtime: self.runtime.clone(),
            path,
            facts: first.facts,
            at: content.len() as u64,
            block: content,
        };
        Ok(Opened::reader(rest, size))
    }

    fn resolve(&self, dir: &RemoteDir, name: &str) -> Result<Resolved> {
        self.wait(stat::resolve(&self.place, &self.cx, dir.0.path.child(name)?))
    }
}

/// Bytes of a large file that are fetched at once: 1 MiB.
const FIRST_BLOCKS: u64 = 16;

/// A large file, read part by part as it is searched.
struct Rest<E> {
    place: Arc<Place<E>>,
    cx: OpContext,
    runtime: Handle,
    path: VfsPath,
    facts: Facts,
    /// Where what comes next begins.
    at: u64,
    block: Bytes,
}

impl<E: RemoteExec> Rest<E> {
    fn next_block(&mut self) -> Result<Bytes> {
        // A part that is not a whole number of blocks was the last.
        if !self.at.is_multiple_of(1 << 16) {
            return Ok(Bytes::new());
        }
        let count = self.place.most_blocks().min(FIRST_BLOCKS);
        let response = self.place.part(&self.cx, &self.path, self.at >> 16, count);
        let part = self.runtime.block_on(response)?;
        if part.facts != self.facts {
            return Err(keeps_changing(&self.path));
        }
        self.at += part.content.len() as u64;
        Ok(part.content)
    }
}

impl<E: RemoteExec> Read for Rest<E> {
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

/// How far a search goes that shows hidden entries or not.
pub(crate) fn everything(hidden: HiddenNames, no_ignore: bool) -> Reach {
    Reach::All(if hidden != HiddenNames::Skip || no_ignore { Hidden::Entered } else { Hidden::Left })
}

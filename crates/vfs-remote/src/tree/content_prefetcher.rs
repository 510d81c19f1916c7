//! Prefetch of file contents for a search, many files in one reply.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use vfs_core::tree::ChildKind;
use vfs_core::{ErrorKind, OpContext, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::read::ANSWER_ROOM;
use crate::remote_place_client::{RemotePlaceClient, SCRIPT_ROOM};
use crate::script::entry_metadata::EntryMetadata;
use crate::script::reply::Reply;
use crate::script::{Script, quoted};
use crate::tree::directory_listing::ListingsByPath;

/// Size above which a file is fetched by itself: 256 KiB.
pub(crate) const LARGE: u64 = 256 << 10;

/// Maximum size of one response: 4 MiB.
const MAX_BATCH_BYTES: u64 = 4 << 20;

/// Size in bytes that a file takes in a response beside its content: its metadata twice, with a hash, and markers.
pub(crate) const FILE_OVERHEAD: u64 = 512;

/// Maximum number of files in one response.
const MAX_BATCH_FILES: usize = 512;

/// Number of files in the first batch, before it is clear whether the search reads them.
const FIRST_FILES: usize = 16;

/// Interval at which a worker that waits for another worker's fetch checks its context.
const CONTEXT_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Fetches the small files of a search in batches, before the search opens them.
#[derive(Debug)]
pub(crate) struct ContentPrefetcher {
    /// All files that the search is likely to read, in its order, with their sizes.
    files: Vec<(VfsPath, u64)>,
    state: Mutex<PrefetchState>,
    arrived: Condvar,
}

/// The files that were fetched and not yet opened, and the batches in flight.
#[derive(Debug)]
struct PrefetchState {
    ready: HashMap<VfsPath, Bytes>,
    in_flight: HashSet<VfsPath>,
    /// Files that were fetched already, whether read or not.
    fetched: HashSet<VfsPath>,
    batch: usize,
}

impl ContentPrefetcher {
    /// Creates a prefetcher for the files in `directories`.
    pub(crate) fn of(directories: &ListingsByPath) -> Self {
        let mut files: Vec<_> = directories
            .iter()
            .flat_map(|(at, directory)| {
                let files = directory.entries.iter().filter(|(_, facts)| facts.kind == ChildKind::File);
                files.filter_map(move |(name, facts)| Some((at.child(name).ok()?, facts.size)))
            })
            .filter(|(_, size)| *size <= LARGE)
            .collect();
        files.sort_unstable();
        let state = PrefetchState {
            ready: HashMap::new(),
            in_flight: HashSet::new(),
            fetched: HashSet::new(),
            batch: FIRST_FILES,
        };
        Self { files, state: Mutex::new(state), arrived: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, PrefetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the content of the small file at `path`, and prefetches files after it in the same response. Returns
    /// `None` if the file has to be fetched by itself.
    pub(crate) fn open<E: RemoteExec>(
        &self,
        place: &RemotePlaceClient<E>,
        cx: &OpContext,
        runtime: &Handle,
        path: &VfsPath,
    ) -> Result<Option<Bytes>> {
        let mut state = self.state();
        loop {
            if let Some(content) = state.ready.remove(path) {
                return Ok(Some(content));
            }
            if !state.in_flight.contains(path) {
                break;
            }
            state = self.arrived.wait_timeout(state, CONTEXT_CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            cx.check()?;
        }
        let max_script = place.execute.transport().max_script_bytes;
        let batch_paths = self.next(&mut state, path, max_script, place.max_batch_bytes());
        drop(state);
        let fetching = PrefetchBatchGuard { contents: self, batch_paths: &batch_paths };
        let arrived =
            if batch_paths.len() > 1 { runtime.block_on(place.many(cx, &batch_paths)) } else { Ok(HashMap::new()) };
        let mut arrived = match arrived {
            // The files have grown since they were listed.
            Err(error) if error.kind() == ErrorKind::TooLarge => HashMap::new(),
            arrived => arrived?,
        };
        let content = arrived.remove(path).map(|(_, content)| content);
        let mut state = self.state();
        state.ready.extend(arrived.into_iter().map(|(path, (_, content))| (path, content)));
        drop(state);
        drop(fetching);
        Ok(content)
    }

    /// Returns `path` and files after it that were not fetched yet. The number grows as long as the search reads the
    /// files.
    fn next(&self, state: &mut PrefetchState, path: &VfsPath, max_script: usize, max_bytes: u64) -> Vec<VfsPath> {
        state.batch = if state.ready.len() > state.batch {
            (state.batch / 2).max(1)
        } else {
            (state.batch * 2).min(MAX_BATCH_FILES)
        };
        let mut batch_paths = vec![path.clone()];
        let start = self.files.partition_point(|(at, _)| at < path);
        let (own, after) = match self.files[start..].split_first() {
            Some(((at, size), after)) if at == path => (*size, after),
            _ => (0, &self.files[start..]),
        };
        let (mut bytes, mut text) = (own + FILE_OVERHEAD, path.as_str().len());
        for (next, size) in after {
            bytes += size + FILE_OVERHEAD;
            text += 2 * next.as_str().len() + 64;
            let is_full = batch_paths.len() == state.batch || bytes > max_bytes || text + SCRIPT_ROOM > max_script;
            if is_full || state.fetched.contains(next) {
                break;
            }
            batch_paths.push(next.clone());
        }
        state.fetched.extend(batch_paths.iter().cloned());
        state.in_flight.extend(batch_paths.iter().cloned());
        batch_paths
    }
}

/// The batch that one worker fetches. Dropping it, also after an error, wakes the workers that wait for its files.
struct PrefetchBatchGuard<'a> {
    contents: &'a ContentPrefetcher,
    batch_paths: &'a [VfsPath],
}

impl Drop for PrefetchBatchGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.contents.state();
        for path in self.batch_paths {
            state.in_flight.remove(path);
        }
        drop(state);
        self.contents.arrived.notify_all();
    }
}

/// Enters a directory by its path, and fails if the path leads through a link.
const GO: &str = r#"go() {
  y=$1
  shift
  top
  walk f "$@"
  [ "$n" = . ] || into
  [ "$p" = "$y" ]
}
ok() { [ -f "./$1" ] && [ ! -L "./$1" ] && [ -r "./$1" ]; }
set --"#;

impl<E: RemoteExec> RemotePlaceClient<E> {
    /// Returns the metadata and contents of those of `paths` that are plain files, all at one moment. If the files
    /// change meanwhile, the result is empty.
    pub(crate) async fn many(
        &self,
        cx: &OpContext,
        paths: &[VfsPath],
    ) -> Result<HashMap<VfsPath, (EntryMetadata, Bytes)>> {
        let Some(first) = paths.first() else { return Ok(HashMap::new()) };
        let mut script = self.script(cx, first).await?;
        self.gather(&mut script, paths);
        // Without hashes, one `stat` describes all files.
        script.push("[ $# -gt 0 ] || finish\nsay q\nabout \"$@\" || die again\nsay c\ncat -- \"$@\" || die again");
        script.push("say a\nabout \"$@\" || die again");
        let answer = self.query(cx, first, script).await?;
        let reply = answer.reply;
        if reply.failure().is_some() {
            return Ok(HashMap::new());
        }
        let (before, after) = (reply.get(b'q'), reply.get(b'a'));
        let (Some(before), Some(content)) = (before, reply.get(b'c')) else { return Ok(HashMap::new()) };
        if Some(before) != after {
            return Ok(HashMap::new());
        }
        let (mut rest, mut found) = (content.clone(), HashMap::new());
        for (path, facts) in gathered_files(&reply, paths) {
            let Some(size) = usize::try_from(facts.size).ok().filter(|size| *size <= rest.len()) else {
                return Ok(HashMap::new());
            };
            found.insert(path.clone(), (facts, rest.split_to(size)));
        }
        Ok(if rest.is_empty() { found } else { HashMap::new() })
    }

    /// Returns the maximum size of a batch of files, each with its metadata, in bytes.
    pub(crate) fn max_batch_bytes(&self) -> u64 {
        self.max_answer_bytes().saturating_sub(ANSWER_ROOM).min(MAX_BATCH_BYTES)
    }

    /// Adds those of `paths` that are plain files to the arguments of a script, relative to the root, and returns to
    /// the root.
    pub(crate) fn gather(&self, script: &mut Script, paths: &[VfsPath]) {
        script.push(GO);
        let mut index = 0;
        for files in paths.chunk_by(|one, next| one.parent() == next.parent()) {
            let parent = files[0].parent().unwrap_or_default();
            let place = if parent.is_root() { "" } else { parent.as_str() };
            script.text.push_str(&format!("go {}", quoted(place)));
            for name in parent.components() {
                script.text.push_str(&format!(" {}", quoted(name)));
            }
            script.text.push_str(" && for x in");
            for file in files {
                script.text.push_str(&format!(" {}", quoted(&format!("{index}/{}", file.name().unwrap_or_default()))));
                index += 1;
            }
            script.push(
                "; do if ok \"${x#*/}\"; then say i; printf %s \"${x%%/*}\"; set -- \"$@\" \".$p/${x#*/}\"; fi; done",
            );
        }
        script.push("top");
    }
}

/// Returns those of `paths` that a script has gathered, with their metadata; none if the reply does not describe each of them.
pub(crate) fn gathered_files<'a>(
    reply: &Reply,
    paths: &'a [VfsPath],
) -> impl Iterator<Item = (&'a VfsPath, EntryMetadata)> {
    let index = |field: &Bytes| std::str::from_utf8(field).ok()?.parse::<usize>().ok();
    let chosen: Option<Vec<_>> = reply.all(b'i').map(|field| paths.get(index(field)?)).collect();
    let lines = reply.get(b'q').map(|field| &field[..]).unwrap_or_default();
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let facts: Option<Vec<_>> = lines.map(|line| EntryMetadata::parse(line, false).map(|(facts, _)| facts)).collect();
    let gathered = chosen.zip(facts).filter(|(chosen, facts)| chosen.len() == facts.len());
    gathered.into_iter().flat_map(|(chosen, facts)| chosen.into_iter().zip(facts))
}

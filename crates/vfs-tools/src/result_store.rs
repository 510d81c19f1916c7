//! Store of results and messages that are too long for a model.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::lock::Mutex;
use vfs_core::{Backend, DeleteRequest, Error, ErrorKind, OpContext, VfsPath, WriteRequest};

use crate::session::moment;

/// Maximum size in bytes of the name of a file. A longer id of a call is not a part of it.
const MAX_NAME_BYTES: usize = 128;

/// Maximum number of names that are tried for one id.
const MAX_ATTEMPTS: u32 = 6;

/// Maximum size in bytes of the output of a command that is stored: 16 MiB.
pub(crate) const MAX_STORED_OUTPUT: u64 = 16 << 20;

/// A store of results and messages that are too long for a model, which reads them in parts.
///
/// # Behaviour
///
/// * Each result is a file in the root of a backend, named for the id of its call. No file is replaced: if there is one of this name, a
///   number or the time is appended, as in `call-1-2`.
/// * A file is deleted after [`max_age`](Self::max_age), and the oldest ones are if all would exceed [`max_bytes`](Self::max_bytes):
///   both when the next result is stored. Files of an earlier process are neither counted nor deleted.
/// * A clone is a handle on the same store. Tool sets that share it can read each other's results.
///
/// # Errors
///
/// `quota_exceeded` for a result that alone exceeds `max_bytes`, or if the files before it cannot be deleted.
#[derive(Clone)]
pub struct ResultStore {
    backend: Arc<dyn Backend>,
    max_bytes: u64,
    max_age: Duration,
    /// The oldest is the first. Locked while a result is stored, so that the bounds hold for parallel calls.
    results: Arc<Mutex<Vec<StoredResult>>>,
}

#[derive(Debug)]
struct StoredResult {
    path: VfsPath,
    bytes: u64,
    stored_at: Instant,
    /// The context of the caller that stored the result, who may have a namespace of its own.
    cx: OpContext,
}

impl ResultStore {
    /// Creates a store in `backend`, such as a `MemoryBackend`, which should be used for nothing else: of at most 64 MiB, for an hour each.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, max_bytes: 64 << 20, max_age: Duration::from_secs(3600), results: Arc::default() }
    }

    /// Sets the maximum size of all results together, in bytes. Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the age at which a result is deleted. Default: 1 hour.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = age;
        self
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Stores `text` in a new file named for `id`, with `extension`, and returns its path in this store.
    pub(crate) async fn store(&self, cx: &OpContext, id: &str, extension: &str, text: &str) -> Result<VfsPath, Error> {
        let bytes = text.len() as u64;
        if bytes > self.max_bytes {
            let words = format!("storing {bytes} bytes failed: all stored results may have {} bytes", self.max_bytes);
            return Err(Error::new(ErrorKind::QuotaExceeded, words));
        }
        // An operation id belongs to the request that had the result.
        let cx = &cx.without_operation_id();
        let mut results = cx.run_until_cancelled(moment, self.results.lock()).await?;
        self.delete_old(cx, &mut results, bytes).await?;
        let name = file_name(id);
        for attempt in 1..=MAX_ATTEMPTS {
            let path = VfsPath::root().child(&format!("{name}{}{extension}", suffix(attempt)))?;
            match self.backend.write(cx, WriteRequest::new(path.clone(), text.to_owned())).await {
                Ok(_) => {
                    let stored = StoredResult { path, bytes, stored_at: Instant::now(), cx: cx.for_cleanup() };
                    let path = stored.path.clone();
                    results.push(stored);
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < MAX_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::of(ErrorKind::AlreadyExists))
    }

    /// Deletes the results that are too old, and the oldest until there is room for `bytes`. One that cannot be deleted stays counted.
    async fn delete_old(&self, cx: &OpContext, results: &mut Vec<StoredResult>, bytes: u64) -> Result<(), Error> {
        let (mut at, mut failure) = (0, None);
        while let Some(oldest) = results.get(at) {
            let is_full = results.iter().map(|result| result.bytes).sum::<u64>() + bytes > self.max_bytes;
            if !is_full && oldest.stored_at.elapsed() <= self.max_age {
                return Ok(());
            }
            let owner = oldest.cx.clone().with_cancel_token(cx.cancel_token().clone());
            let owner = match cx.deadline() {
                Some(deadline) => owner.with_deadline(deadline),
                None => owner,
            };
            match self.backend.delete(&owner, DeleteRequest::new(oldest.path.clone())).await {
                Ok(_) => drop(results.remove(at)),
                Err(error) if error.is_absence() => drop(results.remove(at)),
                Err(error) => {
                    failure = Some(error);
                    at += 1;
                }
            }
        }
        let is_full = results.iter().map(|result| result.bytes).sum::<u64>() + bytes > self.max_bytes;
        match failure {
            Some(error) if is_full => Err(error),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for ResultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultStore")
            .field("backend", &self.backend)
            .field("max_bytes", &self.max_bytes)
            .field("max_age", &self.max_age)
            .finish_non_exhaustive()
    }
}

/// Returns what is appended to a name at an attempt to store it: nothing, a number, or the time.
fn suffix(attempt: u32) -> String {
    match attempt {
        1 => String::new(),
        2..=3 => format!("-{attempt}"),
        _ => {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("-{:x}", time.as_micros())
        }
    }
}

/// Returns the id of a call as the name of a file.
fn file_name(id: &str) -> String {
    let is_unsafe = |character: char| matches!(character, '.' | '/' | '\\') || character.is_control();
    let name: String = id.chars().map(|character| if is_unsafe(character) { '_' } else { character }).collect();
    if name.is_empty() || name.len() > MAX_NAME_BYTES { "result".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use vfs_core::BackendExt as _;
    use vfs_memory::MemoryBackend;

    use super::*;

    fn names(files: &MemoryBackend) -> Vec<String> {
        let listed = block_on(files.glob_files("/**/*")).expect("it is listed");
        listed.iter().map(|file| file.path.to_string()).collect()
    }

    fn store(store: &ResultStore, id: &str, text: &str) -> Result<String, Error> {
        block_on(store.store(&OpContext::new(), id, ".txt", text)).map(|path| path.to_string())
    }

    #[test]
    fn names_are_safe_and_no_file_is_replaced() {
        let results = ResultStore::new(Arc::new(MemoryBackend::new()));
        for (id, name) in [
            ("../a.b\n", "/___a_b_.txt"),
            ("../a_b\n", "/___a_b_-2.txt"),
            ("call-1", "/call-1.txt"),
            ("call-1", "/call-1-2.txt"),
            ("", "/result.txt"),
            (&"é".repeat(100), "/result-2.txt"),
            (&"é".repeat(64), &format!("/{}.txt", "é".repeat(64))),
        ] {
            assert_eq!(store(&results, id, "x").expect("it is stored"), name);
        }
    }

    #[test]
    fn the_oldest_results_give_way() {
        let files = MemoryBackend::new();
        let results = ResultStore::new(Arc::new(files.clone())).max_bytes(25);
        for id in ["a", "b", "c"] {
            store(&results, id, "0123456789").expect("it is stored");
        }
        assert_eq!(names(&files), ["/b.txt", "/c.txt"]);
        // Somebody else has deleted one.
        block_on(files.delete_file("/b.txt")).expect("it is there");
        store(&results, "d", "0123456789").expect("it is stored");
        assert_eq!(names(&files), ["/c.txt", "/d.txt"]);
        let refused = store(&results, "e", &"x".repeat(26)).expect_err("it is too large");
        assert_eq!((refused.kind(), names(&files).len()), (ErrorKind::QuotaExceeded, 2));
    }

    #[test]
    fn results_are_deleted_when_they_are_too_old() {
        let files = MemoryBackend::new();
        let results = ResultStore::new(Arc::new(files.clone())).max_age(Duration::ZERO);
        for id in ["a", "b"] {
            store(&results, id, id).expect("it is stored");
        }
        assert_eq!(names(&files), ["/b.txt"]);
    }
}

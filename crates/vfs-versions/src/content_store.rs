//! Content-addressed store: contents by the hash of their bytes, in a directory of any backend.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::operation::UnaryRequest as _;
use vfs_core::transfer::FileDownloadRequest;
use vfs_core::{
    Backend, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, Result, StatRequest, VfsPath, WriteRequest,
};

/// Number of digits of an id that name the directory of its object.
const FAN_OUT: usize = 2;

/// Minimum size in bytes of a content whose existence is checked before it is sent.
const MIN_PROBE_SIZE: usize = 1 << 20;

/// Name of a content: its BLAKE3 hash, in 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ObjectId(String);

impl ObjectId {
    /// Returns the name of `content`.
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(blake3::hash(content).to_hex().to_string())
    }

    /// Returns `text` as a name if it is a valid one. Text that was read from a store can be anything.
    fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 2 * blake3::OUT_LEN && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Content-addressed store. Each content is stored once, as `<directory>/objects/<two digits>/<the rest>`.
///
/// Errors have paths of the store; the user of this type maps them to the caller's namespace.
#[derive(Debug, Clone)]
pub(crate) struct ContentStore {
    backend: Arc<dyn Backend>,
    directory: VfsPath,
}

impl ContentStore {
    pub(crate) fn new(backend: Arc<dyn Backend>, directory: VfsPath) -> Self {
        Self { backend, directory }
    }

    /// Stores `content`, unless it is stored already, and returns its name.
    pub(crate) async fn put(&self, cx: &OpContext, content: &Bytes) -> Result<ObjectId> {
        let id = ObjectId::of(content);
        if content.len() >= MIN_PROBE_SIZE && self.contains(cx, &id).await? {
            return Ok(id);
        }
        match self.backend.write(cx, WriteRequest::new(self.path(&id)?, content.clone())).await {
            Ok(_) => Ok(id),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(id),
            Err(error) => Err(error),
        }
    }

    /// Returns the content of `id`. A content that is missing or damaged is an `internal` error.
    pub(crate) async fn get(&self, cx: &OpContext, id: &ObjectId) -> Result<Bytes> {
        let path = self.path(id)?;
        let bad = |message| Error::new(ErrorKind::Internal, message).with_path(&path);
        let response = FileDownloadRequest::new(path.clone()).send(&*self.backend, cx).await;
        match response.map(|response| response.content) {
            Ok(Some(content)) if ObjectId::of(&content) == *id => Ok(content),
            Ok(Some(_)) => Err(bad("the stored content is damaged: its hash is not its name")),
            Ok(None) => Err(bad("the store returned neither content nor error")),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(bad("the content is missing from the store")),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the store has the content of `id`, without reading it.
    pub(crate) async fn contains(&self, cx: &OpContext, id: &ObjectId) -> Result<bool> {
        match self.backend.stat(cx, StatRequest::new(self.path(id)?)).await {
            Ok(info) => Ok(!info.is_dir),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes all contents except those in `keep`, and returns the number of removed ones. Files that are not contents stay.
    ///
    /// No other caller may store contents at the same time: a content that `keep` does not name would be removed as well.
    pub(crate) async fn retain(&self, cx: &OpContext, keep: &HashSet<ObjectId>) -> Result<u64> {
        let root = self.root()?;
        let listing = match self.backend.ls(cx, LsRequest::new(root.clone()).recursive()).await {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut removed = 0;
        for entry in listing.entries.into_iter().filter(|entry| !entry.is_dir) {
            let digits = entry.path.strip_prefix(&root).map(|relative| relative.replacen('/', "", 1));
            let id = digits.and_then(|digits| ObjectId::parse(&digits));
            if id.is_none_or(|id| keep.contains(&id)) {
                continue;
            }
            match self.backend.delete(cx, DeleteRequest::new(entry.path)).await {
                Ok(_) => removed += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    fn root(&self) -> Result<VfsPath> {
        self.directory.child("objects")
    }

    fn path(&self, id: &ObjectId) -> Result<VfsPath> {
        let Some(ObjectId(digits)) = ObjectId::parse(&id.0) else {
            let message = "the name of a content is damaged: it is not 64 hexadecimal digits";
            return Err(Error::new(ErrorKind::Internal, message).with_path(&self.directory));
        };
        let (group, rest) = digits.split_at(FAN_OUT);
        self.root()?.child(group)?.child(rest)
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::operation::Intercepted;
    use vfs_core::{BackendExt as _, Operation};
    use vfs_memory::MemoryBackend;
    use vfs_testkit::CallCounter;

    use super::*;

    fn objects() -> (Arc<MemoryBackend>, ContentStore) {
        let store = Arc::new(MemoryBackend::new());
        let directory = VfsPath::parse("/d/store").expect("valid");
        (Arc::<MemoryBackend>::clone(&store), ContentStore::new(store, directory))
    }

    #[tokio::test]
    async fn a_content_is_stored_once_and_found_by_its_name() {
        let (store, objects) = objects();
        let cx = OpContext::new();
        let content = Bytes::from_static(b"some\0bytes");
        let id = objects.put(&cx, &content).await.expect("stored");
        assert_eq!(objects.put(&cx, &content).await.expect("stored already"), id);
        assert!(objects.contains(&cx, &id).await.expect("checked"));
        assert_eq!(objects.get(&cx, &id).await.expect("there"), content);
        assert_eq!(store.glob_files("/d/store/objects/**").await.expect("listed").len(), 1);
        let other = ObjectId::of(b"other");
        assert!(!objects.contains(&cx, &other).await.expect("checked"));
        assert!(objects.get(&cx, &other).await.expect_err("missing").message().contains("missing"));
    }

    #[tokio::test]
    async fn the_existence_of_a_large_content_is_checked_first() {
        let store = Arc::new(MemoryBackend::new());
        let counting = Arc::new(CallCounter::default());
        let counted = Intercepted::new(store, Arc::clone(&counting));
        let objects = ContentStore::new(Arc::new(counted), VfsPath::root());
        let (cx, content) = (OpContext::new(), Bytes::from(vec![b'x'; MIN_PROBE_SIZE]));
        let id = objects.put(&cx, &content).await.expect("stored");
        assert_eq!(objects.put(&cx, &content).await.expect("stored already"), id);
        assert_eq!(counting.calls(Operation::Write), 1);
    }

    #[tokio::test]
    async fn a_damaged_content_is_an_error() {
        let (store, objects) = objects();
        let cx = OpContext::new();
        let id = objects.put(&cx, &Bytes::from_static(b"x")).await.expect("stored");
        let path = objects.path(&id).expect("valid");
        store.write_text(path.as_str(), "y").await.expect("written");
        let error = objects.get(&cx, &id).await.expect_err("damaged");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Internal, Some(path.as_str())));
        let foreign: ObjectId = serde_json::from_str(r#""../../etc""#).expect("any string");
        assert_eq!(objects.get(&cx, &foreign).await.expect_err("no name").kind(), ErrorKind::Internal);
    }

    #[tokio::test]
    async fn unreferenced_contents_are_removed_and_the_rest_stays() {
        let (store, objects) = objects();
        let cx = OpContext::new();
        assert_eq!(objects.retain(&cx, &HashSet::new()).await.expect("nothing is there"), 0);
        let mut ids = Vec::new();
        for text in ["a", "b", "c"] {
            ids.push(objects.put(&cx, &Bytes::from_static(text.as_bytes())).await.expect("stored"));
        }
        store.create_text("/d/store/objects/readme", "not a content").await.expect("written");
        let keep = HashSet::from([ids[1].clone()]);
        assert_eq!(objects.retain(&cx, &keep).await.expect("collected"), 2);
        assert!(objects.contains(&cx, &ids[1]).await.expect("checked"));
        assert!(!objects.contains(&cx, &ids[0]).await.expect("checked"));
        assert!(store.exists("/d/store/objects/readme").await.expect("checked"));
    }
}

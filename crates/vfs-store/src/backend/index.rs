//! The names of a namespace, kept between searches where the store tells of changes.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;
use vfs_core::{Result, VfsPath};

use super::directory::Directories;
use super::space::Space;
use crate::key::Namespace;
use crate::store::{ChangePage, Changes, ListRequest, Position, Store};

/// How many changes are asked for at once.
const CHANGES: usize = 1000;

/// How many names are listed at once.
const PAGE: usize = 10_000;

/// How long it is not looked whether there are still too many.
const TOO_MANY: Duration = Duration::from_secs(60);

/// The names of the namespaces that were searched last.
pub(super) struct Indexes {
    /// Of no more than so many files each.
    most: usize,
    slots: Mutex<LruCache<Namespace, Arc<Slot>>>,
}

/// What is kept of one namespace.
#[derive(Default)]
struct Slot {
    kept: Mutex<Kept>,
    /// Held by whoever lists all of it: others wait for that, and then have it.
    loading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
enum Kept {
    #[default]
    Nothing,
    /// The files as they were at a place in the changes.
    Names(Position, Directories),
    /// There were too many in this directory, at this time.
    TooMany(Instant, VfsPath),
}

/// Which directories a search is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A few: the names of the whole namespace are used where they are known, and not listed for it.
    Part,
    /// All of the namespace.
    All,
}

impl Indexes {
    pub(super) fn new(most: usize, namespaces: NonZeroUsize) -> Self {
        Self { most, slots: Mutex::new(LruCache::new(namespaces)) }
    }

    /// The names of now: no change that was acknowledged before this was called is missing. `None` where they are not kept.
    pub(super) async fn names<S: Store>(&self, space: &Space<S>, reach: Reach) -> Result<Option<Directories>> {
        let Some(changes) = space.store().as_changes() else { return Ok(None) };
        let slot = self.slot(&space.namespace);
        if let Some(names) = self.kept(space, changes, &slot).await? {
            return Ok(Some(names));
        }
        if reach == Reach::Part || slot.has_too_many() {
            return Ok(None);
        }
        let _turn = space.ask(&VfsPath::root(), async { Ok(slot.loading.lock().await) }).await?;
        // Somebody may have listed them meanwhile, but not as they are now.
        if let Some(names) = self.kept(space, changes, &slot).await? {
            return Ok(Some(names));
        }
        if slot.has_too_many() { Ok(None) } else { self.loaded(space, changes, &slot).await }
    }

    /// Those that are kept, as they are now; `None` where there are none, or too many by now, or the changes are forgotten.
    async fn kept<S: Store>(
        &self,
        space: &Space<S>,
        changes: &dyn Changes,
        slot: &Slot,
    ) -> Result<Option<Directories>> {
        match slot.kept() {
            Some(kept) => self.caught_up(space, changes, slot, kept).await,
            None => Ok(None),
        }
    }

    /// Whether `path` had too many files when they were listed last.
    pub(super) fn is_too_large(&self, namespace: &Namespace, path: &VfsPath) -> bool {
        self.slot(namespace).has_too_many_below(path)
    }

    /// Whether the names are kept, as they were when they were used last.
    pub(super) fn has_names(&self, namespace: &Namespace) -> bool {
        matches!(*lock(&self.slot(namespace).kept), Kept::Names(..))
    }

    /// Remembers that `path` has too many files.
    pub(super) fn mark_too_large(&self, namespace: &Namespace, path: &VfsPath) {
        self.slot(namespace).keep_too_many(path);
    }

    fn slot(&self, namespace: &Namespace) -> Arc<Slot> {
        let mut slots = lock(&self.slots);
        Arc::clone(slots.get_or_insert(namespace.clone(), Arc::default))
    }

    /// Lists all names, and makes the changes that were told meanwhile: what is listed may be older or newer than the place
    /// that was asked for before, and is the same in the end.
    async fn loaded<S: Store>(
        &self,
        space: &Space<S>,
        changes: &dyn Changes,
        slot: &Slot,
    ) -> Result<Option<Directories>> {
        let root = VfsPath::root();
        let position = space.ask(&root, changes.position(&space.namespace)).await?;
        let Some(names) = listed(space, &root, self.most).await? else {
            slot.keep_too_many(&root);
            return Ok(None);
        };
        self.caught_up(space, changes, slot, (position, names)).await
    }

    /// `kept` with all changes since, or nothing where they are forgotten.
    async fn caught_up<S: Store>(
        &self,
        space: &Space<S>,
        changes: &dyn Changes,
        slot: &Slot,
        (mut position, mut names): (Position, Directories),
    ) -> Result<Option<Directories>> {
        let began = position;
        loop {
            let page = changes.since(&space.namespace, position, CHANGES);
            match space.ask(&VfsPath::root(), page).await? {
                ChangePage::Changes { changes, next, has_more } => {
                    changes.into_iter().for_each(|(_, tell)| names.apply(tell));
                    position = next;
                    if names.files() > self.most {
                        slot.keep_too_many(&VfsPath::root());
                        return Ok(None);
                    }
                    if !has_more {
                        slot.keep(position, &names);
                        return Ok(Some(names));
                    }
                }
                ChangePage::Forgotten(_) => {
                    slot.forget(began);
                    return Ok(None);
                }
            }
        }
    }
}

impl Slot {
    fn kept(&self) -> Option<(Position, Directories)> {
        match &*lock(&self.kept) {
            Kept::Names(position, names) => Some((*position, names.clone())),
            _ => None,
        }
    }

    fn has_too_many(&self) -> bool {
        self.has_too_many_below(&VfsPath::root())
    }

    fn has_too_many_below(&self, path: &VfsPath) -> bool {
        matches!(&*lock(&self.kept), Kept::TooMany(at, of) if at.elapsed() < TOO_MANY && of.starts_with(path))
    }

    /// Keeps `names`, unless somebody was here with newer ones.
    fn keep(&self, position: Position, names: &Directories) {
        let mut kept = lock(&self.kept);
        if !matches!(&*kept, Kept::Names(newer, _) if *newer >= position) {
            *kept = Kept::Names(position, names.clone());
        }
    }

    fn keep_too_many(&self, path: &VfsPath) {
        *lock(&self.kept) = Kept::TooMany(Instant::now(), path.clone());
    }

    /// Forgets what is kept, unless somebody was here with what is not of `position`.
    fn forget(&self, position: Position) {
        let mut kept = lock(&self.kept);
        if matches!(&*kept, Kept::Names(at, _) if *at == position) {
            *kept = Kept::Nothing;
        }
    }
}

/// The names of all files below `path`, where there are no more than `most`.
pub(super) async fn listed<S: Store>(space: &Space<S>, path: &VfsPath, most: usize) -> Result<Option<Directories>> {
    let mut names = Directories::default();
    let mut request = ListRequest::all(path.clone()).limit(PAGE);
    loop {
        let page = space.page(&request).await?;
        let next = page.next.clone();
        names.add_page(page);
        if names.files() > most {
            return Ok(None);
        }
        let Some(next) = next else { return Ok(Some(names)) };
        request = request.from(next);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is replaced in one step, so that no panic leaves it half done.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots: Vec<_> =
            lock(&self.slots).iter().map(|(namespace, slot)| (namespace.clone(), Arc::clone(slot))).collect();
        let files: HashMap<_, _> = slots
            .iter()
            .map(|(namespace, slot)| (namespace.as_str(), slot.kept().map(|(_, names)| names.files())))
            .collect();
        f.debug_struct("Indexes").field("most", &self.most).field("files", &files).finish()
    }
}

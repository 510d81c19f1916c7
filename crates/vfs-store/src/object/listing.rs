//! Pages of values, from pages of objects.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use vfs_core::{Error, Result, VfsPath};

use super::BucketStore;
use super::fault::Fault;
use super::names::{Name, odd};
use super::objects::version;
use super::raw::{AsSent, Listing, Object};
use crate::key::Namespace;
use crate::store::{Entry, ListRequest, Listed, Page, PageToken, Stored};

/// The most that a service gives at once.
const MOST: usize = 1000;
/// How many objects are looked at together, where a listing does not say enough.
const LOOKS_AT_ONCE: usize = 16;

/// Where listings come from.
#[derive(Clone)]
pub(super) enum Source {
    /// A service that gives pages.
    Paged(Arc<dyn PaginatedListStore>, Keys),
    /// An object store that gives all at once.
    Whole(Arc<dyn ObjectStore>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paged(..) => "Paged",
            Self::Whole(_) => "Whole",
        })
    }
}

/// How the keys of a service are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// As they are.
    AsSent,
    /// By `object_store`, which fails on those it cannot parse.
    #[cfg_attr(not(feature = "azure"), expect(dead_code, reason = "Azure alone sends its listings otherwise"))]
    Parsed,
}

/// Where a page of objects begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// At the first.
    First,
    /// Where the service said.
    Token(String),
    /// After a key.
    After(String),
}

impl Source {
    /// Objects whose keys begin with `prefix`, and where the rest begins.
    pub(super) async fn list(&self, prefix: &str, depth: Listed, start: &Start, most: usize) -> Result<Listing, Fault> {
        match self {
            Self::Paged(store, keys) => {
                let mut options = PaginatedListOptions {
                    delimiter: (depth == Listed::Level).then_some(Cow::Borrowed("/")),
                    max_keys: Some(most.clamp(1, MOST)),
                    ..PaginatedListOptions::default()
                };
                match start {
                    Start::First => {}
                    Start::Token(token) => options.page_token = Some(token.clone()),
                    Start::After(key) => options.offset = Some(key.clone()),
                }
                if *keys == Keys::AsSent {
                    options.extensions.insert(AsSent);
                }
                let mut answer = store.list_paginated((!prefix.is_empty()).then_some(prefix), options).await?;
                let kept = answer.result.extensions.remove::<Listing>();
                let mut listing = kept.unwrap_or_else(|| Listing::from(answer.result));
                listing.next = answer.page_token;
                Ok(listing)
            }
            Self::Whole(store) => {
                let prefix =
                    (!prefix.is_empty()).then(|| Path::parse(prefix)).transpose().map_err(object_store::Error::from)?;
                match depth {
                    Listed::Level => Ok(store.list_with_delimiter(prefix.as_ref()).await?.into()),
                    Listed::All => {
                        let objects = store.list(prefix.as_ref()).map_ok(Object::from).try_collect().await?;
                        Ok(Listing { objects, ..Listing::default() })
                    }
                }
            }
        }
    }
}

/// What one thing of a listing is; the order is that of pages.
#[derive(Debug, Clone)]
enum Item {
    Value(VfsPath, Object),
    Directory(VfsPath),
    Problem(String),
}

impl Item {
    /// What it is sorted by, and known by in a token. A directory may have the path of a value.
    fn place(&self) -> (&str, u8) {
        match self {
            Self::Value(path, _) => (path.as_str(), b'e'),
            Self::Directory(path) => (path.as_str(), b'd'),
            Self::Problem(path) => (path, b'p'),
        }
    }
}

/// Where a page of values begins: in a page of objects, and after which of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bookmark {
    start: Start,
    last: Option<(String, u8)>,
}

impl Bookmark {
    fn read(token: Option<&PageToken>) -> Result<Self> {
        let Some(token) = token else { return Ok(Self { start: Start::First, last: None }) };
        Self::parse(token.as_str())
            .ok_or_else(|| Error::invalid_argument("the page token is not one of this store; list from the beginning"))
    }

    /// `<start>` or `<start>\n<kind><path>`, where start is `-`, `t<token>` or `a<key>`, neither with a line break.
    fn parse(text: &str) -> Option<Self> {
        let (start, last) = match text.split_once('\n') {
            Some((start, last)) => (start, Some(last)),
            None => (text, None),
        };
        let start = match start.split_at_checked(1)? {
            ("-", "") => Start::First,
            ("t", token) => Start::Token(token.to_owned()),
            ("a", key) => Start::After(key.to_owned()),
            _ => return None,
        };
        let last = match last.map(|last| last.split_at_checked(1)) {
            None => None,
            Some(Some((kind @ ("e" | "d" | "p"), path))) => Some((path.to_owned(), kind.as_bytes()[0])),
            Some(_) => return None,
        };
        Some(Self { start, last })
    }

    fn token(&self) -> PageToken {
        let start = match &self.start {
            Start::First => "-".to_owned(),
            Start::Token(token) => format!("t{token}"),
            Start::After(key) => format!("a{key}"),
        };
        PageToken::new(match &self.last {
            None => start,
            Some((path, kind)) => format!("{start}\n{}{path}", char::from(*kind)),
        })
    }
}

impl BucketStore {
    /// A page of values.
    pub(super) async fn page(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let limit = request.limit.max(1);
        let bookmark = Bookmark::read(request.from.as_ref())?;
        let reading = Reading { store: self, namespace, request };
        // A page that was given in part is read again, all of it.
        let most = if bookmark.last.is_some() { MOST } else { limit };
        let mut listing = reading.list(&bookmark.start, most).await?;
        if request.depth == Listed::All
            && limit < MOST
            && listing.next.is_some()
            && reading.may_be_out_of_order(&listing)
        {
            listing = reading.list(&bookmark.start, MOST).await?;
        }
        let next = reading.after(&listing);
        let mut items = reading.items(listing);
        items.sort_by(|a, b| a.place().cmp(&b.place()));
        if let Some((path, kind)) = &bookmark.last {
            let given = items.partition_point(|item| item.place() <= (path.as_str(), *kind));
            items.drain(..given);
        }
        let next = if items.len() > limit {
            items.truncate(limit);
            let last = items.last().map(|item| (item.place().0.to_owned(), item.place().1));
            Some(Bookmark { start: bookmark.start, last })
        } else {
            next.map(|start| Bookmark { start, last: None })
        };
        self.fill(items, next.map(|bookmark| bookmark.token())).await
    }

    async fn fill(&self, items: Vec<Item>, next: Option<PageToken>) -> Result<Page> {
        let mut page = Page::default();
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Value(path, object) => values.push(self.entry(path, object)),
                Item::Directory(path) => page.directories.push(path),
                Item::Problem(path) => page.problems.push(odd(&path)),
            }
        }
        let entries: Vec<Option<Entry>> = stream::iter(values).buffered(LOOKS_AT_ONCE).try_collect().await?;
        page.entries = entries.into_iter().flatten().collect();
        page.next = next;
        Ok(page)
    }

    /// What a listing tells of a value: not when the file was made, and when the object was put instead of when the file changed.
    ///
    /// Where it does not tell the entity tag, as small servers leave it out, the object is looked at; it may be gone by then.
    async fn entry(&self, path: VfsPath, object: Object) -> Result<Option<Entry>> {
        let stored = match &object.e_tag {
            Some(e_tag) => {
                let version = version(Some(e_tag), object.size, object.last_modified);
                Some(Stored::new(object.size, version, object.last_modified))
            }
            None => {
                let location = Path::parse(&object.key)
                    .map_err(|error| self.error(&Fault::from(object_store::Error::from(error))))?;
                self.look(&location).await?.map(|found| found.stored)
            }
        };
        Ok(stored.map(|stored| Entry { path, stored }))
    }
}

/// A listing on its way.
struct Reading<'a> {
    store: &'a BucketStore,
    namespace: &'a Namespace,
    request: &'a ListRequest,
}

impl Reading<'_> {
    async fn list(&self, start: &Start, most: usize) -> Result<Listing> {
        let inner = &self.store.inner;
        let below = inner.layout.below(self.namespace, &self.request.below);
        inner.source.list(&below, self.request.depth, start, most).await.map_err(|fault| self.store.error(&fault))
    }

    /// What the keys of others than this namespace begin with.
    fn hidden(&self) -> Option<String> {
        (self.namespace.as_str().is_empty() && self.request.below.is_root()).then(|| self.store.inner.layout.named())
    }

    /// Where the next page begins. Other namespaces are passed over in one step.
    fn after(&self, listing: &Listing) -> Option<Start> {
        let token = listing.next.clone()?;
        match (self.hidden(), listing.objects.last()) {
            (Some(hidden), Some(last)) if last.key.starts_with(&hidden) && self.request.depth == Listed::All => {
                Some(Start::After(format!("{hidden}{}", char::MAX)))
            }
            _ => Some(Start::Token(token)),
        }
    }

    /// Whether a key after these may be of a path before one of theirs.
    ///
    /// Keys and paths have one order but where a character or component is written otherwise: `%` comes after what comes after
    /// control characters, and `==` after `=`.
    fn may_be_out_of_order(&self, listing: &Listing) -> bool {
        let below = self.store.inner.layout.below(self.namespace, &self.request.below).len();
        let is_early = |c: char| matches!(c, ' '..='%' | '=');
        listing.objects.iter().any(|object| object.key.get(below..).is_some_and(|key| key.contains(is_early)))
    }

    fn items(&self, listing: Listing) -> Vec<Item> {
        let hidden = self.hidden();
        let is_shown = |key: &str| !hidden.as_ref().is_some_and(|hidden| key.starts_with(hidden));
        let mut items = Vec::with_capacity(listing.objects.len() + listing.prefixes.len());
        items.extend(
            listing.objects.into_iter().filter(|object| is_shown(&object.key)).filter_map(|object| self.entry(object)),
        );
        items.extend(listing.prefixes.iter().filter(|prefix| is_shown(prefix)).map(|prefix| self.directory(prefix)));
        items
    }

    fn entry(&self, object: Object) -> Option<Item> {
        match self.store.inner.layout.name(&object.key) {
            Name::Folder => None,
            Name::File(namespace, path) if namespace == *self.namespace => Some(Item::Value(path, object)),
            Name::File(..) | Name::Odd => Some(self.odd(&object.key)),
        }
    }

    fn directory(&self, prefix: &str) -> Item {
        match self.store.inner.layout.name(prefix.strip_suffix('/').unwrap_or(prefix)) {
            Name::File(namespace, path) if namespace == *self.namespace => Item::Directory(path),
            _ => self.odd(prefix),
        }
    }

    /// The key as near as a path can be to it.
    fn odd(&self, key: &str) -> Item {
        let root = self.store.inner.layout.root(self.namespace);
        Item::Problem(format!("/{}", key.strip_prefix(&root).unwrap_or(key)))
    }
}

/// Goes through all objects of the store, a page at a time.
pub(super) struct Sweep<'a> {
    store: &'a BucketStore,
    start: Option<Start>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(store: &'a BucketStore) -> Self {
        Self { store, start: Some(Start::First) }
    }

    /// The next page, `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Object>>> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let inner = &self.store.inner;
        let listing = inner.source.list(inner.layout.base(), Listed::All, &start, MOST).await;
        let listing = listing.map_err(|fault| self.store.error(&fault))?;
        self.start = listing.next.map(Start::Token);
        Ok(Some(listing.objects))
    }
}

//! Listings of values from pages of objects.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use vfs_core::{Error, Result, VfsPath};

use super::BucketStore;
use super::error::BucketError;
use super::http::OperationTimeout;
use super::list_xml::{AsSent, ListedObject, ObjectListing};
use super::names::{KeyName, odd};
use super::read::version;
use crate::store::{Entry, LevelOrder, ListDepth, ListRequest, Namespace, Page, PageToken, StoredMeta};

/// The most that a service gives at once.
const MAX_PAGE_SIZE: usize = 1000;
/// How many objects are looked at together, where a listing does not say enough.
const MAX_CONCURRENT_HEADS: usize = 16;

/// Where listings come from.
#[derive(Clone)]
pub(super) enum ListSource {
    /// A service that gives pages.
    Paged { store: Arc<dyn PaginatedListStore>, keys: KeyParsing, limit: OperationTimeout },
    /// An object store that gives all at once.
    Whole(Arc<dyn ObjectStore>),
}

impl fmt::Debug for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paged { .. } => "Paged",
            Self::Whole(_) => "Whole",
        })
    }
}

/// How the keys of a service are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyParsing {
    /// As they are.
    AsSent,
    /// By `object_store`, which fails on those it cannot parse.
    #[cfg_attr(not(feature = "azure"), expect(dead_code, reason = "Azure alone sends its listings otherwise"))]
    Parsed,
}

/// Where a page of objects begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListStart {
    /// At the first.
    First,
    /// Where the service said.
    Token(String),
    /// After a key.
    After(String),
}

impl ListSource {
    /// Services list by key. What is listed as a whole is cut into pages by path.
    pub(super) fn level_order(&self) -> LevelOrder {
        match self {
            Self::Paged { .. } => LevelOrder::Keys,
            Self::Whole(_) => LevelOrder::Any,
        }
    }

    /// Objects whose keys begin with `prefix`, and where the rest begins.
    pub(super) async fn list(
        &self,
        prefix: &str,
        depth: ListDepth,
        start: &ListStart,
        most: usize,
    ) -> Result<ObjectListing, BucketError> {
        match self {
            Self::Paged { store, keys, limit } => {
                let mut options = PaginatedListOptions {
                    delimiter: (depth == ListDepth::Level).then_some(Cow::Borrowed("/")),
                    max_keys: Some(most.clamp(1, MAX_PAGE_SIZE)),
                    ..PaginatedListOptions::default()
                };
                match start {
                    ListStart::First => {}
                    ListStart::Token(token) => options.page_token = Some(token.clone()),
                    ListStart::After(key) => options.offset = Some(key.clone()),
                }
                if *keys == KeyParsing::AsSent {
                    options.extensions.insert(AsSent);
                }
                let listed = store.list_paginated((!prefix.is_empty()).then_some(prefix), options);
                let mut answer = limit.of(listed).await?;
                let kept = answer.result.extensions.remove::<ObjectListing>();
                let mut listing = kept.unwrap_or_else(|| ObjectListing::from(answer.result));
                listing.next = answer.page_token;
                Ok(listing)
            }
            Self::Whole(store) => {
                let prefix =
                    (!prefix.is_empty()).then(|| Path::parse(prefix)).transpose().map_err(object_store::Error::from)?;
                match depth {
                    ListDepth::Level => Ok(store.list_with_delimiter(prefix.as_ref()).await?.into()),
                    ListDepth::All => {
                        let objects = store.list(prefix.as_ref()).map_ok(ListedObject::from).try_collect().await?;
                        Ok(ObjectListing { objects, ..ObjectListing::default() })
                    }
                }
            }
        }
    }
}

/// What one thing of a listing is; the order is that of pages.
#[derive(Debug, Clone)]
enum ListItem {
    Value(VfsPath, ListedObject),
    Directory(VfsPath),
    Problem(String),
}

impl ListItem {
    /// What it is sorted by, and known by in a token. A directory may have the path of a value.
    fn place(&self) -> (&str, u8) {
        match self {
            Self::Value(path, _) => (path.as_str(), b'e'),
            Self::Directory(path) => (path.as_str(), b'd'),
            Self::Problem(path) => (path, b'p'),
        }
    }
}

/// Where a page of values begins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bookmark {
    start: ListStart,
    given: Option<ReturnedItems>,
}

/// What was given of the objects after the start of a bookmark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReturnedItems {
    /// The last key of these objects; `None` where they were all that there are. Others must not take the place of those that
    /// are removed meanwhile: they would be sorted among those that were given.
    until: Option<String>,
    /// The last of their values that was given, in the order of pages.
    last: (String, u8),
}

impl Bookmark {
    fn read(token: Option<&PageToken>) -> Result<Self> {
        let Some(token) = token else { return Ok(Self { start: ListStart::First, given: None }) };
        Self::parse(token.as_str())
            .ok_or_else(|| Error::invalid_argument("the page token is not one of this store; list from the beginning"))
    }

    /// `<start>` or `<start>\n<bytes of until>:<until><kind><path>`, where start is `-`, `t<token>` or `a<key>`.
    fn parse(text: &str) -> Option<Self> {
        let (start, given) = match text.split_once('\n') {
            Some((start, given)) => (start, Some(given)),
            None => (text, None),
        };
        let start = match start.split_at_checked(1)? {
            ("-", "") => ListStart::First,
            ("t", token) => ListStart::Token(token.to_owned()),
            ("a", key) => ListStart::After(key.to_owned()),
            _ => return None,
        };
        let Some(given) = given else { return Some(Self { start, given: None }) };
        let (bytes, rest) = given.split_once(':')?;
        let (until, last) = rest.split_at_checked(bytes.parse().ok()?)?;
        let (kind @ ("e" | "d" | "p"), path) = last.split_at_checked(1)? else { return None };
        let until = (!until.is_empty()).then(|| until.to_owned());
        Some(Self { start, given: Some(ReturnedItems { until, last: (path.to_owned(), kind.as_bytes()[0]) }) })
    }

    fn token(&self) -> PageToken {
        let start = match &self.start {
            ListStart::First => "-".to_owned(),
            ListStart::Token(token) => format!("t{token}"),
            ListStart::After(key) => format!("a{key}"),
        };
        PageToken::new(match &self.given {
            None => start,
            Some(ReturnedItems { until, last: (path, kind) }) => {
                let until = until.as_deref().unwrap_or_default();
                format!("{start}\n{}:{until}{}{path}", until.len(), char::from(*kind))
            }
        })
    }
}

impl BucketStore {
    /// A page of values.
    pub(super) async fn page(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let limit = request.limit.max(1);
        let Bookmark { start, given } = Bookmark::read(request.from.as_ref())?;
        let reading = PageReader { store: self, namespace, request };
        let listing = match &given {
            Some(given) => reading.again(&start, given).await?,
            None => reading.list_in_order(&start, limit).await?,
        };
        let until = listing.next.as_ref().and_then(|_| listing.last_key()).map(str::to_owned);
        let next = match given.as_ref().and_then(|given| given.until.as_deref()) {
            Some(until) => Some(reading.beyond(until)),
            None => reading.after(&listing),
        };
        let mut items = reading.items(listing);
        items.sort_by(|a, b| a.place().cmp(&b.place()));
        if let Some(ReturnedItems { last: (path, kind), .. }) = &given {
            let given = items.partition_point(|item| item.place() <= (path.as_str(), *kind));
            items.drain(..given);
        }
        let next = if items.len() > limit {
            items.truncate(limit);
            let last = items.last().map(|item| (item.place().0.to_owned(), item.place().1));
            let until = given.map_or(until, |given| given.until);
            last.map(|last| Bookmark { start, given: Some(ReturnedItems { until, last }) })
        } else {
            next.map(|start| Bookmark { start, given: None })
        };
        self.fill(items, next.map(|bookmark| bookmark.token())).await
    }

    async fn fill(&self, items: Vec<ListItem>, next: Option<PageToken>) -> Result<Page> {
        let mut page = Page::default();
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item {
                ListItem::Value(path, object) => values.push(self.entry(path, object)),
                ListItem::Directory(path) => page.directories.push(path),
                ListItem::Problem(path) => page.problems.push(odd(&path)),
            }
        }
        let entries: Vec<Option<Entry>> = stream::iter(values).buffered(MAX_CONCURRENT_HEADS).try_collect().await?;
        page.entries = entries.into_iter().flatten().collect();
        page.next = next;
        Ok(page)
    }

    /// What a listing tells of a value: not when the file was made, and when the object was put instead of when the file changed.
    ///
    /// Where it does not tell the entity tag, as small servers leave it out, the object is looked at; it may be gone by then.
    async fn entry(&self, path: VfsPath, object: ListedObject) -> Result<Option<Entry>> {
        let stored = match &object.e_tag {
            Some(e_tag) => {
                let version = version(Some(e_tag), object.size, object.last_modified);
                Some(StoredMeta::new(object.size, version, object.last_modified))
            }
            None => {
                let location = Path::parse(&object.key)
                    .map_err(|error| self.error(&BucketError::from(object_store::Error::from(error))))?;
                self.look(&location).await?.map(|found| found.stored)
            }
        };
        Ok(stored.map(|stored| Entry { path, stored }))
    }
}

/// A listing on its way.
struct PageReader<'a> {
    store: &'a BucketStore,
    namespace: &'a Namespace,
    request: &'a ListRequest,
}

impl PageReader<'_> {
    async fn list(&self, start: &ListStart, most: usize) -> Result<ObjectListing> {
        let inner = &self.store.inner;
        let below = inner.layout.below(self.namespace, &self.request.below);
        inner.source.list(&below, self.request.depth, start, most).await.map_err(|fault| self.store.error(&fault))
    }

    /// So many objects, or as many as there can be in one answer where their order is not that of paths.
    async fn list_in_order(&self, start: &ListStart, limit: usize) -> Result<ObjectListing> {
        let listing = self.list(start, limit).await?;
        let is_complete = listing.next.is_none() || limit >= MAX_PAGE_SIZE;
        if self.request.depth == ListDepth::Level || is_complete || !self.may_be_out_of_order(&listing) {
            return Ok(listing);
        }
        self.list(start, MAX_PAGE_SIZE).await
    }

    /// The objects again that a page was given in part of, as far as they are still there, with those that came between them.
    async fn again(&self, start: &ListStart, given: &ReturnedItems) -> Result<ObjectListing> {
        let mut listing = self.list(start, MAX_PAGE_SIZE).await?;
        let Some(until) = given.until.as_deref() else { return Ok(listing) };
        while listing.last_key().is_none_or(|last| last < until)
            && let Some(next) = listing.next.take()
        {
            let more = self.list(&ListStart::Token(next), MAX_PAGE_SIZE).await?;
            listing.objects.extend(more.objects);
            listing.prefixes.extend(more.prefixes);
            listing.next = more.next;
        }
        listing.objects.retain(|object| object.key.as_str() <= until);
        listing.prefixes.retain(|prefix| prefix.as_str() <= until);
        Ok(listing)
    }

    /// What the keys of others than this namespace begin with.
    fn hidden(&self) -> Option<String> {
        (self.namespace.as_str().is_empty() && self.request.below.is_root()).then(|| self.store.inner.layout.named())
    }

    /// Where the next page begins.
    fn after(&self, listing: &ObjectListing) -> Option<ListStart> {
        let token = listing.next.clone()?;
        let passed = listing.objects.last().and_then(|last| self.passed(&last.key));
        Some(passed.unwrap_or(ListStart::Token(token)))
    }

    /// Where the page begins that comes after a key, or after all that a prefix stands for.
    fn beyond(&self, key: &str) -> ListStart {
        let all = if key.ends_with('/') { format!("{key}{}", char::MAX) } else { key.to_owned() };
        self.passed(key).unwrap_or(ListStart::After(all))
    }

    /// Where the next page begins if `key` is of another namespace: all of these are passed over in one step.
    fn passed(&self, key: &str) -> Option<ListStart> {
        let hidden = self.hidden().filter(|hidden| key.starts_with(hidden) && self.request.depth == ListDepth::All);
        hidden.map(|hidden| ListStart::After(format!("{hidden}{}", char::MAX)))
    }

    /// Whether a key after these may be of a path before one of theirs.
    ///
    /// Keys and paths have one order but where a character or component is written otherwise: `%` comes after what comes after
    /// control characters, and `==` after `=`.
    fn may_be_out_of_order(&self, listing: &ObjectListing) -> bool {
        let below = self.store.inner.layout.below(self.namespace, &self.request.below).len();
        let is_early = |c: char| matches!(c, ' '..='%' | '=');
        listing.objects.iter().any(|object| object.key.get(below..).is_some_and(|key| key.contains(is_early)))
    }

    fn items(&self, listing: ObjectListing) -> Vec<ListItem> {
        let hidden = self.hidden();
        let is_shown = |key: &str| !hidden.as_ref().is_some_and(|hidden| key.starts_with(hidden));
        let mut items = Vec::with_capacity(listing.objects.len() + listing.prefixes.len());
        items.extend(
            listing.objects.into_iter().filter(|object| is_shown(&object.key)).filter_map(|object| self.entry(object)),
        );
        items.extend(listing.prefixes.iter().filter(|prefix| is_shown(prefix)).map(|prefix| self.directory(prefix)));
        items
    }

    fn entry(&self, object: ListedObject) -> Option<ListItem> {
        match self.store.inner.layout.name(&object.key) {
            KeyName::Folder => None,
            KeyName::File(namespace, path) if namespace == *self.namespace => Some(ListItem::Value(path, object)),
            KeyName::File(..) | KeyName::Odd => Some(self.odd(&object.key)),
        }
    }

    fn directory(&self, prefix: &str) -> ListItem {
        match self.store.inner.layout.name(prefix.strip_suffix('/').unwrap_or(prefix)) {
            KeyName::File(namespace, path) if namespace == *self.namespace => ListItem::Directory(path),
            _ => self.odd(prefix),
        }
    }

    /// The key as near as a path can be to it.
    fn odd(&self, key: &str) -> ListItem {
        let root = self.store.inner.layout.root(self.namespace);
        ListItem::Problem(format!("/{}", key.strip_prefix(&root).unwrap_or(key)))
    }
}

/// Goes through all objects of the store, a page at a time.
pub(super) struct ObjectScan<'a> {
    store: &'a BucketStore,
    start: Option<ListStart>,
}

impl<'a> ObjectScan<'a> {
    pub(super) fn new(store: &'a BucketStore) -> Self {
        Self { store, start: Some(ListStart::First) }
    }

    /// The next page, `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<ListedObject>>> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let inner = &self.store.inner;
        let listing = inner.source.list(inner.layout.base(), ListDepth::All, &start, MAX_PAGE_SIZE).await;
        let listing = listing.map_err(|fault| self.store.error(&fault))?;
        self.start = listing.next.map(ListStart::Token);
        Ok(Some(listing.objects))
    }
}

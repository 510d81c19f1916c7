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
use super::http_transport::OperationTimeout;
use super::key_layout::{ParsedKey, foreign_object_problem};
use super::list_xml::{ListedObject, ObjectListing, RawKeysExtension};
use super::object_metadata::version;
use crate::store::{Entry, LevelOrder, ListDepth, ListRequest, Namespace, Page, PageToken, StoredMeta};

/// Maximum number of objects in a page of a service.
const MAX_PAGE_SIZE: usize = 1000;
/// Maximum number of concurrent requests for the metadata of objects that a listing lacks.
const MAX_CONCURRENT_HEADS: usize = 16;

/// Source of listings.
#[derive(Clone)]
pub(super) enum ListSource {
    /// Service that returns pages.
    Paged { store: Arc<dyn PaginatedListStore>, keys: KeyParsing, limit: OperationTimeout },
    /// Object store that returns all objects at once.
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

/// Parser of the keys of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyParsing {
    /// Keys are used as they are sent.
    Raw,
    /// `object_store` parses the keys, and fails if it cannot parse one.
    #[cfg_attr(not(feature = "azure"), expect(dead_code, reason = "only Azure sends listings of another format"))]
    Parsed,
}

/// Start of a page of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListStart {
    /// At the first object.
    First,
    /// At a continuation token of the service.
    Token(String),
    /// After a key.
    After(String),
}

impl ListSource {
    /// Returns the order of listings. Services list by key; a listing of a whole object store is split into pages by
    /// path.
    pub(super) fn level_order(&self) -> LevelOrder {
        match self {
            Self::Paged { .. } => LevelOrder::Keys,
            Self::Whole(_) => LevelOrder::Any,
        }
    }

    /// Returns objects whose keys begin with `prefix`, and the start of the next page.
    pub(super) async fn list(
        &self,
        prefix: &str,
        depth: ListDepth,
        start: &ListStart,
        max_keys: usize,
    ) -> Result<ObjectListing, BucketError> {
        match self {
            Self::Paged { store, keys, limit } => {
                let mut options = PaginatedListOptions {
                    delimiter: (depth == ListDepth::Level).then_some(Cow::Borrowed("/")),
                    max_keys: Some(max_keys.clamp(1, MAX_PAGE_SIZE)),
                    ..PaginatedListOptions::default()
                };
                match start {
                    ListStart::First => {}
                    ListStart::Token(token) => options.page_token = Some(token.clone()),
                    ListStart::After(key) => options.offset = Some(key.clone()),
                }
                if *keys == KeyParsing::Raw {
                    options.extensions.insert(RawKeysExtension);
                }
                let request = store.list_paginated((!prefix.is_empty()).then_some(prefix), options);
                let mut page = limit.of(request).await?;
                let raw_listing = page.result.extensions.remove::<ObjectListing>();
                let mut listing = raw_listing.unwrap_or_else(|| ObjectListing::from(page.result));
                listing.next = page.page_token;
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

/// Item of a listing; the order is that of pages.
#[derive(Debug, Clone)]
enum ListItem {
    Value(VfsPath, ListedObject),
    Directory(VfsPath),
    Problem(String),
}

impl ListItem {
    /// Returns the sort key of the item, which also identifies it in a token. A directory may have the path of a value.
    fn sort_key(&self) -> (&str, u8) {
        match self {
            Self::Value(path, _) => (path.as_str(), b'e'),
            Self::Directory(path) => (path.as_str(), b'd'),
            Self::Problem(path) => (path, b'p'),
        }
    }
}

/// Start of a page of values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PageBookmark {
    start: ListStart,
    returned: Option<ReturnedItems>,
}

/// Part of the objects after the start of a bookmark that earlier pages returned.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReturnedItems {
    /// The last key of these objects; `None` if there were no others. Objects after this key must not replace removed
    /// ones: they would be sorted among the values that were already returned.
    until: Option<String>,
    /// The last value that was returned, in the order of pages.
    last: (String, u8),
}

impl PageBookmark {
    fn from_token(token: Option<&PageToken>) -> Result<Self> {
        let Some(token) = token else { return Ok(Self { start: ListStart::First, returned: None }) };
        Self::parse(token.as_str())
            .ok_or_else(|| Error::invalid_argument("the page token is not one of this store; list from the beginning"))
    }

    /// Parses `<start>` or `<start>\n<bytes of until>:<until><kind><path>`, where start is `-`, `t<token>` or `a<key>`.
    fn parse(text: &str) -> Option<Self> {
        let (start, returned) = match text.split_once('\n') {
            Some((start, returned)) => (start, Some(returned)),
            None => (text, None),
        };
        let start = match start.split_at_checked(1)? {
            ("-", "") => ListStart::First,
            ("t", token) => ListStart::Token(token.to_owned()),
            ("a", key) => ListStart::After(key.to_owned()),
            _ => return None,
        };
        let Some(returned) = returned else { return Some(Self { start, returned: None }) };
        let (bytes, rest) = returned.split_once(':')?;
        let (until, last) = rest.split_at_checked(bytes.parse().ok()?)?;
        let (kind @ ("e" | "d" | "p"), path) = last.split_at_checked(1)? else { return None };
        let until = (!until.is_empty()).then(|| until.to_owned());
        Some(Self { start, returned: Some(ReturnedItems { until, last: (path.to_owned(), kind.as_bytes()[0]) }) })
    }

    fn token(&self) -> PageToken {
        let start = match &self.start {
            ListStart::First => "-".to_owned(),
            ListStart::Token(token) => format!("t{token}"),
            ListStart::After(key) => format!("a{key}"),
        };
        PageToken::new(match &self.returned {
            None => start,
            Some(ReturnedItems { until, last: (path, kind) }) => {
                let until = until.as_deref().unwrap_or_default();
                format!("{start}\n{}:{until}{}{path}", until.len(), char::from(*kind))
            }
        })
    }
}

impl BucketStore {
    /// Returns a page of values.
    pub(super) async fn list_page(&self, namespace: &Namespace, request: &ListRequest) -> Result<Page> {
        let limit = request.limit.max(1);
        let PageBookmark { start, returned } = PageBookmark::from_token(request.from.as_ref())?;
        let reader = PageReader { store: self, namespace, request };
        let listing = match &returned {
            Some(returned) => reader.list_again(&start, returned).await?,
            None => reader.list_in_order(&start, limit).await?,
        };
        let until = listing.next.as_ref().and_then(|_| listing.last_key()).map(str::to_owned);
        let next = match returned.as_ref().and_then(|returned| returned.until.as_deref()) {
            Some(until) => Some(reader.start_after_key(until)),
            None => reader.start_after_listing(&listing),
        };
        let mut items = reader.items(listing);
        items.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        if let Some(ReturnedItems { last: (path, kind), .. }) = &returned {
            let returned_count = items.partition_point(|item| item.sort_key() <= (path.as_str(), *kind));
            items.drain(..returned_count);
        }
        let next = if items.len() > limit {
            items.truncate(limit);
            let last = items.last().map(|item| (item.sort_key().0.to_owned(), item.sort_key().1));
            let until = returned.map_or(until, |returned| returned.until);
            last.map(|last| PageBookmark { start, returned: Some(ReturnedItems { until, last }) })
        } else {
            next.map(|start| PageBookmark { start, returned: None })
        };
        self.build_page(items, next.map(|bookmark| bookmark.token())).await
    }

    async fn build_page(&self, items: Vec<ListItem>, next: Option<PageToken>) -> Result<Page> {
        let mut page = Page::default();
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item {
                ListItem::Value(path, object) => values.push(self.entry(path, object)),
                ListItem::Directory(path) => page.directories.push(path),
                ListItem::Problem(path) => page.problems.push(foreign_object_problem(&path)),
            }
        }
        let entries: Vec<Option<Entry>> = stream::iter(values).buffered(MAX_CONCURRENT_HEADS).try_collect().await?;
        page.entries = entries.into_iter().flatten().collect();
        page.next = next;
        Ok(page)
    }

    /// Returns the entry of a listed value, or `None` if the object no longer exists. Its time is that at which the
    /// object was put; listings have no creation time.
    ///
    /// If the listing has no entity tag, which small servers omit, the metadata of the object is requested.
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

/// Reader of one page of values.
struct PageReader<'a> {
    store: &'a BucketStore,
    namespace: &'a Namespace,
    request: &'a ListRequest,
}

impl PageReader<'_> {
    async fn list(&self, start: &ListStart, max_keys: usize) -> Result<ObjectListing> {
        let inner = &self.store.inner;
        let below = inner.layout.directory_prefix(self.namespace, &self.request.below);
        inner.source.list(&below, self.request.depth, start, max_keys).await.map_err(|fault| self.store.error(&fault))
    }

    /// Returns `limit` objects, or as many as fit into one response if their order may differ from that of paths.
    async fn list_in_order(&self, start: &ListStart, limit: usize) -> Result<ObjectListing> {
        let listing = self.list(start, limit).await?;
        let is_complete = listing.next.is_none() || limit >= MAX_PAGE_SIZE;
        if self.request.depth == ListDepth::Level || is_complete || !self.may_be_out_of_order(&listing) {
            return Ok(listing);
        }
        self.list(start, MAX_PAGE_SIZE).await
    }

    /// Returns the objects again of which earlier pages returned a part, without those that were removed in the
    /// meantime and with those that were added between them.
    async fn list_again(&self, start: &ListStart, returned: &ReturnedItems) -> Result<ObjectListing> {
        let mut listing = self.list(start, MAX_PAGE_SIZE).await?;
        let Some(until) = returned.until.as_deref() else { return Ok(listing) };
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

    /// Returns the prefix of the keys of other namespaces, if the listing covers them.
    fn hidden_prefix(&self) -> Option<String> {
        (self.namespace.as_str().is_empty() && self.request.below.is_root())
            .then(|| self.store.inner.layout.named_prefix())
    }

    /// Returns the start of the page after `listing`.
    fn start_after_listing(&self, listing: &ObjectListing) -> Option<ListStart> {
        let token = listing.next.clone()?;
        let skip = listing.objects.last().and_then(|last| self.skip_namespaces(&last.key));
        Some(skip.unwrap_or(ListStart::Token(token)))
    }

    /// Returns the start of the page after a key, or after all keys with a prefix.
    fn start_after_key(&self, key: &str) -> ListStart {
        let last = if key.ends_with('/') { format!("{key}{}", char::MAX) } else { key.to_owned() };
        self.skip_namespaces(key).unwrap_or(ListStart::After(last))
    }

    /// Returns the start of the next page if `key` is of another namespace: the listing skips all other namespaces in
    /// one step.
    fn skip_namespaces(&self, key: &str) -> Option<ListStart> {
        let hidden =
            self.hidden_prefix().filter(|hidden| key.starts_with(hidden) && self.request.depth == ListDepth::All);
        hidden.map(|hidden| ListStart::After(format!("{hidden}{}", char::MAX)))
    }

    /// Returns whether a later key may belong to a path before one of this listing.
    ///
    /// Keys and paths have the same order except for encoded characters and components: a control character sorts before
    /// a space, but its code `%XX` after it; and `=` sorts before `=0`, but its key `==` after it.
    fn may_be_out_of_order(&self, listing: &ObjectListing) -> bool {
        let below = self.store.inner.layout.directory_prefix(self.namespace, &self.request.below).len();
        let is_early = |c: char| matches!(c, ' '..='%' | '=');
        listing.objects.iter().any(|object| object.key.get(below..).is_some_and(|key| key.contains(is_early)))
    }

    fn items(&self, listing: ObjectListing) -> Vec<ListItem> {
        let hidden = self.hidden_prefix();
        let is_shown = |key: &str| !hidden.as_ref().is_some_and(|hidden| key.starts_with(hidden));
        let mut items = Vec::with_capacity(listing.objects.len() + listing.prefixes.len());
        items.extend(
            listing.objects.into_iter().filter(|object| is_shown(&object.key)).filter_map(|object| self.entry(object)),
        );
        items.extend(listing.prefixes.iter().filter(|prefix| is_shown(prefix)).map(|prefix| self.directory(prefix)));
        items
    }

    fn entry(&self, object: ListedObject) -> Option<ListItem> {
        match self.store.inner.layout.parse_key(&object.key) {
            ParsedKey::Folder => None,
            ParsedKey::File(namespace, path) if namespace == *self.namespace => Some(ListItem::Value(path, object)),
            ParsedKey::File(..) | ParsedKey::Foreign => Some(self.problem(&object.key)),
        }
    }

    fn directory(&self, prefix: &str) -> ListItem {
        match self.store.inner.layout.parse_key(prefix.strip_suffix('/').unwrap_or(prefix)) {
            ParsedKey::File(namespace, path) if namespace == *self.namespace => ListItem::Directory(path),
            _ => self.problem(prefix),
        }
    }

    /// Returns the problem of a key that no path has, with the key in the form of a path.
    fn problem(&self, key: &str) -> ListItem {
        let root = self.store.inner.layout.root_prefix(self.namespace);
        ListItem::Problem(format!("/{}", key.strip_prefix(&root).unwrap_or(key)))
    }
}

/// Scan of all objects of the store, page by page.
pub(super) struct ObjectScan<'a> {
    store: &'a BucketStore,
    start: Option<ListStart>,
}

impl<'a> ObjectScan<'a> {
    pub(super) fn new(store: &'a BucketStore) -> Self {
        Self { store, start: Some(ListStart::First) }
    }

    /// Returns the next page, or `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<ListedObject>>> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let inner = &self.store.inner;
        let listing = inner.source.list(inner.layout.base(), ListDepth::All, &start, MAX_PAGE_SIZE).await;
        let listing = listing.map_err(|fault| self.store.error(&fault))?;
        self.start = listing.next.map(ListStart::Token);
        Ok(Some(listing.objects))
    }
}

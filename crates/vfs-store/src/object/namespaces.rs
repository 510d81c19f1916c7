//! Namespaces of a bucket, found by listing the prefixes of their markers.

use futures::StreamExt;
use futures::{TryStreamExt, stream};
use vfs_core::Result;

use super::BucketStore;
use super::list::ListStart;
use crate::store::{ListDepth, ListRequest, Namespace};

/// Upper bound on the number of prefixes that are listed concurrently.
const MAX_CONCURRENT_LISTINGS: usize = 16;

impl BucketStore {
    /// Checks that the bucket can be listed.
    pub(super) async fn check_reachable(&self) -> Result<()> {
        let listing = self.inner.source.list(self.inner.layout.base(), ListDepth::All, &ListStart::First, 1).await;
        listing.map(|_| ()).map_err(|fault| self.error(&fault))
    }

    /// Returns all namespaces with files. Lists only the prefixes of namespaces, not the files between them.
    pub(super) async fn find_namespaces(&self) -> Result<Vec<Namespace>> {
        let mut found = Vec::new();
        if self.has_files(&Namespace::default()).await? {
            found.push(Namespace::default());
        }
        let mut level = vec![String::new()];
        while !level.is_empty() {
            let listings = stream::iter(level)
                .map(|components| self.list_markers(components))
                .buffer_unordered(MAX_CONCURRENT_LISTINGS);
            let listings: Vec<NamespaceListing> = listings.try_collect().await?;
            level = Vec::new();
            for prefixes in listings {
                found.extend(prefixes.namespace);
                level.extend(prefixes.longer);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns whether the namespace has at least one value.
    async fn has_files(&self, namespace: &Namespace) -> Result<bool> {
        let mut request = ListRequest::all(vfs_core::VfsPath::root()).limit(1);
        loop {
            let page = self.list_page(namespace, &request).await?;
            if !page.entries.is_empty() {
                return Ok(true);
            }
            let Some(next) = page.next else { return Ok(false) };
            request = request.from(next);
        }
    }

    /// Returns the namespaces and longer prefixes that begin with these components.
    async fn list_markers(&self, components: String) -> Result<NamespaceListing> {
        let prefix = match components.as_str() {
            "" => self.inner.layout.named_prefix(),
            components => format!("{}{components}/", self.inner.layout.named_prefix()),
        };
        let mut prefixes = NamespaceListing::default();
        let mut start = Some(ListStart::First);
        while let Some(from) = start {
            let listing = self.inner.source.list(&prefix, ListDepth::Level, &from, usize::MAX).await;
            let listing = listing.map_err(|fault| self.error(&fault))?;
            start = listing.next.map(ListStart::Token);
            for name in listing.prefixes.iter().filter_map(|found| found.strip_prefix(&prefix)?.strip_suffix('/')) {
                let longer = if components.is_empty() { name.to_owned() } else { format!("{components}/{name}") };
                if name == "=" {
                    prefixes.namespace =
                        Namespace::parse(&components).ok().filter(|namespace| !namespace.as_str().is_empty());
                } else if Namespace::parse(&longer).is_ok_and(|namespace| !namespace.as_str().is_empty()) {
                    prefixes.longer.push(longer);
                }
            }
        }
        let namespace = prefixes.namespace.take();
        match namespace {
            Some(namespace) if self.has_files(&namespace).await? => {
                Ok(NamespaceListing { namespace: Some(namespace), ..prefixes })
            }
            _ => Ok(prefixes),
        }
    }
}

/// Namespaces that begin with some components.
#[derive(Default)]
struct NamespaceListing {
    /// The namespace with exactly these components, if it has files.
    namespace: Option<Namespace>,
    /// The prefixes with one more component.
    longer: Vec<String>,
}

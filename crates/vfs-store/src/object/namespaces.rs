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
    /// Makes sure that the bucket answers.
    pub(super) async fn is_reachable(&self) -> Result<()> {
        let listing = self.inner.source.list(self.inner.layout.base(), ListDepth::All, &ListStart::First, 1).await;
        listing.map(|_| ()).map_err(|fault| self.error(&fault))
    }

    /// Goes from marker to marker, without listing the files between them.
    pub(super) async fn walk_namespaces(&self) -> Result<Vec<Namespace>> {
        let mut found = Vec::new();
        if self.has_files(&Namespace::default()).await? {
            found.push(Namespace::default());
        }
        let mut level = vec![String::new()];
        while !level.is_empty() {
            let below =
                stream::iter(level).map(|components| self.below(components)).buffer_unordered(MAX_CONCURRENT_LISTINGS);
            let below: Vec<MarkerPrefixes> = below.try_collect().await?;
            level = Vec::new();
            for below in below {
                found.extend(below.namespace);
                level.extend(below.longer);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Whether there is one value at least.
    async fn has_files(&self, namespace: &Namespace) -> Result<bool> {
        let mut request = ListRequest::all(vfs_core::VfsPath::root()).limit(1);
        loop {
            let page = self.page(namespace, &request).await?;
            if !page.entries.is_empty() {
                return Ok(true);
            }
            let Some(next) = page.next else { return Ok(false) };
            request = request.from(next);
        }
    }

    /// What begins with these components of a namespace.
    async fn below(&self, components: String) -> Result<MarkerPrefixes> {
        let prefix = match components.as_str() {
            "" => self.inner.layout.named(),
            components => format!("{}{components}/", self.inner.layout.named()),
        };
        let mut below = MarkerPrefixes::default();
        let mut start = Some(ListStart::First);
        while let Some(from) = start {
            let listing = self.inner.source.list(&prefix, ListDepth::Level, &from, usize::MAX).await;
            let listing = listing.map_err(|fault| self.error(&fault))?;
            start = listing.next.map(ListStart::Token);
            for name in listing.prefixes.iter().filter_map(|found| found.strip_prefix(&prefix)?.strip_suffix('/')) {
                let longer = if components.is_empty() { name.to_owned() } else { format!("{components}/{name}") };
                if name == "=" {
                    below.namespace =
                        Namespace::parse(&components).ok().filter(|namespace| !namespace.as_str().is_empty());
                } else if Namespace::parse(&longer).is_ok_and(|namespace| !namespace.as_str().is_empty()) {
                    below.longer.push(longer);
                }
            }
        }
        let namespace = below.namespace.take();
        match namespace {
            Some(namespace) if self.has_files(&namespace).await? => {
                Ok(MarkerPrefixes { namespace: Some(namespace), ..below })
            }
            _ => Ok(below),
        }
    }
}

/// What begins with some components of a namespace.
#[derive(Default)]
struct MarkerPrefixes {
    /// The namespace that they are, if it has files.
    namespace: Option<Namespace>,
    /// Components with one more.
    longer: Vec<String>,
}

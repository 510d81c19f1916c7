//! What a bucket holds as a whole.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use vfs_core::{Error, ErrorKind, Problem, Result};

use super::BucketStore;
use super::listing::{Start, Sweep};
use super::names::{Layout, Name, odd};
use super::raw::Object;
use crate::inspect;
use crate::key::{Key, Namespace};
use crate::store::{CheckReport, Inspect, ListRequest, Listed, StoreStats};

/// How many levels of namespaces are listed at once.
const AT_ONCE: usize = 16;
/// How many files are read at once.
const READS_AT_ONCE: usize = 4;

#[async_trait]
impl Inspect for BucketStore {
    /// Reads every file. A problem is an object that cannot be read, has another size than the service reports, has other content
    /// than was put with its metadata, has a key that no file can have, or is below a file, which hides it. What is put or removed
    /// meanwhile may be in the report or not.
    async fn check(&self) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut sweep = Sweep::new(self);
        let mut files = Files::default();
        while let Some(objects) = sweep.next().await? {
            report.problems.extend(objects.iter().filter_map(|object| files.next(&self.inner.layout, &object.key)));
            let mut looks = stream::iter(objects).map(|object| self.read(object)).buffered(READS_AT_ONCE);
            while let Some(look) = looks.next().await {
                match look {
                    Ok(None) => {}
                    Ok(Some(bytes)) => {
                        report.files += 1;
                        report.bytes += bytes;
                    }
                    Err(Unread::Problem(problem)) => report.problems.push(problem),
                    Err(Unread::Unanswered(error)) => return Err(error),
                }
            }
        }
        Ok(report)
    }

    /// By listing all of it.
    async fn stats(&self) -> Result<StoreStats> {
        let mut stats = StoreStats::default();
        let mut namespaces = BTreeSet::new();
        let mut sweep = Sweep::new(self);
        while let Some(objects) = sweep.next().await? {
            for object in objects {
                if let Name::File(namespace, _) = self.inner.layout.name(&object.key) {
                    namespaces.insert(namespace);
                    stats.files += 1;
                    stats.bytes += object.size;
                }
            }
        }
        stats.namespaces = namespaces.len() as u64;
        Ok(stats)
    }
}

/// Why a file was not read.
enum Unread {
    /// It is damaged, or its name is none.
    Problem(Problem),
    /// The service is gone, and so would the other files be.
    Unanswered(Error),
}

/// The files that a sweep is within: those whose keys the current key begins with.
#[derive(Default)]
struct Files(Vec<String>);

impl Files {
    /// Takes the next key, and reports it where it is below a file.
    ///
    /// Services list keys in the order of their bytes, in which those that begin with the key of a file follow it directly.
    fn next(&mut self, layout: &Layout, key: &str) -> Option<Problem> {
        while self.0.pop_if(|file| !key.starts_with(file.as_str())).is_some() {}
        if !matches!(layout.name(key), Name::File(..)) {
            return None;
        }
        let file = self.0.iter().find(|file| key[file.len()..].starts_with('/'));
        let problem = file.map(|file| {
            let reason = format!("it cannot be reached, as '{file}' is a file; move one of the two");
            inspect::problem(key, &Error::new(ErrorKind::NotADirectory, reason))
        });
        self.0.push(key.to_owned());
        problem
    }
}

impl BucketStore {
    /// Makes sure that the bucket answers.
    pub(super) async fn is_reachable(&self) -> Result<()> {
        let listing = self.inner.source.list(self.inner.layout.base(), Listed::All, &Start::First, 1).await;
        listing.map(|_| ()).map_err(|fault| self.error(&fault))
    }

    /// How many bytes the file of an object has; `None` where it is no file, or gone.
    async fn read(&self, object: Object) -> Result<Option<u64>, Unread> {
        let location = match self.inner.layout.name(&object.key) {
            Name::Folder => return Ok(None),
            Name::Odd => return Err(Unread::Problem(odd(&object.key))),
            Name::File(namespace, path) => self.inner.layout.key(&Key::new(namespace, path)),
        };
        let problem = |error: Error| Unread::Problem(inspect::problem(&object.key, &error));
        let value = self.inner.service.get(&location.map_err(problem)?, None).await;
        let value = value.map_err(|fault| match self.error(&fault) {
            error if fault.is_unanswered() => Unread::Unanswered(error),
            error => problem(error),
        })?;
        let Some(value) = value else { return Ok(None) };
        let (bytes, size) = (value.content.len() as u64, value.found.stored.size);
        let reason = if bytes != size {
            format!("{bytes} bytes came where the service reports {size}; write the file again")
        } else if !value.is_as_written().await.map_err(problem)? {
            "its content is not what was put with its metadata, so it is damaged or another program has replaced it; write the file again".to_owned()
        } else {
            return Ok(Some(bytes));
        };
        Err(problem(Error::new(ErrorKind::Unavailable, reason)))
    }

    /// Goes from marker to marker, without listing the files between them.
    pub(super) async fn walk_namespaces(&self) -> Result<Vec<Namespace>> {
        let mut found = Vec::new();
        if self.has_files(&Namespace::default()).await? {
            found.push(Namespace::default());
        }
        let mut level = vec![String::new()];
        while !level.is_empty() {
            let below = stream::iter(level).map(|components| self.below(components)).buffer_unordered(AT_ONCE);
            let below: Vec<Below> = below.try_collect().await?;
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
    async fn below(&self, components: String) -> Result<Below> {
        let prefix = match components.as_str() {
            "" => self.inner.layout.named(),
            components => format!("{}{components}/", self.inner.layout.named()),
        };
        let mut below = Below::default();
        let mut start = Some(Start::First);
        while let Some(from) = start {
            let listing = self.inner.source.list(&prefix, Listed::Level, &from, usize::MAX).await;
            let listing = listing.map_err(|fault| self.error(&fault))?;
            start = listing.next.map(Start::Token);
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
            Some(namespace) if self.has_files(&namespace).await? => Ok(Below { namespace: Some(namespace), ..below }),
            _ => Ok(below),
        }
    }
}

/// What begins with some components of a namespace.
#[derive(Default)]
struct Below {
    /// The namespace that they are, if it has files.
    namespace: Option<Namespace>,
    /// Components with one more.
    longer: Vec<String>,
}

//! Configuration of a backend: limits, namespace, caches and concurrency.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use vfs_core::{Error, OpContext, Result};
use vfs_search::Pool;

use crate::store::Namespace;

/// Function that selects the namespace of a call.
pub type NamespaceFn = dyn Fn(&OpContext) -> Result<Namespace> + Send + Sync;

/// Source of the namespace of each call.
///
/// # Behaviour
///
/// A call sees only the files of its own namespace, and none of a child, a sibling or a similarly named namespace.
#[derive(Clone)]
#[non_exhaustive]
pub enum NamespaceSource {
    /// One namespace for all calls.
    Fixed(Namespace),
    /// A namespace for each call. If the function returns an error, the call fails with it.
    PerCall(Arc<NamespaceFn>),
}

impl NamespaceSource {
    /// Returns a source that calls `function` for each call.
    pub fn per_call(function: impl Fn(&OpContext) -> Result<Namespace> + Send + Sync + 'static) -> Self {
        Self::PerCall(Arc::new(function))
    }

    /// Returns a source that replaces `{actor}` and `{session}` in a template such as `org/{actor}` by the
    /// [actor](OpContext::actor) and the [session](OpContext::session) of the call.
    ///
    /// # Behaviour
    ///
    /// * A placeholder is part of one component: an actor named `a/b` is refused, and not split.
    /// * A component has at most one placeholder, as different calls could get the same namespace otherwise.
    /// * A template without a placeholder is [`Fixed`](Self::Fixed).
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a template that cannot be a namespace. A call fails with `invalid_argument` if the template needs an
    /// actor or session that the call lacks, or that cannot be part of a namespace.
    ///
    /// ```
    /// use vfs_core::OpContext;
    /// use vfs_store::NamespaceSource;
    ///
    /// let source = NamespaceSource::template("acme/{actor}")?;
    /// assert_eq!(source.of(&OpContext::new().with_actor("ann"))?.as_str(), "acme/ann");
    /// assert!(source.of(&OpContext::new()).is_err());
    /// assert!(source.of(&OpContext::new().with_actor("ann/secret")).is_err());
    /// # Ok::<(), vfs_core::Error>(())
    /// ```
    pub fn template(text: &str) -> Result<Self> {
        let components = text.split('/').map(TemplateComponent::parse).collect::<Result<Vec<_>>>()?;
        let plain = fill(&components, |_| Ok("x"))?;
        if components.iter().all(|component| component.placeholder.is_none()) {
            return Ok(Self::Fixed(plain));
        }
        Ok(Self::per_call(move |cx| fill(&components, |placeholder| placeholder.value(cx))))
    }

    /// Returns the namespace of one call.
    ///
    /// # Errors
    ///
    /// Errors of the function or template.
    pub fn of(&self, cx: &OpContext) -> Result<Namespace> {
        match self {
            Self::Fixed(namespace) => Ok(namespace.clone()),
            Self::PerCall(function) => function(cx),
        }
    }
}

/// The namespace without components.
impl Default for NamespaceSource {
    fn default() -> Self {
        Self::Fixed(Namespace::default())
    }
}

impl From<Namespace> for NamespaceSource {
    fn from(namespace: Namespace) -> Self {
        Self::Fixed(namespace)
    }
}

impl fmt::Debug for NamespaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(namespace) => f.debug_tuple("Fixed").field(namespace).finish(),
            Self::PerCall(_) => f.debug_tuple("PerCall").finish_non_exhaustive(),
        }
    }
}

/// Component of a template: literal text before and after an optional placeholder.
struct TemplateComponent {
    before: String,
    placeholder: Option<TemplatePlaceholder>,
    after: String,
}

/// Placeholder of a template, which stands for a value of the caller.
#[derive(Clone, Copy)]
enum TemplatePlaceholder {
    Actor,
    Session,
}

impl TemplatePlaceholder {
    const ALL: [TemplatePlaceholder; 2] = [Self::Actor, Self::Session];

    fn name(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Session => "session",
        }
    }

    fn value(self, cx: &OpContext) -> Result<&str> {
        let value = match self {
            Self::Actor => cx.actor(),
            Self::Session => cx.session(),
        };
        let name = self.name();
        let value = value.ok_or_else(|| {
            Error::invalid_argument(format!(
                "each {name} has a namespace of its own, and the call has no {name}; set the {name} of the call"
            ))
        })?;
        if value.is_empty() || value.contains('/') {
            return Err(Error::invalid_argument(format!(
                "the call's {name} {value:.100?} cannot be part of a namespace; use a non-empty name without '/'"
            )));
        }
        Ok(value)
    }
}

impl TemplateComponent {
    fn parse(text: &str) -> Result<Self> {
        let found = TemplatePlaceholder::ALL.into_iter().find_map(|placeholder| {
            let (before, after) = text.split_once(&format!("{{{}}}", placeholder.name()))?;
            Some((before, placeholder, after))
        });
        let Some((before, placeholder, after)) = found else {
            return Ok(Self { before: text.to_owned(), placeholder: None, after: String::new() });
        };
        if [before, after].iter().any(|part| part.contains(['{', '}'])) {
            let message = format!("the component {text:.100?} has more than one placeholder; put a '/' between them");
            return Err(Error::invalid_argument(message));
        }
        Ok(Self { before: before.to_owned(), placeholder: Some(placeholder), after: after.to_owned() })
    }
}

fn fill<'a>(
    components: &[TemplateComponent],
    value: impl Fn(TemplatePlaceholder) -> Result<&'a str>,
) -> Result<Namespace> {
    let mut text = String::new();
    for (index, TemplateComponent { before, placeholder, after }) in components.iter().enumerate() {
        if index > 0 {
            text.push('/');
        }
        text.push_str(before);
        if let Some(placeholder) = placeholder {
            text.push_str(value(*placeholder)?);
        }
        text.push_str(after);
    }
    Namespace::parse(&text)
}

/// Configuration of a [`StoreBackend`](crate::StoreBackend).
///
/// ```
/// use vfs_store::{MemoryStore, NamespaceSource, StoreBackend, StoreConfig};
///
/// let config = StoreConfig::new().namespace(NamespaceSource::template("acme/{actor}")?).max_file_size(1 << 20);
/// let files = StoreBackend::with_config(MemoryStore::new(), config);
/// # let _ = files;
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreConfig {
    /// Namespace of each call. Default: the namespace without components.
    pub namespace: NamespaceSource,
    /// Maximum size of a file in bytes; the store may allow less. Default [`StoreConfig::DEFAULT_MAX_FILE_SIZE`].
    pub max_file_size: u64,
    /// Maximum size of a file that is written in chunks, in bytes, if the store has [staging](crate::Store::as_staging); the store may
    /// allow less. Default 1 PiB.
    pub max_streamed_size: u64,
    /// Thread pool of searches. Default: a pool of this backend with [`fetches`](Self::fetches) threads, as they mostly wait for the
    /// store.
    pub search_pool: Option<Pool>,
    /// Capacity in bytes of the cache of contents for searches; 0 disables it. Default
    /// [`StoreConfig::DEFAULT_CONTENT_CACHE`].
    pub content_cache: u64,
    /// Maximum number of files of a namespace whose names are cached between searches, if the store has a change log. Each search lists
    /// a larger namespace, unless the search index of the store finds few candidates: then only these are looked up, and
    /// `files_searched`, `skipped` and `problems` refer to them. Default [`StoreConfig::DEFAULT_INDEX_ENTRIES`].
    pub index_entries: usize,
    /// Maximum number of namespaces whose names are cached; the least recently searched is evicted first. Default
    /// [`StoreConfig::DEFAULT_INDEX_NAMESPACES`].
    pub index_namespaces: NonZeroUsize,
    /// Maximum number of concurrent requests of one operation. Default [`StoreConfig::DEFAULT_FETCHES`].
    pub fetches: NonZeroUsize,
    /// Number of attempts of a change that loses against other writers, before it fails with `busy`. Default
    /// [`StoreConfig::DEFAULT_EDIT_ATTEMPTS`].
    pub edit_attempts: u32,
}

impl StoreConfig {
    /// 256 MiB.
    pub const DEFAULT_MAX_FILE_SIZE: u64 = 256 << 20;
    /// 64 MiB.
    pub const DEFAULT_CONTENT_CACHE: u64 = 64 << 20;
    /// 200,000 files.
    pub const DEFAULT_INDEX_ENTRIES: usize = 200_000;
    /// 16 namespaces.
    pub const DEFAULT_INDEX_NAMESPACES: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");
    /// 16 concurrent requests.
    pub const DEFAULT_FETCHES: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");
    /// 32 attempts.
    pub const DEFAULT_EDIT_ATTEMPTS: u32 = 32;

    /// Returns the default configuration.
    pub fn new() -> Self {
        Self {
            namespace: NamespaceSource::default(),
            max_file_size: Self::DEFAULT_MAX_FILE_SIZE,
            max_streamed_size: 1 << 50,
            search_pool: None,
            content_cache: Self::DEFAULT_CONTENT_CACHE,
            index_entries: Self::DEFAULT_INDEX_ENTRIES,
            index_namespaces: Self::DEFAULT_INDEX_NAMESPACES,
            fetches: Self::DEFAULT_FETCHES,
            edit_attempts: Self::DEFAULT_EDIT_ATTEMPTS,
        }
    }

    /// Sets the namespace: a [`Namespace`] or a [`NamespaceSource`].
    #[must_use]
    pub fn namespace(mut self, source: impl Into<NamespaceSource>) -> Self {
        self.namespace = source.into();
        self
    }

    /// Sets the maximum size of a file in bytes, and of one that is written in chunks.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self.max_streamed_size = bytes;
        self
    }

    /// Sets the maximum size of a file that is written in chunks, in bytes.
    #[must_use]
    pub fn max_streamed_size(mut self, bytes: u64) -> Self {
        self.max_streamed_size = bytes;
        self
    }

    /// Sets the thread pool of searches. Backends that have none each start their own: share one among the backends of many users.
    #[must_use]
    pub fn search_pool(mut self, pool: Pool) -> Self {
        self.search_pool = Some(pool);
        self
    }

    /// Sets the capacity of the content cache in bytes.
    #[must_use]
    pub fn content_cache(mut self, bytes: u64) -> Self {
        self.content_cache = bytes;
        self
    }

    /// Sets the maximum number of files of a namespace whose names are cached.
    #[must_use]
    pub fn index_entries(mut self, files: usize) -> Self {
        self.index_entries = files;
        self
    }

    /// Sets the maximum number of namespaces whose names are cached, at least 1.
    #[must_use]
    pub fn index_namespaces(mut self, namespaces: usize) -> Self {
        self.index_namespaces = NonZeroUsize::new(namespaces).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Sets the maximum number of concurrent requests of one operation, at least 1.
    #[must_use]
    pub fn fetches(mut self, files: usize) -> Self {
        self.fetches = NonZeroUsize::new(files).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Sets the number of attempts of a change, at least 1.
    #[must_use]
    pub fn edit_attempts(mut self, attempts: u32) -> Self {
        self.edit_attempts = attempts.max(1);
        self
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::ErrorKind;

    use super::*;

    #[test]
    fn a_template_is_filled_from_the_call_and_never_reaches_into_another_namespace() {
        let call = OpContext::new().with_actor("ann").with_session("s1");
        for (template, expected) in [
            ("org", Some("org")),
            ("", Some("")),
            ("org/{actor}", Some("org/ann")),
            ("{actor}/{session}", Some("ann/s1")),
            ("u-{actor}.x/y", Some("u-ann.x/y")),
            ("{actor}-{session}", None),
            ("{actor}{actor}", None),
            ("org/{user}", None),
            ("org//{actor}", None),
            ("/{actor}", None),
        ] {
            let filled = NamespaceSource::template(template).and_then(|source| source.of(&call)).ok();
            assert_eq!(filled.as_ref().map(Namespace::as_str), expected, "{template}");
        }
        let source = NamespaceSource::template("org/{actor}").expect("a template");
        for actor in ["", "a/b", "..", ".", "/", "a b", "a\0"] {
            let error = source.of(&OpContext::new().with_actor(actor)).expect_err(actor);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!(source.of(&OpContext::new()).expect_err("no actor").kind(), ErrorKind::InvalidArgument);
    }
}

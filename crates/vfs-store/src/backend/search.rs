//! Trees for listings and searches, from the cheapest source of names.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;
use vfs_core::tree::{OpenTreeRequest, TreeUse};
use vfs_core::{
    Error, ErrorKind, FileInfo, GlobRequest, GrepRequest, LsRequest, LsResult, Result, TruncationReason, VfsPath,
};
use vfs_search::SearchScope;

use super::view::candidate_names::lookup_candidates;
use super::view::indexed_names::SearchExtent;
use super::view::namespace_view::NamespaceView;
use super::view::path_entry::{PathEntry, above, file_info};
use super::view::store_tree::{ListedNames, SearchCandidates, StoreTree};
use super::view::text_query::{MAX_SKIPPED_BYTES, max_skipped_size, text_query};
use crate::store::{PathStat, Store, TextQuery};

/// Names of entries of a directory that decide which of its entries a walk shows.
const RULE_NAMES: [&str; 3] = [".ignore", ".gitignore", ".git"];

/// Path that no pattern names explicitly: a search that reaches it reaches every directory.
const UNLIKELY_PATH: &str = "\u{1}/\u{1}";

/// Maximum number of candidates to which a search is narrowed if there are too many files to list.
const MAX_NARROWED_CANDIDATES: usize = 4096;

/// Lists one level of a directory.
pub(super) async fn ls<S: Store>(view: &NamespaceView<S>, req: &LsRequest) -> Result<LsResult> {
    let path = &req.path;
    let limit = req.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let (listed, file) = futures::join!(view.level_up_to(path, limit), view.head(path));
    let (directory, is_all) = listed?;
    if file?.is_some() {
        return Err(Error::at(ErrorKind::NotADirectory, path));
    }
    if directory.is_empty() && !path.is_root() && view.find(path).await? != PathEntry::Directory {
        return Err(Error::at(ErrorKind::NotADirectory, path));
    }
    let mut entries = Vec::with_capacity(directory.len());
    let mut problems = directory.problems(path);
    let files = directory.files().map(|(name, stored)| (name, Some(stored)));
    let all = files.chain(directory.directories().map(|name| (name, None)));
    for (name, stored) in all {
        match path.child(name) {
            Ok(path) => entries.push(match stored {
                Some(stored) => file_info(path, stored),
                None => FileInfo::directory(path),
            }),
            Err(error) => problems.push(error.into()),
        }
    }
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let truncated = (!is_all || entries.len() > limit).then_some(TruncationReason::Limit);
    entries.truncate(limit);
    let mut result = LsResult::new(entries);
    (result.truncated, result.problems) = (truncated, problems);
    Ok(result)
}

/// Returns the tree for a recursive listing.
pub(super) async fn tree_for_ls<S: Store>(view: &NamespaceView<S>, req: &LsRequest) -> Result<Arc<StoreTree<S>>> {
    let (names, above) = futures::join!(names(view, &req.path, SearchScope::of_ls(req)), stat_above(view, &req.path));
    Ok(Arc::new(StoreTree::new(view.clone(), names?).above(above)))
}

/// Returns the tree for a glob.
pub(super) async fn tree_for_glob<S: Store>(view: &NamespaceView<S>, req: &GlobRequest) -> Result<Arc<StoreTree<S>>> {
    let (names, above) =
        futures::join!(names(view, &req.path, SearchScope::of_glob(req)?), stat_above(view, &req.path));
    Ok(Arc::new(StoreTree::new(view.clone(), names?).above(above)))
}

/// Returns the tree for a grep.
pub(super) async fn tree_for_grep<S: Store>(view: &NamespaceView<S>, req: &GrepRequest) -> Result<Arc<StoreTree<S>>> {
    let tree = |names| StoreTree::new(view.clone(), names).max_file_size(req.max_file_size);
    // The search returns the error of an invalid request.
    let Ok(scope) = SearchScope::of_grep(req) else { return Ok(Arc::new(tree(None))) };
    let is_wide = reaches_all_below(&req.path, &scope);
    let above = stat_above(view, &req.path).await;
    let is_too_large = || is_wide && view.shared.indexes.is_too_large(&view.namespace, &req.path);
    if is_too_large() {
        let candidates = find_candidates(view, &req.path, req, MAX_NARROWED_CANDIDATES).await?;
        if let Some(names) = candidate_names(view, candidates.as_ref()).await {
            return Ok(Arc::new(tree(Some(names)).above(above).candidates(candidates)));
        }
    }
    // A search with a limit starts without waiting for the candidates, as it may reach its limit before the store
    // answers.
    if let (Some(_), Ok(runtime)) = (req.limit, Handle::try_current()) {
        let names = names(view, &req.path, scope).await?;
        let (view, req) = (view.clone(), req.clone());
        let candidates =
            async move { find_candidates(&view, &req.path, &req, TextQuery::DEFAULT_MAX_CANDIDATES).await };
        return Ok(Arc::new(tree(names).above(above).pending_candidates(&runtime, candidates)));
    }
    let candidates = find_candidates(view, &req.path, req, TextQuery::DEFAULT_MAX_CANDIDATES);
    let (mut names, candidates) = futures::try_join!(names(view, &req.path, scope), candidates)?;
    if names.is_none() && is_too_large() {
        names = candidate_names(view, candidates.as_ref()).await;
    }
    Ok(Arc::new(tree(names).above(above).candidates(candidates)))
}

/// Returns the tree that is lent to a search of a larger tree.
pub(super) async fn tree_to_lend<S: Store>(
    view: &NamespaceView<S>,
    req: &OpenTreeRequest,
) -> Result<Arc<StoreTree<S>>> {
    let extent =
        if req.path.is_root() && req.purpose == TreeUse::Grep { SearchExtent::All } else { SearchExtent::Part };
    let (cx, guard) = view.cx.cancel_on_drop();
    let view = &view.with_context(cx);
    let directories = view.indexed_names(extent).await?;
    let names = directories.map(|directories| ListedNames { below: VfsPath::root(), directories });
    let tree = StoreTree::new(view.clone(), names).drop_guard(guard);
    let Some(search) = &req.search else { return Ok(Arc::new(tree)) };
    let candidates = find_candidates(view, &req.path, search, TextQuery::DEFAULT_MAX_CANDIDATES).await?;
    Ok(Arc::new(tree.max_file_size(search.max_file_size).candidates(candidates)))
}

/// Returns the names for a request that starts at `path`: those of the namespace if they are cached or the request
/// covers all of it, else those below `path` if the request reaches all directories there.
///
/// Otherwise, or if there are too many names, returns `None`, and the walk lists the directories that it reaches.
async fn names<S: Store>(view: &NamespaceView<S>, path: &VfsPath, scope: SearchScope) -> Result<Option<ListedNames>> {
    let reaches_all = reaches_all_below(path, &scope);
    let is_whole = path.is_root() && reaches_all;
    let extent = if is_whole { SearchExtent::All } else { SearchExtent::Part };
    if let Some(directories) = view.indexed_names(extent).await? {
        return Ok(Some(ListedNames { below: VfsPath::root(), directories }));
    }
    // The index of a whole namespace has usually too many names, and another listing would find as many.
    if !reaches_all || (is_whole && view.store().as_changes().is_some()) {
        return Ok(None);
    }
    let directories = view.list_names(path, view.shared.config.index_entries).await?;
    if directories.is_none() {
        view.shared.indexes.mark_too_large(&view.namespace, path);
    }
    Ok(directories.map(|directories| ListedNames { below: path.clone(), directories }))
}

/// Looks up by one [`Store::stat_many`] the entries that a walk from `path` needs above it: the directories, and the ignore files in
/// them.
///
/// The result is empty if no lookup is needed or the request fails: the walk then looks up each entry itself, and
/// reports the error.
async fn stat_above<S: Store>(view: &NamespaceView<S>, path: &VfsPath) -> HashMap<VfsPath, PathStat> {
    if path.is_root() || view.shared.indexes.has_names(&view.namespace) {
        return HashMap::new();
    }
    let directories: Vec<_> = above(path).chain([VfsPath::root()]).collect();
    let rules =
        directories.iter().flat_map(|directory| RULE_NAMES.iter().filter_map(|name| directory.child(name).ok()));
    let parents = directories.iter().filter(|directory| !directory.is_root()).cloned();
    let paths: Vec<_> = rules.chain(parents).chain([path.clone()]).collect();
    match view.stat_many(path, &paths).await {
        Ok(stats) => paths.into_iter().zip(stats).collect(),
        Err(error) => {
            tracing::debug!(%error, "the directories above the start of a walk were not looked up in advance");
            HashMap::new()
        }
    }
}

/// Returns `true` if a request that starts at `path` reaches every directory below.
fn reaches_all_below(path: &VfsPath, scope: &SearchScope) -> bool {
    path.join(UNLIKELY_PATH).is_ok_and(|unlikely| scope.reaches(&unlikely))
}

/// Returns the names of the candidates alone, or `None` if they are too many to look up, or the search may also report
/// problems of other files.
async fn candidate_names<S: Store>(
    view: &NamespaceView<S>,
    candidates: Option<&SearchCandidates>,
) -> Option<ListedNames> {
    let SearchCandidates { below, keys, .. } =
        candidates.filter(|candidates| candidates.max_skipped_size >= MAX_SKIPPED_BYTES)?;
    let directories = lookup_candidates(view, below, keys).await?;
    Some(ListedNames { below: below.clone(), directories })
}

/// Returns the files at and below `path` that may match `req`, or `None` if the index of the store cannot answer, is
/// unavailable, or finds more than `max_candidates`.
async fn find_candidates<S: Store>(
    view: &NamespaceView<S>,
    path: &VfsPath,
    req: &GrepRequest,
    max_candidates: usize,
) -> Result<Option<SearchCandidates>> {
    let (Some(search), Some(query)) = (view.store().as_search(), text_query(req)) else { return Ok(None) };
    let query = query.max_candidates(max_candidates);
    let keys = match view.ask(path, search.candidates(&view.namespace, path, &query)).await {
        // The search goes on without candidates, unless its own context has ended.
        Err(error) if error.is_temporary() && view.cx.check().is_ok() => {
            tracing::debug!(%error, "the search index of the store did not answer; the search reads all files");
            None
        }
        answer => answer?,
    };
    Ok(keys.map(|keys| SearchCandidates { below: path.clone(), keys, max_skipped_size: max_skipped_size(req) }))
}

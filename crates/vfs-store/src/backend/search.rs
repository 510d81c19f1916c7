//! Trees for listings and searches, from the cheapest source of names.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;
use vfs_core::tree::{OpenTreeRequest, TreeUse};
use vfs_core::{
    Error, ErrorKind, FileInfo, GlobRequest, GrepRequest, LsRequest, LsResult, Result, Truncation, VfsPath,
};
use vfs_search::SearchScope;

use super::view::candidate_names::lookup_candidates;
use super::view::indexed_names::SearchExtent;
use super::view::namespace_view::NamespaceView;
use super::view::path_entry::{PathEntry, above, file_info};
use super::view::text_query::{MAX_SKIPPED_BYTES, largest_silent, text_query};
use super::view::tree::{ListedNames, SearchCandidates, StoreTree};
use crate::store::{PathStat, Store, TextQuery};

/// What a directory may hold that decides what a walk shows below it.
const RULE_NAMES: [&str; 3] = [".ignore", ".gitignore", ".git"];

/// Names of directories that nobody thinks of: what reaches two of them, one below the other, reaches all.
const UNLIKELY_PATH: &str = "\u{1}/\u{1}";

/// The most candidates that a search of too many files is narrowed to.
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
    let truncated = (!is_all || entries.len() > limit).then_some(Truncation::Limit);
    entries.truncate(limit);
    let mut result = LsResult::new(entries);
    (result.truncated, result.problems) = (truncated, problems);
    Ok(result)
}

/// The tree for a listing of several levels.
pub(super) async fn tree_for_ls<S: Store>(view: &NamespaceView<S>, req: &LsRequest) -> Result<Arc<StoreTree<S>>> {
    let (names, above) = futures::join!(names(view, &req.path, SearchScope::of_ls(req)), stat_above(view, &req.path));
    Ok(Arc::new(StoreTree::new(view.clone(), names?).above(above)))
}

/// The tree for a glob.
pub(super) async fn tree_for_glob<S: Store>(view: &NamespaceView<S>, req: &GlobRequest) -> Result<Arc<StoreTree<S>>> {
    let (names, above) =
        futures::join!(names(view, &req.path, SearchScope::of_glob(req)?), stat_above(view, &req.path));
    Ok(Arc::new(StoreTree::new(view.clone(), names?).above(above)))
}

/// The tree for a search.
pub(super) async fn tree_for_grep<S: Store>(view: &NamespaceView<S>, req: &GrepRequest) -> Result<Arc<StoreTree<S>>> {
    let tree = |names| StoreTree::new(view.clone(), names).max_file_size(req.max_file_size);
    // What is wrong with the request is for the search to say.
    let Ok(scope) = SearchScope::of_grep(req) else { return Ok(Arc::new(tree(None))) };
    let is_wide = goes_anywhere(&req.path, &scope);
    let above = stat_above(view, &req.path).await;
    let is_too_large = || is_wide && view.shared.indexes.is_too_large(&view.namespace, &req.path);
    if is_too_large() {
        let few = hopes(view, &req.path, req, MAX_NARROWED_CANDIDATES).await?;
        if let Some(names) = lookup_hopes(view, few.as_ref()).await {
            return Ok(Arc::new(tree(Some(names)).above(above).hopes(few)));
        }
    }
    // A search with a limit may have enough before the store has answered, and begins.
    if let (Some(_), Ok(runtime)) = (req.limit, Handle::try_current()) {
        let names = names(view, &req.path, scope).await?;
        let (view, req) = (view.clone(), req.clone());
        let hopes = async move { hopes(&view, &req.path, &req, TextQuery::DEFAULT_MAX_CANDIDATES).await };
        return Ok(Arc::new(tree(names).above(above).hopes_later(&runtime, hopes)));
    }
    let hopes = hopes(view, &req.path, req, TextQuery::DEFAULT_MAX_CANDIDATES);
    let (mut names, hopes) = futures::try_join!(names(view, &req.path, scope), hopes)?;
    if names.is_none() && is_too_large() {
        names = lookup_hopes(view, hopes.as_ref()).await;
    }
    Ok(Arc::new(tree(names).above(above).hopes(hopes)))
}

/// The tree to be lent.
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
    let hopes = hopes(view, &req.path, search, TextQuery::DEFAULT_MAX_CANDIDATES).await?;
    Ok(Arc::new(tree.max_file_size(search.max_file_size).hopes(hopes)))
}

/// The names that a request needs which starts at `path`: all of the namespace where it is about all of it, all below the path
/// where it goes anywhere there, else none, as it lists what it reaches.
async fn names<S: Store>(view: &NamespaceView<S>, path: &VfsPath, scope: SearchScope) -> Result<Option<ListedNames>> {
    let goes_anywhere = goes_anywhere(path, &scope);
    let is_about_all = path.is_root() && goes_anywhere;
    let extent = if is_about_all { SearchExtent::All } else { SearchExtent::Part };
    if let Some(directories) = view.indexed_names(extent).await? {
        return Ok(Some(ListedNames { below: VfsPath::root(), directories }));
    }
    // Of a namespace that has too many it is known already.
    if !goes_anywhere || (is_about_all && view.store().as_changes().is_some()) {
        return Ok(None);
    }
    let directories = view.list_names(path, view.shared.config.index_entries).await?;
    if directories.is_none() {
        view.shared.indexes.mark_too_large(&view.namespace, path);
    }
    Ok(directories.map(|directories| ListedNames { below: path.clone(), directories }))
}

/// Looks up all at once what a walk that starts at `path` looks at above it: the directories, and the rules in them.
///
/// Of what is not looked up, nothing is in the answer, nor after a failure: then the walk looks for itself, and reports it.
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
            tracing::debug!(%error, "what is above the start of a walk was not looked up beforehand");
            HashMap::new()
        }
    }
}

/// Whether a request that starts at `path` goes into every directory there.
fn goes_anywhere(path: &VfsPath, scope: &SearchScope) -> bool {
    path.join(UNLIKELY_PATH).is_ok_and(|anywhere| scope.reaches(&anywhere))
}

/// The names of the few files that may match, where they are few.
async fn lookup_hopes<S: Store>(view: &NamespaceView<S>, hopes: Option<&SearchCandidates>) -> Option<ListedNames> {
    let SearchCandidates { below, candidates, .. } = hopes.filter(|hopes| hopes.up_to >= MAX_SKIPPED_BYTES)?;
    let directories = lookup_candidates(view, below, candidates).await?;
    Some(ListedNames { below: below.clone(), directories })
}

/// The files at and below `path` that `req` may find something in, where the store can tell, and does so now: `max_candidates` of them at most.
async fn hopes<S: Store>(
    view: &NamespaceView<S>,
    path: &VfsPath,
    req: &GrepRequest,
    most: usize,
) -> Result<Option<SearchCandidates>> {
    let (Some(search), Some(query)) = (view.store().as_search(), text_query(req)) else { return Ok(None) };
    let query = query.max_candidates(most);
    let candidates = match view.ask(path, search.candidates(&view.namespace, path, &query)).await {
        // The search goes on without the answer, unless it was the caller who waited no longer.
        Err(error) if error.is_temporary() && view.cx.check().is_ok() => {
            tracing::debug!(%error, "the search index of the store did not answer; the search reads all files");
            None
        }
        answer => answer?,
    };
    Ok(candidates.map(|candidates| SearchCandidates { below: path.clone(), candidates, up_to: largest_silent(req) }))
}

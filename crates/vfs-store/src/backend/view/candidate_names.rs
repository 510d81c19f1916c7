//! Names of the candidates of a search, for namespaces that are too large to list.

use std::collections::BTreeSet;

use vfs_core::{Error, Result, VfsPath};

use super::directory_map::DirectoryMap;
use super::namespace_view::NamespaceView;
use super::path_entry::above;
use crate::store::{CandidateKeys, Entry, ListRequest, Page, Store};

/// Maximum number of paths that are looked up. Beyond it a listing is cheaper.
const MAX_LOOKUPS: usize = 4096;
/// Number of paths that are looked up by one request.
const LOOKUP_BATCH_SIZE: usize = 1024;
/// Paths of ignore files below a directory.
const RULE_FILES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// Looks up the `candidates` at and below `below`, with the files that decide which of them a search shows.
///
/// These are the ignore files in each directory above a candidate, and files that share the path of such a directory
/// and hide it. Returns `None` if there are too many paths, or a lookup fails: a listing reports the file of such a
/// failure as a problem.
pub(crate) async fn lookup_candidates<S: Store>(
    view: &NamespaceView<S>,
    below: &VfsPath,
    candidates: &CandidateKeys,
) -> Option<DirectoryMap> {
    let (mut files, mut directories) = (BTreeSet::new(), BTreeSet::new());
    for candidate in candidates {
        files.insert(candidate.clone());
        let parents = above(candidate).chain([VfsPath::root()]);
        for directory in parents.filter(|directory| directory.starts_with(below)) {
            if directories.insert(directory.clone()) {
                files.extend(RULE_FILES.iter().filter_map(|name| directory.join(name).ok()));
            }
        }
        if files.len() + 2 * directories.len() > MAX_LOOKUPS {
            return None;
        }
    }
    files.extend(directories.iter().filter(|directory| !directory.is_root()).cloned());
    let repositories: BTreeSet<_> = directories.iter().filter_map(|directory| directory.child(".git").ok()).collect();
    let paths: Vec<_> = files.union(&repositories).cloned().collect();
    let mut entries = Vec::with_capacity(paths.len());
    for paths in paths.chunks(LOOKUP_BATCH_SIZE) {
        let stats = view.stat_many(below, paths).await.ok()?;
        for (path, stat) in paths.iter().zip(stats) {
            match stat.stored {
                Some(stored) => entries.push(Entry { path: path.clone(), stored }),
                None if stat.has_below && repositories.contains(path) => {
                    entries.extend(any_below(view, path).await.ok()?)
                }
                None => {}
            }
        }
    }
    let mut names = DirectoryMap::default();
    names.add_page(Page { entries, ..Page::default() });
    Some(names)
}

/// Returns a file below `repository`, the `.git` of a directory, if there is one: it makes the directory a repository,
/// in which `.gitignore` applies.
async fn any_below<S: Store>(view: &NamespaceView<S>, repository: &VfsPath) -> Result<Option<Entry>> {
    let mut request = ListRequest::all(repository.clone()).limit(1);
    loop {
        let page = view.page(&request).await?;
        match (page.entries.into_iter().next(), page.problems.into_iter().next(), page.next) {
            (Some(entry), _, _) => return Ok(Some(entry)),
            (None, Some(problem), _) => return Err(Error::new(problem.code, problem.message)),
            (None, None, Some(next)) => request = request.from(next),
            (None, None, None) => return Ok(None),
        }
    }
}

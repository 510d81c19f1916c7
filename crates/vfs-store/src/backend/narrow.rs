//! A directory index of the candidates of a search alone.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use vfs_core::{Error, Result, VfsPath};

use super::directory::Directories;
use super::space::{Space, above};
use crate::store::{Candidates, Entry, ListRequest, Page, Store};

/// The most paths that are looked up, after which a listing is cheaper.
const MAX_LOOKUPS: usize = 4096;
/// The files below a directory with the rules of what a search leaves out.
const RULE_FILES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// Looks up the `candidates` at and below `below`, with the files that decide what a search sees of them.
///
/// Those are the rules in each directory on the way, and files that share a path with such a directory and hide it. `None` where
/// that takes too many lookups, or one of them fails: a listing reports such a file as a problem.
pub(super) async fn lookup_candidates<S: Store>(
    space: &Space<S>,
    below: &VfsPath,
    candidates: &Candidates,
) -> Option<Directories> {
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
    let found: Vec<_> = files.into_iter().map(|path| lookup(space, path)).collect();
    let repositories: Vec<_> = directories.into_iter().map(|path| lookup_repository(space, path)).collect();
    let (mut entries, repositories) = futures::try_join!(
        stream::iter(found).buffered(space.fetches()).try_collect::<Vec<_>>(),
        stream::iter(repositories).buffered(space.fetches()).try_collect::<Vec<_>>()
    )
    .ok()?;
    entries.extend(repositories);
    let mut names = Directories::default();
    names.add_page(Page { entries: entries.into_iter().flatten().collect(), ..Page::default() });
    Some(names)
}

async fn lookup<S: Store>(space: &Space<S>, path: VfsPath) -> Result<Option<Entry>> {
    Ok(space.head(&path).await?.map(|stored| Entry { path, stored }))
}

/// Returns something in the `.git` of `directory`, which makes it a repository, where the rules in `.gitignore` apply.
async fn lookup_repository<S: Store>(space: &Space<S>, directory: VfsPath) -> Result<Option<Entry>> {
    let Ok(git) = directory.child(".git") else { return Ok(None) };
    if let Some(file) = lookup(space, git.clone()).await? {
        return Ok(Some(file));
    }
    let mut request = ListRequest::all(git).limit(1);
    loop {
        let page = space.page(&request).await?;
        match (page.entries.into_iter().next(), page.problems.into_iter().next(), page.next) {
            (Some(entry), _, _) => return Ok(Some(entry)),
            (None, Some(problem), _) => return Err(Error::new(problem.code, problem.message)),
            (None, None, Some(next)) => request = request.from(next),
            (None, None, None) => return Ok(None),
        }
    }
}

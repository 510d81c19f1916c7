//! Suggestions for misspelt names, by edit distance.

use std::cmp::Reverse;

use crate::backend::Backend;
use crate::context::OpContext;
use crate::path::VfsPath;
use crate::requests::LsRequest;

/// The maximum number of entries of a directory that are compared with a missing name.
const MAX_COMPARED: u64 = 1000;

/// The maximum length of a name that is compared, in bytes, since the work grows with the product of the lengths.
const MAX_LENGTH: usize = 255;

/// The maximum number of paths that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Returns the entries in the directory of `missing` whose names are most like its name, the most similar first, at most three.
///
/// # Behaviour
///
/// The directory is listed through `backend`, so that no suggestion is a path that a policy hides; at most 1,000 entries are
/// compared. There are no suggestions if the listing fails.
pub async fn similar_paths(backend: &dyn Backend, cx: &OpContext, missing: &VfsPath) -> Vec<VfsPath> {
    let (Some(directory), Some(name)) = (missing.parent(), missing.name()) else { return Vec::new() };
    let request = LsRequest::new(directory.clone()).limit(MAX_COMPARED);
    let Ok(listing) = backend.ls(cx, request).await else { return Vec::new() };
    let names = listing.entries.iter().filter_map(|entry| entry.path.name());
    similar(name, names, MAX_SUGGESTED).into_iter().filter_map(|name| directory.child(name).ok()).collect()
}

/// Returns those of `names` that are most like `written`, the most similar first, at most `max`.
///
/// # Behaviour
///
/// A name is similar if a third of the letters of the shorter one, and at least one, have to be inserted, removed, replaced or
/// swapped with their neighbour to make one of the other. Case does not count as a difference, except between names that are
/// equally similar. `written` itself is never returned, and no name of over 255 bytes is.
///
/// ```
/// use vfs_core::suggest::similar;
///
/// assert_eq!(similar("limti", ["limit", "offset"], 1), ["limit"]);
/// assert!(similar("colour", ["limit", "offset"], 1).is_empty());
/// ```
pub fn similar<'a>(written: &str, names: impl IntoIterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let lower = written.to_lowercase();
    let mut ranked: Vec<_> =
        names.into_iter().filter_map(|name| Some((distance(written, &lower, name)?, name))).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().map(|(_, name)| name).take(max).collect()
}

/// Returns the edit distance without case, the distance with case, and the length of the common prefix, reversed for sorting;
/// `None` if the names are not similar.
fn distance(written: &str, lower: &str, name: &str) -> Option<(usize, usize, Reverse<usize>)> {
    if written.len() > MAX_LENGTH || name.len() > MAX_LENGTH {
        return None;
    }
    let length = written.chars().count().min(name.chars().count());
    let max_distance = (length / 3).max(1);
    // The difference of the lengths is a lower bound of the distance and cheap to compute.
    if name == written || name.chars().count().abs_diff(written.chars().count()) > max_distance {
        return None;
    }
    let letters = strsim::damerau_levenshtein(lower, &name.to_lowercase());
    let common = written.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    (letters <= max_distance).then(|| (letters, strsim::damerau_levenshtein(written, name), Reverse(common)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_similarity() {
        let names = ["main.rs", "mail.rs", "lib.rs", "Main.rs", "m"];
        assert_eq!(similar("mian.rs", names, 3), ["main.rs", "Main.rs", "mail.rs"]);
        assert_eq!(similar("MAIN.rs", names, 2), ["Main.rs", "main.rs"]);
        assert_eq!(similar("main.rs", names, 1), ["Main.rs"]);
        assert!(similar("", names, 3) == ["m"] && similar("quite-another", names, 3).is_empty());
    }
}

//! Suggestions for misspelt names, by edit distance.

use std::cmp::Reverse;

/// Returns those of `names` that are most like `written`, the most similar first, at most `max`.
///
/// # Behaviour
///
/// A name is similar if a third of the letters of the shorter one, and at least one, have to be inserted, removed, replaced or
/// swapped with their neighbour to make one of the other. Case does not count as a difference, except between names that are
/// equally similar. `written` itself is never returned.
///
/// ```
/// use vfs_config::suggest::similar;
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

/// Returns `message`, an error of serde about an unknown field or variant, with the nearest of the names that are possible there;
/// or with all of them, those of `more` included, if none is near. Returns `None` for other errors.
///
/// ```
/// use vfs_config::suggest::reword;
///
/// let message = "unknown field `limti`, expected one of `path`, `limit`";
/// assert_eq!(reword(message, &[]).as_deref(), Some("unknown field `limti`; did you mean `limit`?"));
/// ```
pub fn reword(message: &str, more: &[&str]) -> Option<String> {
    let start = message.find("unknown field `").or_else(|| message.find("unknown variant `"))?;
    let (before, fault) = message.split_at(start);
    let (kind, rest) = fault.split_once('`')?;
    let (written, expected) = rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no "))?;
    let names: Vec<_> = more.iter().copied().chain(expected.split('`').skip(1).step_by(2)).collect();
    Some(match (similar(written, names.iter().copied(), 1).first(), &names[..]) {
        (Some(near), _) => format!("{before}{kind}`{written}`; did you mean `{near}`?"),
        (None, []) => return None,
        (None, [name]) => format!("{before}{kind}`{written}`, expected `{name}`"),
        (None, names) => format!("{before}{kind}`{written}`, expected one of `{}`", names.join("`, `")),
    })
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

    #[test]
    fn errors_of_serde_name_the_nearest_or_all() {
        for (message, more, expected) in [
            ("unknown field `x`, there are no fields", &["type"][..], Some("unknown field `x`, expected `type`")),
            ("unknown field `x`, there are no fields", &[], None),
            ("unknown field `tpe`, expected `root`", &["type"], Some("unknown field `tpe`; did you mean `type`?")),
            (
                "unknown variant `memroy`, expected `a` or `memory`",
                &[],
                Some("unknown variant `memroy`; did you mean `memory`?"),
            ),
            (
                "unknown field `colour`, expected `a` or `b`",
                &[],
                Some("unknown field `colour`, expected one of `a`, `b`"),
            ),
            (
                "unknown field `a`, expected `b`, expected `limit`",
                &[],
                Some("unknown field `a`, expected `b`, expected `limit`"),
            ),
            ("missing field `path`", &["path"], None),
        ] {
            assert_eq!(reword(message, more).as_deref(), expected, "{message}");
        }
    }
}

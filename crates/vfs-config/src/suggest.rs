//! Suggestions for misspelt names in errors of serde.

use vfs_core::suggest::similar;

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

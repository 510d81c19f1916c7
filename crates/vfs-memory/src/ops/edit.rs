//! Replacement of text in a file.

use std::sync::Arc;

use vfs_core::edit::ApplyMode;
use vfs_core::{EditRequest, EditResult, Error, edit};

use super::MutationPlan;
use crate::config::MutationContext;
use crate::file_map::FileMap;

pub(crate) fn edit(files: &FileMap, req: &EditRequest, rules: &MutationContext<'_>) -> MutationPlan<EditResult> {
    let path = &req.path;
    edit::check(req).map_err(|error| error.or_path(path))?;
    let file = files.find_file(path)?;
    if req.expected_version.as_ref().is_some_and(|expected| expected != file.version()) {
        return Err(Error::conflict(path, Some(file.version().clone())));
    }
    let edited = edit::apply(file.content(), &req.replacements, rules.config.max_file_size)
        .map_err(|error| error.or_path(path))?;
    let size = edited.content.len() as u64;
    rules.check_total(files, path, file.size(), size)?;

    let diff = req.wants_diff().then(|| edit::diff(path, file.content(), &edited.content));
    if req.mode == ApplyMode::DryRun {
        let result = EditResult::new(path.clone(), edited.occurrences, file.version().clone(), size);
        return Ok((Vec::new(), result.with_diff(diff)));
    }
    let changed = file.with_content(edited.content.into(), rules.now);
    let result = EditResult::new(path.clone(), edited.occurrences, changed.version().clone(), size).with_diff(diff);
    Ok((vec![(path.clone(), Some(Arc::new(changed)))], result))
}

#[cfg(test)]
mod tests {
    use vfs_core::ErrorKind;

    use super::*;
    use crate::config::MemoryConfig;
    use crate::ops::fixture::{self, path};

    #[test]
    fn an_edit_changes_the_file_and_returns_a_diff() {
        let files = fixture::map(&[("/f", "one\ntwo\n")]);
        let config = MemoryConfig::new();
        let request = EditRequest::new(path("/f"), "two", "2")
            .with_diff()
            .expected_version(fixture::file("one\ntwo\n").version().clone());
        let (change, result) = edit(&files, &request, &fixture::rules(&config)).expect("it can be edited");
        let edited = files.with(change);
        assert_eq!(fixture::contents(&edited), [("/f".into(), "one\n2\n".into())]);
        assert_eq!((result.occurrences, result.size), (1, 6));
        assert_eq!(&result.version, fixture::file("one\n2\n").version());
        assert!(result.diff.expect("a diff was requested").contains("-two\n+2\n"));
        let info = edited.get(&path("/f")).expect("it is there").info(path("/f"));
        assert_eq!(info.created_at, Some(fixture::CREATED_AT));
        assert!(info.modified_at > info.created_at);
    }

    #[test]
    fn a_dry_run_returns_the_future_size_and_the_current_version() {
        let files = fixture::map(&[("/f", "one\n")]);
        let config = MemoryConfig::new();
        let request = EditRequest::new(path("/f"), "one", "three").dry_run();
        let (change, result) = edit(&files, &request, &fixture::rules(&config)).expect("it could be edited");
        assert!(change.is_empty());
        assert_eq!((result.size, &result.version), (6, fixture::file("one\n").version()));
        assert!(result.diff.is_some());
    }

    #[test]
    fn refusals_name_the_path_and_arguments_come_first() {
        let files = fixture::map(&[("/f", "aa"), ("/d/x", "x")]);
        let config = MemoryConfig::new().max_file_size(6).max_total_size(6);
        let request = |to: &str, old: &str, new: &str| EditRequest::new(path(to), old, new);
        for (request, expected) in [
            (request("/missing", "", "x"), ErrorKind::InvalidArgument),
            (request("/missing", "x", "x"), ErrorKind::InvalidArgument),
            (request("/missing", "x", "y"), ErrorKind::NotFound),
            (request("/d", "x", "y"), ErrorKind::IsADirectory),
            (request("/", "x", "y"), ErrorKind::IsADirectory),
            (request("/f/x", "x", "y"), ErrorKind::NotADirectory),
            (request("/f", "a", "b"), ErrorKind::NotUnique),
            (request("/f", "b", "a"), ErrorKind::NoMatch),
            (request("/f", "aa", "b").and("c", "d"), ErrorKind::NoMatch),
            (request("/f", "aa", "b").expected_version("stale".into()), ErrorKind::Conflict),
            (request("/f", "a", "1234").replace_all(), ErrorKind::TooLarge),
            (request("/f", "aa", "123456"), ErrorKind::QuotaExceeded),
        ] {
            let error = edit(&files, &request, &fixture::rules(&config)).expect_err("it is refused");
            assert_eq!((error.kind(), error.path()), (expected, Some(request.path.as_str())), "{request:?}");
        }
    }
}

//! Laws of the reducer, on random updates.

use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;
use vfs_core::state::{FileData, FilesUpdate};
use vfs_memory::{FilesState, merge_updates};

use super::path;

fn file() -> impl Strategy<Value = FileData> {
    let content =
        prop_oneof![proptest::collection::vec(any::<u8>(), 0..8), "[a-c\n\r]{0,8}".prop_map(String::into_bytes),];
    (content, any::<bool>(), 0..1_000_000_000_i64).prop_map(|(content, lines, nanoseconds)| {
        let at = DateTime::UNIX_EPOCH + TimeDelta::nanoseconds(nanoseconds);
        if lines { FileData::lines(&content, at, at) } else { FileData::text(&content, at, at) }
    })
}

/// Updates over few paths, so that they meet often; some paths lie below others.
fn update() -> impl Strategy<Value = FilesUpdate> {
    let paths = prop::sample::select(vec!["/a", "/a/b", "/a/b/c", "/a-b", "/b", "/c"]).prop_map(path);
    proptest::collection::btree_map(paths, proptest::option::of(file()), 0..5)
}

fn merged(updates: &[&FilesUpdate]) -> FilesState {
    let mut state = FilesState::new();
    for update in updates {
        state.merge(FilesUpdate::clone(update)).expect("the files can be decoded");
    }
    state
}

/// The documents' `_file_data_reducer`, as it stands there.
fn documents_reducer(left: Option<FilesUpdate>, right: &FilesUpdate) -> FilesUpdate {
    let right = right.clone().into_iter();
    let Some(mut result) = left else { return right.filter(|(_, file)| file.is_some()).collect() };
    for (path, file) in right {
        match file {
            None => drop(result.remove(&path)),
            Some(file) => drop(result.insert(path, Some(file))),
        }
    }
    result
}

proptest! {
    #[test]
    fn merging_equals_the_documents_reducer(first in update(), second in update()) {
        let expected = documents_reducer(Some(documents_reducer(None, &first)), &second);
        let state = merged(&[&first, &second]);
        let files: FilesUpdate = state.iter().map(|(path, file)| (path.clone(), Some(file))).collect();
        prop_assert_eq!(bytes(&files), bytes(&expected));
    }

    #[test]
    fn merging_two_updates_equals_merging_their_union(start in update(), first in update(), second in update()) {
        let in_turn = merged(&[&start, &first, &second]);
        let at_once = merged(&[&start, &merge_updates(first, second)]);
        prop_assert_eq!(in_turn, at_once);
    }

    #[test]
    fn merging_updates_is_associative(a in update(), b in update(), c in update()) {
        let left = merge_updates(merge_updates(a.clone(), b.clone()), c.clone());
        prop_assert_eq!(left, merge_updates(a, merge_updates(b, c)));
    }

    #[test]
    fn an_empty_update_changes_nothing(a in update()) {
        prop_assert_eq!(&merge_updates(a.clone(), FilesUpdate::new()), &a);
        prop_assert_eq!(&merge_updates(FilesUpdate::new(), a.clone()), &a);
        prop_assert_eq!(merged(&[&a, &FilesUpdate::new()]), merged(&[&a]));
    }

    #[test]
    fn a_state_survives_its_json(a in update(), b in update()) {
        let state = merged(&[&a, &b]);
        let text = serde_json::to_string(&state).expect("it can be written");
        let read: FilesState = serde_json::from_str(&text).expect("it can be read");
        // Bytes that lines cannot hold come back in the form of a string, so contents are compared and not forms.
        prop_assert_eq!(contents(&read), contents(&state));
        let again = serde_json::to_string(&read).expect("it can be written");
        prop_assert_eq!(again, text);
    }
}

type Contents = Vec<(String, Option<(bytes::Bytes, DateTime<chrono::Utc>)>)>;

fn bytes(update: &FilesUpdate) -> Contents {
    update
        .iter()
        .map(|(path, file)| {
            let file = file.as_ref().map(|file| (file.to_bytes().expect("it can be decoded"), file.modified_at));
            (path.to_string(), file)
        })
        .collect()
}

fn contents(state: &FilesState) -> Contents {
    bytes(&state.iter().map(|(path, file)| (path.clone(), Some(file))).collect())
}

#[test]
fn an_update_that_cannot_be_decoded_changes_nothing() {
    let at = DateTime::UNIX_EPOCH;
    let mut state = FilesState::new();
    state.insert(path("/a"), FileData::text(b"a", at, at)).expect("a file");
    let before = state.clone();
    let mut broken = FileData::text(b"%", at, at);
    broken.encoding = Some("base64".into());
    for (wrong, file) in [("/z", broken), ("/", FileData::text(b"", at, at))] {
        let update = FilesUpdate::from([(path("/a"), None), (path(wrong), Some(file))]);
        let error = state.merge(update).expect_err("it cannot be merged");
        assert_eq!(error.path(), Some(wrong));
        assert_eq!(state, before);
    }
}

//! Tests of the order in which tasks are claimed and results are taken.

use vfs_core::VfsPath;
use vfs_core::search::MatchedFile;
use vfs_core::tree::Tree;

use super::*;
use crate::testing::TestTree;
use crate::walk::dir_reader::{DirReader, SharedWalkState};
use crate::walk::testing::{EVERYWHERE, OPTIONS, full_range, root};
use crate::walk::walk_findings::WalkFindings;

fn item(count: u64) -> Vec<SearchItem> {
    vec![SearchItem::File(MatchedFile::new(VfsPath::root(), Some(count)))]
}

fn counts(searched: u64) -> Vec<SearchItem> {
    vec![SearchItem::Counts(SearchCounts { searched, ..SearchCounts::default() })]
}

/// Takes the items of the first slots, as numbers: the count of each file, and 100 plus the number of searched files
/// for counts.
fn taken(queue: &mut OrderedTaskQueue) -> (QueueHeadState, Vec<u64>) {
    let mut ready = ReceivedItemQueue::default();
    let head = queue.take(&mut ready);
    let count = |item| match item {
        SearchItem::File(file) => file.count.unwrap_or_default(),
        SearchItem::Counts(counts) => 100 + counts.searched,
        _ => 0,
    };
    (head, std::iter::from_fn(|| ready.pop()).map(count).collect())
}

fn new_tree<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Arc<dyn Tree> {
    Arc::new(TestTree::new(files))
}

/// Returns a queue whose start task is complete, with the root of `tree` as pending work.
fn started(tree: &Arc<dyn Tree>, limits: RunAheadLimits) -> OrderedTaskQueue {
    let mut queue = OrderedTaskQueue::new(limits);
    let start = queue.claim().expect("the start");
    assert!(matches!(start.kind, TaskKind::Start));
    assert!(!queue.has_next());
    queue.push(root(tree));
    queue.finish(&start.key);
    queue
}

fn keys(queue: &mut OrderedTaskQueue) -> Vec<PathKey> {
    std::iter::from_fn(|| queue.claim()).map(|claim| claim.key).collect()
}

const WIDE: RunAheadLimits = RunAheadLimits { window: 100, budget: 100, head_budget: 10, max_entries: u64::MAX };

#[test]
fn claims_start_with_the_first_path_and_grow() {
    let tree = new_tree([("/a/f", ""), ("/a.b", ""), ("/a0", ""), ("/b", ""), ("/c", "")]);
    let mut queue = started(&tree, WIDE);
    let keys = keys(&mut queue);
    assert_eq!(keys.iter().map(|key| &**key).collect::<Vec<_>>(), ["/a.b", "/a/", "/b"]);
    assert!(keys.is_sorted() && queue.is_out_of_work() && !queue.is_ready());
}

#[test]
fn a_directory_that_was_listed_comes_before_what_follows_it() {
    let tree = new_tree([("/a/f", ""), ("/b", "")]);
    let mut queue = started(&tree, WIDE);
    let Some(Task { key: a, kind: TaskKind::Walk(subtree) }) = queue.claim() else { panic!("/a/") };
    let b = queue.claim().expect("/b").key;
    assert!(queue.add(&b, &mut item(2), 1));
    queue.finish(&b);
    assert_eq!(taken(&mut queue), (QueueHeadState::Waiting, vec![]));
    let reader =
        DirReader { tree: &tree, control: EVERYWHERE, options: OPTIONS, state: &SharedWalkState::new(None, u64::MAX) };
    let (entries, step) = subtree.work.next().expect("/a/");
    let below = reader.descend(&entries, step, &mut WalkFindings::default()).expect("it goes on").expect("a level");
    queue.push(full_range(below));
    queue.finish(&a);
    assert_eq!(taken(&mut queue), (QueueHeadState::Waiting, vec![]));
    let f = queue.claim().expect("/a/f").key;
    assert_eq!(&*f, "/a/f");
    assert!(queue.add(&f, &mut item(1), 1));
    queue.finish(&f);
    assert_eq!(taken(&mut queue), (QueueHeadState::Items, vec![1, 2]));
    assert_eq!(taken(&mut queue), (QueueHeadState::Finished, vec![]));
}

#[test]
fn slots_without_visible_items_are_skipped_without_the_consumer() {
    let tree = new_tree([("/a", ""), ("/b", ""), ("/c", ""), ("/d", "")]);
    let mut queue = started(&tree, RunAheadLimits { window: 2, ..WIDE });
    for searched in [1, 2] {
        let key = queue.claim().expect("there is room").key;
        assert!(queue.add(&key, &mut counts(searched), 1));
        queue.finish(&key);
        assert_eq!(taken(&mut queue), (QueueHeadState::Waiting, vec![]));
    }
    let key = queue.claim().expect("there is room").key;
    assert!(queue.add(&key, &mut item(4), 1));
    assert_eq!(taken(&mut queue), (QueueHeadState::Items, vec![103, 4]));
    assert!(queue.add(&key, &mut counts(1), 1));
    queue.finish(&key);
    assert_eq!(taken(&mut queue), (QueueHeadState::Items, vec![101]));
    assert_eq!(taken(&mut queue), (QueueHeadState::Finished, vec![]));
}

#[test]
fn the_first_slot_takes_more_when_the_others_may_not() {
    let paths: Vec<_> = (0..9).map(|n| format!("/f{n}")).collect();
    let tree = new_tree(paths.iter().map(|path| (path.as_str(), "")));
    let mut queue = started(&tree, RunAheadLimits { window: 4, budget: 20, head_budget: 10, max_entries: u64::MAX });
    let (a, b) = (queue.claim().expect("a slot").key, queue.claim().expect("a slot").key);
    assert!(queue.add(&b, &mut item(3), 20));
    assert!(!queue.has_next());
    assert!(queue.admits(&a) && !queue.admits(&b));
    assert!(queue.add(&a, &mut item(4), 10));
    assert!(!queue.admits(&a));
    assert_eq!(taken(&mut queue), (QueueHeadState::Items, vec![4]));
    assert!(queue.admits(&a) && !queue.has_next());
    queue.finish(&a);
    assert_eq!(taken(&mut queue), (QueueHeadState::Items, vec![3]));
    assert!(queue.admits(&b) && queue.has_next());
}

#[test]
fn a_parked_task_continues_when_there_is_room() {
    let tree = new_tree([("/a", ""), ("/b", "")]);
    let mut queue = started(&tree, RunAheadLimits { window: 4, budget: 20, head_budget: 10, max_entries: u64::MAX });
    let a = queue.claim().expect("/a").key;
    let Task { key: b, kind } = queue.claim().expect("/b");
    assert!(queue.add(&b, &mut item(3), 20));
    assert!(queue.park(&b, kind).is_none());
    assert!(!queue.has_next() && !queue.is_out_of_work());
    queue.finish(&a);
    assert_eq!(taken(&mut queue), (QueueHeadState::Items, vec![3]));
    let again = queue.claim().expect("it is invited");
    assert_eq!(again.key, b);
    queue.finish(&b);
    assert_eq!(taken(&mut queue), (QueueHeadState::Finished, vec![]));
}

#[test]
fn a_long_list_is_moved_and_a_short_one_is_copied() {
    let tree = new_tree([("/a", "")]);
    let mut queue = started(&tree, WIDE);
    let key = queue.claim().expect("/a").key;
    let mut list = Vec::with_capacity(500);
    list.extend((0..3).flat_map(item));
    assert!(queue.add(&key, &mut list, 3));
    assert_eq!((list.len(), list.capacity()), (0, 500));
    list.extend((3..400).flat_map(item));
    assert!(queue.add(&key, &mut list, 397));
    assert_eq!((list.len(), list.capacity()), (0, 0));
    let mut ready = ReceivedItemQueue::default();
    assert_eq!(queue.take(&mut ready), QueueHeadState::Items);
    assert_eq!(std::iter::from_fn(|| ready.pop()).count(), 400);
}

#[test]
fn complete_slots_that_show_nothing_take_little_of_the_window() {
    let paths: Vec<_> = (0..2000).map(|n| format!("/d{n:04}/f")).collect();
    let tree = new_tree(paths.iter().map(|path| (path.as_str(), "")));
    let mut queue = started(&tree, RunAheadLimits { window: 2, ..WIDE });
    queue.claim().expect("the first is not complete for long");
    let mut done = 0;
    while let Some(claim) = queue.claim() {
        queue.finish(&claim.key);
        done += 1;
    }
    assert_eq!(done, 2 * MAX_QUIET_SLOTS_PER_OPEN);
}

//! What may be claimed when, and in what order results are taken.

use vfs_core::{FileCount, VfsPath};

use super::*;
use crate::testing::TestTree;
use crate::walk::dir_entries::Findings;
use crate::walk::dir_reader::{Opener, WalkState};
use crate::walk::testing::{EVERYWHERE, OPTIONS, root, whole};

fn item(count: u64) -> Vec<Item> {
    vec![Item::File(FileCount::new(VfsPath::root(), Some(count)))]
}

fn tally(searched: u64) -> Vec<Item> {
    vec![Item::Tally(Tally { searched, ..Tally::default() })]
}

/// What was taken: the count of each file, and 100 and more for what was searched.
fn taken(frontier: &mut Frontier<String>) -> (Head, Vec<u64>) {
    let mut ready = Lists::default();
    let head = frontier.take(&mut ready);
    let count = |item| match item {
        Item::File(file) => file.count.unwrap_or_default(),
        Item::Tally(tally) => 100 + tally.searched,
        _ => 0,
    };
    (head, std::iter::from_fn(|| ready.pop()).map(count).collect())
}

/// A frontier whose start was done: the root of `tree` is to be visited.
fn started(tree: &TestTree, tuning: Tuning) -> Frontier<String> {
    let mut frontier = Frontier::new(tuning);
    let start = frontier.claim().expect("the start");
    assert!(matches!(start.job, Job::Start));
    assert!(!frontier.has_next());
    frontier.push(root(tree));
    frontier.finish(&start.key);
    frontier
}

fn keys(frontier: &mut Frontier<String>) -> Vec<Key> {
    std::iter::from_fn(|| frontier.claim()).map(|claim| claim.key).collect()
}

const WIDE: Tuning = Tuning { window: 100, budget: 100, head_budget: 10, max_entries: u64::MAX };

#[test]
fn what_is_claimed_is_first_in_the_order_of_paths_and_ever_more_at_once() {
    let tree = TestTree::new([("/a/f", ""), ("/a.b", ""), ("/a0", ""), ("/b", ""), ("/c", "")]);
    let mut frontier = started(&tree, WIDE);
    let keys = keys(&mut frontier);
    assert_eq!(keys.iter().map(|key| &**key).collect::<Vec<_>>(), ["/a.b", "/a/", "/b"]);
    assert!(keys.is_sorted() && frontier.is_out_of_work() && !frontier.is_ready());
}

#[test]
fn a_directory_that_was_listed_comes_before_what_follows_it() {
    let tree = TestTree::new([("/a/f", ""), ("/b", "")]);
    let mut frontier = started(&tree, WIDE);
    let Some(Claim { key: a, job: Job::Walk(stretch) }) = frontier.claim() else { panic!("/a/") };
    let b = frontier.claim().expect("/b").key;
    assert!(frontier.add(&b, &mut item(2), 1));
    frontier.finish(&b);
    assert_eq!(taken(&mut frontier), (Head::Waiting, vec![]));
    let opener = Opener { tree: &tree, guide: &EVERYWHERE, options: OPTIONS, state: &WalkState::new(None, u64::MAX) };
    let (level, step) = stretch.what.next().expect("/a/");
    let below = opener.descend(&level, step, &mut Findings::default()).expect("it goes on").expect("a level");
    frontier.push(whole(below));
    frontier.finish(&a);
    assert_eq!(taken(&mut frontier), (Head::Waiting, vec![]));
    let f = frontier.claim().expect("/a/f").key;
    assert_eq!(&*f, "/a/f");
    assert!(frontier.add(&f, &mut item(1), 1));
    frontier.finish(&f);
    assert_eq!(taken(&mut frontier), (Head::Items, vec![1, 2]));
    assert_eq!(taken(&mut frontier), (Head::Finished, vec![]));
}

#[test]
fn what_shows_nothing_is_passed_without_the_consumer() {
    let tree = TestTree::new([("/a", ""), ("/b", ""), ("/c", ""), ("/d", "")]);
    let mut frontier = started(&tree, Tuning { window: 2, ..WIDE });
    for searched in [1, 2] {
        let key = frontier.claim().expect("there is room").key;
        assert!(frontier.add(&key, &mut tally(searched), 1));
        frontier.finish(&key);
        assert_eq!(taken(&mut frontier), (Head::Waiting, vec![]));
    }
    let key = frontier.claim().expect("there is room").key;
    assert!(frontier.add(&key, &mut item(4), 1));
    assert_eq!(taken(&mut frontier), (Head::Items, vec![103, 4]));
    assert!(frontier.add(&key, &mut tally(1), 1));
    frontier.finish(&key);
    assert_eq!(taken(&mut frontier), (Head::Items, vec![101]));
    assert_eq!(taken(&mut frontier), (Head::Finished, vec![]));
}

#[test]
fn the_first_slot_takes_more_when_the_others_may_not() {
    let paths: Vec<_> = (0..9).map(|n| format!("/f{n}")).collect();
    let tree = TestTree::new(paths.iter().map(|path| (path.as_str(), "")));
    let mut frontier = started(&tree, Tuning { window: 4, budget: 20, head_budget: 10, max_entries: u64::MAX });
    let (a, b) = (frontier.claim().expect("a slot").key, frontier.claim().expect("a slot").key);
    assert!(frontier.add(&b, &mut item(3), 20));
    assert!(!frontier.has_next());
    assert!(frontier.admits(&a) && !frontier.admits(&b));
    assert!(frontier.add(&a, &mut item(4), 10));
    assert!(!frontier.admits(&a));
    assert_eq!(taken(&mut frontier), (Head::Items, vec![4]));
    assert!(frontier.admits(&a) && !frontier.has_next());
    frontier.finish(&a);
    assert_eq!(taken(&mut frontier), (Head::Items, vec![3]));
    assert!(frontier.admits(&b) && frontier.has_next());
}

#[test]
fn what_was_parked_goes_on_when_there_is_room() {
    let tree = TestTree::new([("/a", ""), ("/b", "")]);
    let mut frontier = started(&tree, Tuning { window: 4, budget: 20, head_budget: 10, max_entries: u64::MAX });
    let a = frontier.claim().expect("/a").key;
    let Claim { key: b, job } = frontier.claim().expect("/b");
    assert!(frontier.add(&b, &mut item(3), 20));
    assert!(frontier.park(&b, job).is_none());
    assert!(!frontier.has_next() && !frontier.is_out_of_work());
    frontier.finish(&a);
    assert_eq!(taken(&mut frontier), (Head::Items, vec![3]));
    let again = frontier.claim().expect("it is invited");
    assert_eq!(again.key, b);
    frontier.finish(&b);
    assert_eq!(taken(&mut frontier), (Head::Finished, vec![]));
}

#[test]
fn a_long_list_goes_to_the_consumer_and_comes_back_and_a_few_items_leave_theirs() {
    let tree = TestTree::new([("/a", "")]);
    let mut frontier = started(&tree, WIDE);
    let key = frontier.claim().expect("/a").key;
    let mut list = Vec::with_capacity(500);
    list.extend((0..3).flat_map(item));
    assert!(frontier.add(&key, &mut list, 3));
    assert_eq!((list.len(), list.capacity()), (0, 500));
    list.extend((3..400).flat_map(item));
    assert!(frontier.add(&key, &mut list, 397));
    assert_eq!((list.len(), list.capacity()), (0, 0));

    let mut ready = Lists::default();
    assert_eq!(frontier.take(&mut ready), Head::Items);
    assert_eq!(std::iter::from_fn(|| ready.pop()).count(), 400);
    assert_eq!(frontier.spare().capacity(), 0);
    // It is back when the next items are asked for.
    assert!(frontier.add(&key, &mut item(400), 1));
    assert_eq!(frontier.take(&mut ready), Head::Items);
    assert_eq!(std::iter::from_fn(|| ready.pop()).count(), 1);
    let list = frontier.spare();
    assert_eq!((list.len(), list.capacity()), (0, 500));
    frontier.keep(list);
    assert_eq!(frontier.spare().capacity(), 500);
}

#[test]
fn complete_slots_that_show_nothing_take_little_of_the_window() {
    let paths: Vec<_> = (0..2000).map(|n| format!("/d{n:04}/f")).collect();
    let tree = TestTree::new(paths.iter().map(|path| (path.as_str(), "")));
    let mut frontier = started(&tree, Tuning { window: 2, ..WIDE });
    frontier.claim().expect("the first is not complete for long");
    let mut done = 0;
    while let Some(claim) = frontier.claim() {
        frontier.finish(&claim.key);
        done += 1;
    }
    assert_eq!(done, 2 * QUIET_FOR_ONE);
}

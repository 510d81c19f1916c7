//! Random operations, compared with the store in memory.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;
use crate::memory::MemoryStore;
use crate::store::{ListDepth, PageToken};

const PATHS: [&str; 12] = [
    "/a",
    "/a-b",
    "/a/b",
    "/a/b/c",
    "/a/b/d",
    "/a0",
    "/a-b/c",
    "/b",
    "/b/c/d/e",
    "/ü",
    "/ü/\u{10ffff}",
    "/a/\u{10ffff}/x",
];

#[derive(Debug, Clone)]
enum RandomOperation {
    Put(usize, usize, ExpectedState),
    Delete(usize, ExpectedState),
    Batch(Vec<(usize, ExpectedState)>, Option<usize>, Vec<RandomWrite>),
    Get(usize, Option<Range<u64>>),
    List(usize, ListDepth, usize),
    Since(u64, usize),
    Search(usize, usize, vfs_core::CaseMode),
}

#[derive(Debug, Clone)]
enum RandomWrite {
    Put(usize, usize),
    Delete(usize),
    Move(usize, usize),
    Copy(usize, usize),
}

#[derive(Debug, Clone)]
enum ExpectedState {
    Any,
    Absent,
    Content(usize),
}

const CONTENTS: [&[u8]; 8] = [
    b"",
    b"x",
    b"Hello world",
    b"hello WORLD \xe2\x84\xaaelvin",
    "größe Straße".as_bytes(),
    b"a\0b",
    b"\xff\xfeh\0",
    b"needle",
];
const NEEDLES: [&str; 8] = ["hello", "WORLD", "kelvin", "größe", "STRASSE", "ld", "needle", "lo wor"];

fn content(number: usize) -> Bytes {
    // The last content has several pieces, and is so large that all waiting files are indexed after it.
    CONTENTS.get(number).map_or_else(|| Bytes::from(vec![b'y'; (1 << 20) + 5]), |content| Bytes::from_static(content))
}

fn expected(state: &ExpectedState) -> Precondition {
    match state {
        ExpectedState::Any => Precondition::Any,
        ExpectedState::Absent => Precondition::Absent,
        ExpectedState::Content(number) => Precondition::Version(crate::store::version_of(&content(*number))),
    }
}

fn write(part: &RandomWrite, at: DateTime<Utc>) -> Write {
    let name = |number: &usize| path(PATHS[*number]);
    match part {
        RandomWrite::Put(to, number) => Write::Put(name(to), NewValue::new(content(*number), at)),
        RandomWrite::Delete(from) => Write::Delete(name(from)),
        RandomWrite::Move(from, to) => Write::Move { from: name(from), to: name(to) },
        RandomWrite::Copy(from, to) => Write::Copy { from: name(from), to: name(to), at },
    }
}

fn steps() -> impl Strategy<Value = Vec<RandomOperation>> {
    use vfs_core::CaseMode::{Insensitive, Sensitive, Smart};
    let at = || 0..PATHS.len();
    let number = || prop_oneof![9 => 0..CONTENTS.len(), 1 => Just(CONTENTS.len())];
    let state = || prop_oneof![2 => Just(ExpectedState::Any), 1 => Just(ExpectedState::Absent), 2 => number().prop_map(ExpectedState::Content)];
    let part = prop_oneof![
        (at(), number()).prop_map(|(to, number)| RandomWrite::Put(to, number)),
        at().prop_map(RandomWrite::Delete),
        (at(), at()).prop_map(|(from, to)| RandomWrite::Move(from, to)),
        (at(), at()).prop_map(|(from, to)| RandomWrite::Copy(from, to)),
    ];
    let batch = (
        prop::collection::vec((at(), state()), 0..2),
        prop::option::weighted(0.2, at()),
        prop::collection::vec(part, 0..5),
    );
    let range = prop::option::of((0..20_u64, 0..(2_u64 << 20)).prop_map(|(start, length)| start..start + length));
    let depth = prop_oneof![Just(ListDepth::Level), Just(ListDepth::All)];
    let case = prop_oneof![Just(Sensitive), Just(Insensitive), Just(Smart)];
    let step = prop_oneof![
        6 => (at(), number(), state()).prop_map(|(to, number, state)| RandomOperation::Put(to, number, state)),
        2 => (at(), state()).prop_map(|(from, state)| RandomOperation::Delete(from, state)),
        4 => batch.prop_map(|(conditions, below, parts)| RandomOperation::Batch(conditions, below, parts)),
        2 => (at(), range).prop_map(|(from, range)| RandomOperation::Get(from, range)),
        3 => (0..PATHS.len() + 1, depth, 1..6_usize).prop_map(|(below, depth, limit)| RandomOperation::List(below, depth, limit)),
        1 => (0..80_u64, 1..30_usize).prop_map(|(seen, limit)| RandomOperation::Since(seen, limit)),
        2 => (0..PATHS.len() + 1, 0..NEEDLES.len(), case).prop_map(|(below, needle, case)| RandomOperation::Search(below, needle, case)),
    ];
    prop::collection::vec(step, 1..40)
}

fn below(number: usize) -> VfsPath {
    PATHS.get(number).map_or_else(VfsPath::root, |text| path(text))
}

async fn all_pages(store: &dyn Store, request: &ListRequest) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    let mut from: Option<PageToken> = None;
    loop {
        let request = ListRequest { from, ..request.clone() };
        let mut page = store.list(&space("org/user"), &request).await.expect("it lists");
        from = page.next.take();
        pages.push(page);
        if from.is_none() {
            return pages;
        }
    }
}

async fn run(store: &SqliteStore, steps: &[RandomOperation]) -> Result<(), TestCaseError> {
    let model = MemoryStore::new();
    let namespace = space("org/user");
    for (second, step) in (1_700_000_000..).zip(steps) {
        let at = time(second);
        match step {
            RandomOperation::Put(to, number, state) => {
                let value = NewValue::new(content(*number), at);
                let found = store.put(&key(PATHS[*to]), value.clone(), &expected(state)).await.expect("it answers");
                let modelled = model.put(&key(PATHS[*to]), value, &expected(state)).await.expect("it answers");
                prop_assert_eq!(found, modelled);
            }
            RandomOperation::Delete(from, state) => {
                let found = store.delete(&key(PATHS[*from]), &expected(state)).await.expect("it answers");
                prop_assert_eq!(found, model.delete(&key(PATHS[*from]), &expected(state)).await.expect("it answers"));
            }
            RandomOperation::Batch(conditions, below, parts) => {
                let mut all: Vec<_> =
                    conditions.iter().map(|(at, state)| Condition::At(path(PATHS[*at]), expected(state))).collect();
                all.extend(below.map(|at| Condition::NothingBelow(path(PATHS[at]))));
                let writes: Vec<_> = parts.iter().map(|part| write(part, at)).collect();
                let found = store.batch(&namespace, &all, writes.clone()).await.expect("it answers");
                prop_assert_eq!(found, model.batch(&namespace, &all, writes).await.expect("it answers"));
            }
            RandomOperation::Get(from, range) => {
                let found = store.get(&key(PATHS[*from]), range.clone()).await.expect("it answers");
                prop_assert_eq!(found, model.get(&key(PATHS[*from]), range.clone()).await.expect("it answers"));
                let found = store.head(&key(PATHS[*from])).await.expect("it answers");
                prop_assert_eq!(found, model.head(&key(PATHS[*from])).await.expect("it answers"));
            }
            RandomOperation::List(at, depth, limit) => {
                let request = ListRequest { depth: *depth, ..ListRequest::all(below(*at)).limit(*limit) };
                prop_assert_eq!(all_pages(store, &request).await, all_pages(&model, &request).await);
            }
            RandomOperation::Since(seen, limit) => {
                let found = store.since(&namespace, Sequence(*seen), *limit).await.expect("it answers");
                prop_assert_eq!(found, model.since(&namespace, Sequence(*seen), *limit).await.expect("it answers"));
            }
            RandomOperation::Search(at, needle, case) => {
                let query = TextQuery::new(vec![NEEDLES[*needle].to_owned()], *case);
                let found = store.candidates(&namespace, &below(*at), &query).await.expect("it answers");
                let matches = model.candidates(&namespace, &below(*at), &query).await.expect("it answers");
                if let (Some(found), Some(matches)) = (found, matches) {
                    prop_assert!(found.is_superset(&matches), "{query:?}: {found:?} misses some of {matches:?}");
                }
            }
        }
    }
    prop_assert_eq!(store.namespaces().await.expect("it lists"), model.namespaces().await.expect("it lists"));
    prop_assert_eq!(store.check().await.expect("it checks").problems, []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_have_the_results_of_the_store_in_memory(steps in steps(), is_file in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let directory = directory();
            let store = if is_file { open(&directory).await } else { memory().await };
            run(&store, &steps).await
        })?;
    }
}

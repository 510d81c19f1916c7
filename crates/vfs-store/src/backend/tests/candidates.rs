//! Searches with the index of a store, which return the same as those without one.

use std::sync::Arc;

use futures::StreamExt as _;
use vfs_composite::CompositeBackend;
use vfs_core::search::BinaryMode;
use vfs_core::tree::{OpenTreeRequest, TreeUse};
use vfs_core::{
    Backend, BackendExt, CaseMode, ErrorKind, FileUploadRequest, GrepOutput, GrepRequest, GrepResult, Layer as _,
    Result, TreeProvider as _, WriteMode, WriteRequest,
};
use vfs_layers::Scoped;
use vfs_policy::{Policy, RuleSet};
use vfs_versions::OverlayBackend;

use super::{Probe, cx, path, probed};
use crate::{MemoryStore, Namespace, Search as _, StoreBackend, StoreConfig, TextQuery};

fn corpus() -> Vec<FileUploadRequest> {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a needle\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let mut files = vec![
        FileUploadRequest::new(path("/text"), "one needle\nand more\n"),
        FileUploadRequest::new(path("/upper"), "one NEEDLE\n"),
        FileUploadRequest::new(path("/none"), "nothing\n"),
        FileUploadRequest::new(path("/empty"), ""),
        FileUploadRequest::new(path("/binary-none"), &b"a\0b"[..]),
        FileUploadRequest::new(path("/binary-needle"), &b"needle\0"[..]),
        FileUploadRequest::new(path("/utf-16"), utf16),
        FileUploadRequest::new(path("/latin"), &b"gr\xfc\xdfe needle\n"[..]),
        FileUploadRequest::new(path("/latin-none"), &b"gr\xfc\xdfe\n"[..]),
        FileUploadRequest::new(path("/crlf"), "first\r\nsecond\r\n"),
        FileUploadRequest::new(path("/.hidden/f"), "needle\n"),
        FileUploadRequest::new(path("/kelvin"), "nee\u{212a}dle mas\u{17f}e\n"),
        FileUploadRequest::new(path("/r/.gitignore"), "ignored\n# nothing\n"),
        FileUploadRequest::new(path("/r/ignored"), "needle\n"),
        FileUploadRequest::new(path("/r/.git/info/exclude"), "excluded\n"),
        FileUploadRequest::new(path("/r/.git/HEAD"), "x\n"),
        FileUploadRequest::new(path("/r/excluded"), "needle\n"),
        FileUploadRequest::new(path("/r/visible"), "needle\n"),
    ];
    files.extend((0..30).map(|n| FileUploadRequest::new(path(&format!("/many/{n}")), format!("file {n}\n"))));
    files
}

/// Files that are larger than a block, and than the part that is checked for a NUL.
fn large_corpus() -> Vec<FileUploadRequest> {
    let late_nul = [vec![b'x'; 1 << 20], b"\nneedle\0\n".to_vec()].concat();
    vec![
        FileUploadRequest::new(path("/large"), format!("{}needle\n", "x\n".repeat(9 << 18))),
        FileUploadRequest::new(path("/large-none"), "y\n".repeat(9 << 18)),
        FileUploadRequest::new(path("/late-nul"), late_nul),
    ]
}

fn requests() -> Vec<GrepRequest> {
    let literal = GrepRequest::literal;
    let patterns = [
        literal("needle"),
        literal("nothing anywhere"),
        literal("ne"),
        literal("first\nsecond"),
        GrepRequest::regex("first$\\nsecond").multiline(),
        GrepRequest::regex("first$\nsecond").multiline(),
        GrepRequest::regex("^first$(\\s+)sec").multiline(),
        literal("needle").case(CaseMode::Insensitive),
        literal("needle").case(CaseMode::Smart),
        literal("Needle").case(CaseMode::Smart),
        literal("neekdle").case(CaseMode::Insensitive),
        literal("masse").case(CaseMode::Insensitive),
        literal("mass").case(CaseMode::Insensitive),
        literal("needle").whole_word(),
        literal("needle").invert(),
        GrepRequest::regex(r"n\w+dle"),
        GrepRequest::regex(r"(?i)NEEDLE$"),
        GrepRequest::regex("first|file 2\\d"),
        GrepRequest::regex("x{20}"),
        GrepRequest::regex("[a-z]+"),
        GrepRequest::regex("("),
        literal(""),
    ];
    let mut all = Vec::new();
    for pattern in patterns {
        all.push(pattern.clone());
        all.push(pattern.clone().binary(BinaryMode::Text));
        all.push(pattern.clone().output(GrepOutput::Counts).hidden().no_ignore());
        all.push(pattern.clone().max_file_size(15).limit(4));
        all.push(pattern.clone().path(path("/binary-none")));
        all.push(pattern.clone().path(path("/none")));
        all.push(pattern.path(path("/r")).glob("*e*"));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_does_not_depend_on_the_index_of_the_store() {
    let literal = || GrepRequest::literal("needle");
    let of_large = vec![literal(), literal().max_file_size(3 << 20), GrepRequest::regex(r"n\w{2,4}dle")];
    for (corpus, requests) in [(corpus(), requests()), (large_corpus(), of_large)] {
        let indexed = StoreBackend::new(MemoryStore::new());
        let unindexed = StoreBackend::new(MemoryStore::single_valued());
        for backend in [&indexed, &unindexed] {
            let responses = backend.upload_files(&cx(), corpus.clone()).await;
            assert!(responses.iter().all(|response| response.cause.is_none()), "{responses:?}");
        }
        for request in requests {
            let found = indexed.grep(&cx(), request.clone()).await;
            assert_eq!(found, unindexed.grep(&cx(), request.clone()).await, "{request:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_of_too_many_names_finds_the_same_without_listing_them() {
    let store = MemoryStore::new();
    let unindexed = StoreBackend::new(MemoryStore::single_valued());
    let probe = Arc::new(Probe::new(store.clone()));
    let large = StoreBackend::with_config(Arc::clone(&probe), StoreConfig::new().index_entries(5));
    let mut corpus = corpus();
    corpus.push(FileUploadRequest::new(path("/deep/er/.ignore"), "left-out\n"));
    corpus.push(FileUploadRequest::new(path("/deep/er/and/left-out"), "needle\n"));
    corpus.push(FileUploadRequest::new(path("/deep/er/and/found"), "needle\n"));
    corpus.extend((0..200).map(|n| FileUploadRequest::new(path(&format!("/wide/{n}/f")), "nothing\n")));
    for responses in [unindexed.upload_files(&cx(), corpus.clone()).await, large.upload_files(&cx(), corpus).await] {
        assert!(responses.iter().all(|response| response.cause.is_none()), "{responses:?}");
    }
    for request in requests() {
        // Files that cannot match are neither reported nor counted.
        let rest = |result: Result<GrepResult>| {
            result.map(|GrepResult { matches, files, truncated, problems, .. }| (matches, files, truncated, problems))
        };
        let found = rest(large.grep(&cx(), request.clone()).await);
        assert_eq!(found, rest(unindexed.grep(&cx(), request.clone()).await), "{request:?}");
    }
    large.grep_text("needle").await.expect("a search");
    probe.take_all();
    let found = large.grep(&cx(), GrepRequest::literal("needle")).await.expect("a search");
    assert!(found.files_searched < 20, "{} of more than 200", found.files_searched);
    // A directory with few files is searched in full, and all of its files count.
    let few = || GrepRequest::literal("needle").path(path("/deep"));
    let found = large.grep(&cx(), few()).await.expect("a search");
    assert_eq!(found, unindexed.grep(&cx(), few()).await.expect("a search"));
    large.grep_text("needle").await.expect("a search");
    let listed = probe.take("list level");
    assert!(listed < 20, "{listed} of the directories with and without a match");
    // A tree that is merged with others shows all names, as its ignore files apply to the other trees too.
    let outer =
        CompositeBackend::new(Arc::new(large)).with_mount("/logs", Arc::new(StoreBackend::new(MemoryStore::new())));
    let outer = outer.expect("nothing is there");
    outer.write_text("/logs/new", "a rarity\n").await.expect("it is new");
    outer.write_text("/.ignore", "/logs/\n").await.expect("it is new");
    assert_eq!(outer.grep_text("rarity").await.expect("a search"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_of_a_directory_alone_learn_that_it_has_too_many_names() {
    let probe = Arc::new(Probe::new(MemoryStore::new()));
    let files = StoreBackend::with_config(Arc::clone(&probe), StoreConfig::new().index_entries(5));
    let upload = (0..50)
        .map(|n| FileUploadRequest::new(path(&format!("/wide/{n}/f")), if n == 7 { "needle\n" } else { "nothing\n" }));
    let responses = files.upload_files(&cx(), upload.collect()).await;
    assert!(responses.iter().all(|response| response.cause.is_none()), "{responses:?}");
    let search = async || files.grep(&cx(), GrepRequest::literal("needle").path(path("/wide"))).await;
    let first = search().await.expect("a search");
    assert!(probe.take_all().contains_key("list all"));
    let second = search().await.expect("a search");
    assert_eq!((first.matches.len(), first.matches), (1, second.matches));
    let (all, level) = (probe.take("list all"), probe.take("list level"));
    assert!(all + level < 10, "{all} and {level} listings, of the way to the one file and of no other directory");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_candidates_are_fetched_and_only_once() {
    let (files, probe) = probed(MemoryStore::new());
    for n in 0..100 {
        let text = if n % 25 == 0 { "a rare needle\n" } else { "plain\n" };
        files.create_text(&format!("/d{}/{n}", n % 7), text).await.expect("it is new");
    }
    probe.take_all();
    let found = files.grep(&cx(), GrepRequest::literal("rare needle")).await.expect("a search");
    assert_eq!((found.matches.len(), found.files_searched), (4, 100));
    assert_eq!((probe.take("get many"), probe.take("get")), (1, 0), "all in one request");
    assert_eq!(files.grep_text("rare needle").await.expect("a search").len(), 4);
    assert_eq!((probe.take("get many"), probe.take("get")), (0, 0), "contents are cached");
    let edited = WriteRequest::new(path("/d0/0"), "another rare needle\nrare needle\n").mode(WriteMode::Overwrite);
    files.write(&cx(), edited).await.expect("it is written");
    probe.take_all();
    assert_eq!(files.grep_text("rare needle").await.expect("a search").len(), 5);
    assert_eq!((probe.take("get many"), probe.take("get")), (0, 1), "the changed file is fetched again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_temporary_failure_of_the_index_does_not_fail_a_search() {
    let (files, probe) = probed(MemoryStore::new());
    for n in 0..10 {
        files.create_text(&format!("/{n}"), if n < 3 { "a needle\n" } else { "plain\n" }).await.expect("it is new");
    }
    for kind in [ErrorKind::Timeout, ErrorKind::Unavailable, ErrorKind::Busy] {
        probe.fail(Some(("candidates", kind)));
        assert_eq!(files.grep_text("needle").await.expect("all files are read").len(), 3, "{kind}");
    }
    probe.fail(Some(("candidates", ErrorKind::PermissionDenied)));
    let error = files.grep_text("needle").await.expect_err("the error is permanent");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    probe.fail(None);
    probe.close();
    let late = cx().with_timeout(std::time::Duration::ZERO);
    let error = files.grep(&late, GrepRequest::literal("needle")).await.expect_err("the deadline has passed");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn the_number_of_candidates_is_limited() {
    let store = MemoryStore::new();
    let files = StoreBackend::new(store.clone());
    for n in 0..5 {
        files.create_text(&format!("/{n}"), "a needle\n").await.expect("it is new");
    }
    for (max, expected) in [(5, Some(5)), (4, None), (0, None)] {
        let query = TextQuery::new(vec!["needle".to_owned()], CaseMode::Sensitive).max_candidates(max);
        let found = store.candidates(&Namespace::default(), &path("/"), &query).await.expect("memory is there");
        assert_eq!(found.map(|found| found.len()), expected);
    }
}

/// Returns larger trees with the files at `/mnt`, some through layers.
fn inside(files: Arc<dyn Backend>) -> Vec<(&'static str, Arc<dyn Backend>)> {
    let mounted = |files| {
        let table = CompositeBackend::new(Arc::new(StoreBackend::new(MemoryStore::new())));
        Arc::new(table.with_mount("/mnt", files).expect("nothing is there")) as Arc<dyn Backend>
    };
    let rules =
        || RuleSet::from_toml("[[rules]]\neffect = 'deny'\npaths = ['/secret', '/mnt/secret']\n").expect("rules");
    let with_policy = |files| Policy::new(Arc::new(rules())).layer(files);
    vec![
        ("mounted", mounted(Arc::clone(&files))),
        ("mounted in a mount", {
            let outer = CompositeBackend::new(Arc::new(StoreBackend::new(MemoryStore::new())));
            let inner = CompositeBackend::new(Arc::clone(&files));
            Arc::new(outer.with_mount("/mnt", Arc::new(inner)).expect("nothing is there"))
        }),
        ("guarded, then mounted", mounted(with_policy(Arc::clone(&files)))),
        ("mounted, then guarded", with_policy(mounted(Arc::clone(&files)))),
        ("overlaid, then mounted", mounted(Arc::new(OverlayBackend::new(Arc::clone(&files))))),
        ("scoped", mounted(Scoped::new(path("/")).layer(files))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_of_a_larger_tree_fetches_only_candidates() {
    let (files, probe) = probed(MemoryStore::new());
    for n in 0..50 {
        let text = if n % 25 == 0 { "a rare needle\n" } else { "plain\n" };
        files.create_text(&format!("/d{}/{n}", n % 7), text).await.expect("it is new");
    }
    for at in ["/", "/mnt", "/mnt/d0"] {
        // Each iteration has a handle of its own, without cached contents.
        for (name, outer) in inside(Arc::new(StoreBackend::new(Arc::clone(&probe)))) {
            probe.take_all();
            let request = GrepRequest::literal("rare needle").path(path(at));
            let found = outer.grep(&cx(), request.clone()).await.expect("a search");
            let (matches, searched) = if at == "/mnt/d0" { (1, 8) } else { (2, 50) };
            assert_eq!((found.matches.len(), found.files_searched), (matches, searched), "{name} {at}");
            assert!(probe.take("get") <= matches, "{name} {at}");
            let events: Vec<_> = outer.grep_stream(cx(), request).collect().await;
            assert!(events.iter().all(Result::is_ok), "{name} {at}: {events:?}");
            assert_eq!(probe.take("get"), 0, "{name} {at}: contents are cached");
        }
    }
}

/// A tree that is lent for any search shows all files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_lent_for_one_search_returns_the_same_as_one_lent_for_any() {
    let files = StoreBackend::new(MemoryStore::new());
    let responses = files.upload_files(&cx(), corpus()).await;
    assert!(responses.iter().all(|response| response.cause.is_none()), "{responses:?}");
    let pool = vfs_search::Pool::new(2);
    for request in requests() {
        let lends = [OpenTreeRequest::for_grep(&request), OpenTreeRequest::new(request.path.clone(), TreeUse::Grep)];
        let mut found = Vec::new();
        for lend in lends {
            let tree = files.open_tree(&cx(), lend).await.expect("it lends");
            found.push(vfs_search::grep_on(&pool, tree, cx(), request.clone()).await);
        }
        assert_eq!(found[0], found[1], "{request:?}");
    }
}

#[tokio::test]
async fn an_upload_writes_many_files_in_one_change_and_each_has_an_answer() {
    let (files, probe) = probed(MemoryStore::new());
    files.write_text("/file", "old\n").await.expect("it is new");
    files.write_text("/directory/in", "old\n").await.expect("it is new");
    let upload = |names: std::ops::Range<u32>| -> Vec<FileUploadRequest> {
        names.map(|n| FileUploadRequest::new(path(&format!("/many/{n}")), format!("file {n}\n"))).collect()
    };
    probe.take_all();
    let responses = files.upload_files(&cx(), upload(0..300)).await;
    assert!(responses.iter().all(|response| response.cause.is_none()), "{responses:?}");
    let calls = probe.take_all();
    assert_eq!((calls.get("batch"), calls.get("put")), (Some(&2), None), "{calls:?}");
    // A file that fails does not stop the others.
    let refused = ["/file/below", "/directory", "/"].map(|at| FileUploadRequest::new(path(at), "refused\n"));
    let large = FileUploadRequest::new(path("/large"), vec![b'x'; 1 << 20]);
    let mixed =
        [&upload(290..310)[..], &refused[..], &[large, FileUploadRequest::new(path("/file"), "new\n")]].concat();
    let responses = files.upload_files(&cx(), mixed.clone()).await;
    for (file, response) in mixed.iter().zip(responses) {
        let is_refused = refused.iter().any(|refused| refused.path == file.path);
        assert_eq!(response.path, file.path);
        assert_eq!(response.cause.is_some(), is_refused, "{}: {:?}", file.path, response.cause);
    }
    assert_eq!(files.read_text("/file").await.expect("it is there"), "new\n");
    assert_eq!(files.glob_files("many/*").await.expect("a search").len(), 310);
    // If the batch is refused, each file is written on its own.
    probe.fail(Some(("batch", ErrorKind::TooLarge)));
    let responses = files.upload_files(&cx(), upload(400..403)).await;
    assert_eq!(
        responses.iter().filter_map(|response| response.cause.as_ref()).count(),
        3,
        "each is a batch of its own"
    );
}

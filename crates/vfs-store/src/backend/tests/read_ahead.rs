//! Prefetching in searches that no index narrows.

use vfs_core::{Backend, FileUploadRequest, GrepRequest};

use super::{cx, path, probed};
use crate::MemoryStore;

fn files(extension: &str, count: usize) -> impl Iterator<Item = FileUploadRequest> {
    (0..count).map(move |n| FileUploadRequest::new(path(&format!("/src/{n}.{extension}")), format!("line {n}\n")))
}

fn words() -> GrepRequest {
    GrepRequest::regex("[a-z]+")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_directory_are_fetched_in_blocks_from_the_second_one_on() {
    // The uploaded files, the search, and the expected numbers of calls of `get` and `get_many`.
    let cases: [(Vec<_>, _, _); 7] = [
        (files("rs", 1).collect(), words(), (1, 0)),
        (files("rs", 2).collect(), words(), (1, 1)),
        (files("rs", 66).collect(), words(), (1, 2)),
        (files("rs", 300).collect(), words(), (1, 5)),
        (files("rs", 66).collect(), words().max_file_size(4), (0, 0)),
        (files("rs", 66).collect(), words().path(path("/src/7.rs")), (1, 0)),
        (files("a", 64).chain(files("b", 64)).collect(), words().glob("*.b"), (1, 1)),
    ];
    for (uploads, request, expected) in cases {
        let (backend, probe) = probed(MemoryStore::new());
        let answers = backend.upload_files(&cx(), uploads).await;
        assert!(answers.iter().all(|answer| answer.cause.is_none()), "{answers:?}");
        probe.take_all();
        let first = backend.grep(&cx(), request.clone()).await.expect("a search");
        assert_eq!((probe.take("get"), probe.take("get many")), expected, "{request:?}");
        let second = backend.grep(&cx(), request.clone()).await.expect("a search");
        assert_eq!((probe.take("get"), probe.take("get many")), (0, 0), "all contents are cached: {request:?}");
        assert_eq!(first, second);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_without_bulk_reads_gets_each_file_on_its_own() {
    let (backend, probe) = probed(MemoryStore::single_valued());
    let answers = backend.upload_files(&cx(), files("rs", 10).collect()).await;
    assert!(answers.iter().all(|answer| answer.cause.is_none()), "{answers:?}");
    probe.take_all();
    let found = backend.grep(&cx(), words()).await.expect("a search");
    assert_eq!((found.files_searched, probe.take("get"), probe.take("get many")), (10, 10, 0));
}

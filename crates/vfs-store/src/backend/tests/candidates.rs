//! Searches of a store that says which files may hold a text give the same as those of one that does not.

use vfs_core::{
    Backend, BackendExt, BinaryMode, CaseMode, FileUpload, GrepOutput, GrepRequest, WriteMode, WriteRequest,
};

use super::{cx, path, probed};
use crate::{MemoryStore, StoreBackend};

fn corpus() -> Vec<FileUpload> {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a needle\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let mut files = vec![
        FileUpload::new(path("/text"), "one needle\nand more\n"),
        FileUpload::new(path("/upper"), "one NEEDLE\n"),
        FileUpload::new(path("/none"), "nothing\n"),
        FileUpload::new(path("/empty"), ""),
        FileUpload::new(path("/binary-none"), &b"a\0b"[..]),
        FileUpload::new(path("/binary-needle"), &b"needle\0"[..]),
        FileUpload::new(path("/utf-16"), utf16),
        FileUpload::new(path("/latin"), &b"gr\xfc\xdfe needle\n"[..]),
        FileUpload::new(path("/latin-none"), &b"gr\xfc\xdfe\n"[..]),
        FileUpload::new(path("/crlf"), "first\r\nsecond\r\n"),
        FileUpload::new(path("/.hidden/f"), "needle\n"),
        FileUpload::new(path("/kelvin"), "nee\u{212a}dle mas\u{17f}e\n"),
        FileUpload::new(path("/r/.gitignore"), "ignored\n# nothing\n"),
        FileUpload::new(path("/r/ignored"), "needle\n"),
        FileUpload::new(path("/r/.git/info/exclude"), "excluded\n"),
        FileUpload::new(path("/r/.git/HEAD"), "x\n"),
        FileUpload::new(path("/r/excluded"), "needle\n"),
        FileUpload::new(path("/r/kept"), "needle\n"),
    ];
    files.extend((0..30).map(|n| FileUpload::new(path(&format!("/many/{n}")), format!("file {n}\n"))));
    files
}

/// Files over what is fetched at once, and over what is looked through for a NUL.
fn large_corpus() -> Vec<FileUpload> {
    let late_nul = [vec![b'x'; 1 << 20], b"\nneedle\0\n".to_vec()].concat();
    vec![
        FileUpload::new(path("/large"), format!("{}needle\n", "x\n".repeat(9 << 18))),
        FileUpload::new(path("/large-none"), "y\n".repeat(9 << 18)),
        FileUpload::new(path("/late-nul"), late_nul),
    ]
}

fn requests() -> Vec<GrepRequest> {
    let literal = GrepRequest::literal;
    let patterns = [
        literal("needle"),
        literal("nothing anywhere"),
        literal("ne"),
        literal("first\nsecond"),
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
async fn a_result_does_not_depend_on_what_the_store_can_tell() {
    let literal = || GrepRequest::literal("needle");
    let of_large = vec![literal(), literal().max_file_size(3 << 20), GrepRequest::regex(r"n\w{2,4}dle")];
    for (corpus, requests) in [(corpus(), requests()), (large_corpus(), of_large)] {
        let telling = StoreBackend::new(MemoryStore::new());
        let silent = StoreBackend::new(MemoryStore::single_valued());
        for backend in [&telling, &silent] {
            let answers = backend.upload_files(&cx(), corpus.clone()).await;
            assert!(answers.iter().all(|answer| answer.cause.is_none()), "{answers:?}");
        }
        for request in requests {
            let found = telling.grep(&cx(), request.clone()).await;
            assert_eq!(found, silent.grep(&cx(), request.clone()).await, "{request:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_may_match_is_fetched_and_only_once() {
    let (files, probe) = probed(MemoryStore::new());
    for n in 0..100 {
        let text = if n % 25 == 0 { "a rare needle\n" } else { "plain\n" };
        files.create_text(&format!("/d{}/{n}", n % 7), text).await.expect("it is new");
    }
    probe.take_all();
    let found = files.grep(&cx(), GrepRequest::literal("rare needle")).await.expect("a search");
    assert_eq!((found.matches.len(), found.files_searched), (4, 100));
    assert_eq!(probe.take("get"), 4);
    assert_eq!(files.search("rare needle").await.expect("a search").len(), 4);
    assert_eq!(probe.take("get"), 0, "contents are kept");
    let edited = WriteRequest::new(path("/d0/0"), "another rare needle\nrare needle\n").mode(WriteMode::Overwrite);
    files.write(&cx(), edited).await.expect("it is written");
    probe.take_all();
    assert_eq!(files.search("rare needle").await.expect("a search").len(), 5);
    assert_eq!(probe.take("get"), 1, "what has changed is fetched again");
}

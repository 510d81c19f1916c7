//! Candidates of a search.

use vfs_core::CaseMode;
use vfs_store::{CandidateKeys, Key, MemoryStore, Namespace, Precondition, Store, TextQuery};

use crate::lab::{in_lab, key, namespace, path, value};

const CASES: [CaseMode; 3] = [CaseMode::Sensitive, CaseMode::Insensitive, CaseMode::Smart];

const TEXTS: [&str; 14] = [
    "fn main() { println!(\"hello\"); }",
    "kelvin \u{212a}elvin stra\u{17f}se",
    "STRASSE straße STRAẞE",
    "ΟΔΥΣΣΕΥΣ ὀδυσσεύς ΣΑΣ",
    "İstanbul ISTANBUL ıstanbul istanbul",
    "100%_\\percent under_score a-b-c",
    "line one\r\nline two\n\nlast",
    "日本語のテキスト mixed 中文abc",
    "\u{feff}with a mark",
    "x",
    "",
    "don't \"quote\" $1 ; -- DROP",
    "e\u{301}clair éclair ÉCLAIR",
    "aaaaaaaaaa",
];

async fn candidates(store: &dyn Store, below: &str, needles: &TextQuery) -> Option<CandidateKeys> {
    let search = store.as_search().expect("it searches");
    search.candidates(&namespace(), &path(below), needles).await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_is_missed() {
    in_lab(async |lab| {
        let (postgres, memory) = (lab.store().await, MemoryStore::new());
        for (number, text) in TEXTS.iter().enumerate() {
            for store in [&postgres as &dyn Store, &memory] {
                let key = key(&format!("/d{}/{number}", number % 3));
                let _ = store.put(&key, value(*text), &Precondition::Absent).await.expect("it is put");
            }
        }
        let mut answers = 0;
        for text in TEXTS {
            let letters: Vec<char> = text.chars().collect();
            for length in [1, 3, 4, 7] {
                for window in letters.windows(length) {
                    let needle: String = window.iter().collect();
                    for needle in [needle.to_lowercase(), needle.to_uppercase(), needle] {
                        for case in CASES {
                            let needles = TextQuery::new(vec![needle.clone()], case);
                            let Some(ours) = candidates(&postgres, "/", &needles).await else { continue };
                            let theirs = candidates(&memory, "/", &needles).await.expect("it always can");
                            assert!(ours.is_superset(&theirs), "{needle:?} {case:?}: {ours:?} {theirs:?}");
                            answers += 1;
                        }
                    }
                }
            }
        }
        assert!(answers > 500, "{answers}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rare_text_leaves_few_files() {
    in_lab(async |lab| {
        let store = lab.store().await;
        for number in 0..200 {
            let text = format!("fn function_{number}() {{ return {number}; }}");
            let _ = store
                .put(&key(&format!("/src/{number}.rs")), value(text), &Precondition::Absent)
                .await
                .expect("it is put");
        }
        let binary =
            [("/binary", vec![0, 1, 2]), ("/utf16", vec![0xff, 0xfe, b'a', 0]), ("/long", vec![b'a'; 130 << 10])];
        for (text, content) in binary {
            let _ = store.put(&key(text), value(content), &Precondition::Absent).await.expect("it is put");
        }
        let other = Key::new(Namespace::parse("acme").expect("a namespace"), path("/src/77.rs"));
        let _ = store.put(&other, value("FUNCTION_77"), &Precondition::Absent).await.expect("it is put");
        let needles = |texts: &[&str]| {
            TextQuery::new(texts.iter().map(|text| (*text).to_owned()).collect(), CaseMode::Insensitive)
        };
        let paths = |texts: &[&str]| Some(texts.iter().map(|text| path(text)).collect::<CandidateKeys>());
        let always = ["/binary", "/utf16", "/long"];
        let found = candidates(&store, "/", &needles(&["FuncTion_77("])).await;
        assert_eq!(found, paths(&[&always[..], &["/src/77.rs"]].concat()));
        assert_eq!(candidates(&store, "/src", &needles(&["function_77()"])).await, paths(&["/src/77.rs"]));
        assert_eq!(candidates(&store, "/src/77.rs", &needles(&["function_77()"])).await, paths(&["/src/77.rs"]));
        assert_eq!(
            candidates(&store, "/src", &needles(&["return 5;", "tion_6("])).await,
            paths(&["/src/5.rs", "/src/6.rs"])
        );
        assert_eq!(candidates(&store, "/none", &needles(&["function"])).await, paths(&[]));
        assert_eq!(candidates(&store, "/", &needles(&["function", "ab"])).await, None);
        // What is copied, moved, changed and removed is found where it is.
        let batch = store.as_batch().expect("it has batches");
        let writes = vec![
            vfs_store::Write::Copy { from: path("/src/1.rs"), to: path("/copy"), at: chrono::Utc::now() },
            vfs_store::Write::Move { from: path("/src/1.rs"), to: path("/src/moved") },
            vfs_store::Write::Put(path("/src/2.rs"), value("function_1()")),
            vfs_store::Write::Delete(path("/src/3.rs")),
        ];
        let _ = batch.batch(&namespace(), &[], writes).await.expect("it is made");
        let found = candidates(&store, "/", &needles(&["function_1()"])).await;
        assert_eq!(found, paths(&[&always[..], &["/copy", "/src/moved", "/src/2.rs"]].concat()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_are_told_than_are_worth_it() {
    in_lab(async |lab| {
        let store = lab.store().await;
        for number in 0..5 {
            let (key, value) = (key(&format!("/{number}")), value(format!("needle {number}")));
            let _ = store.put(&key, value, &Precondition::Absent).await.expect("it is put");
        }
        for (most, expected) in [(5, Some(5)), (4, None), (0, None)] {
            let needles = TextQuery::new(vec!["needle".to_owned()], CaseMode::Sensitive).max_candidates(most);
            let found = candidates(&store, "/", &needles).await;
            assert_eq!(found.map(|found| found.len()), expected);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_are_nearly_everywhere_or_short_are_looked_for_without_the_index() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let batch = store.as_batch().expect("it makes batches");
        let content = |number| if number % 10 == 0 { "nothing" } else { "the Needle and the Größe" };
        let put = |number| vfs_store::Write::Put(path(&format!("/d{}/{number}", number % 7)), value(content(number)));
        let _ = batch.batch(&namespace(), &[], (0..2500).map(put).collect()).await.expect("it is made");
        let _ = store.put(&key("/binary"), value("a\0b"), &Precondition::Absent).await.expect("it is put");
        let count = async |below: &str, needle: &str, case| {
            candidates(&store, below, &TextQuery::new(vec![needle.to_owned()], case)).await.map(|found| found.len())
        };
        for needle in ["the Needle", "Größe", "ö"] {
            assert_eq!(count("/", needle, CaseMode::Sensitive).await, Some(2251), "{needle}");
            assert_eq!(count("/d3", needle, CaseMode::Sensitive).await, Some(321), "{needle}");
        }
        assert_eq!(count("/", "THE NEEDLE", CaseMode::Insensitive).await, Some(2251));
        assert_eq!(count("/", "the needle", CaseMode::Sensitive).await, Some(1));
        assert_eq!(count("/", "GRÖSSE", CaseMode::Insensitive).await, None);
        assert_eq!(count("/", "", CaseMode::Sensitive).await, None);
        let many = TextQuery::new((0..9).map(|number| format!("Größe{number}")).collect(), CaseMode::Sensitive);
        assert_eq!(candidates(&store, "/", &many).await.map(|found| found.len()), None);
        let few = TextQuery::new(vec!["the Needle".to_owned()], CaseMode::Sensitive).max_candidates(2249);
        assert_eq!(candidates(&store, "/", &few).await, None);
    })
    .await;
}

//! Searches for the values that may contain a text.

use std::collections::BTreeSet;

use bytes::Bytes;
use vfs_core::{CaseMode, Result};
use vfs_store::{Precondition, TextQuery, Write};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{all_done, copy, delete, done, home, key, noise, path, rename, value};

store_laws! { "search":
    "SS1" Search a_needle_in_any_place_is_found,
    "SS2" Search a_needle_over_a_cut_is_found,
    "SS3" Search a_needle_in_a_large_value_is_found,
    "SS4" Search content_that_is_not_text_may_always_match,
    "SS5" Search changed_values_are_found_by_their_new_content,
    "SS6" BatchAndSearch moved_and_copied_values_are_found_at_their_paths,
    "SS7" Search only_values_at_or_below_the_prefix_are_found,
    "SS8" Search any_text_can_be_searched_for,
    "SS9" Search one_of_many_needles_is_enough,
}

/// Returns the values that may contain one of `texts`, or `None` if the store cannot narrow them down.
async fn candidates(t: &StoreTarget, prefix: &str, texts: &[&str]) -> Result<Option<BTreeSet<String>>> {
    let search = t.store.as_search().expect("the law needs it");
    let query = TextQuery::new(texts.iter().map(|&text| text.to_owned()).collect(), CaseMode::Sensitive);
    let found = search.candidates(&home(), &path(prefix), &query).await?;
    Ok(found.map(|found| found.into_iter().map(|path| path.to_string()).collect()))
}

async fn assert_found(t: &StoreTarget, needle: &str, expected: &[&str]) -> LawResult {
    if let Some(found) = candidates(t, "/", &[needle]).await? {
        for path in expected {
            assert!(found.contains(*path), "{path} contains {needle:?} and is not among {found:?}");
        }
    }
    Ok(())
}

/// The needle is at the start, at the end, alone, after a part of itself, or across line ends.
async fn a_needle_in_any_place_is_found(t: &StoreTarget) -> LawResult {
    let texts = [
        ("/alone", "needle"),
        ("/start", "needle and more"),
        ("/end", "more and needle"),
        ("/inside", "aneedleb"),
        ("/twice", "needlneedle"),
        ("/lines", "one\ntwo needle three\nfour"),
        ("/quoted", "'needle\"%_*"),
        ("/none", "need le"),
        ("/empty", ""),
    ];
    for (at, text) in texts {
        t.put(at, text).await?;
    }
    for needle in ["needle", "eedl", "nee", "dle", "le", "e", "needl"] {
        let expected: Vec<_> = texts.iter().filter(|(_, text)| text.contains(needle)).map(|(at, _)| *at).collect();
        assert_found(t, needle, &expected).await?;
    }
    assert_found(t, "e\nt", &["/lines"]).await?;
    assert_found(t, "'needle\"%_*", &["/quoted"]).await
}

/// Returns text of `size` bytes with `needle` at `at`.
fn text_with(needle: &str, at: usize, size: usize) -> Bytes {
    let mut text = "the quick brown fox jumps over it\n".repeat(size / 34 + 1).into_bytes();
    text.truncate(size);
    text[at..at + needle.len()].copy_from_slice(needle.as_bytes());
    text.into()
}

/// The needle is across every offset at which stores split large values, with different parts of it on either side.
async fn a_needle_over_a_cut_is_found(t: &StoreTarget) -> LawResult {
    let needle = "Überraschung-42";
    let mut all = Vec::new();
    for cut in [4096, 8192, 65_536, 131_072, 262_144, 524_288, 1 << 20] {
        for before in [1, 2, needle.len() / 2, needle.len() - 1] {
            let at = format!("/{cut}/{before}");
            t.put(&at, text_with(needle, cut - before, cut + 200)).await?;
            all.push(at);
        }
    }
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    for needle in [needle, "Überras", "rasch", "ung-42"] {
        assert_found(t, needle, &all).await?;
    }
    Ok(())
}

/// The needle is at the end of the value, or across the end of the second or the fifth MiB.
async fn a_needle_in_a_large_value_is_found(t: &StoreTarget) -> LawResult {
    const MIB: usize = 1 << 20;
    let max = usize::try_from(t.store.capabilities().max_value).unwrap_or(usize::MAX);
    for (at, place, size) in [("/2", 2 * MIB - 3, 3 * MIB), ("/5", 5 * MIB - 3, 6 * MIB), ("/9", 9 * MIB, 9 * MIB + 6)]
    {
        if size <= max {
            t.put(at, text_with("needle", place, size)).await?;
            assert_found(t, "needle", &[at]).await?;
        }
    }
    Ok(())
}

/// Only a reader can determine whether content with a NUL or invalid UTF-8 is text in another encoding or binary.
async fn content_that_is_not_text_may_always_match(t: &StoreTarget) -> LawResult {
    let utf_16: Vec<u8> = "\u{feff}needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let binary = [
        ("/nul", b"a\0b".to_vec()),
        ("/utf-16", utf_16),
        ("/latin-1", b"caf\xe9 needl\n".to_vec()),
        ("/cut", "ne\u{e9}".as_bytes()[..3].to_vec()),
        ("/surrogate", b"\xed\xa0\x80 needle".to_vec()),
        ("/late", [&b"x".repeat(1_100_000)[..], b"\xff"].concat()),
        ("/late-nul", [&b"x".repeat(1_100_000)[..], b"\0"].concat()),
        ("/noise", noise(70_000, 3).to_vec()),
    ];
    for (at, content) in &binary {
        t.put(at, content.clone()).await?;
    }
    t.put("/text", "needle").await?;
    let mut all: Vec<_> = binary.iter().map(|(at, _)| *at).collect();
    all.push("/text");
    assert_found(t, "needle", &all).await?;
    all.pop();
    assert_found(t, "never there", &all).await?;
    // Binary content becomes text, and text becomes binary.
    t.put("/nul", "now a text with needle").await?;
    t.put("/text", &b"no longer\0"[..]).await?;
    assert_found(t, "needle", &["/nul", "/text", "/noise"]).await
}

/// After a value was replaced, deleted and put again, it is found by its new content.
async fn changed_values_are_found_by_their_new_content(t: &StoreTarget) -> LawResult {
    for (n, words) in ["alpha beta", "gamma delta", "alpha delta", "", "beta"].iter().enumerate() {
        for (at, filler) in [("/small", 0), ("/large", 1_200_000)] {
            t.put(at, format!("{}{words}{n}", "filler ".repeat(filler / 7))).await?;
        }
        for word in ["alpha", "beta", "gamma", "delta", &n.to_string()] {
            let holds = words.contains(word) || word == n.to_string();
            assert_found(t, word, if holds { &["/small", "/large"] } else { &[] }).await?;
        }
        if n == 2 {
            done(t.store.delete(&key("/small"), &Precondition::Any).await?);
            assert_found(t, "alpha", &["/large"]).await?;
        }
    }
    Ok(())
}

async fn moved_and_copied_values_are_found_at_their_paths(t: &StoreTarget) -> LawResult {
    for (at, filler) in [("/small", 0), ("/large", 1_200_000)] {
        t.put(at, format!("{}needle", "filler ".repeat(filler / 7))).await?;
        let (moved, copied) = (format!("/moved{at}"), format!("/copied{at}"));
        all_done(t.batch(&[], vec![rename(at, &moved)]).await?);
        assert_found(t, "needle", &[&moved]).await?;
        all_done(t.batch(&[], vec![copy(&moved, &copied)]).await?);
        for text in ["needle", "le"] {
            assert_found(t, text, &[&moved, &copied]).await?;
            let Some(found) = candidates(t, "/copied", &[text]).await? else { continue };
            assert_eq!(found, BTreeSet::from([copied.clone()]), "{text:?} below /copied");
        }
        all_done(
            t.batch(&[], vec![Write::Put(path(&moved), value("other")), rename(&copied, at), rename(&moved, &copied)])
                .await?,
        );
        assert_found(t, "needle", &[at]).await?;
        assert_found(t, "other", &[&copied]).await?;
        all_done(t.batch(&[], vec![rename(at, &copied), copy(&copied, at), delete(&copied)]).await?);
        assert_found(t, "needle", &[at]).await?;
    }
    Ok(())
}

/// The prefix is the root, a directory or a value, with other names that share its beginning or look like patterns.
async fn only_values_at_or_below_the_prefix_are_found(t: &StoreTarget) -> LawResult {
    let tree = ["/d", "/d/a", "/d/b/c", "/dx", "/d-/a", "/d0", "/D/a", "/a_b/x", "/axb/x", "/%/x", "/a'b/x"];
    for at in tree {
        t.put(at, "needle").await?;
    }
    for prefix in ["/", "/d", "/d/a", "/d/b", "/d/b/c", "/nowhere", "/a_b", "/%", "/a'b", "/d/", "/d-"] {
        // An index may not cover a text of two letters.
        for text in ["needle", "le"] {
            let Some(found) = candidates(t, prefix, &[text]).await? else { continue };
            let expected: BTreeSet<_> =
                tree.iter().filter(|at| path(at).starts_with(&path(prefix))).map(|at| (*at).to_owned()).collect();
            assert_eq!(found, expected, "{text:?} at and below {prefix}");
        }
    }
    Ok(())
}

/// Syntax of search engines and databases has no meaning in a text, and a text can have any length.
async fn any_text_can_be_searched_for(t: &StoreTarget) -> LawResult {
    let long = "long ".repeat(2000);
    let texts = [
        "a AND b",
        "NEAR(a b)",
        "\"quoted\"",
        "it's",
        "50%",
        "a_b",
        "a*b",
        "(a|b)",
        "[a]",
        "a\\b",
        "\\",
        "^start",
        "col:umn",
        "-minus",
        "{x}",
        "$1",
        "tab\there",
        "line\nend",
        "\r\n",
        "日本語のテキスト",
        "\u{1f600}\u{1f601}",
        "e\u{301}",
        "\u{feff}bom",
        "   ",
        "aaaaaaaa",
        "a",
        "ab",
        "abc",
        "ß",
        "1234567890",
        "; DROP TABLE files",
        "\u{10ffff}",
        &long,
    ];
    for (n, text) in texts.iter().enumerate() {
        t.put(&format!("/{n}"), format!("before{text}after")).await?;
    }
    for needle in texts {
        let expected: Vec<_> = texts
            .iter()
            .enumerate()
            .filter(|(_, text)| format!("before{text}after").contains(needle))
            .map(|(n, _)| format!("/{n}"))
            .collect();
        assert_found(t, needle, &expected.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    }
    t.put("/nul", "beforea\0bafter").await?;
    for odd in ["\0", "a\0b", "nul\0nul"] {
        let expected: &[&str] = if "beforea\0bafter".contains(odd) { &["/nul"] } else { &[] };
        assert_found(t, odd, expected).await?;
    }
    t.put("/empty", "").await?;
    assert_found(t, "", &["/0", "/nul", "/empty"]).await
}

/// A value with one of many texts is found. A query without texts is not an error.
async fn one_of_many_needles_is_enough(t: &StoreTarget) -> LawResult {
    let words: Vec<_> = (0..200).map(|n| format!("word-{n:03}")).collect();
    for (n, word) in words.iter().enumerate().step_by(20) {
        t.put(&format!("/{n}"), word.clone()).await?;
    }
    let all: Vec<_> = words.iter().map(String::as_str).collect();
    let expected: BTreeSet<_> = (0..200).step_by(20).map(|n| format!("/{n}")).collect();
    for texts in [&all[..], &all[..1], &all[..21], &["word-020", "x", "word-180"]] {
        if let Some(found) = candidates(t, "/", texts).await? {
            let holds_one =
                |n: &&String| texts.contains(&words[n[1..].parse::<usize>().expect("it is a number")].as_str());
            assert!(
                expected.iter().filter(holds_one).all(|at| found.contains(at)),
                "{found:?} for {} texts",
                texts.len()
            );
        }
    }
    drop(candidates(t, "/", &[]).await?);
    Ok(())
}

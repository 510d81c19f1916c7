//! Names with characters that are special to a server.

use vfs_core::{ErrorKind, VfsPath};
use vfs_store::{Condition, ListRequest, Precondition};
use vfs_testkit::LawResult;

use super::StoreTarget;
use super::law_helpers::{done, key, path, put, refused, value};

store_laws! { "names":
    "SN1" Nothing any_name_is_a_name_of_a_value,
    "SN2" Nothing any_name_is_a_name_of_a_directory,
    "SN3" Nothing names_are_preserved_byte_for_byte,
    "SN4" Nothing a_pattern_of_the_server_is_a_plain_name,
    "SN5" Nothing a_name_like_a_mark_of_the_store_is_a_plain_name,
    "SN6" Nothing names_may_be_of_255_bytes,
    "SN7" Nothing paths_may_have_the_maximum_length_of_the_store,
    "SN8" ShortPaths a_longer_path_is_refused,
    "SN9" Batch any_name_is_moved_and_copied,
}

/// Names with a meaning to servers, their languages, shells or URLs.
const NAMES: &[&str] = &[
    " ",
    " a",
    "a ",
    "a b",
    "a  b",
    "\t",
    "a\tb",
    "\n",
    "a\nb",
    "a\r\nb",
    "\r",
    "\u{1}",
    "\u{1b}[0m",
    "\u{7f}",
    "\\",
    "a\\b",
    "\\n",
    "\\0",
    "\\\\",
    "'",
    "''",
    "a'b",
    "\"",
    "\"\"",
    "`",
    "' OR '1'='1",
    "'; DROP TABLE files; --",
    "$1",
    "$$",
    "{}",
    "{0}",
    "${x}",
    "$(x)",
    ":a",
    "::",
    "@a",
    "#",
    "#a",
    "a#b",
    "?",
    "a?b=c&d",
    "&",
    "&amp;",
    "<a>",
    "]]>",
    "=",
    "==",
    "===",
    "=a",
    "a=",
    "a=b",
    "%",
    "%%",
    "%2F",
    "%2f",
    "%25",
    "%2",
    "%252F",
    "%00",
    "%0A",
    "%zz",
    "a%b",
    "_",
    "__",
    "a_b",
    "*",
    "**",
    "a*",
    "[",
    "]",
    "[a]",
    "[!a]",
    "{a,b}",
    "^",
    "|",
    "~",
    "~a",
    "!",
    "-",
    "--",
    "-a",
    "+",
    "a+b",
    ",",
    ";",
    "(",
    ")",
    ".a",
    "..a",
    "...",
    "a.",
    "a..",
    "a...b",
    ".git",
    "CON",
    "nul",
    "C:",
    "c:\\x",
    "NULL",
    "null",
    "true",
    "0",
    "-1",
    "1e3",
    "é",
    "e\u{301}",
    "ß",
    "ẞ",
    "İ",
    "ı",
    "K",
    "\u{212a}",
    "ſ",
    "日本語",
    "\u{1f600}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{200b}",
    "\u{202e}x",
    "\u{feff}",
    "\u{2028}",
    "\u{fffd}",
    "\u{85}",
    "\u{a0}",
    "\u{10ffff}",
    "\u{e000}",
    "a",
    "A",
    "aa",
    "AA",
    "index.html",
    "WAL",
    "vfs:1",
];

fn content_of(name: &str) -> String {
    format!("content of {name:?}")
}

fn sorted(mut paths: Vec<String>) -> Vec<String> {
    paths.sort_unstable();
    paths
}

/// Puts a value with each name below `/d`, gets each, and lists all.
async fn any_name_is_a_name_of_a_value(t: &StoreTarget) -> LawResult {
    for name in NAMES {
        let at = format!("/d/{name}");
        done(t.store.put(&key(&at), value(content_of(name)), &Precondition::Absent).await?);
    }
    for name in NAMES {
        assert_eq!(t.content(&format!("/d/{name}")).await?, Some(content_of(name).into()), "{name:?}");
    }
    let expected = sorted(NAMES.iter().map(|name| format!("/d/{name}")).collect());
    for limit in [1, 7, 1000] {
        assert_eq!(t.list(ListRequest::all(path("/")).limit(limit)).await?.paths(), expected, "{limit} at once");
        assert_eq!(t.list(ListRequest::level(path("/d")).limit(limit)).await?.paths(), expected, "{limit} at once");
    }
    Ok(())
}

/// A listing of each directory has only the values below it; each value can be deleted individually.
async fn any_name_is_a_name_of_a_directory(t: &StoreTarget) -> LawResult {
    for name in NAMES {
        t.put(&format!("/{name}/x"), content_of(name)).await?;
        t.put(&format!("/{name}/{name}/{name}"), content_of(name)).await?;
    }
    let expected = sorted(NAMES.iter().map(|name| format!("/{name}")).collect());
    assert_eq!(t.list(ListRequest::level(path("/"))).await?.folders(), expected);
    assert_eq!(t.list(ListRequest::level(path("/")).limit(3)).await?.folders(), expected);
    for name in NAMES {
        let below = path(&format!("/{name}"));
        let inner = format!("/{name}/{name}");
        let both = sorted(vec![format!("/{name}/x"), format!("{inner}/{name}")]);
        assert_eq!(t.list(ListRequest::all(below.clone())).await?.paths(), both, "{name:?}");
        let listed = t.list(ListRequest::level(below)).await?;
        assert_eq!(
            (listed.paths(), listed.folders()),
            (vec![format!("/{name}/x").as_str()], vec![inner.as_str()]),
            "{name:?}"
        );
    }
    for (deleted, name) in NAMES.iter().enumerate() {
        done(t.store.delete(&key(&format!("/{name}/x")), &Precondition::Any).await?);
        done(t.store.delete(&key(&format!("/{name}/{name}/{name}")), &Precondition::Any).await?);
        assert_eq!(
            t.list(ListRequest::all(path("/"))).await?.entries.len(),
            (NAMES.len() - deleted - 1) * 2,
            "{name:?}"
        );
    }
    Ok(())
}

/// Names that differ in case, Unicode composition, width or trailing spaces are different names.
async fn names_are_preserved_byte_for_byte(t: &StoreTarget) -> LawResult {
    let pairs = [
        ("/caf\u{e9}", "/cafe\u{301}"),
        ("/\u{212b}", "/\u{e5}"),
        ("/readme", "/README"),
        ("/straße", "/strasse"),
        ("/ẞ", "/ß"),
        ("/a", "/a "),
        ("/a.", "/a.."),
        ("/\u{ff21}", "/A"),
        ("/ﬁ", "/fi"),
        ("/a\u{200b}", "/a\u{200c}"),
        ("/\u{1f600}", "/\u{1f601}"),
        ("/1", "/01"),
    ];
    let all: Vec<_> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
    for at in &all {
        done(t.store.put(&key(at), value(content_of(at)), &Precondition::Absent).await?);
    }
    let mut expected: Vec<_> = all.iter().map(|at| ((*at).to_owned(), content_of(at))).collect();
    expected.sort_unstable();
    assert_eq!(t.texts().await?, expected);
    Ok(())
}

/// `%` and `_` of SQL, `*`, `?` and `[` of globs, and `\` before them stand for themselves in every search by prefix.
async fn a_pattern_of_the_server_is_a_plain_name(t: &StoreTarget) -> LawResult {
    let plain = ["/abc/x", "/a/x", "/axc/x", "/a\\c/x", "/ABC/x"];
    let patterns = [
        "/a%", "/a_c", "/%", "/___", "/a*", "/*", "/a?c", "/a[b]c", "/[a-z]bc", "/a\\%", "/a\\_c", "/a\\", "/^abc",
        "/a.c",
    ];
    t.put_each(&plain).await?;
    for pattern in patterns {
        for request in [ListRequest::all(path(pattern)), ListRequest::level(path(pattern))] {
            assert_eq!(t.list(request).await?, super::law_helpers::Listing::default(), "{pattern}");
        }
        if t.store.as_batch().is_some() {
            let outcome = t.batch(&[Condition::NothingBelow(path(pattern))], vec![put("/made", "x")]).await?;
            super::law_helpers::all_done(outcome);
        }
        assert_eq!(t.head(pattern).await?, None, "{pattern}");
        let below = format!("{pattern}/x");
        t.put(&below, "x").await?;
        assert_eq!(t.list(ListRequest::all(path(pattern))).await?.paths(), [below.as_str()]);
        done(t.store.delete(&key(&below), &Precondition::Any).await?);
        drop(t.store.delete(&key("/made"), &Precondition::Any).await?);
    }
    let mut expected = plain.to_vec();
    expected.sort_unstable();
    assert_eq!(t.list(ListRequest::all(path("/"))).await?.paths(), expected);
    Ok(())
}

/// Markers, keys, tables, temporary and hidden names that a store may use internally.
async fn a_name_like_a_mark_of_the_store_is_a_plain_name(t: &StoreTarget) -> LawResult {
    let tree = [
        "/=/org/=/x",
        "/=/laws/home/=/x",
        "/=",
        "/==",
        "/===/x",
        "/==/a",
        "/laws/home/x",
        "/home/x",
        "/.vfs/lock",
        "/.tmp/x",
        "/.upload-1",
        "/x.tmp",
        "/x.s3s-fs_metadata.json",
        "/vfs:/x",
        "/{vfs}/x",
        "/meta",
        "/data",
        "/changes/1",
        "/namespaces",
        "/.keep",
        "/.gitkeep",
        "/%3D/x",
        "/%3D%3D/x",
        "/%2F",
        "/%2Fx/%2F",
        "/$folder$",
        "/a_$folder$",
        "/index/0",
        "/sqlite_master",
    ];
    for at in tree {
        done(t.store.put(&key(at), value(content_of(at)), &Precondition::Absent).await?);
    }
    let mut expected: Vec<_> = tree.iter().map(|at| ((*at).to_owned(), content_of(at))).collect();
    expected.sort_unstable();
    assert_eq!(t.texts().await?, expected);
    assert_eq!(t.store.namespaces().await?, [super::law_helpers::home()]);
    Ok(())
}

/// Names of characters of one to four bytes, as values and as directories.
async fn names_may_be_of_255_bytes(t: &StoreTarget) -> LawResult {
    let names =
        ["a".repeat(255), format!("{}b", "é".repeat(127)), "日".repeat(85), format!("{}abc", "\u{1f600}".repeat(63))];
    for name in &names {
        assert_eq!(name.len(), VfsPath::MAX_COMPONENT);
        for at in [format!("/{name}"), format!("/d/{name}/x")] {
            t.put(&at, content_of(name)).await?;
            assert_eq!(t.content(&at).await?, Some(content_of(name).into()));
        }
    }
    let expected = sorted(names.iter().map(|name| format!("/{name}")).collect());
    assert_eq!(t.list(ListRequest::level(path("/")).limit(1)).await?.paths(), expected);
    let expected = sorted(names.iter().map(|name| format!("/d/{name}")).collect());
    assert_eq!(t.list(ListRequest::level(path("/d")).limit(1)).await?.folders(), expected);
    Ok(())
}

/// Returns a path of `bytes` bytes, of names of `name` bytes each.
fn long_path(bytes: usize, name: usize) -> VfsPath {
    let mut text = String::new();
    while text.len() < bytes {
        text.push('/');
        // The rest is either empty or long enough for a separator and a letter.
        let left = bytes - text.len();
        text.push_str(&"x".repeat(if left <= name { left } else { name.min(left - 2) }));
    }
    path(&text)
}

/// Paths of few long names and of many short ones.
async fn paths_may_have_the_maximum_length_of_the_store(t: &StoreTarget) -> LawResult {
    let max = t.store.capabilities().max_path.min(VfsPath::MAX_LEN);
    // The limit is that of the namespace without components; the name of another namespace may be part of the key.
    let namespace = vfs_store::Namespace::default();
    let mut all: Vec<_> = [255, 1, 2, 100].map(|name| long_path(max, name)).into();
    all.push(long_path(max - 1, 1));
    all.sort_unstable();
    for at in &all {
        let key = vfs_store::Key::new(namespace.clone(), at.clone());
        done(t.store.put(&key, value(at.as_str().to_owned()), &Precondition::Absent).await?);
        let got = t.store.get(&key, None).await?.expect("it is there");
        assert!(got.content == at.as_str(), "a path of {} bytes", at.as_str().len());
    }
    for limit in [1, 1000] {
        let listed = super::law_helpers::list(&*t.store, &namespace, &ListRequest::all(path("/")).limit(limit)).await?;
        assert!(listed.paths().into_iter().eq(all.iter().map(VfsPath::as_str)), "{limit} at once");
        let parent = all[0].parent().expect("it is not the root");
        let listed = super::law_helpers::list(&*t.store, &namespace, &ListRequest::level(parent).limit(limit)).await?;
        assert!(listed.paths().contains(&all[0].as_str()), "{limit} at once");
    }
    Ok(())
}

/// A put at a path that is one byte too long is `invalid_path`; a read finds nothing or fails with the same error.
async fn a_longer_path_is_refused(t: &StoreTarget) -> LawResult {
    let long = long_path(t.store.capabilities().max_path + 1, 200);
    let at = vfs_store::Key::new(vfs_store::Namespace::default(), long);
    let error = t.store.put(&at, value("x"), &Precondition::Any).await.expect_err("it is too long");
    assert_eq!(error.kind(), ErrorKind::InvalidPath, "{error:?}");
    match t.store.head(&at).await {
        Ok(found) => assert_eq!(found, None),
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidPath, "{error:?}"),
    }
    assert_eq!(t.store.namespaces().await?, []);
    Ok(())
}

/// Values with each name are copied and moved to other directories.
async fn any_name_is_moved_and_copied(t: &StoreTarget) -> LawResult {
    for name in NAMES {
        t.put(&format!("/from/{name}"), content_of(name)).await?;
    }
    let writes = NAMES.iter().flat_map(|name| {
        let (from, to) = (format!("/from/{name}"), format!("/to/{name}"));
        [super::law_helpers::copy(&from, &format!("/copy/{name}")), super::law_helpers::rename(&from, &to)]
    });
    super::law_helpers::all_done(t.batch(&[], writes.collect()).await?);
    let expected =
        ["/copy", "/to"].iter().flat_map(|at| NAMES.iter().map(move |name| (format!("{at}/{name}"), content_of(name))));
    let mut expected: Vec<_> = expected.collect();
    expected.sort_unstable();
    assert_eq!(t.texts().await?, expected);
    assert!(refused(t.store.delete(&key("/from/a"), &Precondition::Any).await?).is_none());
    Ok(())
}

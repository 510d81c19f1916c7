use vfs_core::search::{EntryKinds, HiddenNames, Skipped};
use vfs_core::{ErrorKind, GlobRequest};

use crate::testing::{TestNode, TestTree, find, path};

fn shown(tree: &TestTree, req: &GlobRequest) -> (Vec<String>, u64, u64) {
    let result = find(tree, req).expect("it walks");
    assert!(result.problems.is_empty(), "{:?}", result.problems);
    let Skipped { hidden, ignored, .. } = result.skipped;
    (result.entries.iter().map(|info| info.path.to_string()).collect(), hidden, ignored)
}

fn all() -> GlobRequest {
    GlobRequest::new("*")
}

#[test]
fn hidden_names_and_git_are_found_only_on_request() {
    let tree = TestTree::new([("/.env", ""), ("/.git/config", ""), ("/.d/x", ""), ("/a", "")]);
    for (req, expected, hidden, ignored) in [
        (all(), &["/a"][..], 3, 0),
        (all().hidden(), &["/.d/x", "/.env", "/a"], 0, 1),
        (all().no_ignore(), &["/a"], 3, 0),
        (all().hidden().no_ignore(), &["/.d/x", "/.env", "/.git/config", "/a"], 0, 0),
        (GlobRequest::new(".env"), &["/.env"], 2, 0),
        (all().path(path("/.d")), &["/.d/x"], 0, 0),
    ] {
        let (names, h, i) = shown(&tree, &req);
        assert_eq!(
            (names.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), h, i),
            (expected, hidden, ignored),
            "{req:?}"
        );
    }
}

#[test]
fn a_literal_dot_in_a_glob_includes_the_name() {
    let files =
        ["/.env", "/.env.d/x", "/.github/.ci/a.yml", "/.github/a.yml", "/.x/.env", "/a", "/d/.env", "/d/.github/b.yml"];
    let tree = TestTree::new(files.map(|path| (path, "")));
    for (pattern, expected, hidden) in [
        ("*", &["/a"][..], 6),
        ("**/*", &["/a"], 6),
        ("?env", &[], 6),
        ("[.]env", &[], 6),
        ("*.env", &[], 6),
        // Directories that match are not entered, and count.
        (".env*", &["/.env", "/d/.env"], 4),
        ("**/.env*", &["/.env", "/d/.env"], 4),
        ("/.env", &["/.env"], 0),
        ("*/.env", &["/d/.env"], 4),
        (".*", &["/.env", "/d/.env"], 4),
        (".github/*.yml", &["/.github/a.yml"], 1),
        (".github/**/*.yml", &["/.github/a.yml"], 1),
        (".github/**", &["/.github/a.yml"], 1),
        ("/.github/.ci/*", &["/.github/.ci/a.yml"], 0),
        ("**/.github/*.yml", &["/.github/a.yml", "/d/.github/b.yml"], 5),
        ("{.github,.x}/{.env,*.yml}", &["/.github/a.yml", "/.x/.env"], 3),
        ("{.github/a,d/.github/b}.yml", &["/.github/a.yml", "/d/.github/b.yml"], 0),
        ("{.,}{e,}nv", &["/.env", "/d/.env"], 4),
        ("{,a}{,*}.env", &["/.env", "/d/.env"], 4),
        ("{*.env,*.rs}", &[], 6),
        ("{,a}*.env", &[], 6),
        ("{*,b}.github/**", &[], 4),
        ("*{.env,}", &["/a"], 6),
        ("{./.env,/d/.env}", &["/.env", "/d/.env"], 0),
        ("{.,d}/.env", &["/.env", "/d/.env"], 0),
        ("a/.env", &[], 0),
        ("{a/.env,*}", &["/a"], 4),
        ("{d/.github/**,**/a}", &["/a", "/d/.github/b.yml"], 5),
    ] {
        let (names, h, _) = shown(&tree, &GlobRequest::new(pattern));
        assert_eq!(
            (names.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), h),
            (expected, hidden),
            "{pattern}"
        );
        let all = shown(&tree, &GlobRequest::new(pattern).hidden()).0;
        assert!(names.iter().all(|name| all.contains(name)), "{pattern}");
    }
    let directories = GlobRequest::new(".*").kinds(EntryKinds::Directories);
    assert_eq!(shown(&tree, &directories).0, ["/.env.d", "/.github", "/.x", "/d/.github"]);
}

#[test]
fn only_literal_dots_match_hidden_names() {
    let files = ["/.a/.b/x", "/.a/.x", "/.a/x", "/.env", "/.env.d/y", "/a.env", "/d/.a/x", "/d/.env", "/d/e/x", "/x"];
    let tree = TestTree::new(files.map(|path| (path, "")));
    for (pattern, expected, hidden) in [
        // Without a `/`: in hidden directories, too.
        ("*", &["/.a/.b/x", "/.a/x", "/.env.d/y", "/a.env", "/d/.a/x", "/d/e/x", "/x"][..], 3),
        ("x", &["/.a/.b/x", "/.a/x", "/d/.a/x", "/d/e/x", "/x"], 3),
        ("?", &["/.a/.b/x", "/.a/x", "/.env.d/y", "/d/.a/x", "/d/e/x", "/x"], 3),
        (".x", &["/.a/.x"], 2),
        (".*", &["/.a/.x", "/.env", "/d/.env"], 0),
        (".env*", &["/.env", "/d/.env"], 1),
        ("*.env", &["/a.env"], 3),
        ("?env", &[], 3),
        ("[.]env", &[], 3),
        ("[!a]x", &[], 3),
        ("{,a}.env", &["/.env", "/a.env", "/d/.env"], 1),
        ("{.x,y}", &["/.a/.x", "/.env.d/y"], 2),
        ("**", &["/.a/.b/x", "/.a/x", "/.env.d/y", "/a.env", "/d/.a/x", "/d/e/x", "/x"], 3),
        // With a `/`: only if the component of the pattern has a literal dot.
        ("**/*", &["/a.env", "/d/e/x", "/x"], 5),
        ("**/x", &["/d/e/x", "/x"], 5),
        ("/x", &["/x"], 0),
        ("*/x", &[], 3),
        ("*/*/x", &["/d/e/x"], 5),
        (".*/x", &["/.a/x"], 0),
        (".a/**", &["/.a/x"], 2),
        (".a/**/.*", &["/.a/.x"], 1),
        (".a/.b/*", &["/.a/.b/x"], 0),
        ("**/.a/x", &["/.a/x", "/d/.a/x"], 5),
        ("**/.env", &["/.env", "/d/.env"], 3),
        ("**/[.]a/x", &[], 5),
        // An alternative shows a directory that another one does not match.
        ("{.a/.x,*/x}", &["/.a/.x"], 2),
        ("{.a/.b/x,**/x}", &["/.a/.b/x", "/d/e/x", "/x"], 5),
    ] {
        let (names, h, _) = shown(&tree, &GlobRequest::new(pattern).hidden_names(HiddenNames::Spelled));
        assert_eq!(
            (names.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), h),
            (expected, hidden),
            "{pattern}"
        );
    }
    let directories = |pattern| {
        let req = GlobRequest::new(pattern).kinds(EntryKinds::Directories).hidden_names(HiddenNames::Spelled);
        shown(&tree, &req).0
    };
    assert_eq!(directories("*"), ["/d", "/d/e"]);
    assert_eq!(directories(".*"), ["/.a", "/.a/.b", "/.env.d", "/d/.a"]);
    assert_eq!(directories("**/.a"), ["/.a", "/d/.a"]);
}

#[test]
fn with_literal_dots_ignore_files_only_exclude() {
    let tree = TestTree::new([
        ("/.gitignore", "!.env\n.cache/\n"),
        ("/.env", ""),
        ("/.cache/x", ""),
        ("/.git/x", ""),
        ("/.d/x", ""),
    ]);
    let req = |pattern: &str| GlobRequest::new(pattern).hidden_names(HiddenNames::Spelled);
    for (req, expected) in [
        (req("*"), &["/.d/x"][..]),
        (req("*").no_ignore(), &["/.cache/x", "/.d/x", "/.git/x"]),
        (req(".git/*"), &[]),
        (req(".git/*").no_ignore(), &["/.git/x"]),
        (req(".env"), &["/.env"]),
    ] {
        assert_eq!(shown(&tree, &req).0, expected, "{req:?}");
    }
}

#[test]
fn many_alternatives_include_hidden_names_as_few_do() {
    let tree = TestTree::new([("/.github/wf/ci.yml", ""), ("/a", "")]);
    let others = (0..200).map(|n| format!(",.github/f{n}")).collect::<String>();
    assert_eq!(shown(&tree, &GlobRequest::new(format!("{{.github/wf/ci.yml{others}}}"))).0, ["/.github/wf/ci.yml"]);
    let too_many = format!("{}.x", "{a/,b/}".repeat(13));
    let error = find(&tree, &GlobRequest::new(&too_many)).expect_err("there are too many expansions");
    assert!(error.kind() == ErrorKind::InvalidPattern && error.message().contains("start with a dot"), "{error}");
    find(&tree, &GlobRequest::new(too_many.replace(".x", "x"))).expect("there is no literal dot");
}

#[test]
fn ignored_names_and_git_stay_out_of_globs_that_spell_them() {
    let tree =
        TestTree::new([("/.gitignore", ".env\n.cache/\n"), ("/.env", ""), ("/.cache/x", ""), ("/.git/config", "")]);
    for pattern in [".env", ".cache/*", ".git/config", ".git/**"] {
        assert_eq!(shown(&tree, &GlobRequest::new(pattern)).0, [""; 0], "{pattern}");
    }
    assert_eq!(shown(&tree, &GlobRequest::new(".env").no_ignore()).0, ["/.env"]);
    assert_eq!(shown(&tree, &GlobRequest::new(".git*")).0, ["/.gitignore"]);
}

/// Applies one ignore file at a time, and checks which files of a fixed tree stay visible.
#[test]
fn ignore_rules_have_the_semantics_of_ripgrep() {
    let everything = ["/a.log", "/build/out", "/src/a.log", "/src/build", "/src/keep.log", "/src/x/build/y"];
    for (at, rules, excluded) in [
        ("/.gitignore", "*.log", &["/a.log", "/src/a.log", "/src/keep.log"][..]),
        ("/.gitignore", "*.log\n!keep.log", &["/a.log", "/src/a.log"]),
        ("/.gitignore", "/a.log", &["/a.log"]),
        ("/.gitignore", "build/", &["/build/out", "/src/x/build/y"]),
        ("/.gitignore", "/build", &["/build/out"]),
        ("/.gitignore", "src/*.log", &["/src/a.log", "/src/keep.log"]),
        ("/.gitignore", "src/**/y", &["/src/x/build/y"]),
        ("/.gitignore", "# a.log\n\n  \n{bad", &[]),
        ("/.ignore", "build", &["/build/out", "/src/build", "/src/x/build/y"]),
        ("/.git/info/exclude", "a.log", &["/a.log", "/src/a.log"]),
        ("/src/.gitignore", "*.log", &["/src/a.log", "/src/keep.log"]),
        ("/src/.gitignore", "/a.log", &["/src/a.log"]),
        ("/.gitignore", "\u{feff}a.log", &["/a.log", "/src/a.log"]),
        ("/.gitignore", "a.log\r\n", &["/a.log", "/src/a.log"]),
    ] {
        let mut files: Vec<_> = everything.iter().map(|path| (*path, "")).collect();
        files.push((at, rules));
        let tree = TestTree::new(files);
        let (names, _, ignored) = shown(&tree, &all());
        let expected: Vec<_> = everything.iter().filter(|path| !excluded.contains(path)).collect();
        assert_eq!(names, expected.iter().map(|path| path.to_string()).collect::<Vec<_>>(), "{at}: {rules:?}");
        assert_eq!(ignored > 0, !excluded.is_empty(), "{at}: {rules:?}");
        assert_eq!(shown(&tree, &all().no_ignore()).0, everything, "{at}: {rules:?}");
    }
}

#[test]
fn rules_have_an_order() {
    for (rules, visible) in [
        (&[("/.gitignore", "x"), ("/.ignore", "!x")][..], true),
        (&[("/.gitignore", "!x"), ("/.ignore", "x")], false),
        (&[("/.git/info/exclude", "x"), ("/.gitignore", "!x")], true),
        (&[("/.gitignore", "x"), ("/d/.gitignore", "!x")], true),
        (&[("/.gitignore", "!x"), ("/d/.gitignore", "x")], false),
        (&[("/.ignore", "x"), ("/d/.gitignore", "!x")], false),
        // Rules of git end at the border of a repository; those of `.ignore` do not.
        (&[("/.gitignore", "x"), ("/d/.git/config", "")], true),
        (&[("/.gitignore", "x"), ("/d/.git", "gitdir: elsewhere")], true),
        (&[("/.ignore", "x"), ("/d/.git/config", "")], false),
        (&[("/d/.gitignore", "x"), ("/d/.git/config", "")], false),
    ] {
        let tree = TestTree::new(rules.iter().copied().chain([("/d/x", "")]));
        for at in ["/", "/d"] {
            let names = shown(&tree, &GlobRequest::new("x").path(path(at))).0;
            assert_eq!(names.contains(&"/d/x".to_owned()), visible, "{rules:?} from {at}");
        }
    }
}

#[test]
fn a_whitelisted_hidden_name_is_shown() {
    let tree = TestTree::new([("/.gitignore", "!.env"), ("/.env", ""), ("/.other", "")]);
    assert_eq!(shown(&tree, &all()).0, ["/.env"]);
}

#[test]
fn an_ignored_directory_is_walked_if_the_request_names_it() {
    let tree = TestTree::new([("/.gitignore", "build/\n*.o"), ("/build/a", ""), ("/build/b.o", "")]);
    assert_eq!(shown(&tree, &all().path(path("/build"))).0, ["/build/a"]);
}

#[test]
fn rules_above_the_search_reach_through_directories_without_rules() {
    let tree = TestTree::new([("/.gitignore", "/a/b/c/x\n/y"), ("/a/b/c/x", ""), ("/a/b/c/y", "")]);
    assert_eq!(shown(&tree, &all().path(path("/a/b/c"))).0, ["/a/b/c/y"]);
}

#[test]
fn an_ignore_file_that_cannot_be_applied_is_a_problem() {
    let huge = "x\n".repeat(600_000);
    let many = "x\n".repeat(10_001);
    for (node, kind) in [
        (TestNode::Locked, ErrorKind::PermissionDenied),
        (TestNode::Fifo, ErrorKind::Unsupported),
        (TestNode::Link("outside"), ErrorKind::PathEscape),
        (TestNode::File(huge.into()), ErrorKind::TooLarge),
        (TestNode::File(many.into()), ErrorKind::TooLarge),
    ] {
        let tree = TestTree::new([("/d/x", "")]).with("/d/.gitignore", node);
        for at in ["/", "/d"] {
            let result = find(&tree, &all().path(path(at))).expect("it walks");
            assert_eq!(result.entries.len(), 1);
            assert_eq!(result.problems.len(), 1, "{:?}", result.problems);
            assert_eq!((result.problems[0].path.as_str(), result.problems[0].code), ("/d/.gitignore", kind));
        }
    }
}

#[test]
fn hostile_rules_are_no_rules() {
    let braces = format!("{}x{}", "{".repeat(100_000), "}".repeat(100_000));
    let tree = TestTree::new([("/.gitignore", braces.as_str()), ("/x", "")]);
    assert_eq!(shown(&tree, &all()).0, ["/x"]);
}

#[test]
fn a_gitignore_that_excludes_every_name_counts_in_a_repository_only() {
    let package = |extra: &[&'static str]| {
        let mut files = vec![
            ("/package/.gitignore", "*.log\n/*\n!/debian/\n"),
            ("/package/a", ""),
            ("/package/a.log", ""),
            ("/package/sub/.gitignore", "b\n"),
            ("/package/sub/b", ""),
        ];
        files.extend(extra.iter().map(|path| (*path, "")));
        TestTree::new(files)
    };
    let (outside, _, ignored) = shown(&package(&[]), &all());
    assert_eq!((outside.len(), ignored), (3, 0), "{outside:?}");
    let below = all().path(path("/package/sub"));
    assert_eq!(shown(&package(&[]), &below).0, ["/package/sub/b"]);
    let (inside, _, _) = shown(&package(&["/.git/HEAD"]), &all());
    assert!(inside.is_empty(), "{inside:?}");
    let (nested, _, _) = shown(&package(&["/package/sub/.git/HEAD", "/package/sub/c"]), &all());
    assert_eq!(nested, ["/package/a", "/package/a.log", "/package/sub/c"]);
}

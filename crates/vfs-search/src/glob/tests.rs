//! Tables of globs.

use globset::{GlobBuilder, GlobSetBuilder};
use proptest::prelude::*;

use super::*;

#[test]
fn patterns_match_names_and_paths() {
    for (pattern, path, expected) in [
        ("*.rs", "a.rs", true),
        ("*.rs", "src/net/a.rs", true),
        ("*.rs", "a.rs.bak", false),
        ("*", ".hidden", true),
        ("a?c", "abc", true),
        ("?.txt", "é.txt", true),
        ("?.txt", "日.txt", true),
        ("[éa].txt", "é.txt", true),
        ("[!a].txt", "é.txt", true),
        ("[!a]", "a", false),
        ("[^a]", "b", true),
        ("[a-c]x", "bx", true),
        ("[a-c]x", "dx", false),
        ("[]x]", "]", true),
        ("[a-]", "-", true),
        (r"[\]]", "]", true),
        ("[+-9]x", "/x", false),
        ("{a,b}.txt", "b.txt", true),
        ("{a,{b,c}}.txt", "c.txt", true),
        ("a{,b}", "a", true),
        ("a{,b}", "ab", true),
        ("x,y", "x,y", true),
        (r"\*", "*", true),
        (r"\*", "a", false),
        (r"\{a\}", "{a}", true),
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/net/a.rs", false),
        ("src/*.rs", "x/src/a.rs", false),
        ("/a.rs", "a.rs", true),
        ("/a.rs", "src/a.rs", false),
        ("./a.rs", "src/a.rs", false),
        ("./src/a.rs", "src/a.rs", true),
        ("src//a.rs", "src/a.rs", true),
        ("src/**/*.rs", "src/a.rs", true),
        ("src/**/*.rs", "src/a/b/c.rs", true),
        ("src/**/*.rs", "srcs/a.rs", false),
        ("src/**/*.rs", "x/src/a.rs", false),
        ("a/b/*.rs", "a/bc/x.rs", false),
        ("a/b/*.rs", "a/b/c/x.rs", false),
        ("a/b/c", "a/b/c", true),
        ("a/b/c", "a/b/c/c", false),
        ("a/b/**/c/*.rs", "a/b/x/c/d.rs", true),
        ("a/b/**/c/*.rs", "a/c/d.rs", false),
        ("日/*.rs", "日/a.rs", true),
        ("日/*.rs", "日本/a.rs", false),
        ("src/**", "src/a/b", true),
        ("src/**", "src", false),
        ("**/a", "a", true),
        ("**/a", "x/y/a", true),
        ("**/x/*.rs", "a/x/b.rs", true),
        ("**", "a/b", true),
        ("**/**/a", "a", true),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b", true),
        ("a/**/b", "ab", false),
        ("a**b", "axxb", true),
        ("/a**b", "ax/xb", false),
        ("{src/net,lib}/*.rs", "src/net/a.rs", true),
        ("{src/net,lib}/*.rs", "lib/a.rs", true),
        ("{src/net,lib}/*.rs", "src/a.rs", false),
        ("src/{**,x}", "src/a/b", true),
        ("{.,src}/*.rs", "a.rs", true),
        ("{.,src}/*.rs", "src/a.rs", true),
        ("{.,src}/*.rs", "src/net/a.rs", false),
        ("{,src}/*.rs", "a.rs", true),
        ("{./src,/d}/*", "src/a", true),
        ("{./src,/d}/*", "d/a", true),
        ("{./src,/d}/*", "x/d/a", false),
        ("src/{.,net,a/./b}/*.rs", "src/a.rs", true),
        ("src/{.,net,a/./b}/*.rs", "src/a/b/c.rs", true),
        ("src/{,a}", "src/a", true),
        ("src/{,a}", "src", false),
        ("{{.,src},lib}/*.rs", "a.rs", true),
        ("{,a}{,b}/c", "c", true),
        ("{,a}{,b}/c", "ab/c", true),
        ("{**,src}/*.rs", "a.rs", true),
        ("{a/**,b}/c", "a/c", true),
        ("{src/,lib}", "src", false),
        ("{src/,lib}", "lib", true),
        ("{src/,lib/}", "x/lib", true),
        ("{./a,./b}", "b", true),
        ("{./a,./b}", "x/b", false),
        ("{src/,lib/}", "lib", true),
        ("{src/,lib/}/*", "lib/a", true),
        ("a{.,b}", "a.", true),
        ("target/", "target", true),
        ("[...slug]", "s", true),
        ("..hidden", "..hidden", true),
        ("a..b", "a..b", true),
        ("*.rs", "new\nline.rs", true),
        ("**/*.rs", "new\nline/x.rs", true),
        ("ABC", "abc", false),
    ] {
        let glob = GlobPattern::new(pattern).expect(pattern);
        assert_eq!(glob.matches(path), expected, "{pattern} {path}");
    }
}

#[test]
fn the_error_for_a_mistake_describes_it() {
    let deep = format!("{}a{}", "{".repeat(2000), "}".repeat(2000));
    let eleven = format!("{}a{}", "{".repeat(11), "}".repeat(11));
    let many = format!("{{{}}}", "a,".repeat(1001));
    let long = "x".repeat(4097);
    let classes = "[".repeat(4000);
    let huge = "*".repeat(1 << 20);
    let hidden_overrides = "{a/,b/}".repeat(8) + ".{" + &"[!a]".repeat(980) + "}";
    for (pattern, word) in [
        ("", "empty"),
        ("/", "names nothing"),
        ("./", "names nothing"),
        ("{./,/}", "names nothing"),
        ("a\0b", "NUL"),
        ("..", "'..'"),
        ("../x", "'..'"),
        ("a/../b", "'..'"),
        ("a/..", "'..'"),
        ("{..,a}/b", "'..'"),
        ("{a/..,b}", "'..'"),
        (r"\.\./x", "'..'"),
        ("[abc", "']'"),
        ("[", "']'"),
        ("{a,b", "'}'"),
        ("a}", "'{'"),
        ("[z-a]", "z-a"),
        ("a\\", "lone"),
        (&deep, "nested"),
        (&eleven, "nested"),
        (&many, "alternatives"),
        (&long, "4096"),
        (&classes, "']'"),
        (&huge, "4096"),
        (&hidden_overrides, "start with a dot"),
    ] {
        let error = GlobPattern::new(pattern).expect_err(&pattern[..pattern.len().min(20)]);
        assert_eq!(error.kind(), ErrorKind::InvalidPattern);
        assert!(error.message().starts_with("Invalid glob pattern:"), "{error}");
        assert!(error.message().contains(word), "{error} should name {word}");
        assert!(error.for_model().len() < 1024 && error.for_model().starts_with("Invalid glob pattern:"));
    }
}

#[test]
fn hostile_patterns_compile_and_match() {
    let long_name = "a".repeat(255);
    let deep_path = vec!["a"; 2000].join("/");
    for pattern in [
        "{a,b}".repeat(30),
        "{1..100000000}".to_owned(),
        "**/".repeat(30) + "x",
        "**/a/".repeat(300) + "x",
        "*a".repeat(40),
        "*a".repeat(2000),
        "?".repeat(4096),
        "*/".repeat(2000) + "x",
        "?a/".repeat(1300) + "x",
        "[!a]".repeat(1000),
        "{a/b,c/d}".repeat(20),
        "{a,b,c,d,e,f,g,h}/".repeat(100) + "x",
        "{a/,b/}".repeat(8) + "x{" + &"[!a]".repeat(980) + "}",
        "{a/,b/}".repeat(10) + "x{" + &"a,".repeat(900) + "}",
        "{a/,b/}".repeat(9) + &"{{{{{{{{{{/}}}}}}}}}}".repeat(6) + "x",
        "{a/x,b/y}{c/x,d/y}".repeat(6) + ".rs",
    ] {
        let glob = GlobPattern::new(&pattern).expect(&pattern[..10]);
        let mut answers = 0;
        for path in [&long_name, &deep_path, &format!("{deep_path}/b")] {
            answers += usize::from(glob.matches(path)) + usize::from(glob.reaches(path)) + 1;
        }
        assert!(answers >= 3);
    }
}

#[test]
fn only_directories_on_the_way_are_reached() {
    for (pattern, directory, expected) in [
        ("*.rs", "any/where", true),
        ("src/*.rs", "", true),
        ("src/*.rs", "src", true),
        ("src/*.rs", "docs", false),
        ("src/*.rs", "src/net", false),
        ("src/**/*.rs", "src/a/b/c", true),
        ("src/**/*.rs", "docs", false),
        ("s*/x/*.rs", "src", true),
        ("s*/x/*.rs", "src/y", false),
        ("{src,lib}/*.rs", "lib", true),
        ("{src,lib}/*.rs", "docs", false),
        ("{src/net,lib}/*.rs", "src", true),
        ("{src/net,lib}/*.rs", "src/net", true),
        ("{src/net,lib}/*.rs", "src/fs", false),
        ("{src/net,lib}/*.rs", "docs", false),
        ("/a.rs", "", true),
        ("/a.rs", "src", false),
        ("**/a/*.rs", "x/y", true),
        ("*/x", "a", true),
        ("*/x", "a/x", false),
    ] {
        let glob = GlobPattern::new(pattern).expect(pattern);
        assert_eq!(glob.reaches(directory), expected, "{pattern} {directory}");
    }
}

fn pattern_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just(".".to_owned()),
        Just("*".to_owned()),
        Just("?".to_owned()),
        Just("[ab]".to_owned()),
        Just("[!a]".to_owned()),
        Just("{a,b}".to_owned()),
        Just("{ab,*.}".to_owned()),
    ];
    let segment = prop_oneof![4 => prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat()), 1 => Just("**".to_owned())];
    prop::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"))
}

fn path_text() -> impl Strategy<Value = String> {
    let name = "[ab.]{1,4}".prop_filter("an ordinary name", |name| name != "." && name != "..");
    prop::collection::vec(name, 1..5).prop_map(|names| names.join("/"))
}

proptest! {
    #[test]
    fn it_agrees_with_globset_where_names_are_ascii(pattern in pattern_text(), path in path_text()) {
        let Ok(glob) = GlobPattern::new(&pattern) else { return Ok(()) };
        prop_assume!(!pattern.contains("***") && !pattern.contains("**{") && !pattern.split('/').any(|segment| segment == "."));
        // A negated class of `globset` matches a `/`, which here only `**` may.
        prop_assume!(!pattern.contains("[!a]") || !path.contains('/'));
        let theirs = if pattern.contains('/') { pattern.clone() } else { format!("**/{pattern}") };
        let theirs = GlobBuilder::new(&theirs).literal_separator(true).build().expect("valid for us, valid for them");
        let theirs = GlobSetBuilder::new().add(theirs).build().expect("small");
        prop_assert_eq!(glob.matches(&path), theirs.is_match(&path), "{} {}", pattern, path);
    }

    #[test]
    fn directories_of_a_match_are_reached(pattern in pattern_text(), path in path_text()) {
        let Ok(glob) = GlobPattern::new(&pattern) else { return Ok(()) };
        if glob.matches(&path) {
            for (at, _) in path.match_indices('/') {
                prop_assert!(glob.reaches(&path[..at]), "{} {}", pattern, &path[..at]);
            }
        }
    }

    #[test]
    fn any_text_compiles_or_is_refused(pattern in ".{0,60}", path in ".{0,20}") {
        if let Ok(glob) = GlobPattern::new(&pattern) {
            let _ = glob.matches(&path) | glob.reaches(&path);
        }
    }
}

//! The graph of modules in each crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::sources::{code_of, crates, rust_files};

/// A module by the names on its path from the root of its crate.
type Module = Vec<String>;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// The largest circle of modules that a crate may have, in files.
const MAX_CIRCLE: usize = 2;

#[test]
fn modules_that_need_each_other_are_at_most_two() {
    let circles: Vec<String> = crates()
        .iter()
        .flat_map(|(name, directory)| {
            let graph = graph_of(&directory.join("src"));
            let large = circles_of(&graph).into_iter().filter(|circle| circle.len() > MAX_CIRCLE);
            large
                .map(|circle| {
                    format!("{name}: {}", circle.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(", "))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(circles.is_empty(), "circles of more than {MAX_CIRCLE} modules:\n{}", circles.join("\n"));
}

/// Returns the modules below `src`, each with the modules that its code outside of tests names.
fn graph_of(src: &Path) -> Graph {
    let files: BTreeMap<Module, String> = rust_files(src)
        .into_iter()
        .map(|file| (module_of(src, &file), fs::read_to_string(&file).expect("a source file")))
        .filter(|(module, _)| !module.iter().any(|name| name == "tests" || name == "testing"))
        .collect();
    let names: BTreeSet<Module> = files.keys().cloned().collect();
    files
        .into_iter()
        .map(|(module, text)| {
            let code = code_of(&text);
            let uses = paths_in(&code).filter_map(|path| resolve(&module, &path, &names));
            let uses = uses.filter(|used| *used != module && !used.is_empty()).collect();
            (module, uses)
        })
        .collect()
}

fn module_of(src: &Path, file: &Path) -> Module {
    let relative = file.strip_prefix(src).expect("a file below the sources").with_extension("");
    let mut module: Module = relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|name| ["lib", "main", "mod"].contains(&name.as_str())) {
        module.pop();
    }
    module
}

/// Returns the paths in `code` that begin with `crate`, `self` or `super`, each up to its first brace.
fn paths_in(code: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = code.split(move |letter| !is_part(letter));
    words
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").take_while(|name| !name.is_empty()).collect::<Vec<_>>())
        .filter(|path| path.first().is_some_and(|first| ["crate", "self", "super"].contains(first)))
}

/// Returns the innermost module on `path`, which `module` names.
fn resolve(module: &Module, path: &[&str], names: &BTreeSet<Module>) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut at = if *first == "crate" { Module::new() } else { module.clone() };
    if *first == "super" {
        at.pop();
    }
    while let Some((&"super", after)) = rest.split_first() {
        at.pop();
        rest = after;
    }
    for name in rest {
        let mut inner = at.clone();
        inner.push((*name).to_owned());
        if !names.contains(&inner) {
            break;
        }
        at = inner;
    }
    names.contains(&at).then_some(at)
}

/// Returns the strongly connected components of `graph`: modules that reach each other.
fn circles_of(graph: &Graph) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reached_from(graph, module))).collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        let back = reached[module].iter().filter(|other| reached[**other].contains(module));
        back.map(|other| (*other).clone()).collect()
    };
    graph.keys().map(circle).filter(|circle| !circle.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn reached_from<'a>(graph: &'a Graph, start: &Module) -> BTreeSet<&'a Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![start.clone()]);
    while let Some(module) = open.pop() {
        for next in graph.get(&module).into_iter().flatten() {
            if reached.insert(next) {
                open.push(next.clone());
            }
        }
    }
    reached
}

#[test]
fn a_circle_is_found_through_every_kind_of_path() {
    let names: BTreeSet<Module> = [vec![], vec!["a"], vec!["a", "b"], vec!["c"]]
        .into_iter()
        .map(|module: Vec<&str>| module.into_iter().map(str::to_owned).collect())
        .collect();
    let module =
        |path: &str| -> Module { path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect() };
    for (from, code, expected) in [
        ("a", "use self::b::Type;", Some("a/b")),
        ("a/b", "use super::Type;", Some("a")),
        ("a/b", "use super::super::c::{Type, Other};", Some("c")),
        ("c", "crate::a::b::run()", Some("a/b")),
        ("c", "use crate::a::{Type};", Some("a")),
        ("c", "std::a::b", None),
    ] {
        let used = paths_in(code).find_map(|path| resolve(&module(from), &path, &names));
        assert_eq!(used, expected.map(module), "{code}");
    }
    let graph: Graph = [("a", "c"), ("a/b", "a"), ("c", "a/b")]
        .into_iter()
        .map(|(from, to)| (module(from), BTreeSet::from([module(to)])))
        .collect();
    assert_eq!(circles_of(&graph), [["a", "a/b", "c"].map(module).into()]);
}

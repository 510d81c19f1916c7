//! The graph of modules in each crate.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Names, SOURCES};

type Graph = BTreeMap<Names, BTreeSet<Names>>;

/// The largest circle of modules that a crate may have, in files.
const MAX_CIRCLE: usize = 2;

#[test]
fn modules_that_need_each_other_are_at_most_two() {
    let mut crates: BTreeMap<&str, Vec<(Names, &[Names])>> = BTreeMap::new();
    for source in SOURCES.iter().filter(|source| !source.is_for_tests()) {
        crates.entry(&source.package).or_default().push((source.module.clone(), &source.code.paths));
    }
    let mut found = Vec::new();
    for (package, modules) in crates {
        for circle in circles_of(&graph_of(&modules)).into_iter().filter(|circle| circle.len() > MAX_CIRCLE) {
            let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
            found.push(format!("{package}: {}", names.join(", ")));
        }
    }
    assert!(found.is_empty(), "circles of more than {MAX_CIRCLE} modules:\n{}", found.join("\n"));
}

/// Returns each module with the modules that its paths lead to. The root of a crate, which re-exports everything, is none.
fn graph_of(modules: &[(Names, &[Names])]) -> Graph {
    let existing: BTreeSet<&Names> =
        modules.iter().map(|(module, _)| module).filter(|module| !module.is_empty()).collect();
    let edges = modules.iter().map(|(module, paths)| {
        let targets = paths.iter().filter_map(|path| resolve(module, path, &existing));
        (module.clone(), targets.filter(|target| target != module).collect())
    });
    edges.collect()
}

/// Returns the innermost module on `path`, as code in `module` writes it.
fn resolve(module: &Names, path: &[String], existing: &BTreeSet<&Names>) -> Option<Names> {
    let mut target = module.clone();
    let mut parts = path.iter().peekable();
    match parts.peek()?.as_str() {
        "crate" => target.clear(),
        "self" | "super" => {}
        _ => return None,
    }
    for part in parts {
        match part.as_str() {
            "crate" | "self" => continue,
            "super" => drop(target.pop()),
            name => {
                target.push(name.to_owned());
                if !existing.contains(&target) {
                    target.pop();
                    break;
                }
            }
        }
    }
    existing.contains(&target).then_some(target)
}

/// Returns the strongly connected components of `graph`: modules that reach each other.
fn circles_of(graph: &Graph) -> BTreeSet<BTreeSet<&Names>> {
    let reached: BTreeMap<&Names, BTreeSet<&Names>> =
        graph.keys().map(|module| (module, reached_from(graph, module))).collect();
    let circles = reached.iter().map(|(module, reachable)| {
        let circle = reachable.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
        circle.copied().collect::<BTreeSet<_>>()
    });
    circles.filter(|circle| !circle.is_empty()).collect()
}

fn reached_from<'a>(graph: &'a Graph, start: &'a Names) -> BTreeSet<&'a Names> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        let next = graph.get(module).into_iter().flatten();
        open.extend(next.filter(|next| reached.insert(*next)));
    }
    reached
}

#[test]
fn a_path_is_resolved_to_its_module_and_a_circle_is_found() {
    let names = |path: &str| -> Names { path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect() };
    let modules = ["", "a", "a::b", "c"].map(names);
    let existing = modules.iter().filter(|module| !module.is_empty()).collect();
    for (from, path, expected) in [
        ("a", "self::b::Type", Some("a::b")),
        ("a::b", "super::Type", Some("a")),
        ("a::b", "super::super::c::Type", Some("c")),
        ("c", "crate::a::b::run", Some("a::b")),
        ("c", "crate::Type", None),
        ("c", "std::a::b", None),
    ] {
        assert_eq!(resolve(&names(from), &names(path), &existing), expected.map(names), "{path} in {from}");
    }
    let edges = [("a", "crate::c::run"), ("a::b", "super::Type"), ("c", "crate::a::b::run"), ("", "self::a::run")];
    let edges = edges.map(|(from, path)| (names(from), [names(path)]));
    let graph = graph_of(&edges.each_ref().map(|(from, paths)| (from.clone(), paths.as_slice())));
    assert_eq!(circles_of(&graph), [modules[1..].iter().collect()].into());
}

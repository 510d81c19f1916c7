//! Which crate may depend on which.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Crates of this workspace, and those of it that each may depend on. Nothing points up, and the command names the concrete
/// types itself: neither the facade nor a test double stands between.
const ALLOWED: &[(&str, &[&str])] = &[
    ("vfs-core", &[]),
    ("vfs-search", &["vfs-core"]),
    ("vfs-memory", &["vfs-core", "vfs-search"]),
    ("vfs-local", &["vfs-core", "vfs-search"]),
    ("vfs-composite", &["vfs-core", "vfs-search"]),
    ("vfs-layers", &["vfs-core", "vfs-search"]),
    ("vfs-policy", &["vfs-core", "vfs-search"]),
    ("vfs-versions", &["vfs-core", "vfs-memory", "vfs-search"]),
    ("vfs-store", &["vfs-core", "vfs-search"]),
    ("vfs-shell", &["vfs-core", "vfs-local", "vfs-search"]),
    ("vfs-remote", &["vfs-core", "vfs-search"]),
    (
        "vfs-sandbox",
        &[
            "vfs-core",
            "vfs-search",
            "vfs-memory",
            "vfs-local",
            "vfs-composite",
            "vfs-layers",
            "vfs-policy",
            "vfs-shell",
        ],
    ),
    ("vfs-virtual-shell", &["vfs-core"]),
    ("vfs-tools", &["vfs-core", "vfs-composite", "vfs-layers"]),
    ("vfs-testkit", &["vfs-core"]),
    ("vfs-store-testkit", &["vfs-core", "vfs-store", "vfs-testkit"]),
    (
        "vfs-config",
        &[
            "vfs-core",
            "vfs-search",
            "vfs-memory",
            "vfs-local",
            "vfs-composite",
            "vfs-layers",
            "vfs-policy",
            "vfs-versions",
            "vfs-store",
            "vfs-shell",
            "vfs-sandbox",
            "vfs-virtual-shell",
        ],
    ),
    (
        "agent-vfs",
        &[
            "vfs-core",
            "vfs-local",
            "vfs-memory",
            "vfs-search",
            "vfs-composite",
            "vfs-layers",
            "vfs-policy",
            "vfs-versions",
            "vfs-config",
            "vfs-store",
            "vfs-shell",
            "vfs-remote",
            "vfs-sandbox",
            "vfs-virtual-shell",
            "vfs-tools",
        ],
    ),
    (
        "vfs-cli",
        &[
            "vfs-core",
            "vfs-local",
            "vfs-memory",
            "vfs-search",
            "vfs-composite",
            "vfs-layers",
            "vfs-policy",
            "vfs-versions",
            "vfs-config",
            "vfs-store",
            "vfs-shell",
            "vfs-sandbox",
            "vfs-virtual-shell",
            "vfs-tools",
        ],
    ),
];

/// Packages that nobody depends on: they may see everything.
const TOPS: &[&str] = &["vfs-tests", "vfs-benches", "own-store"];

/// Crates that reach a file system; only `vfs-local` may.
const DISK: &[&str] = &["cap-std", "cap-fs-ext", "fs-err", "walkdir"];

/// Crates that reach the system, and the crates that may use them: files are one part of it, processes another.
const SYSTEM: &[&str] = &["libc", "rustix"];
const ON_THE_SYSTEM: &[&str] = &["vfs-local", "vfs-shell", "vfs-remote", "vfs-sandbox"];

/// Crates that need one function of the system, and the crate that provides it: the signals of a thread, and the free
/// space beside a SQLite file.
const ON_ONE_THING: [(&str, &str); 2] = [("vfs-search", "libc"), ("vfs-store", "rustix")];

pub(crate) fn metadata() -> Metadata {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo reads its workspace")
}

fn normal_dependencies(package: &Package) -> BTreeSet<&str> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
    normal.map(|dependency| dependency.name.as_str()).collect()
}

#[test]
fn crates_depend_only_on_what_lies_below_them() {
    let metadata = metadata();
    let own: BTreeSet<_> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    for package in &metadata.packages {
        let name = package.name.as_str();
        if TOPS.contains(&name) {
            continue;
        }
        let (_, allowed) = ALLOWED.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("{name} has no row"));
        for dependency in normal_dependencies(package).intersection(&own) {
            assert!(allowed.contains(dependency), "{name} must not depend on {dependency}");
        }
    }
    for (name, _) in ALLOWED {
        assert!(own.contains(name), "{name} has a row and is not there");
    }
}

#[test]
fn dev_dependencies_on_own_crates_have_no_version() {
    let metadata = metadata();
    for package in metadata.packages.iter().filter(|package| !TOPS.contains(&package.name.as_str())) {
        let own = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
        for dependency in own.filter(|dependency| dependency.kind == DependencyKind::Development) {
            let (name, of) = (&package.name, &dependency.name);
            // With a version, the crates could be published only in an order that does not exist.
            assert_eq!(
                dependency.req.to_string(),
                "*",
                "{name} names a version of {of}; use `{{ path = \"../{of}\" }}`"
            );
        }
    }
}

#[test]
fn only_the_local_backend_reaches_a_file_system() {
    for package in metadata().packages {
        let name = package.name.as_str();
        if name == "vfs-local" || TOPS.contains(&name) {
            continue;
        }
        for dependency in normal_dependencies(&package) {
            let may_reach = ON_THE_SYSTEM.contains(&name) || ON_ONE_THING.contains(&(name, dependency));
            let is_forbidden = SYSTEM.contains(&dependency) && !may_reach;
            assert!(!DISK.contains(&dependency) && !is_forbidden, "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_core_needs_no_runtime() {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--package", "vfs-core", "--edges", "normal,build", "--all-features", "--prefix", "none"])
        .output()
        .expect("cargo can be run");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8_lossy(&tree.stdout);
    assert!(tree.starts_with("vfs-core "), "{tree}");
    for line in tree.lines() {
        assert!(!["tokio", "async-std", "smol"].contains(&line.split(' ').next().unwrap_or_default()), "{line}");
    }
}

//! The source files of the crates, parsed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use syn::visit::{self, Visit};
use syn::{Attribute, ItemConst, ItemEnum, ItemMod, ItemStruct, ItemTrait, ItemUse, UseTree, Visibility};

use super::layering::metadata;

/// A module or item by the names on its path.
pub(crate) type Names = Vec<String>;

/// A source file of a crate and the names in it.
pub(crate) struct Source {
    pub(crate) package: String,
    pub(crate) file: PathBuf,
    /// Path of the module from the root of its crate.
    pub(crate) module: Names,
    pub(crate) text: String,
    pub(crate) code: Code,
}

/// The names in the code of a file, apart from unit tests.
#[derive(Default)]
pub(crate) struct Code {
    /// Paths that the code refers to.
    pub(crate) paths: Vec<Names>,
    /// Structs, enums and traits that the file declares.
    pub(crate) types: Vec<String>,
    pub(crate) constants: Vec<String>,
    /// Number of inline modules around the current item.
    depth: usize,
}

/// Every source file of the crates below `crates/`, sorted by path.
pub(crate) static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let mut sources = Vec::new();
    for (package, directory) in crates() {
        let root = directory.join("src");
        for file in rust_files(&root) {
            let text = fs::read_to_string(&file).expect("a source file is readable");
            let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut code = Code::default();
            code.visit_file(&syntax);
            sources.push(Source { package: package.clone(), module: module_of(&root, &file), file, text, code });
        }
    }
    sources
});

impl Source {
    /// Whether the file has only unit tests or what they need.
    pub(crate) fn is_for_tests(&self) -> bool {
        self.module.iter().any(|name| ["tests", "testing", "doubles"].contains(&name.as_str()))
    }
}

/// Returns the name and directory of each crate below `crates/`, sorted.
pub(crate) fn crates() -> Vec<(String, PathBuf)> {
    let packages = metadata().packages.into_iter();
    let directory = |manifest: &Path| manifest.parent().expect("a manifest is in a directory").to_owned();
    let mut crates: Vec<_> =
        packages.map(|package| (package.name.to_string(), directory(package.manifest_path.as_std_path()))).collect();
    crates.retain(|(_, directory)| directory.parent().is_some_and(|parent| parent.ends_with("crates")));
    crates.sort();
    crates
}

/// Returns the Rust files below `directory`, sorted.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory is listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn module_of(root: &Path, file: &Path) -> Names {
    let relative = file.strip_prefix(root).expect("a file below the root").with_extension("");
    let mut module: Names = relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|name| ["lib", "main", "mod"].contains(&name.as_str())) {
        module.pop();
    }
    module
}

/// Whether an item with these attributes is compiled only for unit tests or documentation.
fn is_extra(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| ["test", "doc"].contains(&list.tokens.to_string().as_str()))
    })
}

impl Code {
    /// Adds a path as code of the file's own module would write it.
    fn add(&mut self, mut path: Names) {
        let supers = path.iter().take_while(|name| *name == "super").count().min(self.depth);
        if supers > 0 {
            path.splice(..supers, ["self".to_owned()]);
        }
        self.paths.push(path);
    }

    fn add_use(&mut self, prefix: &[String], tree: &UseTree) {
        let mut path = prefix.to_vec();
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                return self.add_use(&path, &part.tree);
            }
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.add_use(prefix, tree)),
            UseTree::Name(name) => path.push(name.ident.to_string()),
            UseTree::Rename(rename) => path.push(rename.ident.to_string()),
            UseTree::Glob(_) => {}
        }
        self.add(path);
    }
}

impl<'ast> Visit<'ast> for Code {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_extra(&item.attrs) {
            self.depth += 1;
            visit::visit_item_mod(self, item);
            self.depth -= 1;
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // A re-export gives an item a second name and needs nothing of it.
        if matches!(item.vis, Visibility::Inherited) && !is_extra(&item.attrs) {
            self.add_use(&[], &item.tree);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.types.push(item.ident.to_string());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.types.push(item.ident.to_string());
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.types.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.constants.push(item.ident.to_string());
        visit::visit_item_const(self, item);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

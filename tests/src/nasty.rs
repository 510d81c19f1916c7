//! A tree with entries whose results are hard to merge into order in a parallel search.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use bytes::Bytes;
use tempfile::TempDir;
use vfs_core::VfsPath;

use crate::sketch::Node;

/// Text that the searches of a [`NastyTree`] look for. Some lines have it in capitals.
pub const NEEDLE: &str = "needle";

/// Names whose order among one another is another with a `/` behind them than without.
const AROUND_A_SLASH: [&str; 12] = ["a", "a b", "a!", "a+", "a-b", "a.b", "a.b.c", "a0", "aa", "a_", "a~", "\u{e4}"];

const LOCKED_DIRECTORY: &str = "order/a+.locked";

/// Deeper than as many directories as a backend may want to hold open.
const DEPTH: usize = 120;

/// Files and directories that sort around `/`, a huge file among many small ones, matches in clumps, deep chains, empty
/// and unreadable things, links, ignore files and every kind of text.
///
/// The same for the same seed. `lines` is what a search with the default settings has to find, in order.
#[derive(Debug)]
pub struct NastyTree {
    /// By absolute paths.
    pub nodes: BTreeMap<String, Node>,
    /// The paths and lines that have [`NEEDLE`] and are visible, sorted.
    pub lines: Vec<(String, u64)>,
    random: fastrand::Rng,
}

/// A [`NastyTree`] on the disk, until it is dropped.
#[derive(Debug)]
pub struct NastyDirectory {
    root: TempDir,
}

impl NastyDirectory {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for NastyDirectory {
    /// Unlocks its one locked directory, which could not be removed otherwise.
    fn drop(&mut self) {
        // Where that fails nothing was locked yet, or the directory stays behind; neither is worth a panic.
        let _ = fs::set_permissions(self.path().join(LOCKED_DIRECTORY), fs::Permissions::from_mode(0o700));
    }
}

impl NastyTree {
    /// The tree of `seed`.
    pub fn new(seed: u64) -> Self {
        let (nodes, lines) = (BTreeMap::new(), Vec::new());
        let mut tree = Self { nodes, lines, random: fastrand::Rng::with_seed(seed) };
        tree.around_slashes("/order", 2);
        tree.one_among_many();
        tree.clumps();
        tree.chain();
        tree.encodings();
        tree.left_out();
        for (path, node) in [
            ("/empty/a/b/c", Node::Directory),
            ("/empty/a.b", Node::Directory),
            ("/order/a/a.locked", Node::LockedFile),
            ("/order/a/a/locked", Node::LockedFile),
            ("/many/small0007.locked", Node::LockedFile),
            ("/zz", Node::LockedFile),
        ] {
            tree.nodes.insert(path.to_owned(), node);
        }
        tree.nodes.insert(format!("/{LOCKED_DIRECTORY}"), Node::LockedDirectory);
        tree.lines.sort();
        tree
    }

    /// The files alone, for a backend that knows nothing else.
    pub fn files(&self) -> impl Iterator<Item = (VfsPath, Bytes)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Node::File(bytes) => Some((VfsPath::parse(path).expect("the paths of the tree are valid"), bytes.clone())),
            _ => None,
        })
    }

    /// Makes the tree in a directory of the host, with links and names that only a disk has.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    pub fn on_disk(&self) -> io::Result<NastyDirectory> {
        let made = NastyDirectory { root: tempfile::tempdir()? };
        let root = made.path();
        let mut locked = Vec::new();
        for (path, node) in &self.nodes {
            let host = root.join(path.trim_start_matches('/'));
            fs::create_dir_all(host.parent().unwrap_or(root))?;
            match node {
                Node::File(bytes) => fs::write(&host, bytes)?,
                Node::LockedFile => {
                    fs::write(&host, "")?;
                    locked.push(host);
                }
                Node::Directory => fs::create_dir_all(&host)?,
                Node::LockedDirectory => {
                    fs::create_dir_all(&host)?;
                    locked.push(host);
                }
            }
        }
        for (target, link) in [
            ("a.b", "order/a link"),
            ("a", "order/a.link"),
            ("..", "order/a/circle"),
            ("nowhere", "order/a/a.nowhere"),
            ("nowhere", "order/a0.nowhere"),
            ("/", "order/aa.outside"),
            ("itself", "many/itself"),
        ] {
            symlink(target, root.join(link))?;
        }
        fs::write(root.join("order/a").join(std::ffi::OsStr::from_bytes(b"not utf-8 \xff")), NEEDLE)?;
        // Last, and only taken notice of where the tests do not run as root.
        locked.iter().try_for_each(|host| fs::set_permissions(host, fs::Permissions::from_mode(0o000)))?;
        Ok(made)
    }

    /// Adds a visible file.
    fn file(&mut self, path: &str, text: &str) {
        for (line, text) in (1..).zip(text.split('\n')) {
            if text.contains(NEEDLE) {
                self.lines.push((path.to_owned(), line));
            }
        }
        self.hide(path, text.as_bytes());
    }

    /// Adds a file in which nothing is found.
    fn hide(&mut self, path: &str, bytes: &[u8]) {
        self.nodes.insert(path.to_owned(), Node::File(Bytes::copy_from_slice(bytes)));
    }

    /// `lines` lines, one in `rarity` with the needle.
    fn text(&mut self, lines: usize, rarity: u32) -> String {
        let mut text = String::new();
        for line in 0..lines {
            let word = match self.random.u32(..rarity * 2) {
                0 => NEEDLE,
                1 => "needle needle",
                2 => "NEEDLE",
                _ => "hay",
            };
            text.push_str(&format!("line {line} is {word} number {}\n", self.random.u16(..)));
        }
        text
    }

    fn around_slashes(&mut self, directory: &str, depth: usize) {
        for (n, name) in AROUND_A_SLASH.into_iter().enumerate() {
            let path = format!("{directory}/{name}");
            if depth > 0 && n % 3 == 0 {
                self.around_slashes(&path, depth - 1);
            } else {
                let lines = self.random.usize(..8);
                let text = self.text(lines, 2);
                self.file(&path, &text);
            }
        }
    }

    fn one_among_many(&mut self) {
        for n in 0..150 {
            let text = self.text(2, 3);
            self.file(&format!("/many/small{n:04}"), &text);
        }
        let text = self.text(6_000, 40);
        self.file("/many/small0003.huge", &text);
    }

    fn clumps(&mut self) {
        for n in 0..20 {
            let text = if n % 7 == 3 { self.text(400, 1) } else { "nothing but hay\n".repeat(n * 10) };
            self.file(&format!("/clumps/{n:02}"), &text);
        }
    }

    fn chain(&mut self) {
        let mut directory = "/deep".to_owned();
        for depth in 0..DEPTH {
            directory.push_str("/d");
            if depth % 10 == 0 {
                let text = self.text(3, 1);
                self.file(&format!("{directory}/d.f"), &text);
                self.file(&format!("{directory}/c"), &text);
            }
        }
    }

    fn encodings(&mut self) {
        self.file("/text/crlf", "one needle\r\ntwo\r\nthree needle\r\n");
        self.file("/text/no-final-newline", "hay\nneedle");
        self.file("/text/empty", "");
        self.file("/text/newlines", "\n\n\n");
        self.file("/text/long", &format!("{}needle{}\nneedle\n", "x".repeat(100_000), "y".repeat(100_000)));
        let utf16: Vec<u8> = "\u{feff}hay\nneedle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        self.hide("/text/utf-16", &utf16);
        self.lines.push(("/text/utf-16".to_owned(), 2));
        self.hide("/text/latin-1", b"caf\xe9\nneedle \xe9\n");
        self.lines.push(("/text/latin-1".to_owned(), 2));
    }

    /// Adds files that visibility rules and binary detection leave out, and others beside them.
    fn left_out(&mut self) {
        self.hide("/text/binary", b"needle\n\0needle\n");
        self.hide("/.hidden/a", b"needle\n");
        self.hide("/order/.a", b"needle\n");
        self.hide("/ignored/.gitignore", b"*.skip\n!kept.skip\nbuild/\n");
        self.hide("/ignored/deeper/.ignore", b"!needed.skip\n");
        for path in ["/ignored/a.skip", "/ignored/deeper/a.skip", "/ignored/build/a", "/ignored/a/build/kept.skip"] {
            self.hide(path, b"needle\n");
        }
        for path in ["/ignored/kept.skip", "/ignored/deeper/needed.skip", "/ignored/a.kept", "/ignored/z/build.kept"] {
            self.file(path, "hay\nneedle\n");
        }
    }
}

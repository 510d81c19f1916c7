//! The tree of watched directories, by inotify watch descriptor.

use std::collections::HashMap;

use vfs_core::VfsPath;

use crate::fs::root::RESERVED_PREFIX;

/// A watch descriptor: it stays the same when the directory is renamed, and is not reused for another one.
pub(super) type WatchDescriptor = i32;

/// An entry of a watched directory.
pub(super) type WatchedEntryRef<'a> = (WatchDescriptor, &'a str);

/// The watched directories as a tree of names, so that renaming a directory moves everything below it in one step.
#[derive(Debug, Default)]
pub(super) struct WatchedDirTree {
    nodes: HashMap<WatchDescriptor, WatchedDirNode>,
}

/// A watched directory, with its place in the tree.
#[derive(Debug, Default)]
struct WatchedDirNode {
    /// The parent and the name in it; `None` for the root.
    parent: Option<(WatchDescriptor, String)>,
    children: HashMap<String, WatchDescriptor>,
}

/// The result of placing a directory in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirPlacementOutcome {
    /// The directory already was in that place.
    Unchanged,
    /// The directory is new in that place.
    Placed,
    /// The directory is mounted below itself, so it has no place in the tree.
    Refused,
}

impl WatchedDirTree {
    pub(super) fn contains(&self, id: WatchDescriptor) -> bool {
        self.nodes.contains_key(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = WatchDescriptor> {
        self.nodes.keys().copied()
    }

    /// Returns the directory `name` of `parent`.
    pub(super) fn child(&self, parent: WatchDescriptor, name: &str) -> Option<WatchDescriptor> {
        self.nodes.get(&parent)?.children.get(name).copied()
    }

    /// Returns the names from the root down to `id`, or `None` if it is not watched.
    pub(super) fn names(&self, id: WatchDescriptor) -> Option<Vec<&str>> {
        let mut names = Vec::new();
        let mut node = self.nodes.get(&id)?;
        while let Some((parent, name)) = &node.parent {
            names.push(name.as_str());
            node = self.nodes.get(parent)?;
        }
        names.reverse();
        Some(names)
    }

    /// Returns the path of `id`, or `None` if it is not watched or its path is too long.
    pub(super) fn path(&self, id: WatchDescriptor) -> Option<VfsPath> {
        VfsPath::parse(&self.names(id)?.join("/")).ok()
    }

    /// Moves `id` to its place, wherever it was before. Returns the directories that were watched there, which are
    /// removed from the tree.
    pub(super) fn place(
        &mut self,
        id: WatchDescriptor,
        parent: Option<(WatchDescriptor, &str)>,
    ) -> (DirPlacementOutcome, Vec<WatchDescriptor>) {
        let target = parent.map(|(parent, name)| (parent, name.to_owned()));
        if self.nodes.get(&id).is_some_and(|node| node.parent == target) {
            return (DirPlacementOutcome::Unchanged, Vec::new());
        }
        let Some((parent, name)) = target else {
            self.nodes.insert(id, WatchedDirNode::default());
            return (DirPlacementOutcome::Placed, Vec::new());
        };
        if !self.contains(parent) || self.is_at_or_below(parent, id) {
            return (DirPlacementOutcome::Refused, Vec::new());
        }
        self.detach(id);
        let removed = self.child(parent, &name).map(|replaced| self.remove(replaced)).unwrap_or_default();
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.children.insert(name.clone(), id);
        }
        self.nodes.entry(id).or_default().parent = Some((parent, name));
        (DirPlacementOutcome::Placed, removed)
    }

    /// Removes `id` and everything below it from the tree, and returns them.
    pub(super) fn remove(&mut self, id: WatchDescriptor) -> Vec<WatchDescriptor> {
        self.detach(id);
        let (mut pending, mut removed) = (vec![id], Vec::new());
        while let Some(id) = pending.pop() {
            if let Some(node) = self.nodes.remove(&id) {
                pending.extend(node.children.into_values());
                removed.push(id);
            }
        }
        removed
    }

    fn detach(&mut self, id: WatchDescriptor) {
        let target = self.nodes.get(&id).and_then(|node| node.parent.clone());
        if let Some((parent, name)) = target
            && let Some(node) = self.nodes.get_mut(&parent)
        {
            node.children.remove(&name);
        }
    }

    fn is_at_or_below(&self, id: WatchDescriptor, top: WatchDescriptor) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == top {
                return true;
            }
            at = self.nodes.get(&id).and_then(|node| node.parent.as_ref()).map(|(parent, _)| *parent);
        }
        false
    }
}

pub(super) fn to_owned_ref((dir, name): WatchedEntryRef<'_>) -> (WatchDescriptor, String) {
    (dir, name.to_owned())
}

pub(super) fn is_reserved((_, name): WatchedEntryRef<'_>) -> bool {
    name.starts_with(RESERVED_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> WatchedDirTree {
        let mut tree = WatchedDirTree::default();
        for (id, parent) in [(1, None), (2, Some((1, "a"))), (3, Some((2, "b"))), (4, Some((3, "c")))] {
            assert_eq!(tree.place(id, parent), (DirPlacementOutcome::Placed, Vec::new()));
        }
        tree
    }

    fn path(tree: &WatchedDirTree, id: WatchDescriptor) -> Option<String> {
        tree.path(id).map(|path| path.to_string())
    }

    #[test]
    fn moving_a_directory_moves_its_subtree() {
        let mut tree = tree();
        assert_eq!(tree.place(3, Some((2, "b"))), (DirPlacementOutcome::Unchanged, Vec::new()));
        assert_eq!(tree.place(3, Some((1, "x"))), (DirPlacementOutcome::Placed, Vec::new()));
        assert_eq!((path(&tree, 1), path(&tree, 4)), (Some("/".into()), Some("/x/c".into())));
        assert_eq!((tree.child(2, "b"), tree.child(1, "x")), (None, Some(3)));
        assert_eq!(
            tree.place(2, Some((3, "c"))),
            (DirPlacementOutcome::Placed, vec![4]),
            "the directory that was there is removed"
        );
        assert_eq!((path(&tree, 2), path(&tree, 4)), (Some("/x/c".into()), None));
    }

    #[test]
    fn a_directory_is_refused_below_itself_or_an_unknown_parent() {
        let mut tree = tree();
        for (id, parent) in [(2, 4), (2, 2), (1, 4), (5, 9)] {
            assert_eq!(tree.place(id, Some((parent, "n"))), (DirPlacementOutcome::Refused, Vec::new()));
        }
        assert_eq!(path(&tree, 4), Some("/a/b/c".into()));
    }

    #[test]
    fn removing_a_directory_removes_its_subtree() {
        let mut tree = tree();
        let mut removed = tree.remove(3);
        removed.sort_unstable();
        assert_eq!((removed, tree.child(2, "b"), tree.contains(2)), (vec![3, 4], None, true));
        assert!(tree.remove(3).is_empty());
    }
}

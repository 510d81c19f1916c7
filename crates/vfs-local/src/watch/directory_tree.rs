//! The directories that are watched: what each watch descriptor of the kernel stands for.

use std::collections::HashMap;

use vfs_core::VfsPath;

use crate::fs::root::RESERVED;

/// A directory as the kernel calls it: a number that stays with it when it is renamed, and is not given to another.
pub(super) type Id = i32;

/// An entry of a watched directory.
pub(super) type Place<'a> = (Id, &'a str);

/// A tree of names, so that a directory is renamed with all that is below it in one step.
#[derive(Debug, Default)]
pub(super) struct Directories {
    nodes: HashMap<Id, Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Where it is; `None` for the root.
    above: Option<(Id, String)>,
    below: HashMap<String, Id>,
}

/// What became of a directory that was put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It was there.
    Known,
    /// It was not there.
    New,
    /// It is mounted below itself, where it has no place.
    Refused,
}

impl Directories {
    pub(super) fn contains(&self, id: Id) -> bool {
        self.nodes.contains_key(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.nodes.keys().copied()
    }

    /// The directory `name` of `above`.
    pub(super) fn child(&self, above: Id, name: &str) -> Option<Id> {
        self.nodes.get(&above)?.below.get(name).copied()
    }

    /// The names from the root down to `id`; `None` where it is not watched.
    pub(super) fn names(&self, id: Id) -> Option<Vec<&str>> {
        let mut names = Vec::new();
        let mut node = self.nodes.get(&id)?;
        while let Some((above, name)) = &node.above {
            names.push(name.as_str());
            node = self.nodes.get(above)?;
        }
        names.reverse();
        Some(names)
    }

    /// The path of `id`; `None` where it is not watched, or is too long for a path.
    pub(super) fn path(&self, id: Id) -> Option<VfsPath> {
        VfsPath::parse(&self.names(id)?.join("/")).ok()
    }

    /// Puts `id` in its place, wherever it was before, and returns what was watched there, which is so no more.
    pub(super) fn put(&mut self, id: Id, above: Option<(Id, &str)>) -> (Put, Vec<Id>) {
        let place = above.map(|(above, name)| (above, name.to_owned()));
        if self.nodes.get(&id).is_some_and(|node| node.above == place) {
            return (Put::Known, Vec::new());
        }
        let Some((above, name)) = place else {
            self.nodes.insert(id, Node::default());
            return (Put::New, Vec::new());
        };
        if !self.contains(above) || self.is_at_or_below(above, id) {
            return (Put::Refused, Vec::new());
        }
        self.unlink(id);
        let gone = self.child(above, &name).map(|there| self.remove(there)).unwrap_or_default();
        if let Some(node) = self.nodes.get_mut(&above) {
            node.below.insert(name.clone(), id);
        }
        self.nodes.entry(id).or_default().above = Some((above, name));
        (Put::New, gone)
    }

    /// Forgets `id` and all below it, and returns them.
    pub(super) fn remove(&mut self, id: Id) -> Vec<Id> {
        self.unlink(id);
        let (mut pending, mut gone) = (vec![id], Vec::new());
        while let Some(id) = pending.pop() {
            if let Some(node) = self.nodes.remove(&id) {
                pending.extend(node.below.into_values());
                gone.push(id);
            }
        }
        gone
    }

    fn unlink(&mut self, id: Id) {
        let place = self.nodes.get(&id).and_then(|node| node.above.clone());
        if let Some((above, name)) = place
            && let Some(node) = self.nodes.get_mut(&above)
        {
            node.below.remove(&name);
        }
    }

    fn is_at_or_below(&self, id: Id, top: Id) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == top {
                return true;
            }
            at = self.nodes.get(&id).and_then(|node| node.above.as_ref()).map(|(above, _)| *above);
        }
        false
    }
}

pub(super) fn owned((dir, name): Place<'_>) -> (Id, String) {
    (dir, name.to_owned())
}

pub(super) fn is_reserved((_, name): Place<'_>) -> bool {
    name.starts_with(RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Directories {
        let mut tree = Directories::default();
        for (id, above) in [(1, None), (2, Some((1, "a"))), (3, Some((2, "b"))), (4, Some((3, "c")))] {
            assert_eq!(tree.put(id, above), (Put::New, Vec::new()));
        }
        tree
    }

    fn path(tree: &Directories, id: Id) -> Option<String> {
        tree.path(id).map(|path| path.to_string())
    }

    #[test]
    fn a_directory_moves_with_all_below_it() {
        let mut tree = tree();
        assert_eq!(tree.put(3, Some((2, "b"))), (Put::Known, Vec::new()));
        assert_eq!(tree.put(3, Some((1, "x"))), (Put::New, Vec::new()));
        assert_eq!((path(&tree, 1), path(&tree, 4)), (Some("/".into()), Some("/x/c".into())));
        assert_eq!((tree.child(2, "b"), tree.child(1, "x")), (None, Some(3)));
        assert_eq!(tree.put(2, Some((3, "c"))), (Put::New, vec![4]), "what was there is gone");
        assert_eq!((path(&tree, 2), path(&tree, 4)), (Some("/x/c".into()), None));
    }

    #[test]
    fn a_directory_has_no_place_below_itself_or_below_nothing() {
        let mut tree = tree();
        for (id, above) in [(2, 4), (2, 2), (1, 4), (5, 9)] {
            assert_eq!(tree.put(id, Some((above, "n"))), (Put::Refused, Vec::new()));
        }
        assert_eq!(path(&tree, 4), Some("/a/b/c".into()));
    }

    #[test]
    fn what_goes_takes_all_below_it() {
        let mut tree = tree();
        let mut gone = tree.remove(3);
        gone.sort_unstable();
        assert_eq!((gone, tree.child(2, "b"), tree.contains(2)), (vec![3, 4], None, true));
        assert!(tree.remove(3).is_empty());
    }
}

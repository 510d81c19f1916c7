//! Test of many changes at once: a subscriber that applies all events ends with the actual tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use futures::executor::block_on;
use vfs_core::watch::Change;
use vfs_core::{Backend, BackendExt, LsRequest, OpContext, RenameRequest, Version};

use crate::{Disk, path};

/// The tree according to the events: versions of files, and none for directories.
type Model = BTreeMap<String, Option<Version>>;

fn remove(model: &mut Model, at: &str) -> Vec<(String, Option<Version>)> {
    let below = format!("{at}/");
    let removed: Vec<_> = model.keys().filter(|path| *path == at || path.starts_with(&below)).cloned().collect();
    removed.into_iter().filter_map(|path| model.remove_entry(&path)).collect()
}

fn apply(model: &mut Model, change: &Change) {
    match change.clone() {
        Change::Created { path, version } | Change::Changed { path, version } => {
            model.insert(path.to_string(), version);
        }
        Change::Removed { path } => drop(remove(model, path.as_str())),
        Change::Renamed { from, to, version } => {
            remove(model, to.as_str());
            for (path, version) in remove(model, from.as_str()) {
                let path = path.replacen(from.as_str(), to.as_str(), 1);
                model.insert(path, version);
            }
            if version.is_some() {
                model.insert(to.to_string(), version);
            }
        }
        other => panic!("{other:?} invalidates the model"),
    }
}

fn actual_tree(disk: &Disk) -> Model {
    let listed = block_on(disk.files.ls(&OpContext::new(), LsRequest::new(path("/")).recursive())).expect("it lists");
    assert!(listed.problems.is_empty(), "{listed:?}");
    listed.entries.into_iter().map(|entry| (entry.path.to_string(), entry.version)).collect()
}

/// Pseudorandom numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Returns one of few paths, so that operations collide.
    fn place(&mut self, top: &str) -> String {
        let names = ["a", "b", "c"];
        let depth = 1 + self.below(4);
        let mut place = top.to_owned();
        for _ in 0..depth {
            place.push('/');
            place.push_str(names[self.below(names.len())]);
        }
        place
    }
}

/// Performs a random operation, and ignores failures.
fn disturb(disk: &Disk, numbers: &mut Numbers, top: &str) {
    let (one, other) = (numbers.place(top), numbers.place(top));
    let on_host = |place: &str| disk.root().join(place.trim_start_matches('/'));
    let (here, there) = (on_host(&one), on_host(&other));
    let _may_fail = match numbers.below(10) {
        0 | 1 => fs::create_dir_all(&here),
        2 => fs::create_dir_all(here.parent().unwrap_or(Path::new("/"))).and_then(|()| fs::write(&here, &other)),
        3 => fs::write(&here, &one),
        4 | 5 => fs::rename(&here, &there),
        6 => fs::remove_file(&here),
        7 => fs::remove_dir_all(&here),
        8 => {
            let _may_fail = block_on(disk.files.write_text(&one, &other));
            Ok(())
        }
        _ => {
            let request = RenameRequest::new(path(&one), path(&other)).overwrite();
            let _may_fail = block_on(disk.files.rename(&OpContext::new(), request));
            Ok(())
        }
    };
}

#[test]
fn a_subscriber_that_applies_all_events_has_the_actual_tree() {
    for seed in 0..12 {
        let disk = Disk::new();
        for top in ["w", "x", "y", "z"] {
            fs::create_dir(disk.root().join(top)).expect("directories are made");
        }
        let mut watch = disk.watch_all();
        let mut model = actual_tree(&disk);
        let mut numbers = Numbers(seed);
        for _ in 0..10 {
            std::thread::scope(|scope| {
                for top in ["/w", "/x", "/y", "/z"] {
                    let mut numbers = Numbers(numbers.below(usize::MAX) as u64);
                    let disk = &disk;
                    scope.spawn(move || (0..30).for_each(|_| disturb(disk, &mut numbers, top)));
                }
            });
            let changes = watch.changes();
            assert!(!format!("{changes:?}").contains(".vfs-tmp-"), "{changes:?}");
            changes.iter().for_each(|change| apply(&mut model, change));
            let there = actual_tree(&disk);
            let differs = |one: &Model, other: &Model| {
                let only = one.iter().filter(|(path, version)| other.get(*path) != Some(*version));
                only.map(|(path, version)| format!("{path} {version:?}")).collect::<Vec<_>>()
            };
            let (too_much, missing) = (differs(&model, &there), differs(&there, &model));
            assert!(
                model == there,
                "seed {seed}\nreported {too_much:#?}\nthere {missing:#?}\nby {:#?}",
                changes.iter().map(|change| format!("{change:?}")).collect::<Vec<_>>()
            );
        }
    }
}

//! Every law on every backend, as one named trial each.

use libtest_mimic::Arguments;

fn main() {
    let trials = vfs_tests::targets().into_iter().flat_map(vfs_testkit::trials).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

//! The laws of stores on the example, and the laws of backends on files over it.

use std::future::ready;
use std::sync::Arc;

use libtest_mimic::Arguments;
use own_store::TableStore;
use vfs_store::StoreBackend;
use vfs_store_testkit::{StoreFactory, StoreTarget, VersionScheme, store_trials};
use vfs_testkit::{Target, TargetFactory, trials};

fn main() {
    let stores = StoreFactory::new("table", async || {
        let store = TableStore::default();
        let target = StoreTarget::opened_by(move || ready(Ok(store.clone()))).await?;
        Ok(target.with_versions(VersionScheme::OfChange))
    });
    let files = TargetFactory::new("table-files", || Target::new(Arc::new(StoreBackend::new(TableStore::default()))));
    let laws = store_trials(stores).into_iter().chain(trials(files)).collect();
    libtest_mimic::run(&Arguments::from_args(), laws).exit();
}

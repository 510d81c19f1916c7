//! Files in buckets: in memory, at an S3 server in this process (`s3s-fs`), and at moto's server where `VFS_TEST_S3` names it.
#![cfg(feature = "object-store")]

mod faults;
mod listings;
mod races;
mod servers;
mod values;

use bytes::Bytes;
use chrono::{DateTime, TimeZone, Utc};
use vfs_core::VfsPath;
use vfs_store::{BucketStore, Key, Namespace, NewValue, Precondition, PutOutcome, Store, StoredMeta};

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a path")
}

fn key_in(namespace: &str, text: &str) -> Key {
    Key::new(Namespace::parse(namespace).expect("a namespace"), path(text))
}

fn key(text: &str) -> Key {
    key_in("", text)
}

fn at(second: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, second).single().expect("a time") + chrono::TimeDelta::microseconds(123_456)
}

fn value(text: &str) -> NewValue {
    NewValue::new(Bytes::copy_from_slice(text.as_bytes()), at(5)).created_at(at(1))
}

fn done(outcome: PutOutcome) -> StoredMeta {
    match outcome {
        PutOutcome::Applied(stored) => stored,
        PutOutcome::PreconditionFailed(found) => panic!("refused: {found:?}"),
    }
}

fn refused(outcome: PutOutcome) -> Option<StoredMeta> {
    match outcome {
        PutOutcome::PreconditionFailed(found) => found,
        PutOutcome::Applied(stored) => panic!("done: {stored:?}"),
    }
}

async fn put(store: &BucketStore, key: &Key, text: &str) -> StoredMeta {
    done(store.put(key, value(text), &Precondition::Any).await.expect("a put"))
}

async fn content(store: &BucketStore, key: &Key) -> Option<String> {
    let value = store.get(key, None).await.expect("an answer")?;
    Some(String::from_utf8(value.content.to_vec()).expect("text"))
}

/// Runs a test at each kind of bucket; that of a server that is not there says so, and passes.
macro_rules! everywhere {
    ($($test:ident),+ $(,)?) => {
        mod in_memory {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::servers::memory()).await;
            })+
        }

        mod s3s_fs {
            $(#[tokio::test]
            async fn $test() {
                let server = crate::servers::Server::start().await;
                super::$test(server.store().await).await;
            })+
        }

        mod moto {
            $(#[tokio::test]
            async fn $test() {
                if let Some(bucket) = crate::servers::moto().await {
                    super::$test(bucket.store().await).await;
                }
            })+
        }
    };
}
use everywhere;

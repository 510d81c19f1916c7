//! Many at once.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use futures::future::join_all;
use vfs_store::{Inspect, ListRequest, PostgresConfig, PostgresStore, Precondition, PutOutcome, Store};

use crate::lab::{Lab, in_lab, key, namespace, path, patient, server, value};

const PROCESSES: usize = 16;
const FILES: usize = 100;

/// Adds a line to a file, as often as it takes.
async fn add_line(store: &PostgresStore, text: &str, line: &str) {
    let key = key(text);
    loop {
        let (content, expected) = match store.get(&key, None).await.expect("it is got") {
            Some(found) => (found.content.to_vec(), Precondition::Version(found.stored.version)),
            None => (Vec::new(), Precondition::Absent),
        };
        let content = [content.as_slice(), line.as_bytes(), b"\n"].concat();
        if let PutOutcome::Applied(_) = store.put(&key, value(content), &expected).await.expect("it is put") {
            return;
        }
    }
}

/// The environment variable of a competing process: the schema, its number and how many edits it makes.
const ONE: &str = "VFS_TEST_POSTGRES_ONE";

/// Has that many processes make the edits between them.
async fn edit(lab: &Lab, edits: usize) {
    lab.store().await;
    let one = |number: usize| {
        let told = format!("{} {number} {}", lab.schema, edits / PROCESSES);
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command
            .args(["contention::one_competing_process", "--exact", "--ignored"])
            .env(ONE, told)
            .stdout(Stdio::null());
        command.spawn().expect("it starts")
    };
    let processes: Vec<_> = (0..PROCESSES).map(one).collect();
    for mut one in processes {
        assert!(one.wait().expect("it ends").success());
    }
}

#[tokio::test]
#[ignore = "one of several competing processes, which another test starts"]
async fn one_competing_process() {
    let (Ok(told), Some(url)) = (std::env::var(ONE), server()) else { return };
    let words: Vec<_> = told.split(' ').collect();
    let [schema, number, edits] = words[..] else { panic!("three words, not {told}") };
    let config = patient(PostgresConfig::new(&url).expect("a URL").schema(schema)).pool_size(2);
    let store = PostgresStore::open(config).await.expect("it opens");
    for edit in 0..edits.parse().expect("a number") {
        let edit: usize = edit;
        add_line(&store, &format!("/shared/{}", fastrand::usize(..FILES)), &format!("{number}:{edit}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_edit_under_contention_is_lost() {
    in_lab(async |lab| {
        let edits = std::env::var("VFS_TEST_POSTGRES_EDITS").map_or(2000, |text| text.parse().expect("a number"));
        edit(lab, edits).await;
        let store = lab.store().await;
        let mut lines: HashMap<String, usize> = HashMap::new();
        for entry in store.list(&namespace(), &ListRequest::level(path("/shared"))).await.expect("a page").entries {
            let found = store.get(&key(entry.path.as_str()), None).await.expect("it is got").expect("it is there");
            for line in std::str::from_utf8(&found.content).expect("text").lines() {
                *lines.entry(line.to_owned()).or_default() += 1;
            }
        }
        assert_eq!(lines.len(), edits / PROCESSES * PROCESSES);
        assert!(lines.values().all(|times| *times == 1));
        assert_eq!(store.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_create_one_wins() {
    in_lab(async |lab| {
        let store = lab.store().await;
        for round in 0..20 {
            let key = key(&format!("/{round}"));
            let tries = (0..32).map(|n| store.put(&key, value(format!("{n}")), &Precondition::Absent));
            let won =
                join_all(tries).await.into_iter().filter(|tried| matches!(tried, Ok(PutOutcome::Applied(_)))).count();
            assert_eq!(won, 1);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_changes_leave_no_lock() {
    in_lab(async |lab| {
        let store = PostgresStore::open(lab.config().pool_size(2)).await.expect("it opens");
        let _ = store.put(&key("/a"), value("0"), &Precondition::Any).await.expect("it is put");
        for polls in 0..60 {
            let key = key("/a");
            let mut change = store.put(&key, value(format!("{polls}")), &Precondition::Any);
            let mut rest: u32 = polls % 12;
            // Dropped after so many of its steps.
            std::future::poll_fn(|context| {
                rest = rest.saturating_sub(1);
                match change.as_mut().poll(context) {
                    std::task::Poll::Pending if rest > 0 => std::task::Poll::Pending,
                    _ => std::task::Poll::Ready(()),
                }
            })
            .await;
            drop(change);
        }
        let _ = store.put(&key("/a"), value("end"), &Precondition::Any).await.expect("nothing is in the way");
        assert_eq!(store.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

//! Two handles see each other's changes.

use vfs_store::{ChangePage, Inspect, Precondition, Sequence, Store, StoreChangeLog};

use crate::lab::{HANG_TIMEOUT, in_lab, key, namespace, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_told_to_another_handle() {
    in_lab(async |lab| {
        let (one, other) = (lab.store().await, lab.store().await);
        let _ = one.put(&key("/0"), value("x"), &Precondition::Any).await.expect("it is put");
        let mut seen = Sequence(0);
        for round in 0..50 {
            let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
            reader.changed(&namespace(), seen).await.expect("it is told");
            let page = reader.since(&namespace(), seen, 10).await.expect("a page");
            let ChangePage::Changes { changes, next, has_more } = page else { panic!("{page:?}") };
            assert_eq!((changes.len(), next, has_more), (1, Sequence(seen.0 + 1), false));
            seen = next;
            let waiting = tokio::spawn({
                let (reader, namespace) = (reader.clone(), namespace());
                async move { reader.changed(&namespace, seen).await }
            });
            let _ = writer.put(&key(&format!("/{round}")), value("x"), &Precondition::Any).await.expect("it is put");
            waiting.await.expect("no panic").expect("it is told");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_comes_by_itself() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let _ = store.put(&key("/a"), value("x"), &Precondition::Any).await.expect("it is put");
        let waiting = tokio::spawn({
            let (store, namespace) = (store.clone(), namespace());
            async move { store.changed(&namespace, Sequence(1)).await }
        });
        // Whoever listens is told by the server itself, not only found out by looking.
        let (listening, mut connection) =
            tokio_postgres::connect(&lab.url, tokio_postgres::NoTls).await.expect("a server");
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let tokio_postgres::AsyncMessage::Notification(message) = message {
                    tell.send(message.payload().to_owned()).expect("somebody waits");
                }
            }
        });
        listening.batch_execute(&format!("LISTEN \"vfs:{}\"", lab.schema)).await.expect("it listens");
        let is_watched = "SELECT count(*) FROM watched WHERE until > now()";
        while lab.client.query_one(is_watched, &[]).await.expect("an answer").get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        let _ = store.put(&key("/b"), value("x"), &Precondition::Any).await.expect("it is put");
        let told = tokio::time::timeout(HANG_TIMEOUT, told.recv()).await.expect("in time");
        assert_eq!(told.as_deref(), Some("2 acme/ann"));
        waiting.await.expect("no panic").expect("it is told");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listener_comes_back_and_nothing_is_missed() {
    in_lab(async |lab| {
        let store = lab.store().await;
        for round in 0..6 {
            let waiting = tokio::spawn({
                let (store, namespace) = (store.clone(), namespace());
                async move { store.changed(&namespace, Sequence(round)).await }
            });
            let kill =
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN \"vfs:' || $1 || '\"'";
            lab.client.query(kill, &[&lab.schema]).await.expect("an answer");
            let _ = store.put(&key("/a"), value("x"), &Precondition::Any).await.expect("it is put");
            waiting.await.expect("no panic").expect("it is told");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_changes_are_remembered() {
    in_lab(async |lab| {
        let store = lab.store().await;
        let writes = |number: usize| {
            (0..number).map(|_| vfs_store::Write::Put(crate::lab::path("/a"), value("x"))).collect::<Vec<_>>()
        };
        let batch = store.as_batch().expect("it has batches");
        for _ in 0..6 {
            let _ = batch.batch(&namespace(), &[], writes(1000)).await.expect("it is made");
        }
        let last = store.last_sequence(&namespace()).await.expect("a position");
        assert_eq!(last, Sequence(6000));
        assert_eq!(store.since(&namespace(), Sequence(0), 10).await, Ok(ChangePage::Expired(last)));
        assert_eq!(store.since(&namespace(), Sequence(6001), 10).await, Ok(ChangePage::Expired(last)));
        let page = store.since(&namespace(), Sequence(6000 - 4096), 10_000).await.expect("a page");
        assert!(matches!(&page, ChangePage::Changes { changes, .. } if changes.len() == 4096), "{page:?}");
        let rows: i64 = lab.client.query_one("SELECT count(*) FROM changes", &[]).await.expect("an answer").get(0);
        assert!((4096..=4096 + 2048).contains(&rows), "{rows}");
        assert_eq!(store.check().await.expect("it can be checked").problems, []);
    })
    .await;
}

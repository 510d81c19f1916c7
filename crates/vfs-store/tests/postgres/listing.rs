//! What a listing costs.

use vfs_store::{ListRequest, Precondition, Store};

use crate::lab::{in_lab, key, namespace, path, value};

/// Blocks that the server looks at to answer.
async fn blocks(client: &tokio_postgres::Client, sql: &str) -> u64 {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}");
    let rows = client.simple_query(&explain).await.expect("a plan");
    let text: String = rows
        .iter()
        .filter_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .collect();
    let plan: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let of = |name: &str| plan[0]["Plan"][name].as_u64().expect("a number");
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_costs_what_the_directory_holds() {
    in_lab(async |lab| {
        let store = lab.store().await;
        for text in ["/d/a", "/d/b", "/d/e/f"] {
            let _ = store.put(&key(text), value("x"), &Precondition::Absent).await.expect("it is put");
        }
        let level = "SELECT * FROM list_level('acme/ann', '/d/', NULL, NULL, 1001)";
        let all = "SELECT path, size FROM files WHERE namespace = (SELECT id FROM namespaces WHERE name = 'acme/ann') \
                   AND path > '/d/e/' AND path < '/d/e0' ORDER BY namespace, path LIMIT 11";
        // As the store's own connections have it, whose plans are made before there are statistics.
        lab.client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").await.expect("it is set");
        let few = blocks(&lab.client, level).await;
        // Many files in a directory below, and many directories in that.
        lab.client
            .batch_execute(
                "INSERT INTO files (namespace, parent, name, content, size, version, created_at, modified_at) \
                 SELECT namespace, '/d/e/' || CASE WHEN n % 2 = 0 THEN '' ELSE n || '/' END, 'n' || n, 0, 0, 'v', now(), now() \
                 FROM files, generate_series(1, 50000) AS n WHERE path = '/d/a'; ANALYZE files",
            )
            .await
            .expect("they are made");
        let many = blocks(&lab.client, level).await;
        assert!(many <= few + 40, "{few} blocks became {many}");
        let page = blocks(&lab.client, all).await;
        assert!(page <= 60, "{page} blocks for ten files");
        let listed = store.list(&namespace(), &ListRequest::level(path("/d"))).await.expect("a page");
        let names: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!((names, listed.directories), (vec!["/d/a", "/d/b"], vec![path("/d/e")]));
    })
    .await;
}

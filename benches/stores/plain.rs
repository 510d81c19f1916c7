//! The same operations in plain SQL, on a table of paths and contents: what the database takes by itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use anyhow::Context as _;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::fill::{AT_ONCE, NEEDLE, PHRASE, content, middle, path};
use crate::timed::{Times, median, median_of, of};

/// A database with one table for the files of a row of the results.
pub(crate) struct Plain {
    database: Database,
    files: usize,
    table: String,
}

enum Database {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client, RefCell<HashMap<String, Statement>>),
}

impl Plain {
    /// A connection to the database at `url`, or for SQLite to a file beside it; `None` where that is none of SQL.
    pub(crate) async fn open(url: &str, files: usize) -> anyhow::Result<Option<Self>> {
        let url = url.split('?').next().unwrap_or_default();
        let database = if let Some(file) = url.strip_prefix("sqlite:").filter(|file| *file != ":memory:") {
            let connection = rusqlite::Connection::open(format!("{file}.plain"))?;
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
            Database::Sqlite(connection)
        } else if url.starts_with("postgres") {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
            // It ends with its client.
            tokio::spawn(connection);
            Database::Postgres(client, RefCell::default())
        } else {
            return Ok(None);
        };
        Ok(Some(Self { database, files, table: format!("plain_{files}") }))
    }

    /// The row of this database; an edit changes one file and changes it back.
    pub(crate) async fn measure(&mut self, samples: usize) -> anyhow::Result<Times> {
        let fill = self.fill().await?;
        let table = &self.table;
        let file = path(middle(self.files));
        let directory = file.parent().unwrap_or_default();
        let (from, to) = (format!("{directory}/"), format!("{directory}0"));
        let ls = format!("SELECT path, length(content) FROM {table} WHERE path > $1 AND path < $2");
        let glob = format!("SELECT path FROM {table} WHERE path > $1 AND path < $2 AND path LIKE '%.md'");
        let read = format!("SELECT content FROM {table} WHERE path = $1");
        let edit = format!(
            "UPDATE {table} SET content = CASE WHEN content LIKE '%line three of%' \
             THEN replace(content, 'line three of', 'line 3 of') ELSE replace(content, 'line 3 of', 'line three of') END \
             WHERE path = $1"
        );
        let position = match self.database {
            Database::Sqlite(_) => "instr(content, $1)",
            Database::Postgres(..) => "position($1 in content)",
        };
        let grep = format!("SELECT path FROM {table} WHERE {position} > 0");
        let first_20 = format!("{grep} LIMIT 20");
        let all = format!("SELECT path, content FROM {table}");
        let (one, range, needle, phrase) = ([file.as_str()], [from.as_str(), to.as_str()], [NEEDLE], [PHRASE]);

        let searched = median(samples.min(5), || self.query(&grep, &needle)).await?;
        let operations = vec![
            median(samples, || self.query(&ls, &range)).await?,
            median(samples, || self.query(&glob, &range)).await?,
            median(samples, || self.query(&read, &one)).await?,
            median(samples + samples % 2, || self.query(&edit, &one)).await?,
            searched,
            searched,
            median_of(samples.min(5), || async {
                self.query(&edit, &one).await?;
                of(self.query(&grep, &needle)).await
            })
            .await?,
            median(1, || self.query(&grep, &phrase)).await?,
            median(samples, || self.query(&first_20, &phrase)).await?,
            of(self.query(&all, &[])).await?,
        ];
        Ok(Times { fill, upload: None, operations })
    }

    /// Runs a statement to its end; how many rows it returns.
    async fn query(&self, statement: &str, parameters: &[&str]) -> anyhow::Result<usize> {
        match &self.database {
            Database::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(statement)?;
                let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
                let mut count = 0;
                while let Some(row) = rows.next()? {
                    // A content is read when its column is.
                    black_box(row.get_ref(row.as_ref().column_count() - 1)?);
                    count += 1;
                }
                Ok(count)
            }
            Database::Postgres(client, prepared) => {
                let known = prepared.borrow().get(statement).cloned();
                let statement = match known {
                    Some(statement) => statement,
                    None => {
                        let new = client.prepare(statement).await?;
                        prepared.borrow_mut().insert(statement.to_owned(), new.clone());
                        new
                    }
                };
                let parameters: Vec<_> = parameters.iter().map(|text| text as &(dyn ToSql + Sync)).collect();
                Ok(client.query(&statement, &parameters).await?.len())
            }
        }
    }

    /// Fills the table unless it is; how many files a second were written.
    async fn fill(&mut self) -> anyhow::Result<Option<f64>> {
        let table = &self.table;
        let create = match self.database {
            Database::Sqlite(_) => {
                format!("CREATE TABLE IF NOT EXISTS {table} (path TEXT PRIMARY KEY, content TEXT) WITHOUT ROWID")
            }
            Database::Postgres(..) => {
                format!("CREATE TABLE IF NOT EXISTS {table} (path text COLLATE \"C\" PRIMARY KEY, content text)")
            }
        };
        self.query(&create, &[]).await?;
        let last = path(self.files - 1);
        if self.query(&format!("SELECT path FROM {table} WHERE path = $1"), &[last.as_str()]).await? > 0 {
            return Ok(None);
        }
        let start_time = Instant::now();
        for start in (0..self.files).step_by(AT_ONCE) {
            let numbers = start..self.files.min(start + AT_ONCE);
            let rows = numbers.map(|number| (path(number).as_str().to_owned(), content(number, self.files)));
            match &mut self.database {
                Database::Sqlite(connection) => {
                    let transaction = connection.transaction()?;
                    let mut insert = transaction.prepare_cached(&format!("INSERT INTO {table} VALUES ($1, $2)"))?;
                    for row in rows {
                        insert.execute(row)?;
                    }
                    drop(insert);
                    transaction.commit()?;
                }
                Database::Postgres(client, _) => {
                    let (paths, contents): (Vec<_>, Vec<_>) = rows.unzip();
                    let insert = format!("INSERT INTO {table} SELECT * FROM unnest($1::text[], $2::text[])");
                    client.execute(&insert, &[&paths, &contents]).await?;
                }
            }
        }
        if let Database::Postgres(client, _) = &self.database {
            client.batch_execute(&format!("ANALYZE {table}")).await.context("the table cannot be analyzed")?;
        }
        Ok(Some(self.files as f64 / start_time.elapsed().as_secs_f64()))
    }
}

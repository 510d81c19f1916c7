//! Verification and statistics of one snapshot.

use blake3::Hasher;
use deadpool_postgres::Object;
use futures::TryStreamExt;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{IsolationLevel, Row};
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use super::change_parameters::is_searchable;
use super::error::{PostgresError, PostgresResult};
use super::postgres_client::PostgresClient;
use super::read::CHUNK_BYTES;
use super::statement::{StatementMode, single_row};
use crate::store::{CheckReport, Namespace, StoreStats};

/// Maximum number of problems that are listed; further problems are only counted.
const MAX_PROBLEMS: usize = 1000;

const STATS: &str = "SELECT count(DISTINCT namespace), count(*), coalesce(sum(size), 0)::bigint FROM files";

const FILES: &str = "SELECT name, path, size, version, chunks.content IS NOT NULL, part, is_text, data FROM ( \
                         SELECT namespaces.name, namespace, path, size, version, content FROM files \
                         LEFT JOIN namespaces ON id = namespace \
                     ) AS files LEFT JOIN chunks USING (namespace, content) ORDER BY namespace, path, part";

const ORPHANS: &str = "SELECT count(*) FROM chunks WHERE NOT EXISTS ( \
                           SELECT FROM files WHERE files.namespace = chunks.namespace AND files.content = chunks.content) \
                       AND content NOT IN (SELECT content FROM staged)";

const LOGS: &str = "SELECT name FROM namespaces LEFT JOIN ( \
                        SELECT namespace, min(sequence) AS first, max(sequence) AS last, count(*) AS number \
                        FROM changes GROUP BY namespace \
                    ) AS logs ON namespace = id \
                    WHERE coalesce(last, 0) <> sequence OR coalesce(last - first + 1, 0) <> coalesce(number, 0) \
                        OR coalesce(number, 0) < least(sequence, 4096)";

pub(super) async fn stats(server: &PostgresClient) -> Result<StoreStats> {
    let Some(row) = server.row(STATS, &[]).await? else { return Ok(StoreStats::default()) };
    let number = |column| -> PostgresResult<u64> { Ok(row.try_get::<_, i64>(column)?.unsigned_abs()) };
    let stats = || -> PostgresResult<StoreStats> {
        let mut stats = StoreStats::default();
        (stats.namespaces, stats.files, stats.bytes) = (number(0)?, number(1)?, number(2)?);
        Ok(stats)
    };
    stats().map_err(|fault| fault.describe(&server.config))
}

pub(super) async fn verify(server: &PostgresClient) -> Result<CheckReport> {
    let verification = async {
        let mut connection = server.connection().await?;
        let result = verify_snapshot(&mut connection, &server.sending).await;
        connection.finish(result)
    };
    verification.await.map_err(|fault: PostgresError| fault.describe(&server.config))
}

/// Verifies one snapshot, without a time limit.
async fn verify_snapshot(connection: &mut Object, sending: &StatementMode) -> PostgresResult<CheckReport> {
    let transaction =
        connection.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    transaction.batch_execute(&format!("{}; SET LOCAL statement_timeout = 0", sending.settings())).await?;
    let mut check = SnapshotVerifier::default();
    let none: [(&(dyn ToSql + Sync), Type); 0] = [];
    let rows = transaction.query_typed_raw(FILES, none).await?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await? {
        check.add_row(&row)?;
    }
    check.finish_file();
    for row in transaction.query_typed(LOGS, &[]).await? {
        check.add_problem(row.try_get(0)?, "the log of changes is incomplete");
    }
    let orphans: i64 = single_row(transaction.query_typed(ORPHANS, &[]).await?)?.try_get(0)?;
    if orphans > 0 {
        check.add_problem("", &format!("{orphans} chunks of content belong to no file"));
    }
    transaction.commit().await?;
    Ok(check.into_report())
}

/// State of the verification of one snapshot.
#[derive(Default)]
struct SnapshotVerifier {
    report: CheckReport,
    omitted_problems: usize,
    file: Option<VerifiedFile>,
}

/// File whose chunks are being verified.
struct VerifiedFile {
    place: String,
    size: u64,
    version: String,
    hasher: Hasher,
    bytes_read: u64,
    problem: Option<&'static str>,
}

impl SnapshotVerifier {
    fn add_row(&mut self, row: &Row) -> PostgresResult<()> {
        let namespace: Option<&str> = row.try_get(0)?;
        let path: &str = row.try_get(1)?;
        let place = format!("{}:{path}", namespace.unwrap_or("(no namespace)"));
        if self.file.as_ref().is_none_or(|file| file.place != place) {
            self.finish_file();
            let size = row.try_get::<_, i64>(2)?.unsigned_abs();
            let is_named = namespace.is_some_and(|name| Namespace::parse(name).is_ok())
                && VfsPath::parse(path).is_ok_and(|parsed| parsed.as_str() == path && !parsed.is_root());
            let problem = (!is_named).then_some("the namespace or the path cannot be named");
            let version = row.try_get(3)?;
            self.file = Some(VerifiedFile { place, size, version, hasher: Hasher::new(), bytes_read: 0, problem });
        }
        if let Some(file) = &mut self.file
            && row.try_get(4)?
        {
            file.add_chunk(row.try_get(5)?, row.try_get(6)?, row.try_get(7)?);
        }
        Ok(())
    }

    fn finish_file(&mut self) {
        let Some(file) = self.file.take() else { return };
        self.report.files += 1;
        self.report.bytes += file.bytes_read;
        let is_same = file.hasher.finalize().to_hex().get(..32) == Some(file.version.as_str());
        if let Some(problem) = file.problem {
            self.add_problem(&file.place, problem);
        }
        if file.bytes_read != file.size {
            self.add_problem(&file.place, "the content is not as long as recorded");
        } else if !is_same {
            self.add_problem(&file.place, "the content is not that of its version");
        }
    }

    fn add_problem(&mut self, place: &str, message: &str) {
        if self.report.problems.len() < MAX_PROBLEMS {
            let error = Error::new(ErrorKind::InvalidArgument, message.to_owned()).with_model_message(message);
            self.report.problems.push(Problem::new(place, &error));
        } else {
            self.omitted_problems += 1;
        }
    }

    fn into_report(mut self) -> CheckReport {
        if self.omitted_problems > 0 {
            let message = format!("there are {} more problems", self.omitted_problems);
            let error = Error::new(ErrorKind::InvalidArgument, message.clone()).with_model_message(message);
            self.report.problems.push(Problem::new("", &error));
        }
        self.report
    }
}

impl VerifiedFile {
    fn add_chunk(&mut self, part: i32, is_text: bool, data: &[u8]) {
        let is_in_place = u64::try_from(part).is_ok_and(|part| part * CHUNK_BYTES as u64 == self.bytes_read);
        if !is_in_place || data.is_empty() || data.len() > CHUNK_BYTES {
            self.problem = Some("the content is not in the chunks that its size requires");
        }
        if is_text != (self.size <= CHUNK_BYTES as u64 && is_searchable(data)) {
            self.problem = Some("a search treats the content as text if it is binary, or as binary if it is text");
        }
        self.hasher.update(data);
        self.bytes_read += data.len() as u64;
    }
}

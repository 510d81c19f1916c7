//! Verification and counts in one snapshot.

use blake3::Hasher;
use deadpool_postgres::Object;
use futures::TryStreamExt;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{IsolationLevel, Row};
use vfs_core::{Error, ErrorKind, Problem, Result, VfsPath};

use super::error::{PostgresError, PostgresResult};
use super::plan::is_searchable;
use super::read::CHUNK_BYTES;
use super::server::Server;
use super::statement::{StatementMode, only};
use crate::store::{CheckReport, Namespace, StoreStats};

/// The most problems that are named; of the others there is a count.
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

pub(super) async fn stats(server: &Server) -> Result<StoreStats> {
    let Some(row) = server.row(STATS, &[]).await? else { return Ok(StoreStats::default()) };
    let number = |column| -> PostgresResult<u64> { Ok(row.try_get::<_, i64>(column)?.unsigned_abs()) };
    let stats = || -> PostgresResult<StoreStats> {
        let mut stats = StoreStats::default();
        (stats.namespaces, stats.files, stats.bytes) = (number(0)?, number(1)?, number(2)?);
        Ok(stats)
    };
    stats().map_err(|fault| fault.describe(&server.config))
}

pub(super) async fn verify(server: &Server) -> Result<CheckReport> {
    let tried = async {
        let mut connection = server.connection().await?;
        let answer = look(&mut connection, &server.sending).await;
        connection.finish(answer)
    };
    tried.await.map_err(|fault: PostgresError| fault.describe(&server.config))
}

/// All at one moment, however long it takes.
async fn look(connection: &mut Object, sending: &StatementMode) -> PostgresResult<CheckReport> {
    let transaction =
        connection.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    transaction.batch_execute(&format!("{}; SET LOCAL statement_timeout = 0", sending.settings())).await?;
    let mut check = SnapshotVerifier::default();
    let none: [(&(dyn ToSql + Sync), Type); 0] = [];
    let rows = transaction.query_typed_raw(FILES, none).await?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await? {
        check.row(&row)?;
    }
    check.finish_file();
    for row in transaction.query_typed(LOGS, &[]).await? {
        check.problem(row.try_get(0)?, "its changes are not all there");
    }
    let orphans: i64 = only(transaction.query_typed(ORPHANS, &[]).await?)?.try_get(0)?;
    if orphans > 0 {
        check.problem("", &format!("{orphans} chunks of content belong to no file"));
    }
    transaction.commit().await?;
    Ok(check.report())
}

#[derive(Default)]
struct SnapshotVerifier {
    report: CheckReport,
    unnamed: usize,
    file: Option<VerifiedFile>,
}

/// A file, some of whose chunks were seen.
struct VerifiedFile {
    place: String,
    size: u64,
    version: String,
    hasher: Hasher,
    seen: u64,
    wrong: Option<&'static str>,
}

impl SnapshotVerifier {
    fn row(&mut self, row: &Row) -> PostgresResult<()> {
        let namespace: Option<&str> = row.try_get(0)?;
        let path: &str = row.try_get(1)?;
        let place = format!("{}:{path}", namespace.unwrap_or("(no namespace)"));
        if self.file.as_ref().is_none_or(|file| file.place != place) {
            self.finish_file();
            let size = row.try_get::<_, i64>(2)?.unsigned_abs();
            let is_named = namespace.is_some_and(|name| Namespace::parse(name).is_ok())
                && VfsPath::parse(path).is_ok_and(|parsed| parsed.as_str() == path && !parsed.is_root());
            let wrong = (!is_named).then_some("it cannot be named");
            let version = row.try_get(3)?;
            self.file = Some(VerifiedFile { place, size, version, hasher: Hasher::new(), seen: 0, wrong });
        }
        if let Some(file) = &mut self.file
            && row.try_get(4)?
        {
            file.chunk(row.try_get(5)?, row.try_get(6)?, row.try_get(7)?);
        }
        Ok(())
    }

    fn finish_file(&mut self) {
        let Some(file) = self.file.take() else { return };
        self.report.files += 1;
        self.report.bytes += file.seen;
        let is_same = file.hasher.finalize().to_hex().get(..32) == Some(file.version.as_str());
        if let Some(wrong) = file.wrong {
            self.problem(&file.place, wrong);
        }
        if file.seen != file.size {
            self.problem(&file.place, "its content is not as long as it should be");
        } else if !is_same {
            self.problem(&file.place, "its content is not that of its version");
        }
    }

    fn problem(&mut self, place: &str, message: &str) {
        if self.report.problems.len() < MAX_PROBLEMS {
            let error = Error::new(ErrorKind::InvalidArgument, message.to_owned()).with_model_message(message);
            self.report.problems.push(Problem::new(place, &error));
        } else {
            self.unnamed += 1;
        }
    }

    fn report(mut self) -> CheckReport {
        if self.unnamed > 0 {
            let message = format!("there are {} more problems", self.unnamed);
            let error = Error::new(ErrorKind::InvalidArgument, message.clone()).with_model_message(message);
            self.report.problems.push(Problem::new("", &error));
        }
        self.report
    }
}

impl VerifiedFile {
    fn chunk(&mut self, part: i32, is_text: bool, data: &[u8]) {
        let is_in_place = u64::try_from(part).is_ok_and(|part| part * CHUNK_BYTES as u64 == self.seen);
        if !is_in_place || data.is_empty() || data.len() > CHUNK_BYTES {
            self.wrong = Some("its content is not in the chunks that it should be in");
        }
        if is_text != (self.size <= CHUNK_BYTES as u64 && is_searchable(data)) {
            self.wrong = Some("a search takes it for text that it is not, or misses it");
        }
        self.hasher.update(data);
        self.seen += data.len() as u64;
    }
}

//! Candidates of a search, from the trigram index or a scan.

use std::collections::BTreeSet;

use vfs_core::{CaseMode, Result, VfsPath};

use super::error::PostgresError;
use super::postgres_client::PostgresClient;
use super::row_conversion;
use super::statement::ParameterRef;
use crate::store::{CandidateKeys, Namespace, TextQuery};

/// Minimum length of a text that the index can find, in characters.
const MIN_TEXT_CHARS: usize = 3;
/// Maximum number of texts; the query for more takes longer than it saves.
const MAX_TEXTS: usize = 64;
/// Maximum number of contents that the index may find in a case-sensitive search. If it finds more, or does not cover
/// the texts, the contents at and below the prefix are scanned: contents that the index finds are case-folded and
/// compared, which takes ten times as long as a scan for bytes.
const MAX_RECHECKS: usize = 2048;
/// Number of contents in the sample that estimates how common a text is.
const SAMPLE_SIZE: usize = 64;
/// Number of matches in the sample from which on a text counts as common: a scan of all contents then takes less time
/// than reading the index and rechecking the contents that it finds.
const COMMON_THRESHOLD: i64 = 8;
/// Maximum number of texts in a scan, which searches each content for each text.
const MAX_SCANNED_TEXTS: usize = 8;

pub(super) async fn candidates(
    server: &PostgresClient,
    namespace: &Namespace,
    prefix: &VfsPath,
    query: &TextQuery,
) -> Result<Option<CandidateKeys>> {
    let texts = &query.texts;
    // Every file contains the empty text, but an empty file has no row in `chunks`, so that the query would miss it.
    if texts.is_empty() || texts.len() > MAX_TEXTS || texts.iter().any(String::is_empty) {
        return Ok(None);
    }
    let lookup = CandidateLookup { server, namespace, prefix, max_candidates: query.max_candidates };
    let is_sensitive = query.case == CaseMode::Sensitive;
    let can_scan = is_sensitive && texts.len() <= MAX_SCANNED_TEXTS;
    let bytes: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
    let bytes: Vec<_> = bytes.iter().map(|bytes| bytes as ParameterRef<'_>).collect();
    let patterns = patterns(query);
    let is_common = can_scan && patterns.is_some() && lookup.is_common(&bytes).await?;
    if let Some(patterns) = patterns.filter(|_| !is_common) {
        let patterns: Vec<_> = patterns.iter().map(|pattern| pattern as ParameterRef<'_>).collect();
        let max_contents = if is_sensitive { query.max_candidates.min(MAX_RECHECKS) } else { query.max_candidates };
        match lookup.find(TextPredicate::Like, &patterns, max_contents).await? {
            CandidateLookupOutcome::Files(files) => return Ok(Some(files)),
            CandidateLookupOutcome::TooManyContents => {}
            CandidateLookupOutcome::TooManyFiles => return Ok(None),
        }
    }
    if !can_scan {
        return Ok(None);
    }
    match lookup.find(TextPredicate::Contains, &bytes, query.max_candidates).await? {
        CandidateLookupOutcome::Files(files) => Ok(Some(files)),
        CandidateLookupOutcome::TooManyContents | CandidateLookupOutcome::TooManyFiles => Ok(None),
    }
}

/// Predicate on a content.
#[derive(Debug, Clone, Copy)]
enum TextPredicate {
    /// The folded text matches a pattern; the trigram index finds such contents.
    Like,
    /// The content contains some bytes; every content is scanned for them.
    Contains,
}

impl TextPredicate {
    /// Returns the SQL condition on `data` and the parameter `number`.
    fn sql(self, number: usize) -> String {
        match self {
            Self::Like => format!("searchable(data) COLLATE \"C\" LIKE ${number}"),
            Self::Contains => format!("position(${number} in data) > 0"),
        }
    }
}

/// Outcome of one lookup.
enum CandidateLookupOutcome {
    Files(CandidateKeys),
    TooManyContents,
    TooManyFiles,
}

/// Lookup of at most `max_candidates` files at and below `prefix`.
struct CandidateLookup<'a> {
    server: &'a PostgresClient,
    namespace: &'a Namespace,
    prefix: &'a VfsPath,
    max_candidates: usize,
}

impl CandidateLookup<'_> {
    /// Estimates from a sample whether many contents of the namespace contain one of `texts`.
    ///
    /// The sample is spread evenly over the numbers of the contents, which ascend with the time of creation. It covers
    /// the first 4 KiB of each content.
    async fn is_common(&self, texts: &[ParameterRef<'_>]) -> Result<bool> {
        let name = self.namespace.as_str();
        let mut parameters: Vec<ParameterRef<'_>> = vec![&name];
        parameters.extend(texts);
        let any: Vec<String> =
            (2..2 + texts.len()).map(|number| format!("position(${number} in beginning) > 0")).collect();
        let query = format!(
            "SELECT count(*) FROM ( \
                 SELECT space.id, \
                     (SELECT min(content) FROM chunks WHERE namespace = space.id) AS first, \
                     (SELECT max(content) FROM chunks WHERE namespace = space.id) AS last \
                 FROM namespaces AS space WHERE name = $1 OFFSET 0 \
             ) AS range \
             CROSS JOIN generate_series(0, {SAMPLE_SIZE} - 1) AS number \
             CROSS JOIN LATERAL ( \
                 SELECT substring(data FROM 1 FOR 4096) AS beginning FROM chunks \
                 WHERE namespace = range.id AND content >= first + (last - first) * number / {SAMPLE_SIZE} \
                 ORDER BY namespace, content, part LIMIT 1 \
             ) AS sample \
             WHERE {}",
            any.join(" OR "),
        );
        let rows = self.server.rows_planned(&query, &parameters).await?;
        let count: i64 = match rows.first() {
            Some(row) => row.try_get(0).map_err(|error| PostgresError::from(error).describe(&self.server.config))?,
            None => 0,
        };
        Ok(count >= COMMON_THRESHOLD)
    }

    /// Returns the files whose content satisfies the `predicate` for one of `texts`, if there are at most
    /// `max_contents` such contents.
    async fn find(
        &self,
        predicate: TextPredicate,
        texts: &[ParameterRef<'_>],
        max_contents: usize,
    ) -> Result<CandidateLookupOutcome> {
        let (name, at) = (self.namespace.as_str(), self.prefix.as_str());
        let (start, end) = row_conversion::range_below(self.prefix);
        let mut parameters: Vec<ParameterRef<'_>> = vec![&name, &at, &start, &end];
        parameters.extend(texts);
        let rows = self.server.rows_planned(&self.query(predicate, texts.len(), max_contents), &parameters).await?;
        if rows.len() > self.max_candidates {
            return Ok(CandidateLookupOutcome::TooManyFiles);
        }
        let mut files = CandidateKeys::with_capacity(rows.len());
        for row in rows {
            let path: Option<&str> =
                row.try_get(0).map_err(|error| PostgresError::from(error).describe(&self.server.config))?;
            let Some(path) = path else { return Ok(CandidateLookupOutcome::TooManyContents) };
            // An invalid path cannot be read either; a listing reports it.
            files.extend(VfsPath::parse(path).ok());
        }
        Ok(CandidateLookupOutcome::Files(files))
    }

    /// Returns the query for `text_count` texts. It selects the contents that satisfy the predicate or are not text,
    /// and then their files. If more than `max_contents` contents satisfy the predicate, the result is one row without
    /// a path.
    ///
    /// The index has only trigrams, so the server rechecks each content that the index finds. `max_contents` limits
    /// this for texts that occur almost everywhere. A scan below a directory reads only the contents of files in that
    /// directory.
    fn query(&self, predicate: TextPredicate, text_count: usize, max_contents: usize) -> String {
        let any: Vec<String> = (5..5 + text_count).map(|number| predicate.sql(number)).collect();
        let bounded = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX - 1).min(i64::MAX - 1);
        let (max_contents, max_candidates) = (bounded(max_contents), bounded(self.max_candidates));
        let in_namespace = "namespace = (SELECT id FROM namespaces WHERE name = $1)";
        let below_prefix = "(path = $2 OR (path > $3 AND path < $4))";
        let prefix_filter = match predicate {
            TextPredicate::Contains if !self.prefix.is_root() => {
                format!("AND content = ANY (ARRAY(SELECT content FROM files WHERE {in_namespace} AND {below_prefix}))")
            }
            TextPredicate::Contains | TextPredicate::Like => String::new(),
        };
        format!(
            "WITH found AS MATERIALIZED ( \
                 SELECT content FROM chunks WHERE {in_namespace} AND is_text {prefix_filter} AND ({}) \
                 LIMIT {max_contents} + 1 \
             ), possible AS ( \
                 SELECT content FROM found \
                 UNION ALL \
                 SELECT content FROM chunks WHERE {in_namespace} AND NOT is_text AND part = 0 \
             ) \
             SELECT NULL AS path WHERE (SELECT count(*) FROM found) > {max_contents} \
             UNION ALL \
             (SELECT path FROM files JOIN possible USING (content) \
             WHERE {in_namespace} AND {below_prefix} AND (SELECT count(*) FROM found) <= {max_contents} \
             LIMIT {max_candidates} + 1)",
            any.join(" OR "),
        )
    }
}

/// Returns the `LIKE` patterns for the folded contents with one of the texts, or `None` if a text has no selective
/// pattern.
fn patterns(query: &TextQuery) -> Option<BTreeSet<String>> {
    query.texts.iter().map(|text| pattern(text, query.case)).collect()
}

/// Returns the `LIKE` pattern for the folded contents with `needle`, or `None` if it would not be selective.
///
/// The index folds ASCII letters. Folding of other letters depends on the server, so the pattern has only the runs of
/// ASCII between them, and a case-insensitive search for them has no pattern. The pattern of a case-insensitive search
/// also omits `k` and `s`, because the Kelvin sign and the long s are other cases of these letters.
fn pattern(needle: &str, case: CaseMode) -> Option<String> {
    if needle.contains('\0') || (case != CaseMode::Sensitive && !needle.is_ascii()) {
        return None;
    }
    let is_open = |letter: char| !letter.is_ascii() || (case != CaseMode::Sensitive && "kKsS".contains(letter));
    let runs: Vec<&str> = needle.split(is_open).filter(|run| run.len() >= MIN_TEXT_CHARS).collect();
    if runs.is_empty() {
        return None;
    }
    let mut pattern = String::from("%");
    for run in runs {
        for letter in run.chars() {
            if matches!(letter, '\\' | '%' | '_') {
                pattern.push('\\');
            }
            pattern.push(letter.to_ascii_lowercase());
        }
        pattern.push('%');
    }
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_becomes_a_pattern_if_it_is_selective() {
        for (needle, case, expected) in [
            ("Fn_Name", CaseMode::Sensitive, Some("%fn\\_name%")),
            ("Fn_Name", CaseMode::Insensitive, Some("%fn\\_name%")),
            ("100%\\", CaseMode::Smart, Some("%100\\%\\\\%")),
            ("ab", CaseMode::Sensitive, None),
            ("", CaseMode::Sensitive, None),
            ("größer als", CaseMode::Sensitive, Some("%er als%")),
            ("größer als", CaseMode::Insensitive, None),
            ("äöü", CaseMode::Sensitive, None),
            ("abc\u{17f}def", CaseMode::Sensitive, Some("%abc%def%")),
            ("Kelvin", CaseMode::Sensitive, Some("%kelvin%")),
            ("Kelvin", CaseMode::Insensitive, Some("%elvin%")),
            ("password", CaseMode::Smart, Some("%word%")),
            ("sks", CaseMode::Insensitive, None),
            ("abc\0", CaseMode::Sensitive, None),
        ] {
            assert_eq!(pattern(needle, case).as_deref(), expected, "{needle}");
        }
        let all = |texts: [&str; 2]| patterns(&TextQuery::new(texts.map(String::from).to_vec(), CaseMode::Sensitive));
        assert_eq!(all(["abc", "ab"]), None);
        assert_eq!(all(["abc", "ABC"]), Some(BTreeSet::from(["%abc%".to_owned()])));
    }
}

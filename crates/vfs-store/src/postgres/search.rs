//! Search for candidates with the trigram index or a scan.

use std::collections::BTreeSet;

use vfs_core::{CaseMode, Result, VfsPath};

use super::error::PostgresError;
use super::row;
use super::server::Server;
use super::statement::Parameter;
use crate::store::{CandidateKeys, Namespace, TextQuery};

/// The shortest text that the index has an entry for, in letters.
const MIN_TEXT_CHARS: usize = 3;
/// With more texts, looking for them takes longer than it saves.
const MAX_TEXTS: usize = 64;
/// The most contents that the index finds where case matters. For more, and for texts that the index does not know, the contents
/// at and below the start are scanned: what the index finds is folded before it is compared, which takes ten times as long as
/// looking for bytes.
const MAX_RECHECKS: usize = 2048;
/// Number of contents in the sample that estimates how common a text is.
const SAMPLE_SIZE: usize = 64;
/// Number of matches in the sample from which a text counts as common: a scan of all contents then takes less time than to read the
/// entries of the index and to recheck what it finds.
const COMMON_THRESHOLD: i64 = 8;
/// The most texts that contents are scanned for, as each is looked for in each content.
const MAX_SCANNED_TEXTS: usize = 8;

pub(super) async fn candidates(
    server: &Server,
    namespace: &Namespace,
    prefix: &VfsPath,
    needles: &TextQuery,
) -> Result<Option<CandidateKeys>> {
    let texts = &needles.texts;
    // Every file contains the empty text, but an empty file has no row in `chunks`, so that the query would miss it.
    if texts.is_empty() || texts.len() > MAX_TEXTS || texts.iter().any(String::is_empty) {
        return Ok(None);
    }
    let lookup = Lookup { server, namespace, prefix, most: needles.max_candidates };
    let is_sensitive = needles.case == CaseMode::Sensitive;
    let can_scan = is_sensitive && texts.len() <= MAX_SCANNED_TEXTS;
    let bytes: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
    let bytes: Vec<_> = bytes.iter().map(|bytes| bytes as Parameter<'_>).collect();
    let patterns = patterns(needles);
    let is_common = can_scan && patterns.is_some() && lookup.is_common(&bytes).await?;
    if let Some(patterns) = patterns.filter(|_| !is_common) {
        let patterns: Vec<_> = patterns.iter().map(|pattern| pattern as Parameter<'_>).collect();
        let most_contents =
            if is_sensitive { needles.max_candidates.min(MAX_RECHECKS) } else { needles.max_candidates };
        match lookup.find(TextPredicate::Like, &patterns, most_contents).await? {
            LookupOutcome::Files(files) => return Ok(Some(files)),
            LookupOutcome::TooManyContents => {}
            LookupOutcome::TooManyFiles => return Ok(None),
        }
    }
    if !can_scan {
        return Ok(None);
    }
    match lookup.find(TextPredicate::Contains, &bytes, needles.max_candidates).await? {
        LookupOutcome::Files(files) => Ok(Some(files)),
        LookupOutcome::TooManyContents | LookupOutcome::TooManyFiles => Ok(None),
    }
}

/// What is required of a content.
#[derive(Debug, Clone, Copy)]
enum TextPredicate {
    /// Its folded text matches a pattern; the trigram index finds those.
    Like,
    /// It contains some bytes; every content is scanned for them.
    Contains,
}

impl TextPredicate {
    /// The condition on `data` and the parameter `number`.
    fn sql(self, number: usize) -> String {
        match self {
            Self::Like => format!("searchable(data) COLLATE \"C\" LIKE ${number}"),
            Self::Contains => format!("position(${number} in data) > 0"),
        }
    }
}

/// The outcome of one lookup.
enum LookupOutcome {
    Files(CandidateKeys),
    TooManyContents,
    TooManyFiles,
}

/// A search for the files at and below `prefix`, `max_candidates` of them at most.
struct Lookup<'a> {
    server: &'a Server,
    namespace: &'a Namespace,
    prefix: &'a VfsPath,
    most: usize,
}

impl Lookup<'_> {
    /// Estimates from a sample whether one of `texts` is in many contents of the namespace.
    ///
    /// The sample is spread evenly over the contents by their numbers, which ascend with their age, and of each content it sees the
    /// first 4 KiB.
    async fn is_common(&self, texts: &[Parameter<'_>]) -> Result<bool> {
        let name = self.namespace.as_str();
        let mut parameters: Vec<Parameter<'_>> = vec![&name];
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

    /// The files with a content that the `predicate` holds for with one of `texts`, if there are at most `most_contents` of these.
    async fn find(
        &self,
        predicate: TextPredicate,
        texts: &[Parameter<'_>],
        most_contents: usize,
    ) -> Result<LookupOutcome> {
        let (name, at) = (self.namespace.as_str(), self.prefix.as_str());
        let (beginning, beyond) = row::inside(self.prefix);
        let mut parameters: Vec<Parameter<'_>> = vec![&name, &at, &beginning, &beyond];
        parameters.extend(texts);
        let rows = self.server.rows_planned(&self.query(predicate, texts.len(), most_contents), &parameters).await?;
        if rows.len() > self.most {
            return Ok(LookupOutcome::TooManyFiles);
        }
        let mut files = CandidateKeys::with_capacity(rows.len());
        for row in rows {
            let path: Option<&str> =
                row.try_get(0).map_err(|error| PostgresError::from(error).describe(&self.server.config))?;
            let Some(path) = path else { return Ok(LookupOutcome::TooManyContents) };
            // A path that cannot be named cannot be read either; a listing tells of it.
            files.extend(VfsPath::parse(path).ok());
        }
        Ok(LookupOutcome::Files(files))
    }

    /// The query for `text_count` texts. First the contents: those that the predicate holds for, and those that are no text; then
    /// their files. Where the predicate holds for more than `most_contents`, the answer is one row without a path.
    ///
    /// The index knows trigrams alone, so that the server looks into each content that it finds: that search has a limit of its
    /// own, for a text that is nearly everywhere. A scan below a directory looks into the contents of files there alone.
    fn query(&self, predicate: TextPredicate, text_count: usize, most_contents: usize) -> String {
        let any: Vec<String> = (5..5 + text_count).map(|number| predicate.sql(number)).collect();
        let bounded = |most: usize| i64::try_from(most).unwrap_or(i64::MAX - 1).min(i64::MAX - 1);
        let (most_contents, most) = (bounded(most_contents), bounded(self.most));
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
                 LIMIT {most_contents} + 1 \
             ), possible AS ( \
                 SELECT content FROM found \
                 UNION ALL \
                 SELECT content FROM chunks WHERE {in_namespace} AND NOT is_text AND part = 0 \
             ) \
             SELECT NULL AS path WHERE (SELECT count(*) FROM found) > {most_contents} \
             UNION ALL \
             (SELECT path FROM files JOIN possible USING (content) \
             WHERE {in_namespace} AND {below_prefix} AND (SELECT count(*) FROM found) <= {most_contents} \
             LIMIT {most} + 1)",
            any.join(" OR "),
        )
    }
}

/// What texts with one of the needles are like, in the letters of the index; `None` where that says too little.
fn patterns(needles: &TextQuery) -> Option<BTreeSet<String>> {
    needles.texts.iter().map(|text| pattern(text, needles.case)).collect()
}

/// The index knows letters as ASCII folds them. What other letters become when their case is ignored depends on the server, so
/// that only the ASCII between them is asked for, and nothing where their case is to be ignored. Then a `k` and an `s` are not asked
/// for either: the Kelvin sign and the long s are other cases of them.
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
    fn a_needle_becomes_a_pattern_or_says_too_little() {
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

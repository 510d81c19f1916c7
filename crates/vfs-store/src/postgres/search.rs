//! Which files may hold a text.

use vfs_core::{CaseMode, Result, VfsPath};

use super::fault::Fault;
use super::row;
use super::server::Server;
use super::statement::Parameter;
use crate::key::Namespace;
use crate::store::{Candidates, Needles};

/// The shortest text that the index has an entry for, in letters.
const SHORTEST: usize = 3;
/// With more texts, looking for them takes longer than it saves.
const MOST_NEEDLES: usize = 64;
/// The most contents that are found by the index where case matters. For more, and for texts that are too short for the index, all
/// contents are scanned: what the index finds is folded before it is compared, which takes ten times as long as looking for bytes.
const MAX_RECHECKS: usize = 2048;

pub(super) async fn candidates(
    server: &Server,
    namespace: &Namespace,
    prefix: &VfsPath,
    needles: &Needles,
) -> Result<Option<Candidates>> {
    if needles.texts.is_empty() || needles.texts.len() > MOST_NEEDLES {
        return Ok(None);
    }
    let lookup = Lookup { server, namespace, prefix, most: needles.most };
    let can_scan = needles.case == CaseMode::Sensitive;
    if let Some(patterns) = patterns(needles) {
        let patterns: Vec<_> = patterns.iter().map(|pattern| pattern as Parameter<'_>).collect();
        let most_contents = if can_scan { needles.most.min(MAX_RECHECKS) } else { needles.most };
        let found = lookup.find(Condition::Indexed, &patterns, most_contents).await?;
        if found.is_some() || most_contents == needles.most {
            return Ok(found);
        }
    }
    if !can_scan {
        return Ok(None);
    }
    let bytes: Vec<_> = needles.texts.iter().map(|text| text.as_bytes()).collect();
    let bytes: Vec<_> = bytes.iter().map(|bytes| bytes as Parameter<'_>).collect();
    lookup.find(Condition::Scanned, &bytes, needles.most).await
}

/// What a content is to be like.
#[derive(Debug, Clone, Copy)]
enum Condition {
    /// As a pattern, which the index looks for.
    Indexed,
    /// It holds some bytes, which are looked for in every content.
    Scanned,
}

impl Condition {
    /// The condition on `data` and the parameter `number`.
    fn sql(self, number: usize) -> String {
        match self {
            Self::Indexed => format!("searchable(data) COLLATE \"C\" LIKE ${number}"),
            Self::Scanned => format!("position(${number} in data) > 0"),
        }
    }
}

/// A search for the files at and below `prefix`, `most` of them at most.
struct Lookup<'a> {
    server: &'a Server,
    namespace: &'a Namespace,
    prefix: &'a VfsPath,
    most: usize,
}

impl Lookup<'_> {
    /// The files with a content that is as `condition` says of one of `texts`; `None` where there are too many, or more such
    /// contents than `most_contents`.
    async fn find(
        &self,
        condition: Condition,
        texts: &[Parameter<'_>],
        most_contents: usize,
    ) -> Result<Option<Candidates>> {
        let (name, at) = (self.namespace.as_str(), self.prefix.as_str());
        let (beginning, beyond) = row::inside(self.prefix);
        let mut parameters: Vec<Parameter<'_>> = vec![&name, &at, &beginning, &beyond];
        parameters.extend(texts);
        let question = question(condition, texts.len(), most_contents, self.most);
        let rows = self.server.rows_planned(&question, &parameters).await?;
        if rows.len() > self.most {
            return Ok(None);
        }
        let mut candidates = Candidates::with_capacity(rows.len());
        for row in rows {
            let path: Option<&str> =
                row.try_get(0).map_err(|error| Fault::from(error).describe(&self.server.config))?;
            let Some(path) = path else { return Ok(None) };
            // A path that cannot be named cannot be read either; a listing tells of it.
            candidates.extend(VfsPath::parse(path).ok());
        }
        Ok(Some(candidates))
    }
}

/// The question for so many `texts`, and for at most one file more than `most`. First the contents: those that the condition holds
/// for, and those that are no text; then their files. Where the condition holds for more than `most_contents`, the answer
/// is one row without a path.
///
/// The index knows trigrams alone, so that the server looks into each content that it finds: that search has a limit of its own,
/// for a text that is nearly everywhere.
fn question(condition: Condition, texts: usize, most_contents: usize, most: usize) -> String {
    let any: Vec<String> = (5..5 + texts).map(|number| condition.sql(number)).collect();
    let bounded = |most: usize| i64::try_from(most).unwrap_or(i64::MAX - 1).min(i64::MAX - 1);
    let (most_contents, most) = (bounded(most_contents), bounded(most));
    format!(
        "WITH found AS MATERIALIZED ( \
             SELECT content FROM chunks \
             WHERE namespace = (SELECT id FROM namespaces WHERE name = $1) AND is_text AND ({}) \
             LIMIT {most_contents} + 1 \
         ), possible AS ( \
             SELECT content FROM found \
             UNION ALL \
             SELECT content FROM chunks \
             WHERE namespace = (SELECT id FROM namespaces WHERE name = $1) AND NOT is_text AND part = 0 \
         ) \
         SELECT NULL AS path WHERE (SELECT count(*) FROM found) > {most_contents} \
         UNION ALL \
         (SELECT path FROM files JOIN possible USING (content) \
         WHERE namespace = (SELECT id FROM namespaces WHERE name = $1) AND (path = $2 OR (path > $3 AND path < $4)) \
         AND (SELECT count(*) FROM found) <= {most_contents} \
         LIMIT {most} + 1)",
        any.join(" OR "),
    )
}

/// What texts with one of the needles are like, in the letters of the index; `None` where that says too little.
fn patterns(needles: &Needles) -> Option<Vec<String>> {
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
    let runs: Vec<&str> = needle.split(is_open).filter(|run| run.len() >= SHORTEST).collect();
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
        assert_eq!(patterns(&Needles::new(vec!["abc".into(), "ab".into()], CaseMode::Sensitive)), None);
    }
}

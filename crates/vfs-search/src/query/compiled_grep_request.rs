//! Compiled form of a grep request, shared by all workers of a search.

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use vfs_core::search::{BinaryMode, HiddenNames, IgnoreMode, InvertMatch, LinkMode};
use vfs_core::tree::SketchQuery;
use vfs_core::{CaseMode, Error, GrepOutput, GrepRequest, Result};

use crate::query::file_filter::FileFilter;
use crate::query::pattern_matcher::PatternMatcher;
use crate::query::regex;
use crate::query::required_literals::required_literals;

/// Maximum bytes of a line, or of a file in a multiline search, in the buffer of one worker.
const HEAP_LIMIT: usize = 64 << 20;

/// Maximum bytes of context lines that one worker buffers in addition to a line, so that even the longest lines have
/// room for some context.
const CONTEXT_LIMIT: usize = 64 << 20;

/// Approximate maximum of steps in one call of the engine, which cannot be interrupted: bytes times places of the
/// expression.
const MAX_ENGINE_STEPS: u64 = 1 << 30;

/// A grep request, validated and compiled.
pub(crate) struct CompiledGrepRequest {
    pub(crate) matcher: PatternMatcher,
    /// Whether matches may span lines, so that a file is searched as a whole.
    pub(crate) multiline: bool,
    /// Number of places to which the counted repetitions expand.
    pub(crate) expansion: u64,
    /// Maximum number of bytes after a match that the engine reads.
    pub(crate) max_read_past_match: usize,
    /// Literals of which a matching file must contain at least one, if the pattern requires any. Files whose
    /// cached sketch has none of them are not opened.
    pub(crate) required: Option<SketchQuery>,
    /// Maximum bytes of a line, or of a file in a multiline search.
    pub(crate) heap_limit: usize,
    /// Maximum bytes of lines that are buffered in addition to a line, since they may become its context.
    pub(crate) context_limit: usize,
    pub(crate) filter: FileFilter,
    pub(crate) hidden: HiddenNames,
    pub(crate) ignore: IgnoreMode,
    pub(crate) links: LinkMode,
    pub(crate) output: GrepOutput,
    pub(crate) binary: BinaryMode,
    pub(crate) invert: bool,
    pub(crate) before: u32,
    pub(crate) after: u32,
    pub(crate) limit: Option<u64>,
    pub(crate) limit_per_file: Option<u64>,
    pub(crate) max_file_size: Option<u64>,
    pub(crate) max_line_bytes: usize,
}

impl CompiledGrepRequest {
    pub(crate) fn new(req: &GrepRequest) -> Result<Self> {
        for (name, lines) in [("before", req.before), ("after", req.after)] {
            if lines > GrepRequest::MAX_CONTEXT {
                let max = GrepRequest::MAX_CONTEXT;
                return Err(Error::invalid_argument(format!("`{name}` is {lines}; at most {max} lines of context")));
            }
        }
        if req.max_line_bytes == Some(0) {
            return Err(Error::invalid_argument("`max_line_bytes` is 0; a line has at least one byte"));
        }
        let compiled = regex::compile(req)?;
        let shows_lines = req.output == GrepOutput::Matches;
        Ok(Self {
            matcher: compiled.matcher,
            multiline: compiled.multiline,
            expansion: compiled.expansion,
            max_read_past_match: compiled.max_read_past_match,
            required: required_query(req),
            heap_limit: heap_limit(compiled.expansion),
            context_limit: CONTEXT_LIMIT,
            filter: FileFilter::new(req)?,
            hidden: req.hidden,
            ignore: req.ignore,
            links: req.links,
            output: req.output,
            binary: req.binary,
            invert: req.invert == InvertMatch::Yes,
            before: if shows_lines { req.before } else { 0 },
            after: if shows_lines { req.after } else { 0 },
            limit: req.limit,
            limit_per_file: req.limit_per_file,
            max_file_size: req.max_file_size,
            max_line_bytes: usize::try_from(req.max_line_bytes.unwrap_or(GrepRequest::DEFAULT_MAX_LINE_BYTES))
                .unwrap_or(usize::MAX),
        })
    }

    /// Returns whether only matching lines are reported, without inversion and context.
    pub(crate) fn is_plain(&self) -> bool {
        !self.invert && self.before == 0 && self.after == 0
    }

    /// Returns whether lines are buffered in addition to the searched one, since they may become its context.
    pub(crate) fn buffers_context(&self) -> bool {
        !self.multiline && (self.before > 0 || self.after > 0)
    }

    /// Creates a searcher for one worker.
    pub(crate) fn searcher(&self) -> Searcher {
        // If there is room for context, the reader ensures that no line exceeds the limit.
        let context = if self.buffers_context() { self.context_limit } else { 0 };
        // In a multiline search the sink sees all matches on adjacent lines at once; to report a file, one such block
        // is enough.
        let is_one_enough = self.output == GrepOutput::Files && self.multiline && !self.invert;
        SearcherBuilder::new()
            .multi_line(self.multiline)
            .invert_match(self.invert)
            .line_number(self.output == GrepOutput::Matches)
            .before_context(self.before as usize)
            .after_context(self.after as usize)
            .heap_limit(Some(self.heap_limit.saturating_add(context)))
            .max_matches(is_one_enough.then_some(1))
            .binary_detection(BinaryDetection::none())
            .build()
    }
}

fn required_query(req: &GrepRequest) -> Option<SketchQuery> {
    let texts = required_literals(req)?;
    if req.case == CaseMode::Sensitive { SketchQuery::exactly(texts) } else { SketchQuery::in_any_case(texts) }
}

/// Returns the maximum length of a line for an expression whose counted repetitions expand to `expansion` places.
fn heap_limit(expansion: u64) -> usize {
    let bytes = MAX_ENGINE_STEPS / expansion.max(1);
    usize::try_from(bytes).map_or(HEAP_LIMIT, |bytes| bytes.min(HEAP_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_with_many_repetitions_have_a_lower_line_limit() {
        for (expansion, expected) in [(0, 64 << 20), (16, 64 << 20), (32, 32 << 20), (10_000, 107_374)] {
            assert_eq!(heap_limit(expansion), expected);
        }
    }
}

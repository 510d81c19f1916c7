//! A request, checked and compiled: what every worker of a search shares.

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use vfs_core::tree::Sought;
use vfs_core::{BinaryMode, CaseMode, Error, GrepOutput, GrepRequest, HiddenNames, LinkMode, Result};

use crate::query::file_filter::FileFilter;
use crate::query::matcher::LineMatcher;
use crate::query::regex;
use crate::query::required_literals::required_literals;

/// Most bytes that one worker holds of a line, or of a file in a multiline search.
const HEAP_LIMIT: usize = 64 << 20;

/// Most bytes that one worker holds beside a line for lines of context, so that the longest lines have room for some.
const CONTEXT_LIMIT: usize = 64 << 20;

/// Most steps, about, that the engine takes in one call, which nobody can interrupt: bytes times places of an expression.
const MAX_ENGINE_STEPS: u64 = 1 << 30;

/// What is searched for, where, and how much of it.
pub(crate) struct CompiledQuery {
    pub(crate) matcher: LineMatcher,
    /// Whether matches may span lines, so that a file is searched whole.
    pub(crate) multiline: bool,
    /// How many places its counted repetitions expand to.
    pub(crate) expansion: u64,
    /// How many bytes behind a match the engine looks at most.
    pub(crate) max_lookahead: usize,
    /// Texts that a file has to hold to be worth opening, where these can be told.
    pub(crate) required: Option<Sought>,
    /// Most bytes of a line, or of a file in a multiline search.
    pub(crate) heap_limit: usize,
    /// Most bytes of lines that are held beside a line, as they may be its context.
    pub(crate) context_limit: usize,
    pub(crate) filter: FileFilter,
    pub(crate) hidden: HiddenNames,
    pub(crate) no_ignore: bool,
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

impl CompiledQuery {
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
            max_lookahead: compiled.max_lookahead,
            required: required_query(req),
            heap_limit: heap_limit(compiled.expansion),
            context_limit: CONTEXT_LIMIT,
            filter: FileFilter::new(req)?,
            hidden: req.hidden,
            no_ignore: req.no_ignore,
            links: req.links,
            output: req.output,
            binary: req.binary,
            invert: req.invert,
            before: if shows_lines { req.before } else { 0 },
            after: if shows_lines { req.after } else { 0 },
            limit: req.limit,
            limit_per_file: req.limit_per_file,
            max_file_size: req.max_file_size,
            max_line_bytes: usize::try_from(req.max_line_bytes.unwrap_or(GrepRequest::DEFAULT_MAX_LINE_BYTES))
                .unwrap_or(usize::MAX),
        })
    }

    /// Whether a line is found by itself, because it matches.
    pub(crate) fn is_plain(&self) -> bool {
        !self.invert && self.before == 0 && self.after == 0
    }

    /// Whether lines are held beside the one that is searched, as they may be its context.
    pub(crate) fn holds_context(&self) -> bool {
        !self.multiline && (self.before > 0 || self.after > 0)
    }

    /// A searcher for this plan, for one worker.
    pub(crate) fn searcher(&self) -> Searcher {
        // Whoever reads sees to it that no line is over the limit, where there is room for more.
        let context = if self.holds_context() { self.context_limit } else { 0 };
        // The sink sees a multiline search's match with all that are on adjacent lines; one is enough to name a file.
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

fn required_query(req: &GrepRequest) -> Option<Sought> {
    let texts = required_literals(req)?;
    if req.case == CaseMode::Sensitive { Sought::exactly(texts) } else { Sought::in_any_case(texts) }
}

/// How large a line may be with an expression whose counted repetitions expand to `expansion` places.
fn heap_limit(expansion: u64) -> usize {
    let bytes = MAX_ENGINE_STEPS / expansion.max(1);
    usize::try_from(bytes).map_or(HEAP_LIMIT, |bytes| bytes.min(HEAP_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_repeat_much_take_shorter_lines() {
        for (expansion, expected) in [(0, 64 << 20), (16, 64 << 20), (32, 32 << 20), (10_000, 107_374)] {
            assert_eq!(heap_limit(expansion), expected);
        }
    }
}

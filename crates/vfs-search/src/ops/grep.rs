//! Grep operation: collects the events of a search into one result.

use std::sync::Arc;

use futures::StreamExt as _;
use vfs_core::search::GrepSummary;
use vfs_core::tree::Tree;
use vfs_core::{GrepEvent, GrepMatch, GrepRequest, GrepResult, OpContext, Problem, Result, TruncationReason, VfsPath};

use crate::engine::ordered_task_queue::RunAheadLimits;
use crate::engine::pool::Pool;
use crate::ops::grep_stream::GrepEventStream;
use crate::ops::problem_collector::ProblemCollector;

/// Finds text in the files of `tree` like [`grep_stream`](crate::grep_stream), and collects the matches.
///
/// # Behaviour
///
/// The result holds at most [`GrepRequest::max_result_bytes`]; if there is more, `truncated` says so. The future needs
/// no runtime. Dropping it ends the search.
///
/// # Errors
///
/// The errors of [`grep_stream`](crate::grep_stream).
pub async fn grep(tree: Arc<dyn Tree>, cx: OpContext, req: GrepRequest) -> Result<GrepResult> {
    grep_on(Pool::global(), tree, cx, req).await
}

/// Does the same as [`grep`] on the workers of `pool`.
///
/// # Errors
///
/// The errors of [`grep_stream`](crate::grep_stream).
pub async fn grep_on(pool: &Pool, tree: Arc<dyn Tree>, cx: OpContext, req: GrepRequest) -> Result<GrepResult> {
    let (start, max_bytes) = (req.path.clone(), req.max_result_bytes);
    let events = GrepEventStream::new(tree, cx, req, pool.clone(), RunAheadLimits::for_workers(pool.workers()));
    collect(events, &start, max_bytes).await
}

/// Cost of an item in addition to its text, in bytes. In memory an item takes up to four times as much.
const ITEM_BYTES: u64 = 32;

/// Collects `events` of a search from `start` up to the size limit of a result.
async fn collect(mut events: GrepEventStream, start: &VfsPath, max_bytes: Option<u64>) -> Result<GrepResult> {
    let mut result = GrepResult::default();
    let mut problems = ProblemCollector::default();
    let mut budget = ByteBudget::of(max_bytes);
    while let Some(event) = events.next().await {
        let event = event?;
        if !budget.reserve(event_cost(&event)) {
            let summary = events.stop(TruncationReason::MaxBytes);
            return Ok(summarise(result, problems.into_vec(start), summary));
        }
        let has_memory = match event {
            GrepEvent::Match(line) => {
                let mut has_memory = try_push(&mut result.matches, line);
                while has_memory && let Some(line) = events.next_match_if(|line| budget.reserve(line_cost(line))) {
                    has_memory = try_push(&mut result.matches, line);
                }
                has_memory
            }
            GrepEvent::File(file) => try_push(&mut result.files, file),
            GrepEvent::Problem(problem) => {
                problems.push(problem);
                true
            }
            GrepEvent::End(summary) => return Ok(summarise(result, problems.into_vec(start), summary)),
            _ => true,
        };
        if !has_memory {
            let summary = events.stop(TruncationReason::Memory);
            return Ok(summarise(result, problems.into_vec(start), summary));
        }
    }
    result.problems = problems.into_vec(start);
    Ok(result)
}

/// Appends `item` unless there is no memory for a longer list. Returns whether the item was appended.
pub(crate) fn try_push<T>(items: &mut Vec<T>, item: T) -> bool {
    let has_room = items.try_reserve(1).is_ok();
    if has_room {
        items.push(item);
    }
    has_room
}

fn summarise(mut result: GrepResult, problems: Vec<Problem>, summary: GrepSummary) -> GrepResult {
    result.problems = problems;
    result.truncated = summary.truncated;
    result.skipped = summary.skipped;
    result.files_searched = summary.files_searched;
    result
}

/// The number of bytes that a result may still take.
struct ByteBudget(u64);

impl ByteBudget {
    /// Returns the budget of a result that was requested to hold `max_bytes`.
    fn of(max_bytes: Option<u64>) -> Self {
        Self(max_bytes.unwrap_or(GrepRequest::DEFAULT_MAX_RESULT_BYTES).min(GrepRequest::MAX_RESULT_BYTES))
    }

    /// Reserves `bytes` if they fit, and returns whether they did.
    fn reserve(&mut self, bytes: u64) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Returns the number of bytes that an event takes in a result; the end takes none.
fn event_cost(event: &GrepEvent) -> u64 {
    let text = match event {
        GrepEvent::Match(line) => return line_cost(line),
        GrepEvent::File(file) => file.path.as_str().len(),
        GrepEvent::Problem(problem) => problem.path.len() + problem.message.len(),
        _ => return 0,
    };
    text as u64 + ITEM_BYTES
}

fn line_cost(line: &GrepMatch) -> u64 {
    let text = line.text.len() + line.path.as_str().len() + size_of_val(&*line.submatches);
    text as u64 + ITEM_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_of_a_result_is_bounded_for_every_requested_size() {
        for (max_bytes, budget) in
            [(None, 32 << 20), (Some(1), 1), (Some(200 << 20), 200 << 20), (Some(u64::MAX), 256 << 20)]
        {
            assert_eq!(ByteBudget::of(max_bytes).0, budget, "{max_bytes:?}");
        }
    }
}

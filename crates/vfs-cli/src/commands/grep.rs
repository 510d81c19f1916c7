//! Command `vfs grep`: searches text in files.

use std::io::{self, IsTerminal, Write};

use futures::{FutureExt, StreamExt};
use vfs_core::search::{BinaryMode, GrepSummary, InvertMatch, LineKind, MatchBoundary, MultilineMode, Skipped};
use vfs_core::{
    Backend, CaseMode, ErrorKind, GrepEvent, GrepOutput, GrepRequest, Pattern, StatRequest, TruncationReason, VfsPath,
};

use crate::args::GrepArgs;
use crate::backend_session::BackendSession;
use crate::exit::{self, Exit, Failure};
use crate::match_printer::{GroupSeparator, MatchPrinter};
use crate::progress_line::ProgressLine;
use crate::search_hints;
use crate::standard_output::StandardOutput;

/// Maximum number of bytes of a printed line, 16 MiB: lines are printed whole, and memory is bounded.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The output format of events.
#[derive(Debug)]
enum GrepFormat {
    Text(MatchPrinter),
    Json,
}

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: GrepArgs) -> Result<Exit, Failure> {
    let json = args.json;
    let (patterns, path) = patterns(&args)?;
    let literal_hint = patterns
        .iter()
        .find_map(|pattern| search_hints::literal_pattern_hint(pattern, "use -E"))
        .filter(|_| !args.invert);
    let request = request(session, args, patterns, path.as_deref())?;
    let mut format = if json {
        GrepFormat::Json
    } else {
        let separator =
            if request.before > 0 || request.after > 0 { GroupSeparator::Dashes } else { GroupSeparator::None };
        GrepFormat::Text(MatchPrinter::new(out.palette, separator))
    };
    let path = request.path.clone();
    let mut events = session.backend.grep_stream(session.cx.clone(), request);
    let mut progress = ProgressLine::start();
    let mut matches = 0;
    let mut has_unreadable_files = false;
    let mut skipped = Skipped::default();
    loop {
        let event = match events.next().now_or_never() {
            Some(event) => event,
            None => tokio::select! {
                biased;
                event = events.next() => event,
                () = progress.tick() => {
                    out.flush()?;
                    progress.show(&format!("searching, {matches} matches"));
                    continue;
                }
            },
        };
        progress.clear();
        let Some(event) = event else { break };
        let event = event?;
        if matches!(&event, GrepEvent::File(_))
            || matches!(&event, GrepEvent::Match(line) if line.kind == LineKind::Match)
        {
            matches += 1;
        }
        if let GrepEvent::Problem(problem) = &event {
            has_unreadable_files |= is_failure(problem.code);
        }
        write_event(out, &mut format, &event)?;
        if let GrepEvent::End(GrepSummary { truncated: truncated @ Some(TruncationReason::MaxEntries), .. }) = &event {
            exit::print_truncation(*truncated);
        }
        if let (GrepEvent::End(summary), 0) = (&event, matches) {
            skipped = summary.skipped;
            print_skipped(summary);
        }
    }
    if let (Some(hint), 0) = (literal_hint, matches) {
        exit::print_message(hint);
    }
    if skipped.binary > 0 && is_file(session, &path).await {
        exit::print_message(format_args!("{path} is a binary file and was not searched; --text searches it as text"));
    }
    // An unreadable file may contain a match, so the result is not "no match".
    if matches == 0 && has_unreadable_files { Ok(Exit::Incomplete) } else { Ok(Exit::from_match(matches > 0)) }
}

/// Returns whether a problem means that a file of the tree was not searched. Dangling links, links that lead outside and special
/// files contain no text of the tree.
fn is_failure(problem: ErrorKind) -> bool {
    !matches!(
        problem,
        ErrorKind::PathEscape
            | ErrorKind::InvalidPath
            | ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::Unsupported
    )
}

/// Returns the patterns and the path from the arguments; with `-e`, the first positional argument is the path.
fn patterns(args: &GrepArgs) -> Result<(Vec<Pattern>, Option<String>), Failure> {
    let (texts, path) = match (&args.expressions[..], &args.pattern, &args.path) {
        // clap requires a pattern in one of the two places. The search refuses an empty one.
        ([], pattern, path) => (vec![pattern.clone().unwrap_or_default()], path),
        (expressions, path, None) => (expressions.to_vec(), path),
        (_, _, Some(_)) => {
            return Err(Failure::Usage("give patterns either with -e or before the path, not both"));
        }
    };
    let kind = if args.extended { Pattern::Regex } else { Pattern::Literal };
    Ok((texts.into_iter().map(kind).collect(), path.clone()))
}

/// Returns the request for the arguments.
fn request(
    session: &BackendSession,
    args: GrepArgs,
    patterns: Vec<Pattern>,
    path: Option<&str>,
) -> Result<GrepRequest, Failure> {
    let has_line_break = |pattern: &Pattern| matches!(pattern, Pattern::Literal(text) if text.contains('\n'));
    let spans_lines = args.multiline || patterns.iter().any(has_line_break);
    let mut request = GrepRequest::new(vfs_search::any_of(patterns)?)
        .path(session.path_or_root(path)?)
        .context(args.before.unwrap_or(args.context), args.after.unwrap_or(args.context))
        .case(match (args.ignore_case, args.smart_case) {
            (true, _) => CaseMode::Insensitive,
            (false, true) => CaseMode::Smart,
            (false, false) => CaseMode::Sensitive,
        })
        .output(match (args.files, args.count) {
            (true, _) => GrepOutput::Files,
            (false, true) => GrepOutput::Counts,
            (false, false) => GrepOutput::Matches,
        })
        .max_line_bytes(MAX_LINE_BYTES);
    request.glob = args.glob;
    request.file_types = args.file_types;
    request.boundary = if args.word { MatchBoundary::Word } else { MatchBoundary::Anywhere };
    request.invert = if args.invert { InvertMatch::Yes } else { InvertMatch::No };
    request.span = if spans_lines { MultilineMode::MultiLine } else { MultilineMode::SingleLine };
    request.binary = if args.text { BinaryMode::Text } else { BinaryMode::Skip };
    request.limit_per_file = args.max_count;
    request.hidden = args.visibility.hidden;
    request.ignore = args.visibility.ignore();
    Ok(request)
}

fn write_event(out: &mut StandardOutput, format: &mut GrepFormat, event: &GrepEvent) -> io::Result<()> {
    match (format, event) {
        (GrepFormat::Json, event) => out.json(event),
        (GrepFormat::Text(printer), GrepEvent::Match(line)) => {
            if line.cut {
                exit::print_message(format_args!(
                    "{}:{}: the line is too long and was truncated",
                    line.path, line.line
                ));
            }
            printer.write_match(out, line)
        }
        (GrepFormat::Text(printer), GrepEvent::File(file)) => printer.write_file(out, file),
        (GrepFormat::Text(_), GrepEvent::Problem(problem)) => {
            exit::print_problems(std::slice::from_ref(problem));
            Ok(())
        }
        (GrepFormat::Text(_), _) => Ok(()),
    }
}

/// Returns whether `path`, the start of a search, is a file.
async fn is_file(session: &BackendSession, path: &VfsPath) -> bool {
    let info = session.backend.stat(&session.cx, StatRequest::new(path.clone())).await;
    info.is_ok_and(|info| !info.is_dir)
}

/// Prints on a terminal which entries a search without a match has skipped.
fn print_skipped(summary: &GrepSummary) {
    if !io::stderr().is_terminal() {
        return;
    }
    if let Some(counts) = search_hints::count_skipped(&summary.skipped, "--hidden", "--no-ignore", "--text") {
        exit::print_message(format_args!("no match in {} files; left out: {counts}", summary.files_searched));
    }
}

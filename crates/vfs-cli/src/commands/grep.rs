//! `vfs grep`.

use std::io::{self, IsTerminal, Write};

use futures::{FutureExt, StreamExt};
use vfs_core::{
    Backend, BinaryMode, CaseMode, ErrorKind, GrepEvent, GrepOutput, GrepRequest, GrepSummary, LineKind, Pattern,
    Skipped, StatRequest, Truncation, VfsPath,
};

use crate::args::GrepArgs;
use crate::exit::{self, Exit, Failure};
use crate::hints;
use crate::output::Output;
use crate::printer::{Groups, Printer};
use crate::progress::Progress;
use crate::session::Session;

/// 16 MiB of one line are printed: lines are shown whole, and memory stays bounded.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// How events are written.
#[derive(Debug)]
enum Format {
    Text(Printer),
    Json,
}

pub(super) async fn run(session: &Session, out: &mut Output, args: GrepArgs) -> Result<Exit, Failure> {
    let json = args.json;
    let (patterns, path) = patterns(&args)?;
    let literal = patterns.iter().find_map(|pattern| hints::literal(pattern, "use -E")).filter(|_| !args.invert);
    let request = request(session, args, patterns, path.as_deref())?;
    let mut format = if json {
        Format::Json
    } else {
        let groups = if request.before > 0 || request.after > 0 { Groups::Separated } else { Groups::Joined };
        Format::Text(Printer::new(out.palette, groups))
    };
    let path = request.path.clone();
    let mut events = session.backend.grep_stream(session.cx.clone(), request);
    let mut progress = Progress::start();
    let mut found = 0;
    let mut unreadable = false;
    let mut left_out = Skipped::default();
    loop {
        let event = match events.next().now_or_never() {
            Some(event) => event,
            None => tokio::select! {
                biased;
                event = events.next() => event,
                () = progress.due() => {
                    out.flush()?;
                    progress.show(&format!("searching, {found} matches"));
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
            found += 1;
        }
        if let GrepEvent::Problem(problem) = &event {
            unreadable |= is_failure(problem.code);
        }
        write_event(out, &mut format, &event)?;
        if let GrepEvent::End(GrepSummary { truncated: truncated @ Some(Truncation::MaxEntries), .. }) = &event {
            exit::warn_truncated(*truncated);
        }
        if let (GrepEvent::End(summary), 0) = (&event, found) {
            left_out = summary.skipped;
            explain_silence(summary);
        }
    }
    if let (Some(hint), 0) = (literal, found) {
        exit::tell(hint);
    }
    if left_out.binary > 0 && is_file(session, &path).await {
        exit::tell(format_args!("{path} is a binary file and was not searched; --text searches it as text"));
    }
    // What could not be read may hold what was searched for: that is not the same as finding nothing.
    if found == 0 && unreadable { Ok(Exit::Unread) } else { Ok(Exit::found(found > 0)) }
}

/// Whether a file of the tree was not searched. Links that lead nowhere or outside, and special files, hold no text of the tree.
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

/// Returns the patterns and the path that the arguments name; with `-e`, the first positional argument is the path.
fn patterns(args: &GrepArgs) -> Result<(Vec<Pattern>, Option<String>), Failure> {
    let (texts, path) = match (&args.expressions[..], &args.pattern, &args.path) {
        // The parser requires a pattern in one of the two places; an empty one is refused by the search.
        ([], pattern, path) => (vec![pattern.clone().unwrap_or_default()], path),
        (expressions, path, None) => (expressions.to_vec(), path),
        (_, _, Some(_)) => {
            return Err(Failure::Usage("patterns are given at one place only: with -e, or before the path"));
        }
    };
    let kind = if args.extended { Pattern::Regex } else { Pattern::Literal };
    Ok((texts.into_iter().map(kind).collect(), path.clone()))
}

/// The request that the arguments make.
fn request(
    session: &Session,
    args: GrepArgs,
    patterns: Vec<Pattern>,
    path: Option<&str>,
) -> Result<GrepRequest, Failure> {
    let has_line_break = |pattern: &Pattern| matches!(pattern, Pattern::Literal(text) if text.contains('\n'));
    let multiline = args.multiline || patterns.iter().any(has_line_break);
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
    request.whole_word = args.word;
    request.invert = args.invert;
    request.multiline = multiline;
    request.binary = if args.text { BinaryMode::Text } else { BinaryMode::Skip };
    request.limit_per_file = args.max_count;
    request.hidden = args.visibility.hidden;
    request.no_ignore = args.visibility.no_ignore;
    Ok(request)
}

fn write_event(out: &mut Output, format: &mut Format, event: &GrepEvent) -> io::Result<()> {
    match (format, event) {
        (Format::Json, event) => out.json(event),
        (Format::Text(printer), GrepEvent::Match(line)) => {
            if line.cut {
                exit::tell(format_args!("{}:{}: the line is too long and is cut here", line.path, line.line));
            }
            printer.line(out, line)
        }
        (Format::Text(printer), GrepEvent::File(file)) => printer.file(out, file),
        (Format::Text(_), GrepEvent::Problem(problem)) => {
            exit::warn(std::slice::from_ref(problem));
            Ok(())
        }
        (Format::Text(_), _) => Ok(()),
    }
}

/// Whether `path`, where a search started, is a file, which was named and not found on the way.
async fn is_file(session: &Session, path: &VfsPath) -> bool {
    let described = session.backend.stat(&session.cx, StatRequest::new(path.clone())).await;
    described.is_ok_and(|info| !info.is_dir)
}

/// Tells a person what was left out where nothing was found, so that silence is not mistaken for absence.
fn explain_silence(summary: &GrepSummary) {
    if !io::stderr().is_terminal() {
        return;
    }
    if let Some(counts) = hints::left_out(&summary.skipped, "--hidden", "--no-ignore", "--text") {
        exit::tell(format_args!("no match in {} files; left out: {counts}", summary.files_searched));
    }
}

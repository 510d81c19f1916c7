//! The definitions of a file: all of them as an outline, or one by its name.

use vfs_core::suggest::similar;
use vfs_core::{Content, Error, ErrorKind, ReadRequest, ReadResult, VfsPath};

use super::numbered::{AppendedLines, header_of_version, push_numbered};
use super::symbol_definitions::{SymbolDefinition, definitions, first_comment_line};
use super::{max_content_bytes, max_result_bytes};
use crate::action::CallScope;
use crate::request_action::ResultText;

/// Maximum size in bytes of a file in which definitions are looked for.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Room in bytes in which another definition is begun.
const MIN_ROOM: usize = 400;

/// Maximum number of characters of the first line of a definition in an outline.
const MAX_CHARACTERS: usize = 100;

/// Maximum number of names that are suggested.
const MAX_NEAR_NAMES: usize = 3;

/// Returns the outline of a file, or `None` if it has no definitions.
pub(super) async fn outline(scope: &CallScope<'_>, path: &VfsPath) -> Result<Option<ResultText>, Error> {
    let read = whole(scope, path).await?;
    let Content::Text(text) = &read.content else { return Ok(None) };
    let found = definitions(path.name().unwrap_or_default(), text);
    if found.is_empty() {
        return Ok(None);
    }
    let header = format!("{} {} lines, outline", header_of_version(scope.session, &read), text.lines().count());
    let lines = |line: fn(&SymbolDefinition<'_>) -> String| found.iter().map(line).collect::<Vec<_>>();
    let size = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let mut shown = lines(|it| {
        let text: String = it.text.chars().take(MAX_CHARACTERS).collect();
        format!("{}\t{}{text}", it.lines.start(), " ".repeat(it.indent.min(40)))
    });
    let mut room = max_result_bytes(scope);
    if size(&shown) > room {
        shown = lines(|it| format!("{}\t{}", it.lines.start(), it.name));
    }
    let kept = shown.iter().take_while(|line| {
        let left = room.checked_sub(line.len() + 1);
        room = left.unwrap_or(0);
        left.is_some()
    });
    let kept = kept.count();
    let mut text = format!("{header}\n{}", shown[..kept].join("\n"));
    if kept < shown.len() {
        text.push_str(&format!("\n[{} more definitions: search the file for them]", shown.len() - kept));
    }
    text.push_str("\n[for the text: `symbol` or `lines`]");
    scope.session.show(path, &read.version, None);
    Ok(Some(ResultText { text, is_truncated: true }))
}

/// Returns the lines of the definitions with the name `symbol`, each with the comment above it.
pub(super) async fn symbol(scope: &CallScope<'_>, path: &VfsPath, symbol: &str) -> Result<ResultText, Error> {
    let read = whole(scope, path).await?;
    let text = match &read.content {
        Content::Text(text) => text,
        Content::Binary { .. } => "",
    };
    let all = definitions(path.name().unwrap_or_default(), text);
    let found = definitions_named(&all, symbol);
    if found.is_empty() {
        let near = near_names(&all, split_last(symbol).1);
        let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
        let words = format!("no definition of this name is found{near}; search for it, or read lines");
        return Err(Error::new(ErrorKind::NoMatch, words).with_path(path));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let max_bytes = max_content_bytes(scope);
    let mut shown = String::new();
    let (mut left, mut is_truncated) = (found.len(), false);
    for definition in &found {
        let first = first_comment_line(&lines, *definition.lines.start());
        let last = *definition.lines.end();
        if !shown.is_empty() && shown.len() + MIN_ROOM > max_bytes {
            break;
        }
        left -= 1;
        shown.push_str(&format!("{first}-{last}\n"));
        let text = lines[first as usize - 1..last as usize].concat();
        let room = max_bytes.saturating_sub(shown.len());
        let AppendedLines { count, is_cut } = push_numbered(&mut shown, first, &text, room);
        if is_cut {
            shown.push_str(&format!("[line {first} is cut: lines=\"{first}\"]\n"));
            is_truncated = true;
        }
        let next = first + count;
        if next <= last {
            shown.push_str(&format!("[more: lines=\"{next}-{last}\"]\n"));
            is_truncated = true;
            break;
        }
    }
    if left > 0 {
        is_truncated = true;
        let next = &found[found.len() - left];
        shown.push_str(&format!("[{left} more of this name, the next at line {}]\n", next.lines.start()));
    }
    let header = header_of_version(scope.session, &read);
    scope.session.show(path, &read.version, None);
    Ok(ResultText { text: format!("{header} {}", shown.trim_end()), is_truncated })
}

/// Returns the definitions with the name `symbol`, or with the last part of a path such as `Type::method`. If some of these are in
/// `Type`, or name it in their first line as a method of Go does, the others are left out.
fn definitions_named<'a, 'b>(all: &'b [SymbolDefinition<'a>], symbol: &str) -> Vec<&'b SymbolDefinition<'a>> {
    let (before, name) = split_last(symbol);
    let is_named = |it: &SymbolDefinition<'_>| it.name == symbol || it.name == name;
    let found: Vec<_> = all.iter().filter(|it| is_named(it)).collect();
    // A type may have parameters.
    let Some(owner) = words(before.split('<').next().unwrap_or(before)).last() else { return found };
    let mentions_owner = |it: &SymbolDefinition<'_>| words(it.text).any(|word| word == owner);
    let mut of_owner = Vec::new();
    // The definitions are in the order of their first lines.
    let mut end_of_owner = 0;
    for it in all {
        if mentions_owner(it) {
            end_of_owner = end_of_owner.max(*it.lines.end());
        }
        if *it.lines.start() <= end_of_owner && is_named(it) {
            of_owner.push(it);
        }
    }
    if of_owner.is_empty() { found } else { of_owner }
}

/// Splits a path such as `Type::method` before its last part.
fn split_last(symbol: &str) -> (&str, &str) {
    let symbol = symbol.trim();
    symbol.rsplit_once([':', '.', '#']).map_or(("", symbol), |(before, name)| (before, name.trim()))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// Returns names that contain `name`, or are like it.
fn near_names<'a>(all: &[SymbolDefinition<'a>], name: &str) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    let contains_it = |other: &&str| !lower.is_empty() && other.to_lowercase().contains(&lower);
    let containing = all.iter().map(|it| it.name).filter(contains_it);
    let mut near: Vec<&str> = Vec::new();
    for other in containing.chain(similar(name, all.iter().map(|it| it.name), MAX_NEAR_NAMES)) {
        if near.len() < MAX_NEAR_NAMES && !near.contains(&other) {
            near.push(other);
        }
    }
    near
}

async fn whole(scope: &CallScope<'_>, path: &VfsPath) -> Result<ReadResult, Error> {
    let read = scope.backend.read(scope.cx, ReadRequest::new(path.clone()).max_bytes(MAX_FILE_BYTES)).await?;
    if read.truncated.is_some() {
        let words = format!(
            "the file has over {MAX_FILE_BYTES} bytes, too many to look for definitions; search it, or read lines"
        );
        return Err(Error::new(ErrorKind::TooLarge, words).with_path(path));
    }
    Ok(read)
}

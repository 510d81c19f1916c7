//! Keeping a command from what the interpreter has no bound for.
//!
//! A stack that overflows and memory that runs out end the serving process, and nothing can be done about either when it
//! happens. So what could get there is looked at before a builtin begins.

use std::sync::Arc;

use bashkit::hooks::{HookAction, Interceptor, ToolEvent};

use crate::stop::{Reason, Stop};

/// The stack of the interpreter, and that of its parser. `time` before a command may be repeated, which no limit of the
/// interpreter counts: a script that consists of it takes some 300 MB. Only what is used is ever backed by memory.
pub(crate) const STACK: usize = 384 << 20;

/// The longest text that is run as a script, which is also the longest argument that Linux takes.
pub(crate) const MAX_SCRIPT: usize = 128 << 10;

/// How much of the stack is used where commands are nested as deep as they may be.
const MAX_DEPTH: usize = 12 << 20;

/// Most of stack in use times arguments, both in bytes: each level of nesting may hold the arguments once more.
const MAX_HELD: usize = 1 << 40;

/// Most words of an expression that is parsed by recursion.
const MAX_WORDS: usize = 1_000;

/// The widest field that a format may ask for.
const MAX_WIDTH: u64 = 10_000;

/// Most columns of `xxd`, there as everywhere.
const MAX_COLUMNS: u64 = 256;

/// Ends a command with `stop` before a builtin takes too much.
pub(crate) fn guard(stop: Arc<Stop>) -> Interceptor<ToolEvent> {
    let top = stack_place();
    Box::new(move |event| match refused(top.abs_diff(stack_place()), &event) {
        Some(limit) => {
            stop.now(Reason::Limit(limit));
            HookAction::Cancel(String::new())
        }
        None => HookAction::Continue(event),
    })
}

/// Where on the stack the caller is.
#[inline(never)]
fn stack_place() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// The limit that a builtin would go over.
fn refused(depth: usize, event: &ToolEvent) -> Option<&'static str> {
    let ToolEvent { name, args, .. } = event;
    let bytes: usize = args.iter().map(String::len).sum();
    let held = bytes + args.len() * (size_of::<String>() + ALLOCATION);
    if depth > MAX_DEPTH || depth.saturating_mul(held) > MAX_HELD {
        return Some("commands are nested too deep in one another");
    }
    let is_refused = match name.as_str() {
        "eval" | "bash" | "sh" | "trap" | "alias" if bytes > MAX_SCRIPT => {
            return Some("a script is longer than 128 KiB");
        }
        "test" | "[" if args.len() > MAX_WORDS => return Some("an expression has more than 1000 words"),
        "find" if args.iter().filter(|arg| is_of_an_expression(arg)).count() > MAX_WORDS => {
            return Some("an expression has more than 1000 words");
        }
        "find" => args.iter().any(|arg| is_wide(arg)),
        "xxd" => columns(args).any(|columns| columns > MAX_COLUMNS),
        _ => false,
    };
    is_refused.then_some("a field or line is too wide")
}

/// What an allocator adds to a small text, about.
const ALLOCATION: usize = 16;

fn is_of_an_expression(arg: &str) -> bool {
    arg.starts_with('-') || matches!(arg, "(" | ")" | "!" | ",")
}

/// Whether a directive of the format asks for too wide a field.
fn is_wide(format: &str) -> bool {
    format.split('%').skip(1).any(|directive| {
        let width = directive.trim_start_matches(['-', '+', ' ', '#', '0']);
        let digits = width.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && width[..digits].parse().map_or(true, |width: u64| width > MAX_WIDTH)
    })
}

/// What follows each `-c`.
fn columns(args: &[String]) -> impl Iterator<Item = u64> {
    let next = args.iter().skip(1).map(Some).chain([None]);
    let values = args.iter().zip(next).filter_map(|(arg, next)| match arg.strip_prefix("-c") {
        Some("") => next.map(String::as_str),
        value => value,
    });
    // A number that is larger than any is too large as well; what is no number `xxd` refuses itself.
    let is_number = |value: &&str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    values.filter(is_number).map(|value| value.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(depth: usize, name: &str, args: &[&str]) -> bool {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        refused(depth, &ToolEvent { name: name.to_owned(), args }).is_some()
    }

    #[test]
    fn what_is_usual_is_not_refused_and_what_has_no_bound_is() {
        let many = |word: &'static str| vec![word; 1_100];
        for (name, args, expected) in [
            ("find", vec![".", "-printf", "%-20p %f\n"], false),
            ("find", vec![".", "-printf", "%2000000000p"], true),
            ("find", vec![".", "-printf", "100%%\n%-00099999999999999999999999p"], true),
            ("find", many("directory"), false),
            ("find", many("!"), true),
            ("find", many("-true"), true),
            ("test", vec!["-f", "a"], false),
            ("[", many("("), true),
            ("xxd", vec!["-c", "32", "file"], false),
            ("xxd", vec!["-c", "257"], true),
            ("xxd", vec!["-c2000000000"], true),
            ("xxd", vec!["-c99999999999999999999"], true),
            ("xxd", vec!["-c", "many"], false),
            ("xxd", vec!["-c"], false),
            ("echo", many("time"), false),
        ] {
            assert_eq!(refusal(60_000, name, &args), expected, "{name} {:?}", args.first());
        }
        let long = "x".repeat(MAX_SCRIPT + 1);
        assert!(refusal(0, "eval", &[&long]) && !refusal(0, "echo", &[&long]));
        assert!(refusal(MAX_DEPTH + 1, "true", &[]) && refusal(MAX_DEPTH / 2, "env", &vec!["env"; 10_000]));
    }
}

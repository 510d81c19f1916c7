//! Guard that stops builtins before they exhaust stack or memory.
//!
//! A stack overflow or exhausted memory ends the serving process and cannot be handled when it happens. The interpreter has
//! no bounds for these, so the guard checks each call of a builtin in advance.

use std::sync::Arc;

use bashkit::hooks::{HookAction, Interceptor, ToolEvent};

use crate::stop_signal::{ScriptStopSignal, StopReason};

/// Stack size in bytes of the interpreter and its parser. `time` may be repeated before a command, and no limit of the
/// interpreter counts that: a script of nothing else takes some 300 MB. Only used pages are backed by memory.
pub(crate) const STACK_BYTES: usize = 384 << 20;

/// Upper bound on the bytes of a script, equal to the longest argument of Linux.
pub(crate) const MAX_SCRIPT_BYTES: usize = 128 << 10;

/// Upper bound on the bytes of stack in use, reached by the deepest permitted nesting.
const MAX_STACK_DEPTH: usize = 12 << 20;

/// Upper bound on the product of stack bytes and argument bytes: each level of nesting may hold a copy of the arguments.
const MAX_STACK_TIMES_ARGUMENTS: usize = 1 << 40;

/// Upper bound on the words of an expression that is parsed by recursion.
const MAX_EXPRESSION_WORDS: usize = 1_000;

/// Upper bound on the width of a formatted field.
const MAX_FIELD_WIDTH: u64 = 10_000;

/// Upper bound on the columns of `xxd`, the same as in the original.
const MAX_COLUMNS: u64 = 256;

/// Returns a hook that triggers `stop` before a builtin exceeds a limit.
pub(crate) fn builtin_guard(stop: Arc<ScriptStopSignal>) -> Interceptor<ToolEvent> {
    let top = stack_address();
    Box::new(move |event| match exceeded_limit(top.abs_diff(stack_address()), &event) {
        Some(limit) => {
            stop.trigger(StopReason::Limit(limit));
            HookAction::Cancel(String::new())
        }
        None => HookAction::Continue(event),
    })
}

/// Returns an address in the caller's stack.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// Returns the limit that a builtin would exceed.
fn exceeded_limit(depth: usize, event: &ToolEvent) -> Option<&'static str> {
    let ToolEvent { name, args, .. } = event;
    let bytes: usize = args.iter().map(String::len).sum();
    let argument_bytes = bytes + args.len() * (size_of::<String>() + ALLOCATION_OVERHEAD);
    if depth > MAX_STACK_DEPTH || depth.saturating_mul(argument_bytes) > MAX_STACK_TIMES_ARGUMENTS {
        return Some("commands are nested too deep in one another");
    }
    let is_too_wide = match name.as_str() {
        "eval" | "bash" | "sh" | "trap" | "alias" if bytes > MAX_SCRIPT_BYTES => {
            return Some("a script is longer than 128 KiB");
        }
        "test" | "[" if args.len() > MAX_EXPRESSION_WORDS => return Some("an expression has more than 1000 words"),
        "find" if args.iter().filter(|arg| is_expression_word(arg)).count() > MAX_EXPRESSION_WORDS => {
            return Some("an expression has more than 1000 words");
        }
        "find" => args.iter().any(|arg| has_wide_field(arg)),
        "xxd" => column_counts(args).any(|columns| columns > MAX_COLUMNS),
        _ => false,
    };
    is_too_wide.then_some("a field or line is too wide")
}

/// Approximate overhead in bytes of one small allocation.
const ALLOCATION_OVERHEAD: usize = 16;

fn is_expression_word(arg: &str) -> bool {
    arg.starts_with('-') || matches!(arg, "(" | ")" | "!" | ",")
}

/// Returns whether a directive of the format has too wide a field.
fn has_wide_field(format: &str) -> bool {
    format.split('%').skip(1).any(|directive| {
        let width = directive.trim_start_matches(['-', '+', ' ', '#', '0']);
        let digits = width.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && width[..digits].parse().map_or(true, |width: u64| width > MAX_FIELD_WIDTH)
    })
}

/// Returns the number after each `-c`.
fn column_counts(args: &[String]) -> impl Iterator<Item = u64> {
    let next = args.iter().skip(1).map(Some).chain([None]);
    let values = args.iter().zip(next).filter_map(|(arg, next)| match arg.strip_prefix("-c") {
        Some("") => next.map(String::as_str),
        value => value,
    });
    // A number that overflows is too large as well; `xxd` itself refuses other text.
    let is_number = |value: &&str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    values.filter(is_number).map(|value| value.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(depth: usize, name: &str, args: &[&str]) -> bool {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        exceeded_limit(depth, &ToolEvent { name: name.to_owned(), args }).is_some()
    }

    #[test]
    fn usual_arguments_pass_and_unbounded_ones_are_refused() {
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
        let long = "x".repeat(MAX_SCRIPT_BYTES + 1);
        assert!(refusal(0, "eval", &[&long]) && !refusal(0, "echo", &[&long]));
        assert!(refusal(MAX_STACK_DEPTH + 1, "true", &[]) && refusal(MAX_STACK_DEPTH / 2, "env", &vec!["env"; 10_000]));
    }
}

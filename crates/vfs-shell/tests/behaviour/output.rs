//! Standard input and outputs of commands.

use vfs_core::ExecuteRequest;
use vfs_shell::ShellConfig;

use super::{HANG_TIMEOUT, Place};

#[tokio::test]
async fn a_command_may_read_or_ignore_its_standard_input() {
    let place = Place::new();
    let large = "0123456789abcdef\n".repeat(200_000);
    for (command, stdin, expected) in [
        ("cat", None, ""),
        ("cat", Some(""), ""),
        ("cat", Some("a\nb"), "a\nb"),
        ("read first; echo \"<$first>\"; cat", Some("a\nb\n"), "<a>\nb\n"),
        ("wc -c | tr -d ' '", Some(large.as_str()), "3400000\n"),
        ("true", Some(large.as_str()), ""),
        ("head -c 3", Some(large.as_str()), "012"),
        ("exec <&-; echo closed", Some(large.as_str()), "closed\n"),
        ("tr a-z A-Z", Some("größe 🦀\0"), "GRößE 🦀\0"),
    ] {
        let mut request = ExecuteRequest::new(command).timeout(HANG_TIMEOUT);
        request.stdin = stdin.map(str::to_owned);
        let response = place.run(request).await;
        assert_eq!((response.output.as_str(), response.timed_out), (expected, false), "{command}");
    }
    let closed = place.run(ExecuteRequest::new("echo more >&0; cat").stdin("input")).await;
    assert_eq!(closed.stdout, "input", "nobody writes to it: {closed:?}");
}

#[tokio::test]
async fn outputs_are_returned_separately_and_combined_in_order() {
    let place = Place::new();
    for _ in 0..20 {
        let response = place.sh("for i in 1 2 3 4 5 6 7 8 9; do echo out$i; echo err$i >&2; done; printf end").await;
        let expected = |names: &[&str]| -> String {
            (1..=9).flat_map(|i| names.iter().map(move |name| format!("{name}{i}\n"))).collect()
        };
        assert_eq!(response.output, expected(&["out", "err"]) + "end");
        assert_eq!(response.stdout, expected(&["out"]) + "end");
        assert_eq!(response.stderr, expected(&["err"]));
        assert_eq!((response.truncated, response.output_bytes), (false, 9 * 10 + 3));
    }
}

#[tokio::test]
async fn invalid_utf8_output_is_replaced() {
    let place = Place::new();
    for (command, expected, bytes) in [
        (r"printf 'a\000b'", "a\0b", 3),
        (r"printf 'a\377b\n'", "a\u{fffd}b\n", 4),
        (r"printf '\303'; sleep 0.05; printf '\244'", "ä", 2),
        (r"printf '\360\237'; sleep 0.05; printf x >&2; printf '\246\200'", "x🦀", 5),
        (r"printf '\303'", "\u{fffd}", 1),
        (r"printf '\303' >&2; printf '\244'", "\u{fffd}\u{fffd}", 2),
    ] {
        let response = place.sh(command).await;
        assert_eq!((response.output.as_str(), response.output_bytes), (expected, bytes), "{command}");
    }
}

#[tokio::test]
async fn long_output_keeps_its_head_and_tail() {
    let place = Place::with(ShellConfig::new().max_output_bytes(200_000));
    let command = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo problem >&2";
    let response = place.run(ExecuteRequest::new(command).max_output_bytes(1000)).await;
    assert!(response.truncated);
    assert!(response.output.starts_with("line 0\nline 1\n") && response.output.ends_with("line 2999\nproblem\n"));
    assert!(response.output.len() < 1100, "{}", response.output.len());
    let left_out: usize = response
        .output
        .lines()
        .find_map(|line| line.strip_prefix("[... ")?.strip_suffix(" bytes left out ...]")?.parse().ok())
        .expect("a line says so");
    assert_eq!(left_out as u64 + 1000, response.output_bytes);
    assert_eq!(response.stderr, "problem\n");
    let whole = place.run(ExecuteRequest::new(command)).await;
    assert_eq!((whole.truncated, whole.output.len() as u64), (false, whole.output_bytes));
    assert!(whole.output.ends_with("line 2999\nproblem\n"));
    let bounded = place.run(ExecuteRequest::new("yes | head -c 1000000").max_output_bytes(u64::MAX)).await;
    assert!(bounded.truncated && bounded.output.len() < 201_000 && bounded.output_bytes == 1_000_000);
    let nothing = place.run(ExecuteRequest::new("echo some").max_output_bytes(0)).await;
    assert_eq!((nothing.output.as_str(), nothing.truncated), ("[... 5 bytes left out ...]\n", true));
}

#[tokio::test]
async fn many_writes_and_large_ones_arrive_whole() {
    let place = Place::new();
    // More single writes than are read in exact order, on both outputs, followed by large ones.
    let command = "i=0; while [ $i -lt 3000 ]; do echo $i; echo $i >&2; i=$((i+1)); done; head -c 5000000 /dev/zero";
    let response = place.run(ExecuteRequest::new(command).max_output_bytes(10_000_000)).await;
    let numbers: String = (0..3000).map(|i| format!("{i}\n")).collect();
    assert_eq!(response.stderr, numbers);
    assert!(response.stdout.starts_with(&numbers));
    assert_eq!(response.stdout.len(), numbers.len() + 5_000_000);
    assert_eq!(response.output_bytes as usize, 2 * numbers.len() + 5_000_000);
    assert!(!response.truncated);
}

#[tokio::test]
async fn many_writes_of_any_size_lose_nothing() {
    let place = Place::new();
    // Far more writes than are read in exact order; the chunk size of 64 KiB is no multiple of their size.
    let command = "i=0; while [ $i -lt 8000 ]; do printf %03000d $i; i=$((i+1)); done";
    let response = place.run(ExecuteRequest::new(command).keep_full_output().max_output_bytes(1_000)).await;
    assert_eq!(response.output_bytes, 8_000 * 3_000);
    let file = std::fs::read(place.host(response.full_output.expect("requested").relative())).expect("it is there");
    let expected: String = (0..8_000).map(|i| format!("{i:03000}")).collect();
    assert!(file == expected.as_bytes(), "{} bytes", file.len());
}

#[tokio::test]
async fn calls_run_concurrently() {
    let place = Place::new();
    let calls = (0..32).map(|i| place.run(ExecuteRequest::new(format!("sleep 0.1; echo {i}"))));
    let answers = futures::future::join_all(calls).await;
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(answer.output, format!("{i}\n"));
    }
}

//! Limits of commands.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::{BackendExt, ErrorKind, ExecuteRequest};
use vfs_memory::MemoryBackend;
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

use crate::support::{HANG_TIMEOUT, execute, in_memory, run};

/// Commands that would run or allocate forever without the limits.
const BOMBS: &[&str] = &[
    "while :; do :; done",
    "until false; do true; done",
    "for ((;;)); do :; done",
    ":(){ :|:& };:",
    "f() { f; }; f",
    "f() { f | f & }; f; wait",
    "f() { $(f); }; f",
    "f() { (f); }; f",
    "bash -c 'while :; do :; done'",
    "echo 'bash s.sh' > s.sh; bash s.sh",
    "echo '. ./s.sh' > s.sh; . ./s.sh",
    "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done",
    "a=(x); while :; do a+=(\"${a[@]}\"); done",
    "echo {1..1000000000}",
    "echo {a..z}{a..z}{a..z}{a..z}{a..z}{a..z}",
    "printf '%1000000000s' x",
    "printf 'x%.0s' {1..10000000}",
    "head -c 100000000000 /dev/zero | wc -c",
    "awk 'BEGIN { while (1) x = x \"aaaaaaaaaaaaaaaa\" }'",
    "awk 'BEGIN { for (;;) ; }'",
    "echo x | sed ':a;s/x/xx/;ba'",
    "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
    "while :; do echo x; done | cat > out",
    "while :; do echo x >> out; done",
    "seq 1 100000000000",
    "eval \"$(printf '$(%.0s' {1..2000})\"",
    "trap 'kill -USR1 $$' USR1; kill -USR1 $$",
    "alias a='a a'; shopt -s expand_aliases; a",
    "PS4='$(set -x; :)'; set -x; :",
    "x='x'; eval 'eval \"$x; $x\"'; y='eval \"$y\"'; eval \"$y\"",
    "[[ $(printf 'a%.0s' {1..5000}) =~ (a*)*(a*)*(a*)*b ]]",
    "bc <<< '9^9^9^9'",
    "echo $((9**9**9))",
    "expr 9999999999 : '\\(.*\\)*\\(.*\\)*x'",
    "factor 170141183460469231731687303715884105727",
    "xargs -n1 bash -c 'echo $0 | xargs -n1 bash -c ls' <<< 'a b c'",
    "retry 100000 false; watch -n0 true",
    "timeout 100 bash -c 'while :; do :; done'",
    "mkfifo p; cat p",
    "coproc cat; read -u ${COPROC[0]} x",
    "x='('; for i in {1..16}; do x=$x$x; done; bc <<< \"${x}1\"",
    "x='( '; for i in {1..15}; do x=$x$x; done; test $x a",
    "x='( '; for i in {1..15}; do x=$x$x; done; [ $x a ]",
    "x='-o a '; for i in {1..15}; do x=$x$x; done; test a $x",
    "x='( '; for i in {1..15}; do x=$x$x; done; expr $x 1",
    "x=' -o -name a'; for i in {1..14}; do x=$x$x; done; find . -name a $x",
    "x=' -name a'; for i in {1..14}; do x=$x$x; done; find . $x",
    "x=' , -true'; for i in {1..14}; do x=$x$x; done; find . -true $x",
    "x=' !'; for i in {1..14}; do x=$x$x; done; find . $x -true",
    "x=' -not'; for i in {1..14}; do x=$x$x; done; find . $x -true",
    "x=' ('; for i in {1..14}; do x=$x$x; done; find . $x -true",
    "x=' ('; for i in {1..14}; do x=$x$x; done; echo $x | xargs find .",
    "echo a | xxd -c 2000000000",
    "echo a | xxd -c2000000000",
    "find . -printf '%2000000000p'",
    "find . -printf '%-02000000000p'",
    "x='time '; for i in {1..14}; do x=$x$x; done; eval \"$x true\"",
    "x='time '; for i in {1..14}; do x=$x$x; done; bash -c \"$x true\"",
    "x='time '; for i in {1..14}; do x=$x$x; done; echo \"$x true\" > s; . ./s",
    "x='time '; for i in {1..14}; do x=$x$x; done; echo \"$x true\" | bash",
    "x='time ! '; for i in {1..13}; do x=$x$x; done; trap \"$x true\" EXIT",
    "x='time '; for i in {1..14}; do x=$x$x; done; y=\"\\$($x true)\"; echo ${y@P}",
    "x='time '; for i in {1..18}; do x=$x$x; done; eval \"$x true\"",
    "x='exec '; for i in {1..14}; do x=$x$x; done; $x true",
    "x='env a=b '; for i in {1..14}; do x=$x$x; done; $x true",
    "x='builtin command '; for i in {1..13}; do x=$x$x; done; $x true",
    "x='timeout 5 '; for i in {1..14}; do x=$x$x; done; $x true",
    "x='eval '; for i in {1..14}; do x=$x$x; done; $x true",
    "x='xargs '; for i in {1..14}; do x=$x$x; done; echo a | $x echo",
    "x='find . -maxdepth 0 -exec '; for i in {1..9}; do x=$x$x; done; $x true \\;",
    "x='('; for i in {1..16}; do x=$x$x; done; echo $((${x}1))",
    "x='a['; for i in {1..16}; do x=$x$x; done; let \"y=${x}1\"",
    "x='('; for i in {1..16}; do x=$x$x; done; awk \"BEGIN{print ${x}1}\"",
    "x='1?1:'; for i in {1..15}; do x=$x$x; done; awk \"BEGIN{print ${x}1}\"",
    "x='if(1)'; for i in {1..15}; do x=$x$x; done; awk \"BEGIN{${x}print 1}\"",
    "x='('; for i in {1..15}; do x=$x$x; done; grep -E \"$x\" <<< a; grep -P \"$x\" <<< a",
    "x='\\('; y='\\)'; for i in {1..14}; do x=$x$x; y=$y$y; done; sed \"s/${x}a$y\\\\1/b/\" <<< a",
    "x='('; y=')'; for i in {1..14}; do x=$x$x; y=$y$y; done; [[ a =~ ${x}a$y ]]; [[ a == ${x}a$y ]]",
    "x='{'; y='}'; for i in {1..14}; do x=$x$x; y=$y$y; done; sed \"${x}p$y\" <<< a",
    "x='{a,'; y='}'; for i in {1..13}; do x=$x$x; y=$y$y; done; eval \"echo ${x}a$y\"",
    "x='['; for i in {1..16}; do x=$x$x; done; json parse <<< \"$x\"; tomlq . <<< \"a=$x\"",
    "x='a.'; for i in {1..14}; do x=$x$x; done; json set \"${x}a\" 1 <<< '{}'",
    "x='{{#if a}}'; for i in {1..13}; do x=$x$x; done; echo \"$x\" > t; template t",
    "for i in {1..4000}; do echo \"a$i: a$((i+1))\"; done > m; echo 'a4001:' >> m; make -f m a1",
    "x='**/'; shopt -s globstar; for i in {1..10}; do x=$x$x; done; mkdir -p a/b/c/d; echo x > a/b/c/d/e; echo ${x}*",
    "printf '%2000000000d' 1; printf '%.2000000000f' 1; printf '%*d' 2000000000 1",
    "awk 'BEGIN { printf \"%2000000000d\", 1; printf \"%.2000000000f\", 1; NF=2000000000; $100000000=1 }'",
    "seq -w 1 1e15; seq -f '%2000000000g' 1 2; seq 1 1e-1000000 2",
    "pr -l 2000000000 <<< a; nl -w 2000000000 <<< a; numfmt --padding=2000000000 1; fold -w 20000000000 <<< a",
    "truncate -s 2000G x; split -a 2000000000 <<< a; shuf -i 1-2000000000 | tail -n 1; openssl rand 20000000000",
];

fn tight() -> VirtualShell {
    let config = VirtualShellConfig::new()
        .max_commands(5_000)
        .max_loop_iterations(5_000)
        .max_output_bytes(256 << 10)
        .max_memory_bytes(4 << 20)
        .max_file_bytes(1 << 20);
    VirtualShell::new(Arc::new(MemoryBackend::new()), config)
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_bombs_are_stopped_and_the_shell_survives() {
    let files = tight();
    for bomb in BOMBS {
        let request = ExecuteRequest::new(*bomb).timeout(Duration::from_secs(5));
        let answer = tokio::time::timeout(Duration::from_secs(5) + HANG_TIMEOUT, execute(&files, request)).await;
        let answer = answer.unwrap_or_else(|_| panic!("{bomb}: it is not ended"));
        let answer = answer.unwrap_or_else(|error| panic!("{bomb}: {error}"));
        assert!(answer.output.len() <= 100_100, "{bomb}: {}", answer.output.len());
        assert_eq!(run(&files, "echo alive").await.stdout, "alive\n", "{bomb}");
    }
}

#[tokio::test]
async fn an_exceeded_limit_is_named() {
    let config = VirtualShellConfig::new().max_commands(5_000).max_loop_iterations(500).max_memory_bytes(1 << 20);
    let files = VirtualShell::new(Arc::new(MemoryBackend::new()), config);
    for (command, words) in [
        ("echo before; while :; do :; done", "maximum loop iterations exceeded (500)"),
        ("echo before; f() { :; :; :; :; :; :; :; :; :; :; :; :; }; for i in {1..490}; do f; done", "command count"),
        ("echo before; x=a; while :; do x=$x$x; done", "limit"),
        ("echo before; echo a | xxd -c 257", "too wide"),
        ("echo before; find . -printf '%10001p'", "too wide"),
        ("echo before; test {1..1001}", "1000 words"),
        ("echo before; find . $(printf '! %.0s' {1..400} {1..400} {1..400}) -true", "1000 words"),
        ("echo before; x='time '; for i in {1..15}; do x=$x$x; done; eval \"$x true\"", "128 KiB"),
    ] {
        let answer = run(&files, command).await;
        assert_eq!(
            (answer.exit_code, answer.signal, answer.timed_out),
            (None, Some(9), false),
            "{command}: {answer:?}"
        );
        assert!(answer.stdout == "before\n" && answer.stderr.contains(words), "{command}: {answer:?}");
    }
}

#[tokio::test]
async fn nested_commands_do_not_overflow_the_stack() {
    let config = VirtualShellConfig::new().max_commands(u64::MAX).max_loop_iterations(u64::MAX);
    let files = VirtualShell::new(Arc::new(MemoryBackend::new()), config);
    for command in [
        "y='eval \"$y\"'; eval \"$y\"",
        "y='command eval \"$y\"'; eval \"$y\"",
        "y='{ builtin eval \"$y\"; }'; eval \"$y\"",
        "y='if :; then eval \"$y\"; fi'; eval \"$y\"",
        "y='while :; do case x in x) eval \"$y\";; esac; done'; eval \"$y\"",
        "y='eval \"$y\" | cat'; eval \"$y\"",
        "y='(eval \"$y\")'; eval \"$y\"",
        "y='echo $(eval \"$y\")'; eval \"$y\"",
        "y='eval \"$y\" > out'; eval \"$y\"",
        "y='x=1 eval \"$y\"'; eval \"$y\"",
        "y='! eval \"$y\" && eval \"$y\"'; eval \"$y\"",
        "y='xargs -n1 eval \"$y\"'; eval \"$y\"",
        "y='time eval \"$y\"'; eval \"$y\"",
        "f() { eval f; }; f",
        "trap 'eval \"$y\"' DEBUG; y='eval \"$y\"'; eval \"$y\"",
        "y='cat <(eval \"$y\")'; eval \"$y\"",
        "y='timeout 5 bash -c \"eval \\\"\\$y\\\"\"'; export y; eval \"$y\"",
        "y='find / -maxdepth 0 -exec bash -c \"eval \\\"\\$y\\\"\" \\;'; export y; eval \"$y\"",
    ] {
        let request = ExecuteRequest::new(command).timeout(Duration::from_secs(10));
        let answer = execute(&files, request).await.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert_eq!(run(&files, "echo alive").await.stdout, "alive\n", "{command}: {answer:?}");
    }
    let answer = run(&files, "echo before; y='eval \"$y\"'; eval \"$y\"").await;
    assert_eq!((answer.stdout.as_str(), answer.signal), ("before\n", Some(9)));
    assert!(answer.stderr.ends_with("nested too deep in one another\n"), "{}", answer.stderr);
}

#[tokio::test]
async fn a_closed_pipe_ends_its_writer() {
    let files = in_memory();
    assert_eq!(run(&files, "yes | head -n 2").await.stdout, "y\ny\n");
    let answer = run(&files, "while :; do echo x; done | head -n 2; echo ${PIPESTATUS[0]}").await;
    assert_eq!(answer.stdout, "x\nx\n141\n");
}

#[tokio::test]
async fn the_bytes_read_from_files_are_limited() {
    let config = VirtualShellConfig::new().max_read_bytes(10_000);
    let files = VirtualShell::new(Arc::new(MemoryBackend::new()), config);
    files.create_text("/a", &"x".repeat(3_000)).await.expect("a new file");
    assert_eq!(run(&files, "cat a a a | wc -c").await.stdout, "9000\n");
    let answer = run(&files, "echo before; cat a a a a | wc -c").await;
    assert_eq!((answer.stdout.as_str(), answer.signal), ("before\n", Some(9)), "{answer:?}");
    assert!(answer.stderr.ends_with("the bytes read from files exceed their limit\n"), "{}", answer.stderr);
}

#[tokio::test]
async fn files_over_the_limit_are_not_read_or_written() {
    let files = tight();
    files.create_text("/big", &"x".repeat(2 << 20)).await.expect("the backend takes it");
    let answer = run(&files, "cat big; cat < big; wc -c big; seq 200000 > out; ls").await;
    assert!(answer.stderr.contains("File too large"), "{answer:?}");
    assert!(!answer.stdout.contains("xxxx"), "{}", answer.stdout.len());
    let written = files.stat_path("/out").await.map_or(0, |info| info.size);
    assert!(written <= 1 << 20, "{written}");
}

#[tokio::test]
async fn deep_nesting_is_refused_or_completes() {
    let files = in_memory();
    for depth in [10, 200, 8_000, 20_000] {
        for (open, close) in
            [("(", ")"), ("{ ", "; }"), ("$(", ")"), ("`", "`"), ("if :; then ", "; fi"), ("[[ ( ", " ) ]]")]
        {
            let command = format!("{}echo x{}", open.repeat(depth), close.repeat(depth));
            is_refused_or_done(&files, command).await;
        }
        for word in ["$((".repeat(depth) + "1" + &"))".repeat(depth), "${a:-".repeat(depth) + &"}".repeat(depth)] {
            let command = format!("echo {word}");
            is_refused_or_done(&files, command).await;
        }
    }
    assert_eq!(run(&files, "echo alive").await.stdout, "alive\n");
}

/// Returns whether the command ran; only a command that is too long may be refused.
async fn is_refused_or_done(files: &VirtualShell, command: String) {
    let is_too_long = command.len() > 128 << 10;
    match execute(files, ExecuteRequest::new(command).timeout(Duration::from_secs(20))).await {
        Ok(_) => assert!(!is_too_long, "it was to be refused"),
        Err(error) => assert!(is_too_long && error.kind() == ErrorKind::TooLarge, "{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_over_the_concurrency_limit_wait() {
    let config = VirtualShellConfig::new().max_concurrent(2);
    let files = Arc::new(VirtualShell::new(Arc::new(MemoryBackend::new()), config));
    let runs = (0..12).map(|_| {
        let files = Arc::clone(&files);
        tokio::spawn(async move { run(&*files, "sleep 0.02; echo done").await })
    });
    for run in futures::future::join_all(runs).await {
        assert_eq!(run.expect("no panic").stdout, "done\n");
    }
}

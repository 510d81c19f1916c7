//! Visibility between commands and file operations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, CancelToken, ErrorKind, ExecuteRequest, Interceptor, Layer as _, OpContext, Operation, Result,
    Shell as _, WriteRequest,
};
use vfs_layers::Trace;
use vfs_local::LocalBackend;
use vfs_memory::{FilesState, MemoryBackend, StateBackend};

use crate::support::{HANG_TIMEOUT, execute, in_memory, over, path, run};

#[tokio::test]
async fn bytes_that_are_not_text_pass_unchanged() {
    let files = in_memory();
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let request = WriteRequest::new(path("/bytes"), bytes.clone());
    files.write(&OpContext::new(), request).await.expect("a new file");
    let answer = run(&files, "cat bytes > copy; cat copy | tail -c 3 > tail; cmp bytes copy && echo same").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("same\n", Some(0)), "{answer:?}");
    let copies = files.download_files(&OpContext::new(), vec![path("/copy"), path("/tail")]).await;
    assert_eq!(copies[0].content.as_deref(), Some(&bytes[..]));
    assert_eq!(copies[1].content.as_deref(), Some(&bytes[69_997..]));
    let answer = run(&files, "printf 'a\\377b'").await;
    assert_eq!(answer.stdout, "a\u{fffd}b");
}

#[tokio::test]
async fn unusual_file_names_are_supported() {
    let files = in_memory();
    for name in ["/a b", "/-rf", "/ü/ñ", "/~x", "/$HOME", "/a'b\"c", "/*"] {
        files.write(&OpContext::new(), WriteRequest::new(path(&format!("/d{name}")), name)).await.expect("a new file");
    }
    let answer = run(&files, "cd d; for f in *; do [ -f \"$f\" ] && cat -- \"$f\" && echo; done | sort").await;
    assert_eq!(answer.stdout, "/$HOME\n/*\n/-rf\n/a b\n/a'b\"c\n/~x\n", "{answer:?}");
}

#[tokio::test]
async fn mkdir_persists_where_directories_can_be_empty() {
    let root = tempfile::tempdir().expect("a directory");
    let files = over(LocalBackend::open(root.path()).expect("a root"));
    let answer = run(&files, "mkdir -p a/b && ls -A a/b && cd a/b && pwd").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("/a/b\n", Some(0)), "{answer:?}");
    assert!(files.stat_path("/a/b").await.expect("it stays").is_dir);
    let answer = run(&files, "rmdir a/b && ls -A a; rmdir a; echo x > new; mv new old; cat old").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("x\n", Some(0)), "{answer:?}");
}

#[tokio::test]
async fn an_edit_in_place_is_one_write() {
    let trace = Trace::new();
    let memory = MemoryBackend::new();
    memory.create_text("/d/a.txt", "one\n").await.expect("a new file");
    let files = over(trace.layer(Arc::new(memory)));
    let answer = run(&files, "sed -i s/one/two/ d/a.txt && cat d/a.txt").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("two\n", Some(0)), "{answer:?}");
    let metrics = trace.metrics();
    let calls = [Operation::Write, Operation::Rename, Operation::Delete].map(|operation| metrics.of(operation).calls);
    assert_eq!(calls, [1, 0, 0]);
}

/// Interceptor that cancels the call after a write.
#[derive(Debug)]
struct CancelsWrites(CancelToken);

impl Interceptor for CancelsWrites {
    fn name(&self) -> &'static str {
        "cancels_writes"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        let answer = request.send(inner, cx).await;
        if Q::OPERATION == Operation::Write {
            self.0.cancel();
            tokio::task::yield_now().await;
        }
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_mkdir_leaves_no_placeholder_file() {
    let root = tempfile::tempdir().expect("a directory");
    let local = LocalBackend::open(root.path()).expect("a root");
    for number in 0..20 {
        let token = CancelToken::new();
        let files = over(Intercepted::new(Arc::new(local.clone()), Arc::new(CancelsWrites(token.clone()))));
        let cx = OpContext::new().with_cancel_token(token);
        let error = files.execute(&cx, ExecuteRequest::new(format!("mkdir d{number}"))).await.expect_err("cancelled");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
    let (files, end) = (over(local), Instant::now() + HANG_TIMEOUT);
    loop {
        let found = run(&files, "find . -type f").await.stdout;
        if found.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_empty_directory_ends_with_the_command_where_it_cannot_be_stored() {
    let files = in_memory();
    let answer = run(&files, "mkdir -p a/b; [ -d a/b ] && ls a").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("b\n", Some(0)), "{answer:?}");
    assert!(!files.exists("/a").await.expect("looked at"));
    let answer = run(&files, "echo x > a/b/c; cat a/b/c").await;
    assert_eq!(answer.stdout, "x\n");
}

#[tokio::test]
async fn errors_have_the_words_of_the_c_library() {
    let files = in_memory();
    files.create_text("/file", "x").await.expect("a new file");
    for (command, words) in [
        ("cat missing", "cat: missing: No such file or directory\n"),
        ("cat < missing", "bash: line 1: missing: No such file or directory\n"),
        ("cat file/below", "cat: file/below: Not a directory\n"),
        ("mkdir d; cat d", "cat: d: Is a directory\n"),
        ("mkdir file", "mkdir: cannot create directory 'file': File exists\n"),
        ("if then", "bash: -c: line 1: syntax error near unexpected token `then'\n"),
    ] {
        let answer = run(&files, command).await;
        assert!(answer.stderr.starts_with(words) || answer.stderr.contains(words), "{command}: {:?}", answer.stderr);
        assert_ne!(answer.exit_code, Some(0), "{command}");
    }
}

#[tokio::test]
async fn a_backend_that_returns_its_changes_runs_no_commands() {
    let files = over(StateBackend::pure(FilesState::default()));
    let error = execute(&files, ExecuteRequest::new("echo x > f")).await.expect_err("not here");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_appends_are_not_lost() {
    let files = Arc::new(in_memory());
    let runs = (0..16).map(|number| {
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            run(&*files, &format!("for i in 1 2 3 4 5 6 7 8; do echo {number}-$i >> log; done")).await
        })
    });
    for run in futures::future::join_all(runs).await {
        assert_eq!(run.expect("no panic").exit_code, Some(0));
    }
    assert_eq!(files.read_text("/log").await.expect("the log").lines().count(), 128);
}

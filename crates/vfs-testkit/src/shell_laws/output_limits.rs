//! Limits of output.

use vfs_core::{ErrorKind, ExecuteRequest, ExecuteResponse};

use super::ShellTarget;
use super::law_helpers::{NOTE, TIMES, assert_success, cx, lines};
use crate::laws::LawResult;

shell_laws! { "bounds":
    "XB1" has() long_output_keeps_its_first_and_last_part in Wrapper,
    "XB2" has() output_of_exactly_the_limit_is_whole,
    "XB3" has() each_output_has_the_limit_for_itself,
    "XB4" has() by_default_the_limit_is_100_000_bytes in Wrapper,
    "XB5" has() ten_megabytes_are_cut_to_the_limit,
    "XB6" has() with_a_limit_of_zero_output_is_only_counted,
    "XB7" has() a_cut_is_between_characters,
    "XB8" has() the_greatest_limit_keeps_all,
    "XB9" has(FullOutputMode) all_output_is_in_a_file_by_request in Wrapper,
    "XB10" has(FullOutputMode) each_command_has_a_file_of_its_own,
    "XB11" has(FullOutputMode, Processes) output_before_a_timeout_is_in_the_file,
    "XB12" lacks(FullOutputMode) an_unsupported_file_of_all_output_is_refused,
}

/// Asserts that `output` is `whole`, cut to `limit` bytes.
#[track_caller]
fn assert_cut(output: &str, whole: &str, limit: usize) {
    assert!(output.len() <= limit + NOTE, "{} bytes were returned of at most {limit}", output.len());
    let shared = |mut left: Box<dyn Iterator<Item = char> + '_>, right: Box<dyn Iterator<Item = char> + '_>| {
        let mut right = right;
        std::iter::from_fn(|| left.next().filter(|letter| right.next() == Some(*letter))).count()
    };
    let head = shared(Box::new(output.chars()), Box::new(whole.chars()));
    let tail = shared(Box::new(output.chars().rev()), Box::new(whole.chars().rev()));
    let least = limit / 10;
    assert!(head >= least && tail >= least, "of a limit of {limit} the first {head} and the last {tail} were returned");
}

fn assert_counted(ended: &ExecuteResponse, truncated: bool, bytes: usize) {
    assert_success(ended);
    assert_eq!((ended.truncated, ended.output_bytes), (truncated, bytes as u64));
}

async fn long_output_keeps_its_first_and_last_part(t: &ShellTarget) -> LawResult {
    let text = lines(10_000);
    t.files.put("/much", text.clone()).await?;
    for limit in [1_200, 5_000, 65_536, 119_999] {
        let ended = t.execute(t.command("cat much").max_output_bytes(limit as u64)).await?;
        assert_counted(&ended, true, text.len());
        assert_cut(&ended.stdout, &text, limit);
        assert_cut(&ended.output, &text, limit);
        let ended = t.execute(t.command("cat much >&2").max_output_bytes(limit as u64)).await?;
        assert_counted(&ended, true, text.len());
        assert_cut(&ended.stderr, &text, limit);
    }
    Ok(())
}

async fn output_of_exactly_the_limit_is_whole(t: &ShellTarget) -> LawResult {
    for count in [1, 10, 1_000, 10_000] {
        let text = lines(count);
        t.files.put("/text", text.clone()).await?;
        for (limit, is_cut) in [(text.len() - 1, true), (text.len(), false), (text.len() + 1, false)] {
            let ended = t.execute(t.command("cat text").max_output_bytes(limit as u64)).await?;
            assert_counted(&ended, is_cut, text.len());
            assert_eq!((ended.stdout == text, ended.output == text), (!is_cut, !is_cut), "{limit} of {}", text.len());
        }
    }
    Ok(())
}

async fn each_output_has_the_limit_for_itself(t: &ShellTarget) -> LawResult {
    let (few, many) = (lines(100), lines(10_000));
    t.files.put("/few", few.clone()).await?;
    t.files.put("/many", many.clone()).await?;
    let ended = t.execute(t.command("cat few; cat many >&2").max_output_bytes(2_000)).await?;
    assert_counted(&ended, true, few.len() + many.len());
    assert_eq!(ended.stdout, few);
    assert_cut(&ended.stderr, &many, 2_000);
    let ended = t.execute(t.command("cat few; cat few >&2").max_output_bytes(few.len() as u64)).await?;
    assert_counted(&ended, true, 2 * few.len());
    assert_eq!((&ended.stdout, &ended.stderr), (&few, &few));
    assert_cut(&ended.output, &few.repeat(2), few.len());
    Ok(())
}

async fn by_default_the_limit_is_100_000_bytes(t: &ShellTarget) -> LawResult {
    let limit = ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES as usize;
    let text = "0123456789".repeat(limit / 10);
    t.files.put("/whole", text.clone()).await?;
    t.files.put("/more", format!("{text}+")).await?;
    let ended = t.run("cat whole").await?;
    assert_counted(&ended, false, limit);
    assert!(ended.stdout == text, "{} bytes", ended.stdout.len());
    let ended = t.run("cat more").await?;
    assert_counted(&ended, true, limit + 1);
    assert_cut(&ended.stdout, &format!("{text}+"), limit);
    Ok(())
}

async fn ten_megabytes_are_cut_to_the_limit(t: &ShellTarget) -> LawResult {
    let text = lines(1 << 20);
    t.files.put("/huge", text.clone()).await?;
    let ended = t.run("cat huge").await?;
    assert_counted(&ended, true, text.len());
    assert_cut(&ended.stdout, &text, 100_000);
    assert_cut(&ended.output, &text, 100_000);
    assert_eq!(ended.stderr, "");
    Ok(())
}

async fn with_a_limit_of_zero_output_is_only_counted(t: &ShellTarget) -> LawResult {
    let ended = t.execute(t.command("echo secret; echo secret >&2").max_output_bytes(0)).await?;
    assert_counted(&ended, true, 14);
    assert!(!format!("{ended:?}").contains("secret"), "{ended:?}");
    let ended = t.execute(t.command("true").max_output_bytes(0)).await?;
    assert_counted(&ended, false, 0);
    Ok(())
}

async fn a_cut_is_between_characters(t: &ShellTarget) -> LawResult {
    let text = "\u{e9}\u{20ac}\u{1f600}".repeat(2_000);
    t.files.put("/text", text.clone()).await?;
    for limit in 997..1_009 {
        let ended = t.execute(t.command("cat text").max_output_bytes(limit)).await?;
        assert_counted(&ended, true, text.len());
        assert!(!ended.stdout.contains('\u{fffd}') && !ended.output.contains('\u{fffd}'), "cut at {limit}");
        assert_cut(&ended.stdout, &text, limit as usize);
    }
    Ok(())
}

async fn the_greatest_limit_keeps_all(t: &ShellTarget) -> LawResult {
    let text = lines(50_000);
    t.files.put("/much", text.clone()).await?;
    let ended = t.execute(t.command("cat much").max_output_bytes(u64::MAX)).await?;
    assert_counted(&ended, false, text.len());
    assert!(ended.stdout == text && ended.output == text, "{} bytes", ended.stdout.len());
    Ok(())
}

/// Returns the content of the file of all output.
async fn full_output(t: &ShellTarget, ended: &ExecuteResponse) -> vfs_core::Result<Vec<u8>> {
    let path = ended.full_output.clone().expect("the answer names the file with all output");
    assert!(path.starts_with(&t.files.base), "{path} is a file of the backend");
    let mut answers = t.files.backend.download_files(&cx(), vec![path]).await;
    let answer = answers.pop().expect("an answer for each path");
    match (answer.content, answer.cause) {
        (Some(content), _) => Ok(content.to_vec()),
        (None, cause) => Err(cause.expect("either content or a cause")),
    }
}

async fn all_output_is_in_a_file_by_request(t: &ShellTarget) -> LawResult {
    let text = lines(100_000);
    t.files.put("/much", text.clone()).await?;
    let ended = t.execute(t.command("cat much").max_output_bytes(1_000).keep_full_output()).await?;
    assert_counted(&ended, true, text.len());
    assert!(full_output(t, &ended).await? == text.as_bytes(), "the file is not what was printed");
    let ended = t.execute(t.command("echo out; sleep 0.2; echo err >&2").keep_full_output()).await?;
    assert_counted(&ended, false, 8);
    assert_eq!(full_output(t, &ended).await?, ended.output.as_bytes());
    t.files.put("/bytes", &b"a\0\xff\xfe\n"[..]).await?;
    let ended = t.execute(t.command("cat bytes; exit 3").keep_full_output()).await?;
    assert_eq!(ended.exit_code, Some(3));
    assert_eq!(full_output(t, &ended).await?, b"a\0\xff\xfe\n");
    assert_eq!(t.run("echo x").await?.full_output, None);
    Ok(())
}

async fn each_command_has_a_file_of_its_own(t: &ShellTarget) -> LawResult {
    let request = |word: &str| t.command(format!("echo {word}")).keep_full_output();
    let (one, two) = futures::future::join(t.execute(request("one")), t.execute(request("two"))).await;
    let (one, two) = (one?, two?);
    assert_ne!(one.full_output, two.full_output);
    assert_eq!(full_output(t, &one).await?, b"one\n");
    assert_eq!(full_output(t, &two).await?, b"two\n");
    Ok(())
}

async fn output_before_a_timeout_is_in_the_file(t: &ShellTarget) -> LawResult {
    let request = t.command("echo before; sleep 60").keep_full_output();
    for time in TIMES {
        let Some(ended) = t.timed_out(&request, time).await? else { continue };
        if !ended.stdout.is_empty() {
            assert_eq!(full_output(t, &ended).await?, b"before\n");
            return Ok(());
        }
    }
    panic!("nothing was printed");
}

async fn an_unsupported_file_of_all_output_is_refused(t: &ShellTarget) -> LawResult {
    t.assert_refused(t.command("touch ran").keep_full_output(), ErrorKind::Unsupported).await;
    assert!(!t.files.has("/ran").await?, "what is refused does not run");
    Ok(())
}

//! Concurrent commands.

use futures::future::join_all;

use super::ShellTarget;
use super::law_helpers::{WAIT, assert_success, cx, lines, patiently};
use crate::laws::LawResult;

shell_laws! { "together":
    "XC1" has() commands_at_once_do_not_mix_their_outputs in Wrapper,
    "XC2" has() commands_at_once_have_each_their_own_directory_and_variables,
    "XC3" has() a_slow_command_does_not_hold_up_another in Wrapper,
    "XC4" has() the_end_of_one_command_does_not_end_another,
    "XC5" has() much_output_of_many_commands_is_whole,
}

async fn commands_at_once_do_not_mix_their_outputs(t: &ShellTarget) -> LawResult {
    let one = |n: usize| {
        let each = "for i in 1 2 3 4 5 6 7 8 9 10; do";
        t.execute(t.command(format!("{each} echo out {n}; echo err {n} >&2; done; exit {n}")))
    };
    for (n, ended) in join_all((0..32).map(one)).await.into_iter().enumerate() {
        let ended = ended?;
        assert_eq!(ended.exit_code, Some(n as i32));
        assert_eq!(ended.stdout, format!("out {n}\n").repeat(10));
        assert_eq!(ended.stderr, format!("err {n}\n").repeat(10));
        assert_eq!(ended.output.len(), ended.stdout.len() + ended.stderr.len());
    }
    Ok(())
}

async fn commands_at_once_have_each_their_own_directory_and_variables(t: &ShellTarget) -> LawResult {
    for n in 0..16 {
        t.files.put(&format!("/d{n}/name"), format!("{n}")).await?;
    }
    let one = |n: usize| {
        let request = t.command("cat; cat name; echo \" $GIVEN\"; echo \"$GIVEN\" >made");
        t.execute(request.cwd(t.files.path(&format!("/d{n}"))).env("GIVEN", format!("g{n}")).stdin(format!("i{n} ")))
    };
    for (n, ended) in join_all((0..16).map(one)).await.into_iter().enumerate() {
        let ended = ended?;
        assert_success(&ended);
        assert_eq!(ended.stdout, format!("i{n} {n} g{n}\n"));
        assert_eq!(t.files.text(&format!("/d{n}/made")).await?, format!("g{n}\n"));
    }
    Ok(())
}

async fn a_slow_command_does_not_hold_up_another(t: &ShellTarget) -> LawResult {
    let slow = t.begin(cx(), t.command(format!("echo x >started; {WAIT}; echo slow")));
    t.appears("/started").await?;
    assert_eq!(t.printed("echo quick").await?, "quick\n");
    t.go().await?;
    let ended = patiently("the slow one", slow).await.expect("no panic")?;
    assert_eq!(ended.stdout, "slow\n");
    Ok(())
}

async fn the_end_of_one_command_does_not_end_another(t: &ShellTarget) -> LawResult {
    let stays = t.begin(cx(), t.command(format!("echo x >stays; {WAIT}; echo stayed")));
    let goes = t.begin(cx(), t.command("echo x >goes; sleep 60"));
    t.appears("/stays").await?;
    t.appears("/goes").await?;
    goes.abort();
    assert!(goes.await.is_err(), "it was dropped");
    t.assert_timed_out(&t.command("sleep 60")).await?;
    t.go().await?;
    let ended = patiently("the one that stays", stays).await.expect("no panic")?;
    assert_success(&ended);
    assert_eq!(ended.stdout, "stayed\n");
    Ok(())
}

async fn much_output_of_many_commands_is_whole(t: &ShellTarget) -> LawResult {
    let text = lines(20_000);
    t.files.put("/much", text.clone()).await?;
    let one = |n: usize| t.execute(t.command(format!("cat much; echo {n}; cat much >&2")).max_output_bytes(1 << 20));
    for (n, ended) in join_all((0..8).map(one)).await.into_iter().enumerate() {
        let ended = ended?;
        assert_success(&ended);
        assert!(ended.stdout == format!("{text}{n}\n") && ended.stderr == text, "the output of {n} is another");
    }
    Ok(())
}

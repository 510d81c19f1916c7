//! Commands over a configured namespace.

use std::path::Path;
use std::sync::Arc;

use agent_vfs::policy::{Approval, ApprovalQueue};
use agent_vfs::{Backend, Config, ErrorKind, ExecuteRequest, OpContext, VirtualShell, VirtualShellConfig};

const ASKING: &str = "[default]\ntype = 'memory'\n\
                      [[layers]]\ntype = 'policy'\nrules = [{ effect = 'ask', operations = ['execute'] }]\n";

#[tokio::test]
async fn the_approver_of_the_configuration_answers_for_commands() {
    let (queue, mut questions) = ApprovalQueue::new(4);
    let config = Config::parse(ASKING).expect("a configuration").with_approver(Arc::new(queue));
    let configured = config.build(Path::new("/")).await.expect("the namespace opens");
    let shell = VirtualShell::new(Arc::clone(&configured.backend), VirtualShellConfig::new());
    let commands = configured.with_commands(Arc::new(shell));
    for (approval, expected) in
        [(Approval::Approve, Ok(())), (Approval::Deny { reason: "not today".into() }, Err(ErrorKind::PolicyDenied))]
    {
        let command = async {
            let shell = commands.as_shell().expect("a shell");
            shell.execute(&OpContext::new(), ExecuteRequest::new("true")).await
        };
        let answer = async { questions.recv().await.expect("a question").answer(approval) };
        let (executed, is_awaited) = futures::join!(command, answer);
        assert!(is_awaited);
        assert_eq!(executed.map(drop).map_err(|error| error.kind()), expected);
    }
}

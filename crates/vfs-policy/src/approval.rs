//! Approvers of operations that a policy asks about, and a channel of pending approvals.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use vfs_core::{Call, OpContext};

/// What somebody says to an operation that a policy asks about.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Approval {
    /// It may go on.
    Approve,
    /// It may not.
    Deny {
        /// Why, in words for the model.
        reason: String,
    },
    /// This request goes on in its place. It has to be one for the same operation, and what the policy denies it stays
    /// denied.
    Edit(Box<Call>),
}

/// Answers what a policy asks.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync + 'static {
    /// Says whether `call` may go on; `prompt` is what the policy asks. Whoever takes too long is not waited for.
    async fn approve(&self, cx: &OpContext, call: &Call, prompt: &str) -> Approval;
}

/// An operation that waits for an answer. Dropping it denies the operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct PendingApproval {
    /// What is to be done.
    pub call: Call,
    /// What the policy asks.
    pub prompt: String,
    /// Who asks for it.
    pub actor: Option<String>,
    /// The session it belongs to.
    pub session: Option<String>,
    answer: oneshot::Sender<Approval>,
}

impl PendingApproval {
    /// Answers. Where nobody waits any more, because the caller gave up or the time was over, that has no effect.
    pub fn answer(self, approval: Approval) {
        // An answer that comes too late is for nobody.
        drop(self.answer.send(approval));
    }
}

/// An [`Approver`] that hands what it is asked to a channel, for a person or a program at the other end.
///
/// ```
/// use vfs_policy::{Approval, ApprovalQueue};
///
/// let (queue, mut pending) = ApprovalQueue::new(16);
/// # drop(queue);
/// # futures::executor::block_on(async move {
/// while let Some(question) = pending.recv().await {
///     println!("{}", question.prompt);
///     question.answer(Approval::Approve);
/// }
/// # });
/// ```
#[derive(Debug)]
pub struct ApprovalQueue {
    questions: mpsc::Sender<PendingApproval>,
}

impl ApprovalQueue {
    /// A queue that holds `capacity` questions nobody has taken yet; further ones wait. At least 1.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<PendingApproval>) {
        let (questions, pending) = mpsc::channel(capacity.max(1));
        (Self { questions }, pending)
    }
}

#[async_trait]
impl Approver for ApprovalQueue {
    async fn approve(&self, cx: &OpContext, call: &Call, prompt: &str) -> Approval {
        let (answer, answered) = oneshot::channel();
        let question = PendingApproval {
            call: call.clone(),
            prompt: prompt.to_owned(),
            actor: cx.actor().map(str::to_owned),
            session: cx.session().map(str::to_owned),
            answer,
        };
        let unanswered = || Approval::Deny { reason: "nobody is there to approve it".to_owned() };
        if self.questions.send(question).await.is_err() {
            return unanswered();
        }
        answered.await.unwrap_or_else(|_| unanswered())
    }
}

//! Approvers of operations that a policy asks about, and a channel of pending approvals.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use vfs_core::OpContext;
use vfs_core::operation::AnyRequest;

/// Answer of an approver to the question of a policy.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Approval {
    /// The operation goes on.
    Approve,
    /// The operation is denied.
    Deny {
        /// Reason, in words for the model.
        reason: String,
    },
    /// This request replaces the original one. It has to be for the same operation, and it stays denied if the policy denies
    /// it.
    Edit(Box<AnyRequest>),
}

/// Answers the questions of a policy.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync + 'static {
    /// Returns the answer to `prompt`, the question of the policy about `call`.
    ///
    /// # Behaviour
    ///
    /// The future is dropped, and the operation fails, when the time limit of the policy has passed (`approval_required`), at the
    /// deadline of `cx` (`timeout`), and when `cx` is cancelled (`cancelled`); and when the caller drops the operation.
    async fn approve(&self, cx: &OpContext, call: &AnyRequest, prompt: &str) -> Approval;
}

/// An operation that waits for an approval. Dropping this value denies the operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct PendingApproval {
    /// The request.
    pub call: AnyRequest,
    /// The question of the policy: the `reason` of the rule, or otherwise a text such as "allow delete of /a.md?".
    pub prompt: String,
    /// The actor that sent the request.
    pub actor: Option<String>,
    /// The session of the request.
    pub session: Option<String>,
    answer: oneshot::Sender<Approval>,
}

impl PendingApproval {
    /// Returns whether the operation no longer waits, as its caller gave up or the time limit has passed.
    pub fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    /// Sends `approval` to the waiting operation. Returns whether it still waited; otherwise this has no effect.
    pub fn answer(self, approval: Approval) -> bool {
        self.answer.send(approval).is_ok()
    }
}

/// An [`Approver`] that sends each question to a channel, for a person or a program at the other end.
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
    /// Returns a queue with room for `capacity` questions (at least 1) that are not taken yet, and its receiver, of
    /// [`tokio::sync::mpsc`]. Further questions wait for room. Once the receiver is dropped, operations that need an answer are denied.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<PendingApproval>) {
        let (questions, pending) = mpsc::channel(capacity.max(1));
        (Self { questions }, pending)
    }
}

#[async_trait]
impl Approver for ApprovalQueue {
    async fn approve(&self, cx: &OpContext, call: &AnyRequest, prompt: &str) -> Approval {
        let (answer, answered) = oneshot::channel();
        let question = PendingApproval {
            call: call.clone(),
            prompt: prompt.to_owned(),
            actor: cx.actor().map(str::to_owned),
            session: cx.session().map(str::to_owned),
            answer,
        };
        let unanswered = || Approval::Deny { reason: "no approver is there".to_owned() };
        if self.questions.send(question).await.is_err() {
            return unanswered();
        }
        answered.await.unwrap_or_else(|_| unanswered())
    }
}

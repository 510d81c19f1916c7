//! Batches of writes, each applied with its conditions by one call of a script.

use std::sync::LazyLock;

use ::redis::{Cmd, Script, Value};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::RedisStore;
use super::connection::{AttemptKind, RedisRequest, start};
use super::operation_records;
use super::reply::{self, ReplyParts};
use super::retention_times::{RECEIPT_TTL, RECORD_TTL};
use super::value_header::MAX_VALUE;
use super::value_header::{self, EncodedFile};
use crate::store::{
    BatchOutcome, Condition, Namespace, OperationRecord, Precondition, StagingToken, ValueContent, Write, WriteId,
    check_staged,
};

static CHANGE: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("change.lua"))));

/// Maximum number of writes and conditions together; a server accepts a million arguments.
const MAX_CHANGE_STEPS: usize = 200_000;

/// Write as it is encoded for the server.
enum EncodedWrite<'a> {
    Put(&'a VfsPath, EncodedFile<'a>),
    PutStaged(&'a VfsPath, &'a str, EncodedFile<'a>),
    Delete(&'a VfsPath),
    Move(&'a VfsPath, &'a VfsPath),
    Copy(&'a VfsPath, &'a VfsPath, String),
}

impl<'a> EncodedWrite<'a> {
    fn new(write: &'a Write) -> Self {
        match write {
            Write::Put(path, value) => match &value.content {
                ValueContent::Bytes(_) => EncodedWrite::Put(path, EncodedFile::new(value)),
                ValueContent::Staged(staged) => {
                    EncodedWrite::PutStaged(path, staged.token.id(), EncodedFile::new(value))
                }
            },
            Write::Delete(path) => EncodedWrite::Delete(path),
            Write::Move { from, to } => EncodedWrite::Move(from, to),
            Write::Copy { from, to, at } => EncodedWrite::Copy(from, to, value_header::encode_times(*at, *at)),
        }
    }

    fn add_to(&self, cmd: &mut Cmd) {
        match self {
            EncodedWrite::Put(path, file) => cmd.arg("put").arg(path.as_str()).arg("").arg(file),
            EncodedWrite::PutStaged(path, id, file) => cmd.arg("put staged").arg(path.as_str()).arg(*id).arg(file),
            EncodedWrite::Delete(path) => cmd.arg("delete").arg(path.as_str()).arg("").arg(""),
            EncodedWrite::Move(from, to) => cmd.arg("move").arg(from.as_str()).arg(to.as_str()).arg(""),
            EncodedWrite::Copy(from, to, times) => cmd.arg("copy").arg(from.as_str()).arg(to.as_str()).arg(times),
        };
    }
}

fn add_condition(condition: &Condition, cmd: &mut Cmd) {
    match condition {
        // This condition always holds, so the script does not need it.
        Condition::At(_, Precondition::Any) => cmd,
        Condition::At(path, Precondition::Absent) => cmd.arg("nothing").arg(path.as_str()).arg(""),
        Condition::At(path, Precondition::Version(version)) => {
            cmd.arg("version").arg(path.as_str()).arg(version.as_str())
        }
        Condition::NothingBelow(path) => cmd.arg("below").arg(path.as_str()).arg(""),
    };
}

/// Change as it is encoded for the server at each attempt.
struct RedisChange<'a> {
    base: String,
    id: WriteId,
    ttl: u64,
    conditions: &'a [Condition],
    steps: Vec<EncodedWrite<'a>>,
    record: Option<&'a OperationRecord>,
}

impl RedisChange<'_> {
    fn request(&self, attempt: AttemptKind, is_registered: bool) -> RedisRequest<'static> {
        let is_sent = |condition: &&Condition| !matches!(condition, Condition::At(_, Precondition::Any));
        let flag = |is_set: bool| if is_set { "1" } else { "0" };
        let mut cmd = start(&CHANGE, &self.base);
        cmd.arg(format!("{:032x}", self.id.get()));
        cmd.arg(flag(attempt == AttemptKind::Repeated)).arg(flag(is_registered)).arg(self.ttl);
        cmd.arg(RECEIPT_TTL.as_secs() * 1000);
        match self.record {
            Some(record) => {
                cmd.arg(&record.key).arg(operation_records::encode(record)).arg(RECORD_TTL.as_secs() * 1000)
            }
            None => cmd.arg("").arg("").arg(""),
        };
        cmd.arg(self.conditions.iter().filter(is_sent).count());
        self.conditions.iter().for_each(|condition| add_condition(condition, &mut cmd));
        self.steps.iter().for_each(|step| step.add_to(&mut cmd));
        RedisRequest::Script(&CHANGE, cmd)
    }
}

impl RedisStore {
    /// Applies all `writes` if all `conditions` hold. Returns `None` if the operation of `record` was applied before.
    pub(super) async fn make(
        &self,
        namespace: &Namespace,
        conditions: &[Condition],
        writes: &[Write],
        record: Option<&OperationRecord>,
    ) -> Result<Option<BatchOutcome>> {
        check_sizes(conditions, writes)?;
        check_staged(namespace, writes)?;
        let change = RedisChange {
            base: self.names().base(namespace),
            // Each call has its own id, as the same value may be put again or at another path.
            id: WriteId::random(),
            ttl: self.inner.ttl,
            conditions,
            steps: writes.iter().map(EncodedWrite::new).collect(),
            record,
        };
        let reply = self.link().ask(|attempt| change.request(attempt, false)).await?;
        match read_reply(reply)? {
            ChangeReply::Outcome(outcome) => Ok(Some(outcome)),
            ChangeReply::Recorded => Ok(None),
            ChangeReply::Unregistered => {
                self.register(namespace).await?;
                // An earlier copy of the request may still arrive at the server, and now finds the namespace.
                match read_reply(self.link().ask(|_| change.request(AttemptKind::Repeated, true)).await?)? {
                    ChangeReply::Outcome(outcome) => Ok(Some(outcome)),
                    ChangeReply::Recorded => Ok(None),
                    ChangeReply::Unregistered => Err(reply::unexpected()),
                }
            }
        }
    }

    /// Adds `namespace` to the set of all namespaces before its first value is written, so that the set is always
    /// complete.
    async fn register(&self, namespace: &Namespace) -> Result<()> {
        let request = |_| {
            let mut cmd = ::redis::cmd("SADD");
            cmd.arg(self.names().namespaces()).arg(namespace.as_str());
            RedisRequest::Command(cmd)
        };
        self.link().ask(request).await.map(|_| ())
    }
}

fn check_sizes(conditions: &[Condition], writes: &[Write]) -> Result<()> {
    let too_large = |message: String| Error::new(ErrorKind::TooLarge, message);
    if conditions.len() + writes.len() > MAX_CHANGE_STEPS {
        let message = format!("a batch of over {MAX_CHANGE_STEPS} conditions and changes is too large; split it");
        return Err(too_large(message));
    }
    let mut total = 0;
    for write in writes {
        if let Write::Put(path, value) = write {
            let size = value.content.size();
            if size > MAX_VALUE {
                let message =
                    format!("{size} bytes are more than the {MAX_VALUE} that a Redis server can hold in one value");
                return Err(too_large(message).with_path(path));
            }
            if matches!(value.content, ValueContent::Bytes(_)) {
                total += size;
            }
        }
    }
    if total > MAX_VALUE {
        return Err(too_large(format!("a batch of over {MAX_VALUE} bytes is too large; split it")));
    }
    Ok(())
}

/// Reply of the script that applies a change.
enum ChangeReply {
    Outcome(BatchOutcome),
    Unregistered,
    Recorded,
}

fn read_reply(reply: Value) -> Result<ChangeReply> {
    let mut parts = ReplyParts::new(reply)?;
    let word = parts.bytes()?;
    let read_path = |parts: &mut ReplyParts| parts.bytes().map(|path| String::from_utf8_lossy(&path).into_owned());
    match word.as_slice() {
        b"recorded" => Ok(ChangeReply::Recorded),
        b"register" => Ok(ChangeReply::Unregistered),
        b"not staged" => Err(StagingToken::unknown()),
        b"damaged" => Err(reply::damaged(&read_path(&mut parts)?)),
        b"refused" => {
            let path = reply::parse_path(&parts.bytes()?).unwrap_or_default();
            let found = if parts.is_empty() { None } else { parts.meta()? };
            Ok(ChangeReply::Outcome(BatchOutcome::PreconditionFailed(path, found)))
        }
        b"done" => {
            let mut stored = Vec::new();
            while !parts.is_empty() {
                stored.push(parts.meta()?.ok_or_else(reply::unexpected)?);
            }
            Ok(ChangeReply::Outcome(BatchOutcome::Applied(stored)))
        }
        _ => Err(reply::unexpected()),
    }
}

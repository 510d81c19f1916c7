//! Staged contents of files that are written in parts.

use std::sync::LazyLock;
use std::time::Duration;

use ::redis::{Script, Value};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use vfs_core::{Error, ErrorKind, Result};

use super::RedisStore;
use super::connection::{RedisRequest, start};
use super::value_header::MAX_VALUE;
use crate::store::{Key, Staging, StagingToken};

static STAGE: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("stage.lua"))));

/// Time after which the server removes a content without a new part.
const MAX_IDLE_TIME: Duration = Duration::from_secs(24 * 60 * 60);

#[async_trait]
impl Staging for RedisStore {
    fn max_size(&self) -> u64 {
        MAX_VALUE
    }

    async fn begin(&self, key: &Key, _created_at: DateTime<Utc>, _modified_at: DateTime<Utc>) -> Result<StagingToken> {
        Ok(StagingToken::in_namespace(&key.namespace))
    }

    async fn append(&self, token: &StagingToken, offset: u64, part: Bytes) -> Result<()> {
        if offset + part.len() as u64 > MAX_VALUE {
            let message =
                format!("the file is larger than the {MAX_VALUE} bytes that a Redis server can hold in one value");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let base = self.names().base(&token.namespace()?);
        let request = |_| {
            let mut cmd = start(&STAGE, &base);
            cmd.arg(token.id()).arg(offset).arg(&part[..]).arg(MAX_IDLE_TIME.as_secs() * 1000);
            RedisRequest::Script(&STAGE, cmd)
        };
        match self.link().ask(request).await? {
            Value::Int(1) => Ok(()),
            _ => Err(StagingToken::unknown()),
        }
    }

    async fn discard(&self, token: &StagingToken) -> Result<()> {
        let key = self.names().staged(&token.namespace()?, token.id());
        let request = |_| {
            let mut cmd = ::redis::cmd("UNLINK");
            cmd.arg(&key);
            RedisRequest::Command(cmd)
        };
        self.link().ask(request).await.map(|_| ())
    }
}

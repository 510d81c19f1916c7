//! Verification of the index of paths against the values, in both directions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use ::redis::Script;
use async_trait::async_trait;
use vfs_core::{Error, Problem, Result, VfsPath};

use super::RedisStore;
use super::connection::{RedisRequest, start};
use super::reply::{self, ReplyParts};
use crate::admin::check::check_values;
use crate::admin::operator_problem::{operator_problem, place};
use crate::admin::stats::count_values;
use crate::store::{CheckReport, Inspect, ListRequest, Namespace, StoreStats, version_of};

static UNLISTED: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("unlisted.lua"))));

/// Number of keys that the server scans in one step.
const SCAN_COUNT: usize = 1000;

#[async_trait]
impl Inspect for RedisStore {
    async fn check(&self) -> Result<CheckReport> {
        // The following listing removes index entries without a value, so find them first.
        let mut index = self.check_index().await?;
        self.check_unlisted(&mut index).await?;
        let mut report = check_values(self, |value| value.stored.version == version_of(&value.content)).await?;
        let reported: BTreeSet<&str> = index.iter().map(|problem| problem.path.as_str()).collect();
        report.problems.retain(|problem| !reported.contains(problem.path.as_str()));
        report.problems.extend(index);
        Ok(report)
    }

    async fn stats(&self) -> Result<StoreStats> {
        count_values(self).await
    }
}

impl RedisStore {
    /// Returns the entries of the indexes that are not a path, or whose value is missing in a store without expiry.
    async fn check_index(&self) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        for name in self.registered_namespaces().await? {
            match parse_namespace(&name) {
                Some(namespace) => self.check_index_of(&namespace, &mut problems).await?,
                None => {
                    let error = Error::invalid_argument("another program wrote this name into the set of namespaces");
                    problems.push(operator_problem(String::from_utf8_lossy(&name), &error));
                }
            }
        }
        Ok(problems)
    }

    async fn check_index_of(&self, namespace: &Namespace, problems: &mut Vec<Problem>) -> Result<()> {
        let request = ListRequest::all(VfsPath::root());
        let mut from = None;
        loop {
            let mut page = self.raw_page(namespace, &request, from.as_deref()).await?;
            while !page.files.is_empty() {
                let name = page.files.bytes()?;
                let _ = page.files.meta()?;
                if reply::parse_path(&name).is_none() {
                    problems.push(problem(
                        namespace,
                        &name,
                        "another program wrote this entry into the index; it is not a path",
                    ));
                }
            }
            for name in page.stale.iter().filter(|_| self.inner.ttl == 0) {
                let message =
                    "the index has this path, but its value was evicted, has expired or was removed by another program";
                problems.push(problem(namespace, name, message));
            }
            if page.next.is_none() {
                return Ok(());
            }
            from = page.next;
        }
    }

    /// Finds values whose path is missing in the index.
    async fn check_unlisted(&self, problems: &mut Vec<Problem>) -> Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let request = |_| {
                let mut cmd = ::redis::cmd("SCAN");
                cmd.arg(cursor.as_slice()).arg("MATCH").arg(self.names().all_files()).arg("COUNT").arg(SCAN_COUNT);
                RedisRequest::Command(cmd)
            };
            let mut reply = ReplyParts::new(self.link().ask(request).await?)?;
            cursor = reply.bytes()?;
            let mut keys = reply.parts()?;
            let mut paths: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
            while !keys.is_empty() {
                let key = keys.bytes()?;
                if let Some((namespace, path)) = self.names().parse_file_key(&key) {
                    paths.entry(namespace.to_vec()).or_default().push(path.to_vec());
                }
            }
            for (name, paths) in paths {
                self.check_listed(&name, &paths, problems).await?;
            }
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    /// Checks that the index of a namespace has `paths`, and the set of namespaces its name.
    async fn check_listed(&self, name: &[u8], paths: &[Vec<u8>], problems: &mut Vec<Problem>) -> Result<()> {
        let Some(namespace) = parse_namespace(name) else {
            let error = Error::invalid_argument("another program wrote files under a name that is not a namespace");
            problems.push(operator_problem(String::from_utf8_lossy(name), &error));
            return Ok(());
        };
        let base = self.names().base(&namespace);
        let unlisted = |_| {
            let mut cmd = start(&UNLISTED, &base);
            cmd.arg(paths);
            RedisRequest::Script(&UNLISTED, cmd)
        };
        let mut unlisted = ReplyParts::new(self.link().ask(unlisted).await?)?;
        while !unlisted.is_empty() {
            problems.push(problem(
                &namespace,
                &unlisted.bytes()?,
                "the value exists, but its path is not in the index",
            ));
        }
        let registered = |_| {
            let mut cmd = ::redis::cmd("SISMEMBER");
            cmd.arg(self.names().namespaces()).arg(name);
            RedisRequest::Command(cmd)
        };
        if self.link().ask(registered).await? == ::redis::Value::Int(0) {
            let error = Error::invalid_argument("this namespace has files, but is not in the set of namespaces");
            problems.push(operator_problem(namespace.as_str(), &error));
        }
        Ok(())
    }
}

fn parse_namespace(name: &[u8]) -> Option<Namespace> {
    Namespace::parse(std::str::from_utf8(name).ok()?).ok()
}

fn problem(namespace: &Namespace, name: &[u8], message: &'static str) -> Problem {
    operator_problem(place(namespace, &String::from_utf8_lossy(name)), &Error::invalid_argument(message))
}

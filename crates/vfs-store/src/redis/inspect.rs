//! Looking at everything that is stored.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ::redis::Script;
use async_trait::async_trait;
use vfs_core::{Error, Problem, Result, VfsPath};

use super::RedisStore;
use super::link::{Request, start};
use super::reply::{self, Parts};
use crate::inspect;
use crate::key::{Key, Namespace};
use crate::store::{CheckReport, Inspect, ListRequest, Store, StoreStats, version_of};

static UNLISTED: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!("unlisted.lua"))));

/// How many keys the server looks at in one step.
const STEP: usize = 1000;

/// What one file was found to be.
enum Found {
    Sound(u64),
    Wrong(Error),
    /// It is no longer there.
    Nothing,
}

#[async_trait]
impl Inspect for RedisStore {
    async fn check(&self) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        for name in self.registered().await? {
            match read_namespace(&name) {
                Some(namespace) => self.check_listed(&namespace, &mut report).await?,
                None => {
                    let error = Error::invalid_argument("another program wrote this name into the set of namespaces");
                    report.problems.push(Problem::new(String::from_utf8_lossy(&name), &error));
                }
            }
        }
        self.check_unlisted(&mut report).await?;
        Ok(report)
    }

    async fn stats(&self) -> Result<StoreStats> {
        let mut stats = StoreStats::default();
        for namespace in self.namespaces().await? {
            stats.namespaces += 1;
            let mut request = ListRequest::all(VfsPath::root());
            loop {
                let page = self.list(&namespace, &request).await?;
                stats.files += page.entries.len() as u64;
                stats.bytes += page.entries.iter().map(|entry| entry.stored.size).sum::<u64>();
                let Some(next) = page.next else { break };
                request = request.from(next);
            }
        }
        Ok(stats)
    }
}

impl RedisStore {
    async fn check_listed(&self, namespace: &Namespace, report: &mut CheckReport) -> Result<()> {
        let request = ListRequest::all(VfsPath::root());
        let mut from = None;
        loop {
            let mut page = self.raw_page(namespace, &request, from.as_deref()).await?;
            while !page.files.is_empty() {
                let name = page.files.bytes()?;
                let _ = page.files.stored()?;
                self.check_file(namespace, &name, report).await?;
            }
            for name in page.stale.iter().filter(|_| self.inner.ttl == 0) {
                let error = Error::invalid_argument(
                    "it is listed, but its file was evicted, has expired or was removed by another program",
                );
                report.problems.push(problem(namespace, name, &error));
            }
            if page.next.is_none() {
                return Ok(());
            }
            from = page.next;
        }
    }

    async fn check_file(&self, namespace: &Namespace, name: &[u8], report: &mut CheckReport) -> Result<()> {
        match self.verify(namespace, name).await? {
            Found::Nothing => {}
            Found::Sound(bytes) => {
                report.files += 1;
                report.bytes += bytes;
            }
            Found::Wrong(error) => report.problems.push(problem(namespace, name, &error)),
        }
        Ok(())
    }

    async fn verify(&self, namespace: &Namespace, name: &[u8]) -> Result<Found> {
        let Some(path) = reply::path(name) else {
            return Ok(Found::Wrong(Error::invalid_argument("another program listed it; it is no path")));
        };
        match self.get(&Key::new(namespace.clone(), path), None).await {
            Ok(None) => Ok(Found::Nothing),
            Ok(Some(value)) if value.stored.version == version_of(&value.content) => {
                Ok(Found::Sound(value.stored.size))
            }
            Ok(Some(_)) => Ok(Found::Wrong(Error::invalid_argument("its content is not what was written"))),
            Err(error) if error.is_temporary() => Err(error),
            Err(error) => Ok(Found::Wrong(error)),
        }
    }

    /// Files that no listing shows.
    async fn check_unlisted(&self, report: &mut CheckReport) -> Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let request = |_| {
                let mut cmd = ::redis::cmd("SCAN");
                cmd.arg(cursor.as_slice()).arg("MATCH").arg(self.names().all_files()).arg("COUNT").arg(STEP);
                Request::Command(cmd)
            };
            let mut answer = Parts::of(self.link().ask(request).await?)?;
            cursor = answer.bytes()?;
            let mut keys = answer.parts()?;
            let mut named: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
            while !keys.is_empty() {
                let key = keys.bytes()?;
                if let Some((namespace, path)) = self.names().read_file(&key) {
                    named.entry(namespace.to_vec()).or_default().push(path.to_vec());
                }
            }
            for (name, paths) in named {
                self.check_index(&name, &paths, report).await?;
            }
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    async fn check_index(&self, name: &[u8], paths: &[Vec<u8>], report: &mut CheckReport) -> Result<()> {
        let Some(namespace) = read_namespace(name) else {
            let error = Error::invalid_argument("another program wrote files under a name that is no namespace");
            report.problems.push(Problem::new(String::from_utf8_lossy(name), &error));
            return Ok(());
        };
        let base = self.names().base(&namespace);
        let unlisted = |_| {
            let mut cmd = start(&UNLISTED, &base);
            cmd.arg(paths);
            Request::Script(&UNLISTED, cmd)
        };
        let mut unlisted = Parts::of(self.link().ask(unlisted).await?)?;
        while !unlisted.is_empty() {
            let error = Error::invalid_argument("its key is there, but no listing shows it");
            report.problems.push(problem(&namespace, &unlisted.bytes()?, &error));
        }
        let registered = |_| {
            let mut cmd = ::redis::cmd("SISMEMBER");
            cmd.arg(self.names().namespaces()).arg(name);
            Request::Command(cmd)
        };
        if self.link().ask(registered).await? == ::redis::Value::Int(0) {
            let error = Error::invalid_argument("this namespace has files, but is not in the set of namespaces");
            report.problems.push(Problem::new(namespace.as_str(), &error));
        }
        Ok(())
    }
}

fn read_namespace(name: &[u8]) -> Option<Namespace> {
    Namespace::parse(std::str::from_utf8(name).ok()?).ok()
}

fn problem(namespace: &Namespace, name: &[u8], error: &Error) -> Problem {
    let name = String::from_utf8_lossy(name);
    let separator = if namespace.as_str().is_empty() { "" } else { ":" };
    inspect::problem(format!("{namespace}{separator}{name}"), error)
}

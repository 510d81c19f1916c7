//! A rival that is a library: a process that stays, and answers a JSON request a line.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::timing::Sample;

/// A handle on the process; the last one ends it.
#[derive(Debug, Clone)]
pub(crate) struct Partner(Rc<RefCell<Process>>);

#[derive(Debug)]
struct Process {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Partner {
    /// Starts the process.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Self(Rc::new(RefCell::new(Process { child, requests, answers }))))
    }

    /// Asks for a call, which the partner measures itself.
    pub(crate) fn ask(&self, request: &Value) -> Result<Sample> {
        Ok(serde_json::from_value(self.exchange(request)?)?)
    }

    /// What the partner says of its version.
    pub(super) fn version(&self) -> Result<String> {
        let answer = self.exchange(&serde_json::json!({ "op": "hello" }))?;
        Ok(answer["version"].as_str().context("no version")?.to_owned())
    }

    fn exchange(&self, request: &Value) -> Result<Value> {
        let mut process = self.0.borrow_mut();
        let requests = process.requests.as_mut().context("its input is piped")?;
        writeln!(requests, "{request}").context("it has ended")?;
        requests.flush()?;
        let mut line = String::new();
        if process.answers.read_line(&mut line)? == 0 {
            bail!("it has ended");
        }
        let answer: Value = serde_json::from_str(&line).with_context(|| format!("it answered: {}", line.trim()))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => bail!("it failed: {error}"),
            None => Ok(answer),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends it. Whether that went well no longer matters.
        self.requests = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::{Answer, End};

    fn that_says(line: &str) -> Partner {
        Partner::start(Command::new("sh").arg("-c").arg(format!("while read request; do echo '{line}'; done"))).unwrap()
    }

    #[test]
    fn an_answer_is_a_sample() {
        let partner = that_says(r#"{"wall":0.5,"cpu":0.25,"grown":0,"answer":{"count":7,"end":"cut"}}"#);
        let sample = partner.ask(&serde_json::json!({ "op": "grep" })).unwrap();
        assert_eq!((sample.wall, sample.cpu), (0.5, 0.25));
        assert_eq!(sample.answer, Answer { count: 7, end: End::Cut });
    }

    #[test]
    fn what_goes_wrong_is_told() {
        let error = that_says(r#"{"error":"no such file"}"#).ask(&Value::Null).unwrap_err();
        assert_eq!(error.to_string(), "it failed: no such file");
        let ended = Partner::start(&mut Command::new("true")).unwrap();
        assert!(ended.ask(&Value::Null).unwrap_err().to_string().contains("it has ended"));
    }
}

//! One line on a terminal's standard error for searches that take long.

use std::future;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{Interval, MissedTickBehavior};

/// A search that is over before this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_millis(100);

/// The line, which is there only between two results.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    refresh: Option<Interval>,
    shown: Option<ProgressBar>,
}

impl Progress {
    /// Starts the clock. Where standard error is not a terminal nothing is ever shown.
    pub(crate) fn start() -> Self {
        let refresh = io::stderr().is_terminal().then(|| {
            let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + PATIENCE, REFRESH);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self { started: Instant::now(), refresh, shown: None }
    }

    /// Waits until the line is to be drawn again; for ever where there is none.
    pub(crate) async fn due(&mut self) {
        match &mut self.refresh {
            Some(interval) => drop(interval.tick().await),
            None => future::pending().await,
        }
    }

    /// Draws the line.
    pub(crate) fn show(&mut self, what: &str) {
        let message = format!("{what}, {} s so far", self.started.elapsed().as_secs());
        let bar = self.shown.get_or_insert_with(|| {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(ProgressStyle::default_spinner())
        });
        bar.set_message(message);
        bar.tick();
    }

    /// Takes the line away, to make room for a result.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

//! Progress line on standard error for long operations on a terminal.

use std::future;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{Interval, MissedTickBehavior};

/// Time after which the line is shown.
const SHOW_DELAY: Duration = Duration::from_secs(1);
/// Time between two updates of the line.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);

/// A progress line, which is cleared before each result.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    started: Instant,
    refresh: Option<Interval>,
    bar: Option<ProgressBar>,
}

impl ProgressLine {
    /// Starts the timer. If standard error is not a terminal, no line is shown.
    pub(crate) fn start() -> Self {
        let refresh = io::stderr().is_terminal().then(|| {
            let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + SHOW_DELAY, REFRESH_INTERVAL);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        Self { started: Instant::now(), refresh, bar: None }
    }

    /// Waits until the next update of the line, or forever if there is no line.
    pub(crate) async fn tick(&mut self) {
        match &mut self.refresh {
            Some(interval) => drop(interval.tick().await),
            None => future::pending().await,
        }
    }

    /// Updates the line.
    pub(crate) fn show(&mut self, status: &str) {
        let message = format!("{status}, {} s so far", self.started.elapsed().as_secs());
        let bar = self.bar.get_or_insert_with(|| {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(ProgressStyle::default_spinner())
        });
        bar.set_message(message);
        bar.tick();
    }

    /// Clears the line.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

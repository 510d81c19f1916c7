//! Exponential backoff with jitter until a deadline, for retries.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Exponential backoff until a deadline. Jitter spreads the retries of operations that failed at the same time.
#[derive(Debug)]
pub(super) struct DeadlineBackoff {
    deadline: Instant,
    pause: Duration,
}

impl DeadlineBackoff {
    /// Creates a backoff whose deadline is `time` from now.
    pub(super) fn new(time: Duration) -> Self {
        Self { deadline: Instant::now() + time, pause: Duration::from_millis(5) }
    }

    /// Waits before the next attempt. Returns `false` at once if the deadline does not allow another one.
    pub(super) async fn wait(&mut self) -> bool {
        let pause = self.pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn retries_end_at_the_deadline() {
        let begin = Instant::now();
        let mut retries = DeadlineBackoff::new(Duration::from_secs(2));
        let mut attempts = 0;
        while retries.wait().await {
            attempts += 1;
        }
        assert!((8..=20).contains(&attempts), "{attempts}");
        assert!(begin.elapsed() <= Duration::from_secs(2));
        assert!(!DeadlineBackoff::new(Duration::ZERO).wait().await);
    }
}

//! Retry policy: exponential backoff with jitter until a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// The longest pause between two tries.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Pauses that grow, each of a random length so that those who failed together do not all come back together, until the time is
/// over.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    until: Instant,
    pause: Duration,
}

impl RetryPolicy {
    /// For `time` from now.
    pub(super) fn new(time: Duration) -> Self {
        Self { until: Instant::now() + time, pause: Duration::from_millis(5) }
    }

    /// Pauses; whether there is time for another try.
    pub(super) async fn again(&mut self) -> bool {
        let pause = self.pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        if Instant::now() + pause >= self.until {
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
    async fn it_ends() {
        let begin = Instant::now();
        let mut patience = RetryPolicy::new(Duration::from_secs(2));
        let mut tries = 0;
        while patience.again().await {
            tries += 1;
        }
        assert!((8..=20).contains(&tries), "{tries}");
        assert!(begin.elapsed() <= Duration::from_secs(2));
        assert!(!RetryPolicy::new(Duration::ZERO).again().await);
    }
}

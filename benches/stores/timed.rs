//! Medians of times.

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

/// A row of the table.
#[derive(Default)]
pub(crate) struct Times {
    /// Files written in a second, in transactions of 500; `None` where they were there.
    pub(crate) fill: Option<f64>,
    /// Files written in a second by uploads.
    pub(crate) upload: Option<f64>,
    /// The others, in the order of the columns.
    pub(crate) operations: Vec<Duration>,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        write!(f, "{} | {}", rate(self.fill), rate(self.upload))?;
        self.operations.iter().try_for_each(|took| write!(f, " | {}", shown(*took)))
    }
}

/// `took` with a unit that fits.
pub(crate) fn shown(took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6;
    match micros {
        ..1e3 => format!("{micros:.0} us"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// How long `work` takes.
pub(crate) async fn of<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<Duration, E> {
    let start_time = Instant::now();
    work.await?;
    Ok(start_time.elapsed())
}

/// The median of `samples` runs of `work`, and of one before that does not count.
pub(crate) async fn median<T, E, W>(samples: usize, mut work: impl FnMut() -> W) -> Result<Duration, E>
where
    W: Future<Output = Result<T, E>>,
{
    of(work()).await?;
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        times.push(of(work()).await?);
    }
    Ok(middle(times))
}

/// The median of what `samples` runs of `work` measure themselves.
pub(crate) async fn median_of<E, W>(samples: usize, mut work: impl FnMut() -> W) -> Result<Duration, E>
where
    W: Future<Output = Result<Duration, E>>,
{
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        times.push(work().await?);
    }
    Ok(middle(times))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

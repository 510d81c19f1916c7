//! Samples, and contests: two sides that take turns.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What one call cost, and what it answered.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Seconds from call to answer.
    pub(crate) wall: f64,
    /// Seconds of processor time, of all threads.
    pub(crate) cpu: f64,
    /// Bytes by which the process's peak memory is over what it used before the call.
    pub(crate) grown: f64,
    /// Bytes that a model sends and receives.
    #[serde(default)]
    pub(crate) exchanged: f64,
    /// What was answered.
    pub(crate) answer: Answer,
}

impl Sample {
    /// The sample of one call on average, where this is that of `calls`.
    pub(crate) fn each(self, calls: u32) -> Self {
        Self { wall: self.wall / f64::from(calls), cpu: self.cpu / f64::from(calls), ..self }
    }

    /// The sample without the time of `part`, a call that this one makes or does no more than.
    pub(crate) fn beyond(self, part: Self) -> Self {
        Self { wall: self.wall - part.wall, cpu: self.cpu - part.cpu, ..self }
    }
}

/// How much was answered, so that a fast wrong answer is not taken for a fast one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// How many results.
    pub(crate) count: u64,
    /// Whether there were more.
    pub(crate) end: End,
}

impl Answer {
    /// All `count` results.
    pub(crate) fn complete(count: usize) -> Self {
        Self { count: count as u64, end: End::Complete }
    }
}

/// Whether an answer has all results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// It has.
    #[default]
    Complete,
    /// It gave up before.
    Cut,
}

/// What a row compares of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds from call to answer.
    Wall,
    /// Seconds of processor time.
    Cpu,
    /// Bytes of memory.
    Memory,
    /// Bytes that a model sends and receives.
    Exchange,
}

impl Unit {
    /// That part of `sample`.
    pub(crate) fn of(self, sample: &Sample) -> f64 {
        match self {
            Unit::Wall => sample.wall,
            Unit::Cpu => sample.cpu,
            Unit::Memory => sample.grown,
            Unit::Exchange => sample.exchanged,
        }
    }
}

/// Calls `work` as often as `repeat` says; the sample is that of one call on average.
pub(crate) fn measured(repeat: u32, mut work: impl FnMut() -> Result<Answer>) -> Result<Sample> {
    let mut answer = Answer::default();
    let (cpu, wall) = (processor_time(), Instant::now());
    for _ in 0..repeat {
        answer = work()?;
    }
    let (wall, cpu) = (wall.elapsed(), processor_time().saturating_sub(cpu));
    Ok(Sample { wall: wall.as_secs_f64(), cpu: cpu.as_secs_f64(), answer, ..Sample::default() }.each(repeat))
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("no process has used less than no time")
}

/// One side of a contest: a call that is ready to be made.
pub(crate) type Side = Box<dyn FnMut() -> Result<Sample>>;

/// Two sides that do the same work, or one where there is nobody to race.
pub(crate) struct Contest {
    ours: Side,
    theirs: Result<Side, String>,
}

impl Contest {
    /// `ours` against `theirs`; where that cannot be run, ours alone.
    pub(crate) fn new(
        ours: impl FnMut() -> Result<Sample> + 'static,
        theirs: Result<impl FnMut() -> Result<Sample> + 'static, String>,
    ) -> Self {
        Self { ours: Box::new(ours), theirs: theirs.map(|theirs| Box::new(theirs) as Side) }
    }

    /// `ours`, against a limit and nobody.
    pub(crate) fn alone(ours: impl FnMut() -> Result<Sample> + 'static) -> Self {
        Self { ours: Box::new(ours), theirs: Err(String::new()) }
    }

    /// A warm-up of each side, then `pairs` calls of each, in turns. A side that fails is out, with the reason.
    pub(crate) fn run(mut self, pairs: u32) -> Result<Samples> {
        (self.ours)()?;
        let mut theirs = self.theirs.and_then(|mut side| match side() {
            Ok(_) => Ok((side, Vec::new())),
            Err(error) => Err(format!("{error:#}")),
        });
        let mut ours = Vec::new();
        for _ in 0..pairs {
            ours.push((self.ours)()?);
            if let Ok((side, samples)) = &mut theirs {
                match side() {
                    Ok(sample) => samples.push(sample),
                    Err(error) => theirs = Err(format!("{error:#}")),
                }
            }
        }
        Ok(Samples { ours, theirs: theirs.map(|(_, samples)| samples) })
    }
}

/// The samples of a contest, those of one pair at the same place.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Ours.
    pub(crate) ours: Vec<Sample>,
    /// Theirs, or why there are none; the reason is empty where there is nobody to race.
    pub(crate) theirs: Result<Vec<Sample>, String>,
}

/// A figure with its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// The least.
    pub(crate) least: f64,
    /// The one in the middle.
    pub(crate) median: f64,
    /// The greatest.
    pub(crate) greatest: f64,
}

impl Spread {
    /// The spread of `values`; `None` where there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&least, &greatest) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Self { least, median, greatest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(wall: f64) -> Sample {
        Sample { wall, ..Sample::default() }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 8.0]), Some(Spread { least: 1.0, median: 3.0, greatest: 8.0 }));
        assert_eq!(Spread::of([5.0]).map(|spread| spread.median), Some(5.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_sample_beyond_a_part_has_the_rest_of_the_time() {
        let rest = Sample { cpu: 5.0, ..sample(3.0) }.beyond(Sample { cpu: 1.0, ..sample(2.0) });
        assert_eq!((rest.wall, rest.cpu), (1.0, 4.0));
    }

    #[test]
    fn sides_take_turns_after_a_warm_up_of_each() {
        let calls = std::rc::Rc::new(std::cell::RefCell::new(String::new()));
        let side = |name: char| {
            let calls = std::rc::Rc::clone(&calls);
            move || {
                calls.borrow_mut().push(name);
                Ok(sample(1.0))
            }
        };
        let samples = Contest::new(side('o'), Ok(side('t'))).run(2).unwrap();
        assert_eq!(*calls.borrow(), "ototot");
        assert_eq!((samples.ours.len(), samples.theirs.unwrap().len()), (2, 2));
    }

    #[test]
    fn a_rival_that_fails_is_out_and_ours_is_measured() {
        let samples = Contest::new(|| Ok(sample(1.0)), Ok(|| anyhow::bail!("no such file"))).run(3).unwrap();
        assert_eq!(samples.ours.len(), 3);
        assert_eq!(samples.theirs.unwrap_err(), "no such file");
    }
}

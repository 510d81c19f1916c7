//! From samples to what a row has reached.

use crate::rows::{Goal, Row};
use crate::timing::{Answer, End, Samples, Spread, Unit};

/// A row and what became of it.
pub(crate) struct Outcome {
    /// The row.
    pub(crate) row: Row,
    /// Its figures, or why there are none.
    pub(crate) figures: Result<Figures, String>,
}

/// The figures of a row.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Ours.
    pub(crate) ours: Spread,
    /// Theirs, or why there are none; the reason is empty where there is nobody.
    pub(crate) theirs: Result<Spread, String>,
    /// Ours to theirs, pair by pair.
    pub(crate) ratio: Option<Spread>,
    /// Whether both did the same work.
    pub(crate) answers: Answers,
}

/// How the answers of the two sides compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// As many results.
    Same,
    /// Theirs gave up after so many results, ours had so many.
    TheirsCut(u64, u64),
    /// Ours gave up.
    OursCut,
    /// Another number of results: ours, then theirs.
    Differ(u64, u64),
}

/// Whether a row has reached its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has.
    Met,
    /// It has not.
    Missed,
    /// The sides did not do the same.
    NotComparable,
    /// It has no goal.
    Shown,
    /// It was not run, or has nobody to be compared with.
    NotRun,
}

impl Figures {
    /// The figures of `samples`; `None` where there are no samples of ours.
    pub(crate) fn of(unit: Unit, samples: Samples) -> Option<Self> {
        let Samples { ours, theirs } = samples;
        let pairs = theirs.as_deref().unwrap_or_default();
        // One pair that did not do the same is enough to tell.
        let compared =
            ours.iter().enumerate().map(|(at, ours)| answers(ours.answer, pairs.get(at).map(|of| of.answer)));
        let answers = compared.reduce(|told, other| if told == Answers::Same { other } else { told })?;
        let ratios = ours.iter().zip(pairs).map(|(ours, theirs)| unit.of(ours) / unit.of(theirs));
        Some(Self {
            ratio: Spread::of(ratios.filter(|ratio| ratio.is_finite())),
            answers,
            ours: Spread::of(ours.iter().map(|sample| unit.of(sample)))?,
            theirs: theirs.and_then(|samples| {
                Spread::of(samples.iter().map(|sample| unit.of(sample))).ok_or_else(|| "no samples".to_owned())
            }),
        })
    }
}

fn answers(ours: Answer, theirs: Option<Answer>) -> Answers {
    match (ours, theirs) {
        (Answer { end: End::Cut, .. }, _) => Answers::OursCut,
        (ours, Some(Answer { count, end: End::Cut })) => Answers::TheirsCut(count, ours.count),
        (ours, Some(theirs)) if ours.count != theirs.count => Answers::Differ(ours.count, theirs.count),
        _ => Answers::Same,
    }
}

impl Outcome {
    /// Whether the goal is reached. An answer that they cut short is no less work for us.
    pub(crate) fn verdict(&self) -> Verdict {
        let Ok(figures) = &self.figures else { return Verdict::NotRun };
        let met = match self.row.goal {
            Goal::None => return Verdict::Shown,
            Goal::AtMost(limit) => figures.ours.median <= limit,
            Goal::Ratio(limit) => match (figures.ratio, figures.answers) {
                (None, _) => return Verdict::NotRun,
                (_, Answers::Differ(..)) => return Verdict::NotComparable,
                (Some(ratio), _) => ratio.median <= limit,
            },
        };
        if met && figures.answers != Answers::OursCut { Verdict::Met } else { Verdict::Missed }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::timing::Sample;

    /// An outcome with one pair.
    pub(crate) fn outcome(goal: Goal, ours: (f64, u64), theirs: (f64, u64, End)) -> Outcome {
        let sample = |wall, count, end| Sample { wall, answer: Answer { count, end }, ..Sample::default() };
        let samples = Samples {
            ours: vec![sample(ours.0, ours.1, End::Complete)],
            theirs: Ok(vec![sample(theirs.0, theirs.1, theirs.2)]),
        };
        let prepare = |_: &crate::lab::Lab| anyhow::bail!("never prepared");
        let row = Row { id: "id", work: "work <&|>", ours: "a", theirs: "b", unit: Unit::Wall, goal, prepare };
        Outcome { row, figures: Figures::of(Unit::Wall, samples).ok_or_else(|| "no samples".to_owned()) }
    }

    #[test]
    fn a_goal_is_a_ratio_or_a_limit() {
        let ratio = |goal| outcome(Goal::Ratio(goal), (1.0, 5), (2.0, 5, End::Complete)).verdict();
        assert_eq!((ratio(0.5), ratio(0.4)), (Verdict::Met, Verdict::Missed));
        let limit = |limit| outcome(Goal::AtMost(limit), (1.0, 5), (2.0, 5, End::Complete)).verdict();
        assert_eq!((limit(1.0), limit(0.9)), (Verdict::Met, Verdict::Missed));
        assert_eq!(outcome(Goal::None, (9.0, 5), (1.0, 5, End::Complete)).verdict(), Verdict::Shown);
    }

    #[test]
    fn a_ratio_for_another_answer_is_worthless() {
        let other = outcome(Goal::Ratio(0.9), (1.0, 4), (2.0, 5, End::Complete));
        assert_eq!(other.verdict(), Verdict::NotComparable);
        let cut = outcome(Goal::Ratio(0.9), (1.0, 9), (2.0, 5, End::Cut));
        assert_eq!(cut.verdict(), Verdict::Met);
        assert_eq!(cut.figures.unwrap().answers, Answers::TheirsCut(5, 9));
    }

    #[test]
    fn without_a_rival_there_is_no_ratio() {
        let samples = Samples { ours: vec![Sample::default()], theirs: Err("not installed".into()) };
        let figures = Figures::of(Unit::Cpu, samples).unwrap();
        assert_eq!((figures.ratio, figures.theirs), (None, Err("not installed".into())));
    }
}

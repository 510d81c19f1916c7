//! The report: a page of Markdown.

use chrono::NaiveDate;

use crate::growth::{Growth, SIZES};
use crate::instructions::Counts;
use crate::outcome::{Answers, Figures, Outcome, Verdict};
use crate::rows::{Goal, Row};
use crate::timing::Unit;
use crate::words::{digits, quantity, unit};

/// All that the report tells.
pub(crate) struct Report<'a> {
    /// The day of the run.
    pub(crate) date: NaiveDate,
    /// How many pairs each row had.
    pub(crate) pairs: u32,
    /// The machine.
    pub(crate) machine: Vec<(&'static str, String)>,
    /// The rivals' versions.
    pub(crate) rivals: Vec<String>,
    /// The rows.
    pub(crate) outcomes: &'a [Outcome],
    /// The instruction counts, or why there are none.
    pub(crate) instructions: Result<Counts, String>,
    /// The growth at three sizes.
    pub(crate) growth: Growth,
    /// What people say of rows.
    pub(crate) notes: Vec<(&'static str, &'static str)>,
}

const INTRODUCTION: &str = "\
# Performance

What the operations cost beside those of others, measured side by side: the two sides of a row take turns, after a
warm-up of each, and what counts is the ratio of each pair. Absolute times are of this machine only. This page
is made by

```sh
cargo run --profile dist -p vfs-benches --bin compare -- --instructions
```

which prepares the trees and the rivals in `target/compare` (it needs Debian's `apt-get` for the kernel's
source, cargo, `python3` with `venv`, and Go; what cannot be prepared is shown as not run). `--row NAME` runs the rows
whose name contains NAME and leaves this page alone; `--help` has the rest. Notes about rows are kept in
`benches/compare/notes.md`.

* **L** is the kernel's source in Debian's `linux-source-6.1`, some 78,500 files and 1.3 GB.
* **S** is made from a seed: 20,000 source-like files of about 4 KiB in 100 x 20 directories, 82 MB.

";

impl Report<'_> {
    /// The page.
    pub(crate) fn markdown(&self) -> String {
        let mut page = INTRODUCTION.to_owned();
        self.add_circumstances(&mut page);
        self.add_table(&mut page);
        self.add_instructions(&mut page);
        self.add_notes(&mut page);
        self.add_growth(&mut page);
        page
    }

    fn add_circumstances(&self, page: &mut String) {
        line(page, &format!("Measured on {}, {} pairs a row.\n", self.date, self.pairs));
        line(page, "| | |\n|---|---|");
        for (name, fact) in &self.machine {
            line(page, &format!("| {name} | {} |", cell(fact)));
        }
        for version in &self.rivals {
            line(page, &format!("| rival | {} |", cell(version)));
        }
    }

    fn add_table(&self, page: &mut String) {
        line(page, "\n## The table\n");
        line(page, "![Ratios reached and to reach](performance.svg)\n");
        let count = |verdict| self.outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
        let goals = self.outcomes.iter().filter(|outcome| outcome.row.goal != Goal::None).count();
        line(
            page,
            &format!("{} of {goals} goals are met. A ratio is ours to theirs: the median of", count(Verdict::Met)),
        );
        line(page, "the pairs, with the least and the greatest. The figures of the two sides are medians, too.\n");
        line(page, "| row | work | what | ours | theirs | ratio | to reach | met |\n|---|---|---|---|---|---|---|---|");
        for outcome in self.outcomes {
            line(page, &table_row(outcome));
        }
    }

    fn add_instructions(&self, page: &mut String) {
        line(page, "\n## Instructions\n");
        match &self.instructions {
            Err(reason) => line(page, &format!("Not counted: {reason}.")),
            Ok(Counts { counter, counts }) => {
                let what = "The instructions of one run of each program, all threads together, without the kernel's";
                line(page, &format!("{what} (counted by {counter}).\n"));
                line(page, "| work | `vfs` | `rg` | ratio |\n|---|---|---|---|");
                for count in counts {
                    let (ours, theirs) = (millions(count.ours), millions(count.theirs));
                    let ratio = digits(ours / theirs);
                    line(page, &format!("| {} | {} M | {} M | {ratio} |", count.work, digits(ours), digits(theirs)));
                }
            }
        }
    }

    fn add_notes(&self, page: &mut String) {
        line(page, "\n## Notes about rows");
        for (id, note) in &self.notes {
            line(page, &format!("\n**{id}.** {note}"));
        }
    }

    fn add_growth(&self, page: &mut String) {
        line(page, "\n## Growth\n");
        if self.growth.is_empty() {
            line(page, "Not measured: `cargo bench -p vfs-benches` has not run here.");
            return;
        }
        line(page, "Mean times at three sizes of the store, by `cargo bench -p vfs-benches`: the cost follows what is");
        line(page, "asked, not what is there. Only a search of everything grows.\n");
        line(page, &format!("| bench | {} files | {} files | {} files |", SIZES[0], SIZES[1], SIZES[2]));
        line(page, "|---|---|---|---|");
        for (bench, means) in &self.growth {
            let means = means.map(|mean| mean.map_or_else(|| "-".into(), |mean| quantity(Unit::Wall, mean)));
            line(page, &format!("| {bench} | {} |", means.join(" | ")));
        }
    }
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

/// Text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn millions(count: u64) -> f64 {
    count as f64 / 1e6
}

/// What a row is to reach, in words.
fn goal(row: &Row) -> String {
    match row.goal {
        Goal::Ratio(ratio) => format!("≤ {}", digits(ratio)),
        Goal::AtMost(limit) => format!("≤ {}", quantity(row.unit, limit)),
        Goal::None => "-".into(),
    }
}

/// What became of a row, in a line for the one who waits.
pub(crate) fn summary(outcome: &Outcome) -> String {
    match &outcome.figures {
        Err(reason) => format!("not run: {reason}"),
        Ok(figures) => {
            let [ours, theirs, ratio] = figure_cells(&outcome.row, figures);
            format!("{ours}; {theirs}; ratio {ratio}, to reach {}: {:?}", goal(&outcome.row), outcome.verdict())
        }
    }
}

fn table_row(outcome: &Outcome) -> String {
    let row = &outcome.row;
    let [ours, theirs, ratio] = match &outcome.figures {
        Ok(figures) => figure_cells(row, figures),
        Err(reason) => [format!("not run: {reason}"), String::new(), String::new()],
    };
    let met = match (outcome.verdict(), &outcome.figures) {
        (Verdict::Met, Ok(Figures { answers: Answers::TheirsCut(..), .. })) => "yes, though theirs gave up",
        (Verdict::Met, _) => "yes",
        (Verdict::Missed, _) => "**no**",
        (Verdict::NotComparable, _) => "**answers differ**",
        (Verdict::Shown, _) => "-",
        (Verdict::NotRun, _) => "not run",
    };
    let cells = [row.id, row.work, unit(row.unit), &ours, &theirs, &ratio, &goal(row), met].map(cell);
    format!("| {} |", cells.join(" | "))
}

fn figure_cells(row: &Row, figures: &Figures) -> [String; 3] {
    let mut ours = format!("{}, {}", quantity(row.unit, figures.ours.median), row.ours);
    let mut theirs = match &figures.theirs {
        Ok(theirs) => format!("{}, {}", quantity(row.unit, theirs.median), row.theirs),
        Err(reason) if reason.is_empty() => String::new(),
        Err(reason) => format!("not run: {reason}"),
    };
    match figures.answers {
        Answers::Same => {}
        Answers::OursCut => ours.push_str(", cut short"),
        Answers::TheirsCut(count, all) => {
            theirs.push_str(&format!(", cut short: {count} results of {all}"));
        }
        Answers::Differ(our_count, their_count) => {
            ours.push_str(&format!(", {our_count} results"));
            theirs.push_str(&format!(", {their_count} results"));
        }
    }
    let ratio = figures.ratio.map_or_else(String::new, |ratio| {
        format!("{} ({} to {})", digits(ratio.median), digits(ratio.least), digits(ratio.greatest))
    });
    [ours, theirs, ratio]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;
    use crate::timing::End;

    #[test]
    fn a_row_tells_what_was_reached_and_what_was_to_be() {
        let met = outcome(Goal::Ratio(0.8), (0.5, 3), (1.0, 3, End::Complete));
        let expected = "| id | work <&\\|> | time | 500 ms, a | 1 s, b | 0.5 (0.5 to 0.5) | ≤ 0.8 | yes |";
        assert_eq!(table_row(&met), expected);
    }

    #[test]
    fn other_answers_and_missing_rivals_are_told() {
        let differ = table_row(&outcome(Goal::Ratio(0.8), (0.5, 3), (1.0, 4, End::Complete)));
        assert!(differ.contains("3 results") && differ.contains("**answers differ**"), "{differ}");
        let cut = table_row(&outcome(Goal::Ratio(0.8), (0.5, 30), (1.0, 4, End::Cut)));
        assert!(cut.contains("cut short: 4 results of 30"), "{cut}");
        let missing = Outcome { figures: Err("no rg".into()), ..outcome(Goal::None, (0.5, 3), (1.0, 4, End::Cut)) };
        assert!(table_row(&missing).contains("not run: no rg"));
    }

    #[test]
    fn the_page_has_all_its_parts() {
        let outcomes = [outcome(Goal::Ratio(0.8), (0.5, 3), (1.0, 3, End::Complete))];
        let report = Report {
            date: NaiveDate::default(),
            pairs: 2,
            machine: vec![("cores", "2".into())],
            rivals: vec!["ripgrep 15.2.0".into()],
            outcomes: &outcomes,
            instructions: Err("not asked for".into()),
            growth: Growth::from([("memory/ls".into(), [Some(1e-6), None, Some(2e-6)])]),
            notes: vec![("id", "It is limited by light.")],
        };
        let page = report.markdown();
        for part in [
            "1 of 1 goals are met",
            "| cores | 2 |",
            "| rival | ripgrep 15.2.0 |",
            "Not counted: not asked for.",
            "**id.** It is limited by light.",
            "| memory/ls | 1 µs | - | 2 µs |",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
}

//! The chart: a bar for each row, from parity to the ratio reached, and a mark at the ratio to reach.

use crate::outcome::{Outcome, Verdict};
use crate::rows::Goal;
use crate::words::{digits, quantity};

const WIDTH: f64 = 960.0;
const LABELS: f64 = 200.0;
const PLOT: f64 = 590.0;
const LINE: f64 = 20.0;
const TOP: f64 = 52.0;
const FOOT: f64 = 28.0;

/// Colours that can be told apart on a light and on a dark page, and by those who do not see red or green.
const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 14px; }
.faint { fill: #57606a; }
.grid { stroke: #d0d7de; }
.parity { stroke: #57606a; }
.met { fill: #0969da; }
.missed { fill: #d4731a; }
.shown { fill: #8c959f; }
.goal { stroke: #24292f; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.faint { fill: #9198a1; }
.grid { stroke: #30363d; }
.parity { stroke: #9198a1; }
.met { fill: #58a6ff; }
.missed { fill: #f0883e; }
.shown { fill: #6e7681; }
.goal { stroke: #e6edf3; }
}
";

/// The chart of `outcomes`.
pub(crate) fn svg(outcomes: &[Outcome]) -> String {
    let bars: Vec<Bar> = outcomes.iter().map(Bar::of).collect();
    let scale = Scale::over(bars.iter().flat_map(|bar| [bar.reached, bar.goal]).flatten());
    let bottom = bars.iter().fold(TOP, |bottom, _| bottom + LINE);
    let height = bottom + FOOT;
    let mut svg = Svg(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"Ratios reached and to reach\">\n<style>\n{STYLE}</style>\n"
    ));
    svg.text(10.0, 20.0, "title", "start", "Ours to theirs, row by row: less is better");
    let legend =
        "bar: the ratio reached, from parity (1); mark: the ratio to reach. Where the goal is a limit, 1 is that.";
    svg.text(10.0, 38.0, "faint", "start", legend);
    for power in scale.least..=scale.greatest {
        let value = 10f64.powi(power);
        let x = scale.x(value);
        svg.line(if power == 0 { "parity" } else { "grid" }, x, TOP, bottom);
        svg.text(x, bottom + 16.0, "faint", "middle", &digits(value));
    }
    let mut top = TOP;
    for bar in &bars {
        bar.draw(&mut svg, &scale, top);
        top += LINE;
    }
    svg.0.push_str("</svg>\n");
    svg.0
}

/// What is drawn of a row.
struct Bar {
    label: &'static str,
    reached: Option<f64>,
    goal: Option<f64>,
    figure: String,
    class: &'static str,
}

impl Bar {
    fn of(outcome: &Outcome) -> Self {
        let row = &outcome.row;
        let figures = outcome.figures.as_ref().ok();
        let class = match outcome.verdict() {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::NotComparable | Verdict::Shown | Verdict::NotRun => "shown",
        };
        let ratio = figures.and_then(|figures| figures.ratio).map(|ratio| ratio.median);
        let (reached, goal, figure) = match row.goal {
            Goal::AtMost(limit) => {
                let ours = figures.map(|figures| figures.ours.median);
                let of_limit = |ours| format!("{} of {}", quantity(row.unit, ours), quantity(row.unit, limit));
                (ours.map(|ours| ours / limit), Some(1.0), ours.map(of_limit))
            }
            Goal::Ratio(goal) => {
                (ratio, Some(goal), ratio.map(|ratio| format!("{}, goal {}", digits(ratio), digits(goal))))
            }
            Goal::None => (ratio, None, ratio.map(digits)),
        };
        Self {
            label: row.id,
            reached: reached.filter(|reached| *reached > 0.0),
            goal,
            figure: figure.unwrap_or_else(|| "not run".into()),
            class,
        }
    }

    fn draw(&self, svg: &mut Svg, scale: &Scale, top: f64) {
        svg.text(LABELS - 8.0, top + 14.0, "label", "end", self.label);
        if let Some(reached) = self.reached {
            let (from, to) = (scale.x(1.0), scale.x(reached));
            svg.bar(self.class, from.min(to), top + 4.0, (to - from).abs().max(1.0), LINE - 8.0);
        }
        if let Some(goal) = self.goal {
            svg.line("goal", scale.x(goal), top + 2.0, top + LINE - 2.0);
        }
        svg.text(LABELS + PLOT + 10.0, top + 14.0, "faint", "start", &self.figure);
    }
}

/// From ratios to places, by powers of ten.
struct Scale {
    least: i32,
    greatest: i32,
}

impl Scale {
    /// A scale that has parity and all of `values`.
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self { least: -1, greatest: 1 };
        for value in values {
            while value < 10f64.powi(scale.least) && scale.least > -9 {
                scale.least -= 1;
            }
            while value > 10f64.powi(scale.greatest) && scale.greatest < 9 {
                scale.greatest += 1;
            }
        }
        scale
    }

    fn x(&self, value: f64) -> f64 {
        let (least, greatest) = (f64::from(self.least), f64::from(self.greatest));
        let place = (value.log10().clamp(least, greatest) - least) / (greatest - least);
        LABELS + PLOT * place
    }
}

/// A drawing under way.
struct Svg(String);

impl Svg {
    fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
        let text = escaped(text);
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\"");
        self.0 += &format!("<text class=\"{class}\" {place} text-anchor=\"{anchor}\">{text}</text>\n");
    }

    fn line(&mut self, class: &str, x: f64, top: f64, bottom: f64) {
        self.0 +=
            &format!("<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\n");
    }

    fn bar(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let size = format!("width=\"{width:.1}\" height=\"{height:.1}\"");
        self.0 += &format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" {size}/>\n");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;
    use crate::timing::End;

    #[test]
    fn faster_bars_go_left_of_parity() {
        let scale = Scale::over([0.02, 3.0].into_iter());
        assert_eq!((scale.least, scale.greatest), (-2, 1));
        assert!(scale.x(0.02) < scale.x(1.0) && scale.x(1.0) < scale.x(3.0));
        assert!((scale.x(0.01) - LABELS).abs() < 1e-9 && (scale.x(10.0) - LABELS - PLOT).abs() < 1e-9);
    }

    #[test]
    fn text_is_escaped_and_nothing_is_fetched() {
        let svg = svg(&[outcome(Goal::Ratio(0.8), (0.5, 3), (1.0, 3, End::Complete))]);
        assert_eq!(escaped("<\"a\" & b>"), "&lt;&quot;a&quot; &amp; b&gt;");
        assert!(svg.contains("class=\"met\"") && svg.contains("0.5, goal 0.8"), "{svg}");
        assert_eq!(svg.matches("http").count(), 1, "the namespace alone");
    }
}

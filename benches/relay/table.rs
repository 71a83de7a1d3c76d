//! The results as one table in Markdown: ratios within a round, their median over the rounds.

use std::collections::BTreeMap;

use crate::{
    contender::Contender,
    sample::{Outcome, Sample},
    scenario::Scenario,
};

/// All that was measured.
pub(crate) struct Results {
    /// By scenario and contender, then by round.
    pub(crate) outcomes: BTreeMap<(&'static str, &'static str), BTreeMap<usize, Outcome>>,
    pub(crate) contenders: Vec<Contender>,
    /// About those who are not among them.
    pub(crate) missing: Vec<String>,
    pub(crate) rounds: usize,
}

/// What ratios are taken of.
type Figure = fn(&Sample) -> Option<f64>;

const P50: Figure = |sample| Some(sample.p50_us);
const RATE: Figure = |sample| sample.per_second;
const CPU: Figure = |sample| sample.cpu_us;

pub(crate) fn table(scenarios: &[Scenario], results: &Results) -> String {
    let has_part = |rival: &Contender| results.outcomes.keys().any(|(_, name)| *name == rival.name());
    let rivals = results.contenders.iter().filter(|contender| !contender.is_own() && has_part(contender));
    let rivals: Vec<&Contender> = rivals.collect();
    let mut text =
        String::from("| | | direct p50 | ideal p50 | gatekey ÷ ideal: p50 | calls/s | CPU per call | RSS MB |");
    for rival in &rivals {
        text += &format!(" {} ÷ ideal: p50, calls/s, CPU; RSS MB |", rival.name());
    }
    text += " remarks |\n|---|---|";
    text += &"---|".repeat(7 + rivals.len());
    for scenario in scenarios {
        let row = Row { scenario: scenario.name, results };
        let [direct, ideal] = ["direct", "ideal"].map(|name| time(row.median(name, P50)));
        let [p50, rate, cpu, rss] = row.against_ideal("gatekey");
        text += &format!(
            "\n| {} | {} | {direct} | {ideal} | {p50} | {rate} | {cpu} | {rss} |",
            scenario.name, scenario.what
        );
        for rival in &rivals {
            let [p50, rate, cpu, rss] = row.against_ideal(rival.name());
            text += &format!(" {p50}, {rate}, {cpu}; {rss} |");
        }
        text += &format!(" {} |", row.remarks());
    }
    text += &format!("\n\nMedians over {} round(s).", results.rounds);
    for missing in &results.missing {
        text += &format!(" {missing}.");
    }
    text
}

struct Row<'a> {
    scenario: &'static str,
    results: &'a Results,
}

impl Row<'_> {
    /// The contender's samples by round.
    fn samples(&self, contender: &'static str) -> BTreeMap<usize, &Sample> {
        let mut samples = BTreeMap::new();
        for (round, outcome) in self.results.outcomes.get(&(self.scenario, contender)).into_iter().flatten() {
            if let Outcome::Measured(sample) = outcome {
                samples.insert(*round, sample);
            }
        }
        samples
    }

    fn median(&self, contender: &'static str, figure: Figure) -> Option<f64> {
        median(self.samples(contender).into_values().filter_map(figure).collect())
    }

    fn ratio(&self, contender: &'static str, figure: Figure) -> Option<f64> {
        let ideal = self.samples("ideal");
        let in_round = |(round, sample)| Some(figure(sample)? / figure(ideal.get(&round)?)?);
        median(self.samples(contender).into_iter().filter_map(in_round).collect())
    }

    fn against_ideal(&self, contender: &'static str) -> [String; 4] {
        let [p50, rate, cpu] = [P50, RATE, CPU].map(|figure| number(self.ratio(contender, figure)));
        [p50, rate, cpu, number(self.median(contender, |sample| Some(sample.peak_rss_mb)))]
    }

    /// What has no column: slow neighbors, growth, errors, and why something was not measured.
    fn remarks(&self) -> String {
        let mut remarks = Vec::new();
        for contender in &self.results.contenders {
            let name = contender.name();
            if !contender.is_single() {
                remarks.extend(self.beside_slow(name));
                remarks.extend(self.growth(name));
            }
            let outcomes = self.results.outcomes.get(&(self.scenario, name)).into_iter().flatten();
            remarks
                .extend(outcomes.filter_map(|(_, outcome)| trouble(outcome)).next().map(|it| format!("{name} {it}")));
        }
        remarks.join("; ")
    }

    fn beside_slow(&self, contender: &'static str) -> Option<String> {
        let p50 = self.median(contender, |sample| Some(sample.p50_us / sample.quiet_us?.0))?;
        let p99 = self.median(contender, |sample| Some(sample.p99_us / sample.quiet_us?.1))?;
        Some(format!("{contender} ÷ itself alone: p50 {}, p99 {}", number(Some(p50)), number(Some(p99))))
    }

    fn growth(&self, contender: &'static str) -> Option<String> {
        if !self.scenario.ends_with("memory") {
            return None;
        }
        let before = self.median(contender, |sample| Some(sample.rss_mb.0))?;
        let after = self.median(contender, |sample| Some(sample.rss_mb.1))?;
        Some(format!("{contender} RSS {} → {} MB", number(Some(before)), number(Some(after))))
    }
}

fn trouble(outcome: &Outcome) -> Option<String> {
    let said = match outcome {
        Outcome::Measured(sample) if sample.n_errors == 0 => return None,
        Outcome::Measured(Sample { n_errors, n_calls, first_error, .. }) => {
            format!("{n_errors} errors in {n_calls} calls: {}", first_error.as_deref().unwrap_or_default())
        }
        Outcome::Failed(reason) => format!("failed: {reason}"),
        Outcome::NotMeasured(reason) => format!("not measured: {reason}"),
    };
    // It must stay one cell.
    Some(said.replace(['\n', '|'], " "))
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    if figures.len() % 2 == 1 {
        return figures.get(half).copied();
    }
    Some((figures.get(half.checked_sub(1)?)? + figures.get(half)?) / 2.0)
}

/// Three digits.
fn number(figure: Option<f64>) -> String {
    match figure {
        None => "–".into(),
        Some(figure) if figure >= 100.0 => format!("{figure:.0}"),
        Some(figure) if figure >= 10.0 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

fn time(us: Option<f64>) -> String {
    match us {
        Some(us) if us >= 10_000.0 => format!("{} ms", number(Some(us / 1e3))),
        us => format!("{} µs", number(us)),
    }
}

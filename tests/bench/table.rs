//! Samples, and the table that compares ours with a peer's.

use std::time::Duration;

/// Repeated measurements of one thing, in its unit.
#[derive(Debug, Clone, Default)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// Adds a time, in seconds.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64());
    }

    /// The value below which `share` of the samples lie; not a number without samples.
    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let index = (last as f64 * share).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The middle sample.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Nearly the worst sample.
    pub fn p99(&self) -> f64 {
        self.quantile(0.99)
    }
}

/// What a row's numbers are.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Samples are seconds.
    Time,
    /// Samples are bytes.
    Memory,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            _ if value.is_nan() => "-".to_owned(),
            Self::Time if value < 0.001 => format!("{:.0} µs", value * 1e6),
            Self::Time if value < 1.0 => format!("{:.1} ms", value * 1e3),
            Self::Time => format!("{value:.2} s"),
            Self::Memory => format!("{:.1} MB", value / 1e6),
        }
    }
}

/// Which of the samples is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The middle one.
    Median,
    /// Nearly the worst.
    P99,
    /// The worst.
    Worst,
}

/// Ours beside a peer's.
pub struct Row {
    /// What is measured.
    pub what: String,
    /// What the samples are.
    pub unit: Unit,
    /// Our samples.
    pub ours: Samples,
    /// What it is compared with, and that one's samples.
    pub peer: Option<(&'static str, Samples)>,
    /// What the target is about.
    pub measure: Measure,
    /// The ratio to the peer (or, without a peer, the value itself in seconds or bytes) that we want at most.
    pub target: f64,
}

impl Row {
    /// A row whose target is a ratio of medians.
    pub fn beside(what: impl Into<String>, unit: Unit, ours: Samples, peer: (&'static str, Samples), target: f64) -> Self {
        Self { what: what.into(), unit, ours, peer: Some(peer), measure: Measure::Median, target }
    }

    /// A row whose target is a median, in seconds or bytes.
    pub fn alone(what: impl Into<String>, unit: Unit, ours: Samples, target: f64) -> Self {
        Self { what: what.into(), unit, ours, peer: None, measure: Measure::Median, target }
    }

    /// The same row with a target about another sample than the median.
    pub fn by(self, measure: Measure) -> Self {
        Self { measure, ..self }
    }

    fn measured(&self) -> f64 {
        let look = |samples: &Samples| match self.measure {
            Measure::Median => samples.median(),
            Measure::P99 => samples.p99(),
            Measure::Worst => samples.quantile(1.0),
        };
        match &self.peer {
            Some((_, peer)) => look(&self.ours) / look(peer),
            None => look(&self.ours),
        }
    }
}

/// Prints the rows as a Markdown table.
pub fn print(rows: &[Row]) {
    println!("\n| what | ours: median (p99, worst) | beside | its median (p99, worst) | ratio | target | |");
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        let all = |samples: &Samples| {
            let show = |value| row.unit.show(value);
            format!("{} ({}, {})", show(samples.median()), show(samples.p99()), show(samples.quantile(1.0)))
        };
        let (peer, theirs, ratio, target) = match &row.peer {
            Some((name, peer)) => (*name, all(peer), format!("{:.2}", row.measured()), format!("≤ {:.2} ×", row.target)),
            None => ("-", "-".to_owned(), "-".to_owned(), format!("≤ {}", row.unit.show(row.target))),
        };
        let verdict = if row.measured() <= row.target { "met" } else { "missed" };
        println!("| {} | {} | {peer} | {theirs} | {ratio} | {target} | {verdict} |", row.what, all(&row.ours));
    }
}

//! Which steps led to an answer: those that printed its numbers or drew its charts, and what they build on.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::agent::evidence::{Evidence, Sources, Support, numbers};
use crate::agent::run::{Run, Step};

/// What a step's code defines and needs, as its syntax tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Anatomy {
    /// The code of a cell; of a step that failed, what stands before the statement that raised.
    pub code: String,
    /// The code as plain Python that prints what a kernel shows by itself; `None` where it only works in a kernel.
    pub script: Option<String>,
    /// Names that it binds or changes.
    pub defines: Vec<String>,
    /// Names that it uses and does not bind itself before.
    pub needs: Vec<String>,
}

/// A step that an export may need.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The step.
    pub step: Step,
    /// What was asked, where the step belongs to an earlier run whose variables the exported run went on with.
    pub earlier: Option<String>,
    /// What it defines and needs.
    pub anatomy: Anatomy,
}

impl Candidate {
    /// Whether the step did all of its work.
    pub fn succeeded(&self) -> bool {
        self.step.exit_code == 0 && self.step.error.is_none()
    }

    fn is_own_success(&self) -> bool {
        self.earlier.is_none() && self.succeeded()
    }
}

/// Which candidates are taken, by their places: all successful steps of the run itself, and what they build on.
pub fn whole(candidates: &[Candidate]) -> Vec<usize> {
    let roots = (0..candidates.len()).filter(|at| candidates[*at].is_own_success()).collect();
    closed(candidates, roots)
}

/// Which candidates are taken, by their places: the steps that led to the run's answer, and what they build on. A run
/// without an answer was about all of its steps.
pub fn minimal(candidates: &[Candidate], run: &Run) -> Vec<usize> {
    let Some(answer) = run.final_answer.as_deref() else { return whole(candidates) };
    let evidence = Evidence::of(&Sources::of_run(run));
    let printed: BTreeSet<u32> = numbers(answer)
        .iter()
        .filter_map(|number| match evidence.support(number) {
            Support::Step(step) => Some(step),
            Support::Given | Support::None => None,
        })
        .collect();
    let counts = |candidate: &Candidate| {
        candidate.is_own_success() && (printed.contains(&candidate.step.step) || !candidate.step.artifacts.is_empty())
    };
    let mut roots: BTreeSet<usize> = (0..candidates.len()).filter(|at| counts(&candidates[*at])).collect();
    // An answer in words alone rests on the last step at least.
    if let Some(last) = candidates.iter().rposition(Candidate::is_own_success) {
        roots.insert(last);
    }
    closed(candidates, roots)
}

/// The candidates that `taken` need, and those themselves, in order.
fn closed(candidates: &[Candidate], mut taken: BTreeSet<usize>) -> Vec<usize> {
    let mut open: Vec<usize> = taken.iter().copied().collect();
    while let Some(at) = open.pop() {
        let before = &candidates[..at];
        let needs = &candidates[at].anatomy.needs;
        let sources = needs.iter().filter_map(|name| before.iter().rposition(|other| other.anatomy.defines.contains(name)));
        let files = before.iter().enumerate().filter(|(_, other)| {
            let mut written = other.step.files.iter();
            written.any(|file| candidates[at].step.code.contains(&file.path))
        });
        for source in sources.chain(files.map(|(place, _)| place)) {
            if taken.insert(source) {
                open.push(source);
            }
        }
    }
    taken.into_iter().collect()
}

/// One piece of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The step's number in its run.
    pub step: u32,
    /// What was asked, where it belongs to an earlier run.
    pub earlier: Option<String>,
    /// The step raised; only what it did before that is here.
    pub partial: bool,
    /// The code of a cell.
    pub code: String,
    /// The code as plain Python; `None` where it only works in a kernel.
    pub script: Option<String>,
}

impl Block {
    /// The piece that a candidate gives.
    pub fn of(candidate: &Candidate) -> Self {
        Self {
            step: candidate.step.step,
            earlier: candidate.earlier.clone(),
            partial: !candidate.succeeded(),
            code: candidate.anatomy.code.clone(),
            script: candidate.anatomy.script.clone(),
        }
    }
}

/// What a replay in a fresh sandbox said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Every step printed and drew the same.
    Same,
    /// What was different, as sentences.
    Differs(Vec<String>),
    /// It was not replayed; the reason.
    Skipped(String),
}

/// The code of an export, checked or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Its pieces in order.
    pub blocks: Vec<Block>,
    /// Small inputs that stand in no file of the person's, as names and texts: selected lines.
    pub data: Vec<(String, String)>,
    /// What the replay said.
    pub check: Check,
}

impl Lineage {
    /// The successful steps of a run as they are, where nothing can be replayed.
    pub fn unchecked(run: &Run, reason: impl Into<String>) -> Self {
        let block = |step: &Step| Block {
            step: step.step,
            earlier: None,
            partial: false,
            code: step.code.clone(),
            script: Some(step.code.clone()),
        };
        let blocks = run.steps.iter().filter(|step| step.exit_code == 0).map(block).collect();
        Self { blocks, data: Vec::new(), check: Check::Skipped(reason.into()) }
    }

    /// Sentences about what a reader must know of the export; none where the replay did the same.
    pub fn remarks(&self) -> Vec<String> {
        match &self.check {
            Check::Same => Vec::new(),
            Check::Differs(differences) => differences.clone(),
            Check::Skipped(reason) => vec![format!("It was not replayed in a fresh sandbox: {reason}")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(number: u32, defines: &[&str], needs: &[&str], stdout: &str, exit_code: i32) -> Candidate {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Candidate {
            step: Step { step: number, stdout: stdout.to_owned(), exit_code, ..Step::default() },
            earlier: None,
            anatomy: Anatomy { defines: names(defines), needs: names(needs), ..Anatomy::default() },
        }
    }

    fn check(candidates: &[Candidate], answer: &str, expected: &[usize]) {
        let steps = candidates.iter().map(|candidate| candidate.step.clone()).collect();
        let run = Run { final_answer: Some(answer.to_owned()), steps, ..Run::default() };
        assert_eq!(minimal(candidates, &run), expected);
    }

    #[test]
    fn looks_that_led_nowhere_are_left_out() {
        let candidates = [
            candidate(1, &["df", "pd"], &[], "", 0),
            candidate(2, &["other"], &["df"], "17.5", 0),
            candidate(3, &["mean"], &["df"], "mean 5.84", 0),
            candidate(4, &[], &["mean"], "done", 0),
        ];
        check(&candidates, "The mean is 5.84.", &[0, 2, 3]);
    }

    #[test]
    fn what_a_failed_step_did_before_it_raised_is_kept_where_it_is_needed() {
        let candidates =
            [candidate(1, &["df"], &[], "", 1), candidate(2, &["x"], &[], "", 1), candidate(3, &["df"], &["df"], "count 150", 0)];
        check(&candidates, "There are 150.", &[0, 2]);
    }

    #[test]
    fn a_changed_value_brings_the_steps_that_made_it() {
        let candidates = [
            candidate(1, &["df"], &[], "", 0),
            candidate(2, &["df"], &["df"], "", 0),
            candidate(3, &["df"], &[], "", 0),
            candidate(4, &["df"], &["df"], "", 0),
            candidate(5, &[], &["df"], "12.5", 0),
        ];
        check(&candidates, "12.5", &[2, 3, 4]);
    }

    #[test]
    fn without_an_answer_every_step_counts() {
        let candidates = [candidate(1, &[], &[], "", 0), candidate(2, &[], &[], "", 0)];
        assert_eq!(minimal(&candidates, &Run::default()), [0, 1]);
    }
}

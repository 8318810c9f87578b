//! What a rerun executes: the code of an earlier run, with that of the runs whose variables it went on with, so that
//! everything is read anew from today's data.

use std::sync::Arc;

use crate::agent::driver::Code;
use crate::agent::run::{Run, RunStatus, Step};
use crate::store::RunStore;

/// Repetitions that are gone back at most.
const MAX_REPETITIONS: usize = 1000;

/// The run that a rerun of `run` repeats: one that was itself a repetition and did not come to its end has only a part
/// of the code, so what it repeated stands for it.
pub(super) fn repeated(store: &RunStore, mut run: Arc<Run>) -> Arc<Run> {
    for _ in 0..MAX_REPETITIONS {
        // One that was cancelled in the queue knows no more than whom it would have repeated.
        let is_repetition = run.changes.is_some() || run.question.is_empty();
        let broke_off = is_repetition && run.status != RunStatus::Completed;
        let Some(Ok(before)) = run.parent.as_deref().filter(|_| broke_off).map(|id| store.load(id)) else { break };
        run = Arc::new(before);
    }
    run
}

/// What is executed for a rerun.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Repetition {
    /// The code of the steps, in order.
    pub codes: Vec<Code>,
    /// Of each, the step of the repeated run that it is; `None` of what an earlier run did.
    pub steps: Vec<Option<u32>>,
}

impl Repetition {
    /// The code of the last of `chain`, and of the runs before it that it follows up; oldest first.
    pub fn of(chain: &[Arc<Run>]) -> Self {
        let mut repetition = Self::default();
        for (at, run) in chain.iter().enumerate() {
            for (place, step) in run.steps.iter().enumerate() {
                let is_end = place + 1 == run.steps.len() && run.status == RunStatus::Failed;
                // What failed and was mended later may fail again: the steps after it were written knowing that. What
                // ran out of time or memory then would only do so again.
                let mended = has_failed(step) && !is_end;
                if mended && was_killed(step) {
                    continue;
                }
                repetition.codes.push(Code { code: step.code.clone(), may_fail: mended });
                repetition.steps.push((at + 1 == chain.len()).then_some(step.step));
            }
        }
        repetition
    }
}

fn has_failed(step: &Step) -> bool {
    step.exit_code != 0 || step.error.is_some()
}

/// Whether the execution was ended from outside: by its time limit, a person, or the death of the kernel.
fn was_killed(step: &Step) -> bool {
    step.error.as_ref().is_some_and(|error| matches!(error.ename.as_str(), "Timeout" | "OutOfMemory" | "Interrupted" | "KernelDied"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::execution::ExecutionError;

    fn step(number: u32, code: &str, ename: Option<&str>) -> Step {
        let error = ename.map(|ename| ExecutionError { ename: ename.to_owned(), evalue: String::new(), traceback: String::new() });
        Step { step: number, code: code.to_owned(), exit_code: i32::from(error.is_some()), error, ..Step::default() }
    }

    fn run(status: RunStatus, steps: Vec<Step>) -> Arc<Run> {
        Arc::new(Run { status, steps, ..Run::default() })
    }

    #[test]
    fn what_was_mended_may_fail_again_and_what_was_killed_is_left_out() {
        let steps = vec![step(1, "a", Some("KeyError")), step(2, "b", Some("Timeout")), step(3, "c", None)];
        let repetition = Repetition::of(&[run(RunStatus::Completed, steps)]);
        let code = |code: &str, may_fail| Code { code: code.to_owned(), may_fail };
        assert_eq!(repetition.codes, [code("a", true), code("c", false)]);
        assert_eq!(repetition.steps, [Some(1), Some(3)]);
    }

    #[test]
    fn the_failure_that_ended_a_run_ends_its_repetition_too() {
        let repetition = Repetition::of(&[run(RunStatus::Failed, vec![step(1, "a", Some("Timeout"))])]);
        assert_eq!(repetition.codes, [Code { code: "a".to_owned(), may_fail: false }]);
    }

    #[test]
    fn a_follow_up_brings_the_code_whose_variables_it_used() {
        let first = run(RunStatus::Completed, vec![step(1, "load", None)]);
        let second = run(RunStatus::Completed, vec![step(1, "use", None)]);
        assert_eq!(Repetition::of(&[first, second]).steps, [None, Some(1)]);
    }
}

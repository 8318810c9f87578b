//! Asks a sandbox what the code of each step defines and needs. The code is read there, not run.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::changes::is_value;
use crate::agent::ports::{ExecuteOptions, Sandbox, SandboxError};
use crate::agent::run::Step;
use crate::report::lineage::Anatomy;

/// The program that reads syntax; it has no dependency.
const READER: &str = include_str!("anatomy.py");

/// Bytes of code that are read at most, and of what is said about it.
const MAX_BYTES: usize = 4 << 20;

/// The anatomy of each step, in order; a sentence where it can't be told.
pub(super) async fn read(sandbox: &dyn Sandbox, steps: &[&Step], cancel: &CancellationToken) -> Result<Vec<Anatomy>, String> {
    if steps.iter().map(|step| step.code.len()).sum::<usize>() > MAX_BYTES {
        return Err(format!("its code has more than {MAX_BYTES} bytes"));
    }
    let entries: Vec<_> = steps
        .iter()
        .map(|step| {
            let failed = step.exit_code != 0 || step.error.is_some();
            json!({
                "code": step.code,
                "line": failed.then(|| failing_line(step)),
                "result": step.result.as_deref().is_some_and(is_value),
                "charts": !step.figures.is_empty(),
            })
        })
        .collect();
    // JSON of JSON text is a string literal of Python as well.
    let literal = json!(json!(entries).to_string()).to_string();
    let options = ExecuteOptions { stdout_bytes: 2 * MAX_BYTES, ..ExecuteOptions::default() };
    let execution = sandbox
        .execute(&format!("{READER}\nprint(report({literal}))\n"), &options, &|_| {}, cancel)
        .await
        .map_err(|error| error.to_string())?;
    let anatomies: Vec<Anatomy> =
        serde_json::from_str(execution.stdout.trim()).map_err(|_| "its code could not be read there".to_owned())?;
    if anatomies.len() != steps.len() {
        return Err("its code could not be read there".to_owned());
    }
    sandbox.restart_kernel().await.map_err(|error: SandboxError| error.to_string())?;
    Ok(anatomies)
}

/// The line at which a step's own code raised; 0 where nothing tells, so that nothing of the step counts.
fn failing_line(step: &Step) -> u64 {
    let Some(error) = &step.error else { return 0 };
    // Code that can't be parsed did nothing at all.
    if matches!(error.ename.as_str(), "SyntaxError" | "IndentationError" | "TabError") {
        return 0;
    }
    error.line().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::execution::ExecutionError;

    #[test]
    fn the_line_is_the_one_of_the_outermost_frame() {
        let traceback =
            "Traceback (your frames only):\n  Cell In[3], line 5\n    f()\n  Cell In[1], line 2, in f\n    1/0\nZeroDivisionError";
        let error = |ename: &str| ExecutionError { ename: ename.to_owned(), evalue: String::new(), traceback: traceback.to_owned() };
        let step = |ename: &str| Step { exit_code: 1, error: Some(error(ename)), ..Step::default() };
        assert_eq!((failing_line(&step("ZeroDivisionError")), failing_line(&step("SyntaxError"))), (5, 0));
    }
}

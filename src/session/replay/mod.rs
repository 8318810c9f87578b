//! An export's code replayed in a clean room: a fresh sandbox with the run's files and nothing else.
//!
//! - [`anatomy`]: what the code of each step defines and needs.

mod anatomy;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Services;
use super::inputs::of_record;
use super::prepare::large_files;
use crate::agent::changes::Shown;
use crate::agent::ports::{ExecuteOptions, Sandbox, SandboxError};
use crate::agent::run::{InputFile, Run};
use crate::config::{BackendChoice, Settings};
use crate::report::lineage::{self, Block, Candidate, Check, Lineage};
use crate::sandbox::StartRequest;
use crate::store::RunStore;

/// Earlier runs that a run's code may build on.
const MAX_EARLIER: usize = 20;

/// Bytes of an input that becomes a part of a script or notebook, at most.
const MAX_EMBEDDED: u64 = 64 << 10;

/// What a replay needs.
pub(super) struct CleanRoom<'a> {
    pub services: &'a dyn Services,
    pub settings: &'a Settings,
    pub store: &'a RunStore,
    pub run: &'a Run,
    pub cancel: &'a CancellationToken,
}

impl CleanRoom<'_> {
    /// The code that led to the answer (`minimal`), or all that succeeded, with what it builds on; replayed, and told
    /// how that went. Never fails: what can't be checked is handed over with the reason.
    pub async fn lineage(&self, minimal: bool) -> Lineage {
        match self.replayed(minimal).await {
            Ok(lineage) => lineage,
            Err(reason) => Lineage { data: self.data(), ..Lineage::unchecked(self.run, reason) },
        }
    }

    /// Small text inputs that were kept with the record because they stand in no file of the person's.
    fn data(&self) -> Vec<(String, String)> {
        let kept = |(place, input): (usize, &InputFile)| {
            let path = self.store.input_path(&self.run.run, place).filter(|_| input.bytes <= MAX_EMBEDDED)?;
            Some((input.name.clone(), std::fs::read_to_string(path).ok()?))
        };
        self.run.inputs.iter().enumerate().filter_map(kept).collect()
    }

    async fn replayed(&self, minimal: bool) -> Result<Lineage, String> {
        if self.run.steps.is_empty() {
            return Err("it has no steps".to_owned());
        }
        if !self.run.steps.iter().any(|step| step.exit_code == 0 && step.error.is_none()) {
            return Err("none of its steps succeeded, so there is nothing to replay".to_owned());
        }
        let (sandbox, remarks) = self.start().await?;
        let earlier = self.earlier();
        let told: Vec<(Option<String>, &crate::agent::run::Step)> = earlier
            .iter()
            .flat_map(|run| run.steps.iter().map(|step| (Some(run.question.clone()), step)))
            .chain(self.run.steps.iter().map(|step| (None, step)))
            .collect();
        let steps: Vec<_> = told.iter().map(|(_, step)| *step).collect();
        let anatomies = anatomy::read(&*sandbox, &steps, self.cancel).await;
        let anatomies = match anatomies {
            Ok(anatomies) => anatomies,
            Err(reason) => {
                sandbox.stop().await;
                return Err(reason);
            }
        };
        let candidates: Vec<Candidate> =
            told.into_iter().zip(anatomies).map(|((earlier, step), anatomy)| Candidate { step: step.clone(), earlier, anatomy }).collect();
        let chosen = if minimal { lineage::minimal(&candidates, self.run) } else { lineage::whole(&candidates) };
        let mut outcome = self.attempt(sandbox, &candidates, &chosen, minimal).await?;
        // A name that the syntax does not show may be what the smaller choice lacks.
        let all = lineage::whole(&candidates);
        if outcome.raised && minimal && all != chosen {
            let (sandbox, _) = self.start().await?;
            let second = self.attempt(sandbox, &candidates, &all, minimal).await?;
            if !second.raised {
                outcome = second;
            }
        }
        let Attempt { blocks, differences, .. } = outcome;
        let differences: Vec<String> = remarks.into_iter().chain(differences).collect();
        Ok(Lineage { blocks, data: self.data(), check: if differences.is_empty() { Check::Same } else { Check::Differs(differences) } })
    }

    /// A fresh sandbox with the run's files, and what is to be said about those.
    async fn start(&self) -> Result<(Arc<dyn Sandbox>, Vec<String>), String> {
        let say = |error: SandboxError| error.to_string();
        let files = of_record(self.store, self.run);
        let mut settings = self.settings.clone();
        settings.sandbox.backend = match self.run.sandbox.backend.as_str() {
            "docker" => BackendChoice::Docker,
            "process" => BackendChoice::Process,
            _ => settings.sandbox.backend,
        };
        let backend = match self.services.backend(&settings).await {
            Ok((backend, _)) => backend,
            Err(_) => self.services.backend(self.settings).await.map_err(say)?.0,
        };
        let request = StartRequest {
            workspace: self.store.workspace().to_owned(),
            folder: None,
            settings: self.settings.sandbox.clone(),
            mounts: large_files(&files, self.settings.sandbox.memory.0),
        };
        let sandbox = backend.start(&request, &|_| {}, self.cancel).await.map_err(say)?;
        let mut remarks = Vec::new();
        for input in &self.run.inputs {
            let Some(file) = files.iter().find(|file| file.name == input.name) else {
                remarks.push(format!("{} is not where it was ({}).", input.name, input.source));
                continue;
            };
            match sandbox.put_file(&file.name, &file.source, &|_| {}, self.cancel).await {
                Ok(put) if put.sha256 == input.sha256 => {}
                Ok(_) => remarks.push(format!("{} has other contents now than in the run.", input.name)),
                Err(error) => remarks.push(error.to_string()),
            }
        }
        Ok((sandbox, remarks))
    }

    /// Runs whose variables this one may have found in its kernel, oldest first: those that it follows up, and for code
    /// of a document what was run of the same document before.
    fn earlier(&self) -> Vec<Run> {
        let mut out = Vec::new();
        if self.run.changes.is_none() {
            let mut next = self.run.parent.clone();
            while let Some(parent) = next.filter(|_| out.len() < MAX_EARLIER).and_then(|id| self.store.load(&id).ok()) {
                next = parent.parent.clone().filter(|_| parent.changes.is_none());
                out.push(parent);
            }
        }
        if self.run.parent.is_none() && self.run.is_code() && self.run.uri.is_some() {
            let before = self.store.list().into_iter().filter(|other| other.run < self.run.run && other.uri == self.run.uri);
            let loaded = before.filter_map(|other| self.store.load(&other.run).ok()).filter(Run::is_code);
            out.extend(loaded.take(MAX_EARLIER));
        }
        out.reverse();
        out
    }

    /// Runs the chosen pieces one after the other and ends the sandbox.
    async fn attempt(
        &self,
        sandbox: Arc<dyn Sandbox>,
        candidates: &[Candidate],
        chosen: &[usize],
        script: bool,
    ) -> Result<Attempt, String> {
        let outcome = self.execute(&*sandbox, candidates, chosen, script).await;
        sandbox.stop().await;
        outcome.map_err(|error| error.to_string())
    }

    async fn execute(
        &self,
        sandbox: &dyn Sandbox,
        candidates: &[Candidate],
        chosen: &[usize],
        script: bool,
    ) -> Result<Attempt, SandboxError> {
        let agent = &self.settings.agent;
        let options = ExecuteOptions {
            timeout: std::time::Duration::from_secs(self.settings.sandbox.timeout_seconds.max(1)),
            stdout_bytes: agent.stdout_bytes,
            stderr_bytes: agent.stderr_bytes,
        };
        let mut attempt = Attempt::default();
        for at in chosen {
            let candidate = &candidates[*at];
            let block = Block::of(candidate);
            let code = block.script.as_ref().filter(|_| script).unwrap_or(&block.code);
            let number = block.step;
            if !attempt.raised {
                let execution = sandbox.execute(code, &options, &|_| {}, self.cancel).await?;
                if execution.exit_code != 0 {
                    let what = execution
                        .error
                        .as_ref()
                        .map_or_else(|| format!("exit code {}", execution.exit_code), |error| format!("{}: {}", error.ename, error.evalue));
                    attempt.raised = true;
                    attempt.differences.push(format!("Step {number} raised {what}; what follows was not replayed."));
                } else if candidate.succeeded()
                    && let Some(difference) = Shown::of_execution(&execution).difference(&Shown::of_step(&candidate.step))
                {
                    attempt.differences.push(format!("Step {number}: {difference}."));
                }
            }
            if script && block.script.is_none() {
                attempt.differences.push(format!("Step {number} works in IPython and Jupyter only."));
            }
            attempt.blocks.push(block);
        }
        Ok(attempt)
    }
}

/// How a replay went.
#[derive(Default)]
struct Attempt {
    blocks: Vec<Block>,
    differences: Vec<String>,
    /// A piece raised; those after it were not run.
    raised: bool,
}

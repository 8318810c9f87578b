//! The playbook: an analyst without a language model. It writes real Python and goes through the very same loop as
//! a model: what it knows of the data it reads out of the conversation, and every number of its answer stands in
//! an output of a step.
//!
//! - [`dialogue`]: what the conversation says: question, files, outputs so far.
//! - [`facts`]: what the first step's output shows of the tables.
//! - [`intent`]: what the question asks for, in English or Chinese; [`beyond`]: what of it can't be done; [`form`]: how
//!   the answer is to be written.
//! - [`program`]: the Python of each step; [`calculation`]: of a question about numbers.
//! - [`answer`]: the last turn.

mod answer;
mod beyond;
mod calculation;
mod dialogue;
mod facts;
mod form;
mod intent;
mod program;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::agent::conversation::{FinishReason, Turn, TurnDelta, TurnRequest, Usage};
use crate::agent::ports::{Model, ModelError, ModelInfo, Sink};
use dialogue::Dialogue;
use facts::Facts;
use intent::Intent;

/// The built-in analysis.
#[derive(Debug, Clone, Copy, Default)]
pub struct Playbook;

/// Charts of an overview.
const MAX_CHARTS: usize = 6;

#[async_trait]
impl Model for Playbook {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            name: "playbook".to_owned(),
            destination: None,
            tools: false,
            vision: false,
            language_model: false,
            context_tokens: Some(u64::MAX),
        }
    }

    async fn turn(&self, request: &TurnRequest, deltas: Sink<'_, TurnDelta>, cancel: &CancellationToken) -> Result<Turn, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let text = next_turn(&Dialogue::of(&request.messages));
        deltas(TurnDelta::Text(text.clone()));
        Ok(Turn { text, reasoning: None, tool_calls: Vec::new(), finish: FinishReason::Stop, usage: Usage::default() })
    }

    async fn preview(&self, _request: &TurnRequest) -> Result<Option<Vec<u8>>, ModelError> {
        Ok(None)
    }
}

/// The next turn: code, or the answer where nothing is left to be done.
fn next_turn(dialogue: &Dialogue) -> String {
    if dialogue.files.is_empty() {
        return answer::without_files(dialogue.language);
    }
    let Some(first) = dialogue.steps.first() else {
        return if dialogue.concluding {
            answer::nothing_done(dialogue.language)
        } else {
            program::block(program::LOADING.pick(dialogue.language), &program::load(dialogue))
        };
    };
    let facts = Facts::of(&first.stdout);
    let intent = Intent::of(&dialogue.question, &facts);
    let plan = program::plan(&intent, &facts, dialogue.language, MAX_CHARTS);
    if dialogue.concluding || first.failed {
        return answer::answer(dialogue, &facts, &intent, &plan);
    }
    match plan.get(dialogue.steps.len() - 1) {
        Some(step) => program::block(&step.say, &step.code),
        None => answer::answer(dialogue, &facts, &intent, &plan),
    }
}

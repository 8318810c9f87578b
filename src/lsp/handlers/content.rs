//! `workspace/textDocumentContent`: the text of a virtual document. Works while the run streams, too.

use tower_lsp::gen_lsp_types as lsp;

use crate::agent::run::Run;
use crate::lsp::commands::find;
use crate::lsp::convert::failed;
use crate::lsp::event::Reply;
use crate::lsp::state::State;
use crate::lsp::uris::Virtual;
use crate::report::{self, ReportOptions};
use crate::session::Session;

/// Largest artifact that is given as text; larger ones are files.
const MAX_TEXT: u64 = 4 << 20;

/// Takes the request; it is answered from another thread.
pub fn content(state: &State, params: &lsp::TextDocumentContentParams, reply: Reply<lsp::TextDocumentContentResult>) {
    let Some(document) = Virtual::parse(&params.uri) else {
        let _ = reply.send(Err(failed(format!("{} was not found: codeinterp has no document of that name", params.uri))));
        return;
    };
    // A run of this connection is found without looking through folders.
    let known = state.runs.get(document.run()).and_then(|entry| entry.record().map(|record| (entry.session.clone(), record)));
    let sessions = if known.is_some() { Vec::new() } else { state.all_sessions() };
    let uri = params.uri.clone();
    tokio::task::spawn_blocking(move || {
        let found = known.or_else(|| find(&sessions, document.run()));
        let text = found.and_then(|(session, record)| text_of(&session, &record, &document));
        let answer = text.map(|text| lsp::TextDocumentContentResult { text });
        // The client may have cancelled the request.
        let _ = reply.send(answer.ok_or_else(|| failed(format!("{uri} was not found: there is no such run, step or artifact"))));
    });
}

fn text_of(session: &Session, record: &Run, document: &Virtual) -> Option<String> {
    match document {
        Virtual::Report(_) => Some(report::markdown(record, &ReportOptions::default())),
        Virtual::Step(_, number) => record.steps.iter().find(|step| step.step == *number).map(|step| step.code.clone()),
        Virtual::Artifact(run, name) => {
            let path = session.store().artifact_path(run, name).ok()?;
            let small = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MAX_TEXT);
            // Pictures are no text: clients read the file.
            small.then(|| std::fs::read_to_string(&path).ok())?
        }
    }
}

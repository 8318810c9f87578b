//! What the loop itself costs: everything of a step but the model and the person's code, and the way of streamed text
//! into the report. The model is the scripted server of the tests, which answers at once; the sandbox is the real one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use codeinterp::agent::events::RunEvent;
use codeinterp::agent::run::RunStatus;
use codeinterp::app::App;
use codeinterp::config::{BackendChoice, Settings};
use codeinterp::report::{ReportOptions, markdown};
use codeinterp::session::{EventHandler, RunKind, RunRequest, Session};
use tokio::sync::Notify;

use crate::provider::{Provider, Reply};
use crate::table::{Measure, Row, Samples, Unit};

/// Steps of the measured run.
const STEPS: usize = 30;
/// Runs whose streamed text is looked for in the report.
const STREAMS: usize = 15;
/// Seconds that a step may cost.
const STEP_TARGET: f64 = 0.030;
/// Seconds until streamed text stands in the report.
const TEXT_TARGET: f64 = 0.050;

/// When something happened in a run.
type Log = Arc<Mutex<Vec<(Instant, RunEvent)>>>;

pub async fn rows() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let session = Session::open(folder.path(), Arc::new(App::new()), Settings::default());
    let rows = vec![
        Row::alone("a step's cost beside model and code", Unit::Time, steps(&session).await?, STEP_TARGET),
        Row::alone("streamed text → report, p99", Unit::Time, streamed(&session).await?, TEXT_TARGET).by(Measure::P99),
    ];
    session.close().await;
    Ok(rows)
}

/// From one step's end to the next one's: a turn that is answered at once, and code that does next to nothing.
async fn steps(session: &Arc<Session>) -> Result<Samples> {
    let mut replies: Vec<Reply> = (0..STEPS).map(|step| Reply::calls(&[&format!("print({step})")])).collect();
    replies.push(Reply::text("Done."));
    let provider = Provider::start(replies).await;
    let mut settings = settings(&provider);
    settings.agent.max_steps = u32::try_from(STEPS)? + 1;
    let log = run(session, settings).await?;
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let ends: Vec<Instant> = log.iter().filter(|(_, event)| matches!(event, RunEvent::StepFinished(_))).map(|(at, _)| *at).collect();
    ensure!(ends.len() == STEPS, "{} of {STEPS} steps ran", ends.len());
    let mut samples = Samples::default();
    for pair in ends.windows(2) {
        samples.push(pair[1] - pair[0]);
    }
    Ok(samples)
}

/// From the request to the server until a growing report holds what it streamed.
async fn streamed(session: &Arc<Session>) -> Result<Samples> {
    let mut samples = Samples::default();
    for number in 0..STREAMS {
        let word = format!("word{number}");
        let provider = Provider::start(vec![Reply::stalled(&format!("It is {word}."))]).await;
        session.set_settings(settings(&provider));
        let asked: Arc<Mutex<Option<Instant>>> = Arc::default();
        let text = Arc::new(Notify::new());
        let (began, notify) = (Arc::clone(&asked), Arc::clone(&text));
        let events: EventHandler = Arc::new(move |event| match event {
            RunEvent::TurnStarted(_) => *began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now()),
            RunEvent::ModelText(_) => notify.notify_one(),
            _ => {}
        });
        let handle = session.submit(RunRequest::new(RunKind::Ask { question: "q".to_owned() }, Vec::new()), events);
        loop {
            tokio::time::timeout(Duration::from_secs(30), text.notified()).await.context("no text came")?;
            let record = session.run(&handle.id).context("the run is gone")?;
            if markdown(&record, &ReportOptions::default()).contains(&word) {
                break;
            }
        }
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).context("no turn began")?;
        samples.push(asked.elapsed());
        handle.cancel.cancel();
    }
    Ok(samples)
}

fn settings(provider: &Provider) -> Settings {
    let mut settings = Settings { model: Some("scripted".to_owned()), endpoint: Some(provider.address.clone()), ..Settings::default() };
    settings.sandbox.backend = BackendChoice::Process;
    settings
}

/// A whole run; everything that it said, with the time.
async fn run(session: &Arc<Session>, settings: Settings) -> Result<Log> {
    session.set_settings(settings);
    let log = Log::default();
    let over = Arc::new(Notify::new());
    let (kept, done) = (Arc::clone(&log), Arc::clone(&over));
    let events: EventHandler = Arc::new(move |event| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), event.clone()));
        if matches!(event, RunEvent::Concluded { .. }) {
            done.notify_one();
        }
    });
    let handle = session.submit(RunRequest::new(RunKind::Ask { question: "q".to_owned() }, Vec::new()), events);
    over.notified().await;
    let record = session.run(&handle.id).context("the run is gone")?;
    ensure!(record.status == RunStatus::Completed, "the run ended as {}: {:?}", record.status.as_str(), record.error);
    Ok(log)
}

//! A scripted sandbox and a scripted model.
//!
//! The model executes what the question says after `run:` and then concludes. The sandbox knows a few words: `chart`
//! draws, `secret` prints what the code does not spell, `raise` fails, `forever` works until it is interrupted, `flood` prints without end until it is interrupted,
//! everything else prints itself.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use codeinterp::agent::conversation::{FinishReason, ToolCall, Turn, TurnDelta, TurnRequest, Usage};
use codeinterp::agent::execution::{Execution, ExecutionError, ExecutionEvent, Output, StreamName, Variable};
use codeinterp::agent::ports::{
    ExecuteOptions, FileSource, KernelState, Model, ModelError, ModelInfo, ProfileOptions, Progress, PutFile, ResourceUsage, Sandbox,
    SandboxError, Sink,
};
use codeinterp::agent::run::SandboxInfo;
use codeinterp::config::{SandboxSettings, Settings};
use codeinterp::profile::{Profile, ProfileOutcome};
use codeinterp::sandbox::consent::Consent;
use codeinterp::sandbox::{Backend, StartRequest};
use codeinterp::session::Services;
use serde_json::json;
use sha2::Digest as _;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub struct Rig {
    state: Option<tempfile::TempDir>,
    scripted: Arc<Scripted>,
}

/// What the sandboxes of a rig saw.
#[derive(Default)]
pub struct Scripted {
    files: Mutex<Vec<(String, Vec<u8>)>>,
    asked: Mutex<Vec<String>>,
    running: AtomicUsize,
    /// Executions that begin go on until this is false again.
    held: tokio::sync::watch::Sender<bool>,
    started: AtomicUsize,
}

impl Rig {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: Some(tempfile::tempdir().unwrap()), scripted: Arc::default() })
    }

    /// Files that were put in, with their contents.
    pub fn files(&self) -> Vec<(String, String)> {
        let files = self.scripted.files.lock().unwrap();
        files.iter().map(|(name, data)| (name.clone(), String::from_utf8_lossy(data).into_owned())).collect()
    }

    /// The latest request to the model, as text.
    pub fn asked(&self) -> String {
        self.scripted.asked.lock().unwrap().last().cloned().unwrap_or_default()
    }

    /// Whether executions wait before they end, until they are let go or interrupted.
    pub fn hold(&self, held: bool) {
        self.scripted.held.send_replace(held);
    }

    /// Sandboxes that were started and not stopped.
    pub fn running(&self) -> usize {
        self.scripted.running.load(Ordering::SeqCst)
    }

    /// Sandboxes that were started.
    pub fn started(&self) -> usize {
        self.scripted.started.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Services for Rig {
    async fn backend(&self, _: &Settings) -> Result<(Arc<dyn Backend>, String), SandboxError> {
        Ok((Arc::new(ScriptedBackend(self.scripted.clone())), "Sandbox: scripted.".to_owned()))
    }

    fn model(&self, _: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(ScriptedModel(self.scripted.clone())))
    }

    fn state_dir(&self) -> PathBuf {
        self.state.as_ref().unwrap().path().to_owned()
    }

    fn ask(&self, _: Arc<dyn Consent>) {}
}

struct ScriptedBackend(Arc<Scripted>);

#[async_trait]
impl Backend for ScriptedBackend {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn check(&self, _: &SandboxSettings) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn provision(&self, _: &SandboxSettings, _: Sink<'_, Progress>, _: &CancellationToken) -> Result<(), SandboxError> {
        Ok(())
    }

    /// With an image of a person's own, something would have to be built first.
    async fn is_provisioned(&self, settings: &SandboxSettings) -> bool {
        settings.image.is_none()
    }

    async fn start(&self, _: &StartRequest, _: Sink<'_, Progress>, _: &CancellationToken) -> Result<Arc<dyn Sandbox>, SandboxError> {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        self.0.started.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(ScriptedSandbox { scripted: self.0.clone(), stopped: CancellationToken::new(), kernel: tokio::sync::Mutex::default() }))
    }
}

struct ScriptedSandbox {
    scripted: Arc<Scripted>,
    stopped: CancellationToken,
    /// Held while code executes: a kernel does one thing at a time.
    kernel: tokio::sync::Mutex<()>,
}

impl ScriptedSandbox {
    /// Waits while executions are held; whether it was interrupted meanwhile.
    async fn interrupted_while_held(&self, cancel: &CancellationToken) -> bool {
        let mut held = self.scripted.held.subscribe();
        tokio::select! {
            _ = held.wait_for(|held| !held) => false,
            () = cancel.cancelled() => true,
            () = self.stopped.cancelled() => true,
        }
    }
}

fn picture() -> String {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(4, 3).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes.into_inner())
}

#[async_trait]
impl Sandbox for ScriptedSandbox {
    fn info(&self) -> SandboxInfo {
        SandboxInfo { backend: "scripted".to_owned(), image: "none".to_owned(), workdir: "/workspace".to_owned(), memory_bytes: 1 << 30 }
    }

    fn kernel_state(&self) -> KernelState {
        if self.stopped.is_cancelled() { KernelState::Dead } else { KernelState::Idle }
    }

    async fn put_file(
        &self,
        name: &str,
        source: &FileSource,
        _: Sink<'_, Progress>,
        _: &CancellationToken,
    ) -> Result<PutFile, SandboxError> {
        let data = match source {
            FileSource::Path(path) => std::fs::read(path).unwrap(),
            FileSource::Bytes(bytes) => bytes.to_vec(),
        };
        let bytes = data.len() as u64;
        let sha256 = sha2::Sha256::digest(&data).iter().map(|byte| format!("{byte:02x}")).collect();
        self.scripted.files.lock().unwrap().push((name.to_owned(), data));
        Ok(PutFile { name: name.to_owned(), bytes, sha256, mounted: false })
    }

    async fn profile(
        &self,
        names: &[String],
        _: &ProfileOptions,
        _: Sink<'_, Progress>,
        _: &CancellationToken,
    ) -> Result<Vec<ProfileOutcome>, SandboxError> {
        let profile = |name: &String| {
            ProfileOutcome::Profile(Box::new(Profile { file: name.clone(), format: "csv".to_owned(), ..Profile::default() }))
        };
        Ok(names.iter().map(profile).collect())
    }

    async fn execute(
        &self,
        code: &str,
        _: &ExecuteOptions,
        events: Sink<'_, ExecutionEvent>,
        cancel: &CancellationToken,
    ) -> Result<Execution, SandboxError> {
        let _busy = self.kernel.lock().await;
        let mut execution = Execution {
            exit_code: 0,
            error: None,
            outputs: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
            result: None,
            duration: Duration::from_millis(7),
            truncated: None,
            files: Vec::new(),
            skipped_files: Vec::new(),
            variables: Vec::new(),
            figures: Vec::new(),
            variables_lost: false,
        };
        let failed = |ename: &str| ExecutionError {
            ename: ename.to_owned(),
            evalue: "as asked".to_owned(),
            traceback: format!("Traceback (your frames only):\n  Cell In[1], line 1\n    {}\n{ename}: as asked", code.trim()),
        };
        if code.contains("forever") || code.contains("flood") {
            while code.contains("flood") && !cancel.is_cancelled() {
                events(ExecutionEvent::Stream(StreamName::Stdout, "x".repeat(1 << 16)));
                tokio::task::yield_now().await;
            }
            tokio::select! {
                () = cancel.cancelled() => {}
                () = self.stopped.cancelled() => {}
            }
            execution.exit_code = 130;
            execution.error = Some(failed("Interrupted"));
        } else if self.interrupted_while_held(cancel).await {
            execution.exit_code = 130;
            execution.error = Some(failed("Interrupted"));
        } else if code.contains("raise") {
            execution.exit_code = 1;
            execution.error = Some(failed("ZeroDivisionError"));
        } else {
            execution.stdout = format!("{}\n", code.trim().replace("secret", "CANARY"));
            events(ExecutionEvent::Stream(StreamName::Stdout, execution.stdout.clone()));
            execution.outputs.push(Output::Stream { name: StreamName::Stdout, text: execution.stdout.clone() });
        }
        for _ in code.matches("chart") {
            let data = json!({"image/png": picture(), "text/plain": "<Figure>"}).as_object().unwrap().clone();
            execution.outputs.push(Output::DisplayData { data, display_id: None });
        }
        Ok(execution)
    }

    async fn list_files(&self) -> Result<Vec<(String, u64)>, SandboxError> {
        Ok(Vec::new())
    }

    async fn get_file(&self, name: &str, _: u64) -> Result<Vec<u8>, SandboxError> {
        Err(SandboxError::File { name: name.to_owned(), reason: "not there".to_owned() })
    }

    async fn variables(&self, name: Option<&str>) -> Result<Vec<Variable>, SandboxError> {
        let _busy = self.kernel.lock().await;
        let variable =
            Variable { name: "answer".to_owned(), type_name: "int".to_owned(), shape: None, bytes: Some(28), repr: "42".to_owned() };
        Ok(Some(variable).into_iter().filter(|variable| name.is_none_or(|name| name == variable.name)).collect())
    }

    async fn interrupt(&self) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn restart_kernel(&self) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn usage(&self) -> ResourceUsage {
        ResourceUsage { memory_bytes: Some(1), cpu_percent: Some(0.0) }
    }

    async fn stop(&self) {
        if !self.stopped.is_cancelled() {
            self.stopped.cancel();
            self.scripted.running.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

struct ScriptedModel(Arc<Scripted>);

#[async_trait]
impl Model for ScriptedModel {
    fn info(&self) -> ModelInfo {
        ModelInfo { name: "scripted".to_owned(), destination: None, tools: true, vision: false, language_model: true, context_tokens: None }
    }

    async fn turn(&self, request: &TurnRequest, _: Sink<'_, TurnDelta>, _: &CancellationToken) -> Result<Turn, ModelError> {
        self.0.asked.lock().unwrap().push(serde_json::to_string(&request.messages).unwrap());
        let asked = request.messages.iter().rposition(|message| message.content.contains("run:"));
        let acted = request.messages.iter().rposition(|message| !message.tool_calls.is_empty());
        let turn = |text: &str, tool_calls: Vec<ToolCall>, finish| Turn {
            text: text.to_owned(),
            reasoning: None,
            tool_calls,
            finish,
            usage: Usage::default(),
        };
        match asked {
            Some(at) if acted.is_none_or(|acted| acted < at) => {
                let code = request.messages[at].content.split("run:").nth(1).unwrap().lines().next().unwrap().trim();
                let call =
                    ToolCall { id: "1".to_owned(), name: "python".to_owned(), arguments: json!({ "code": code }), signatures: Vec::new() };
                Ok(turn("", vec![call], FinishReason::ToolCalls))
            }
            _ => Ok(turn("That is all. [more](http://evil.example/x) ![x](http://evil.example/x.png)", Vec::new(), FinishReason::Stop)),
        }
    }

    async fn preview(&self, _: &TurnRequest) -> Result<Option<Vec<u8>>, ModelError> {
        Ok(None)
    }
}

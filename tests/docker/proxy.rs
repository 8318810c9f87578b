//! A proxy before the engine's socket that breaks one kind of request in one way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional, sink};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// A kind of request to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Version,
    Ping,
    ListContainers,
    InspectImage,
    Create,
    Attach,
    Start,
    Events,
    Stats,
    Remove,
}

impl Call {
    /// The kind of a request line such as `POST /v1.41/containers/create?name=x HTTP/1.1`.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let path = target.split('?').next()?;
        let path = path.strip_prefix("/v1.").map_or(path, |rest| rest.find('/').map_or(rest, |slash| &rest[slash..]));
        Some(match (method, path) {
            ("GET", "/version") => Self::Version,
            (_, "/_ping") => Self::Ping,
            ("GET", "/containers/json") => Self::ListContainers,
            ("GET", "/events") => Self::Events,
            ("GET", path) if path.starts_with("/images/") => Self::InspectImage,
            ("POST", "/containers/create") => Self::Create,
            ("POST", path) if path.ends_with("/attach") => Self::Attach,
            ("POST", path) if path.ends_with("/start") => Self::Start,
            ("GET", path) if path.ends_with("/stats") => Self::Stats,
            ("DELETE", path) if path.starts_with("/containers/") => Self::Remove,
            _ => return None,
        })
    }
}

/// What is done to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection closes, and the engine never hears of it.
    Dropped,
    /// The engine does it, and the connection closes without its answer.
    AnswerLost,
    /// The engine does it, and nothing comes back.
    Silence,
    /// Half of the answer's first bytes come back, then the end.
    HalfClosed,
    /// Bytes that are no HTTP.
    Garbage,
    /// An answer whose body is no JSON.
    NotJson,
    /// The engine's own fault, with a message.
    Status,
    /// The right answer, late.
    Delay(Duration),
}

/// What an attached stream is broken by when a test says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Both directions close.
    Close,
    /// Bytes that nobody sent.
    Garbage,
}

/// A running proxy. Ends, with all its connections, when it is dropped.
pub struct Proxy {
    /// As `DOCKER_HOST` holds it.
    pub address: String,
    state: Arc<State>,
    accepting: AbortHandle,
    _folder: TempDir,
}

struct State {
    fault: Mutex<Option<(Call, Fault)>>,
    hits: AtomicUsize,
    broken: watch::Sender<Option<Break>>,
}

impl Proxy {
    /// Listens on a socket of its own.
    pub fn on_socket() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("docker.sock");
        let listener = Arc::new(UnixListener::bind(&path).expect("it listens"));
        let accept = move || {
            let listener = Arc::clone(&listener);
            async move { listener.accept().await.map(|(client, _)| client) }
        };
        Self::accepting(format!("unix://{}", path.display()), folder, accept)
    }

    /// Listens on a port of this machine.
    pub async fn on_port() -> Self {
        let listener = Arc::new(TcpListener::bind(("127.0.0.1", 0)).await.expect("it listens"));
        let address = format!("tcp://{}", listener.local_addr().expect("its address"));
        let accept = move || {
            let listener = Arc::clone(&listener);
            async move { listener.accept().await.map(|(client, _)| client) }
        };
        Self::accepting(address, tempfile::tempdir().expect("a folder"), accept)
    }

    fn accepting<C, A>(address: String, folder: TempDir, accept: impl Fn() -> A + Send + 'static) -> Self
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        A: Future<Output = std::io::Result<C>> + Send,
    {
        let state = Arc::new(State { fault: Mutex::default(), hits: AtomicUsize::new(0), broken: watch::channel(None).0 });
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok(client) = accept().await {
                connections.spawn(serve(client, Arc::clone(&shared)));
            }
        });
        Self { address, state, accepting: accepting.abort_handle(), _folder: folder }
    }

    /// From now on, requests of this kind are broken this way.
    pub fn break_requests(&self, call: Call, fault: Fault) {
        *self.state.fault.lock().unwrap() = Some((call, fault));
    }

    /// How many requests were broken.
    pub fn hits(&self) -> usize {
        self.state.hits.load(Ordering::Relaxed)
    }

    /// Breaks the attached streams that are open now.
    pub fn break_streams(&self, how: Break) {
        self.state.broken.send_replace(Some(how));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl State {
    fn fault(&self, call: Option<Call>) -> Option<Fault> {
        let fault = self.fault.lock().unwrap().filter(|(broken, _)| call == Some(*broken)).map(|(_, fault)| fault)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(fault)
    }
}

/// Handles one connection, whose errors are those of a peer that went away.
async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let Some((head, rest)) = read_head(&mut client).await else { return };
    let call = Call::of(head.lines().next().unwrap_or_default());
    let answer: &[u8] = match state.fault(call) {
        None => return forward(client, &head, &rest, call, &state).await,
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(time).await;
            return forward(client, &head, &rest, call, &state).await;
        }
        Some(fault @ (Fault::AnswerLost | Fault::HalfClosed | Fault::Silence)) => return lose(client, &head, &rest, fault).await,
        Some(Fault::Dropped) => return,
        Some(Fault::Garbage) => b"\x00\xff\x1b[31m{\x07\xfe garbage\r\n\r\n\x1b]0;x\x07",
        Some(Fault::NotJson) => b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{\"Id\": nu",
        Some(Fault::Status) => {
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 38\r\nConnection: close\r\n\r\n{\"message\": \"the disk of it is full\"}\r\n"
        }
    };
    let _ = client.write_all(answer).await;
    let _ = client.shutdown().await;
    // The rest of the request is read, so that the answer is not lost to a reset.
    let _ = copy(&mut client, &mut sink()).await;
}

/// The head of a request, and what came behind it.
async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut data = Vec::new();
    loop {
        if let Some(end) = data.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = data.split_off(end + 4);
            return Some((String::from_utf8(data).ok()?, rest));
        }
        if client.read_buf(&mut data).await.ok()? == 0 {
            return None;
        }
    }
}

/// A connection to the engine on which the request was sent: one request a connection, so that none passes unseen.
async fn upstream(head: &str, rest: &[u8]) -> Option<UnixStream> {
    let mut engine = UnixStream::connect("/var/run/docker.sock").await.ok()?;
    let lower = head.to_ascii_lowercase();
    let head = if lower.contains("\r\nupgrade:") {
        head.to_owned()
    } else {
        let kept = head.trim_end().lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        kept.chain(["Connection: close", "", ""]).collect::<Vec<_>>().join("\r\n")
    };
    engine.write_all(head.as_bytes()).await.ok()?;
    engine.write_all(rest).await.ok()?;
    Some(engine)
}

async fn forward(mut client: impl AsyncRead + AsyncWrite + Unpin, head: &str, rest: &[u8], call: Option<Call>, state: &State) {
    let Some(mut engine) = upstream(head, rest).await else { return };
    let mut broken = state.broken.subscribe();
    let breaking = async {
        let how = if call == Some(Call::Attach) { broken.wait_for(Option::is_some).await.ok().and_then(|how| *how) } else { None };
        match how {
            Some(how) => how,
            None => std::future::pending().await,
        }
    };
    let how = tokio::select! {
        _ = copy_bidirectional(&mut client, &mut engine) => None,
        how = breaking => Some(how),
    };
    if how == Some(Break::Garbage) {
        let _ = client.write_all(&[0xa5; 4096]).await;
        let _ = copy(&mut client, &mut sink()).await;
    }
}

/// Lets the engine do it, and gives the answer away in part or not at all.
async fn lose(client: impl AsyncRead + AsyncWrite + Unpin, head: &str, rest: &[u8], fault: Fault) {
    let Some(engine) = upstream(head, rest).await else { return };
    let ((mut from_client, mut to_client), (mut from_engine, mut to_engine)) = (tokio::io::split(client), engine.into_split());
    let mut answer = vec![0; 64 << 10];
    let asked = copy(&mut from_client, &mut to_engine);
    tokio::pin!(asked);
    let first = tokio::select! {
        first = from_engine.read(&mut answer) => first.unwrap_or(0),
        // The client gave up before the engine said anything.
        _ = &mut asked => return,
    };
    match fault {
        Fault::HalfClosed => {
            let _ = to_client.write_all(&answer[..first / 2]).await;
            let _ = to_client.shutdown().await;
        }
        Fault::Silence => {
            let _ = asked.await;
        }
        _ => {}
    }
}

//! The bytes of a request without sending it anywhere: genai makes it for a listener of our own on loopback, which
//! takes it and answers nothing. So what is shown is what the same code would send.

use std::time::Duration;

use futures::StreamExt;
use genai::chat::{ChatOptions, ChatRequest};
use genai::resolver::AuthData;
use genai::{Client, Headers, ServiceTarget};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::agent::ports::ModelError;

/// The body of the request that `client` would send to `service`. No key goes into it, not even on loopback.
pub async fn body(client: &Client, mut service: ServiceTarget, chat: ChatRequest, options: &ChatOptions) -> Result<Vec<u8>, ModelError> {
    let fault = |reason: String| ModelError::Settings(format!("the request can't be shown: {reason}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(|error| fault(error.to_string()))?;
    let port = listener.local_addr().map_err(|error| fault(error.to_string()))?.port();
    service.auth = AuthData::RequestOverride { url: format!("http://127.0.0.1:{port}/"), headers: Headers::default() };
    let mut response = client.exec_chat_stream(service, chat, Some(options)).await.map_err(|error| fault(error.to_string()))?;
    let sending = async { while response.stream.next().await.is_some() {} };
    tokio::select! {
        body = tokio::time::timeout(Duration::from_secs(10), take(&listener)) => match body {
            Ok(body) => body.map_err(|error| fault(error.to_string())),
            Err(_) => Err(fault("it was not made within 10 s".to_owned())),
        },
        () = sending => Err(fault("it was not made".to_owned())),
    }
}

/// Reads one request and gives its body.
async fn take(listener: &TcpListener) -> std::io::Result<Vec<u8>> {
    let (mut connection, _) = listener.accept().await?;
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if connection.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    let header = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length: usize = header
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .ok_or_else(|| std::io::Error::other("the request has no length"))?;
    while bytes.len() < head + length {
        if connection.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes[head..head + length].to_vec())
}

//! The floor below our Docker rows: the same bytes over the engine's own attached stream, with nothing of ours at either end.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bollard::container::LogOutput;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{AttachContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use codeinterp::sandbox::docker::engine::Engine;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;

use crate::table::Samples;

/// Answers a line; takes a number of bytes and says so; gives a number of bytes.
const ECHO: &str = "
import os
commands = os.fdopen(0, 'rb', buffering=0)
buffer, answer = bytearray(1 << 20), bytes(1 << 20)
def give(left):
    while left: left -= os.write(1, answer[:left])
while line := commands.readline():
    what, _, number = line.partition(b' ')
    number = int(number)
    if what == b'take':
        while number: number -= os.readv(0, [memoryview(buffer)[:number]])
    give(number or 1)
";

/// What the bare stream takes.
pub struct Stream {
    /// A line there and a byte back.
    pub round_trips: Samples,
    /// So many bytes there.
    pub puts: Samples,
    /// So many bytes back.
    pub gets: Samples,
}

/// Measures it with a container of `image`, whose Python is `python`.
pub async fn measure(image: &str, python: &str, times: usize, put: usize, get: usize) -> Result<Stream> {
    let engine = Engine::connect().await?;
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec![python.to_owned(), "-I".to_owned(), "-c".to_owned(), ECHO.to_owned()]),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        host_config: Some(HostConfig { network_mode: Some("none".to_owned()), ..HostConfig::default() }),
        ..ContainerCreateBody::default()
    };
    let id = engine.api.create_container(None::<bollard::query_parameters::CreateContainerOptions>, body).await?.id;
    let options = AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stream(true).build();
    let mut attached = engine.api.attach_container(&id, Some(options)).await?;
    engine.api.start_container(&id, None).await?;

    let mut stream = Stream { round_trips: Samples::default(), puts: Samples::default(), gets: Samples::default() };
    let piece = vec![b'x'; 1 << 20];
    // The first line comes before Python runs.
    for number in 0..=times {
        let began = Instant::now();
        attached.input.write_all(b"give 1\n").await?;
        take(&mut attached.output, 1).await?;
        if number > 0 {
            stream.round_trips.push(began.elapsed());
        }
    }
    for _ in 0..3 {
        let began = Instant::now();
        attached.input.write_all(format!("take {put}\n").as_bytes()).await?;
        let mut left = put;
        while left > 0 {
            let part = left.min(piece.len());
            attached.input.write_all(&piece[..part]).await?;
            left -= part;
        }
        take(&mut attached.output, 1).await?;
        stream.puts.push(began.elapsed());
    }
    for _ in 0..20 {
        let began = Instant::now();
        attached.input.write_all(format!("give {get}\n").as_bytes()).await?;
        take(&mut attached.output, get).await?;
        stream.gets.push(began.elapsed());
    }
    engine.api.remove_container(&id, Some(RemoveContainerOptionsBuilder::default().force(true).build())).await?;
    Ok(stream)
}

async fn take(
    output: &mut (impl futures::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Unpin),
    mut left: usize,
) -> Result<()> {
    while left > 0 {
        let came = output.next().await.context("the stream has ended")??.into_bytes().len();
        ensure!(came <= left, "more came than was asked for");
        left -= came;
    }
    Ok(())
}

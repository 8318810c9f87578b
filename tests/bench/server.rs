//! The language server from outside: time from its start to its `initialize` answer, beside `ruff server`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::table::{Row, Samples, Unit};

const STARTS: usize = 30;

/// Measures both servers, alternating, so that both see the same machine.
pub fn rows(python: &Path) -> Result<Vec<Row>> {
    let ruff = python.with_file_name("ruff");
    let (mut ours, mut theirs, mut memory) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..STARTS {
        let (seconds, bytes) = initialize(Command::new(env!("CARGO_BIN_EXE_codeinterp")).arg("lsp"))?;
        ours.0.push(seconds);
        memory.0.push(bytes);
        theirs.0.push(initialize(Command::new(&ruff).arg("server"))?.0);
    }
    Ok(vec![
        Row {
            what: "server start → `initialize` answer".to_owned(),
            unit: Unit::Time,
            ours,
            peer: Some(("ruff server", theirs)),
            target: 1.0,
        },
        Row { what: "memory of an idle server".to_owned(), unit: Unit::Memory, ours: memory, peer: None, target: 35e6 },
    ])
}

/// Starts a server, initializes it, ends it: seconds to the answer, and its memory then, in bytes.
fn initialize(command: &mut Command) -> Result<(f64, f64)> {
    let began = Instant::now();
    let mut server = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let mut input = server.stdin.take().context("no stdin")?;
    let mut output = BufReader::new(server.stdout.take().context("no stdout")?);
    let params = json!({"processId": std::process::id(), "capabilities": {}, "rootUri": null});
    send(&mut input, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))?;
    answer(&mut output, 1)?;
    let seconds = began.elapsed().as_secs_f64();
    send(&mut input, &json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}))?;
    send(&mut input, &json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))?;
    answer(&mut output, 2)?;
    let bytes = resident_bytes(server.id())?;
    send(&mut input, &json!({"jsonrpc": "2.0", "method": "exit"}))?;
    drop(input);
    server.wait()?;
    Ok((seconds, bytes))
}

fn send(input: &mut impl Write, message: &Value) -> Result<()> {
    let text = message.to_string();
    write!(input, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    input.flush()?;
    Ok(())
}

/// Reads messages until the answer to request `id`.
fn answer(output: &mut impl BufRead, id: u64) -> Result<Value> {
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                bail!("the server ended without an answer");
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        output.read_exact(&mut body)?;
        let message: Value = serde_json::from_slice(&body)?;
        if message["id"] == id && message.get("method").is_none() {
            return Ok(message);
        }
    }
}

/// Resident memory of a process (`VmRSS` of proc(5)), in bytes.
fn resident_bytes(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("no number in VmRSS")?.parse()?;
    Ok(kilobytes * 1024.0)
}

//! The language server from outside: its start, hovers, edits and memory, beside `ruff server` and `ty server`; and
//! a large table in it, at rest, while a person types, and while a run prints at full speed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use codeinterp::profile::live::{self, Format};
use serde_json::json;

use crate::client::{Server, at, whole};
use crate::table::{Measure, Row, Samples, Unit};

const STARTS: usize = 30;
const HOVERS: usize = 500;
/// Edits after which memory is compared.
const EDITS: usize = 480;
/// Edits without a pause.
const STORM: usize = 10_000;
const TABLE_ROWS: usize = 50_000;
const KEYSTROKES: usize = 100;
/// Characters of a line that is as long as lines get.
const ENDLESS: usize = 4 << 20;
/// For how long edits come at [`EDIT_BYTES`] a millisecond: 1 MB a second.
const EDITING: Duration = Duration::from_secs(3);
const EDIT_BYTES: usize = 1_000;

const TABLE: &str = "file:///bench/large.csv";
const OTHER: &str = "file:///bench/small.csv";
const PROGRAM: &str = "file:///bench/program.py";

/// Everything that is measured about the server.
pub fn rows(python: &Path) -> Result<Vec<Row>> {
    let mut rows = beside_peers(python)?;
    rows.extend(with_a_large_table()?);
    rows.extend(with_an_endless_line()?);
    rows.extend(while_a_run_prints()?);
    Ok(rows)
}

fn ours() -> Result<Server> {
    started(false)
}

fn started(cells: bool) -> Result<Server> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codeinterp"));
    command.arg("lsp").env("XDG_STATE_HOME", std::env::temp_dir().join("codeinterp-bench"));
    Server::start(&mut command, json!({"runEvents": true, "cells": cells, "model": "playbook", "sandbox": {"backend": "process"}}))
}

/// Start, hover and memory, alternating with the peers, so that all see the same machine.
fn beside_peers(python: &Path) -> Result<Vec<Row>> {
    let ruff = || Server::start(Command::new(python.with_file_name("ruff")).arg("server"), json!({}));
    let ty = || Server::start(Command::new(python.with_file_name("ty")).arg("server"), json!({}));
    let (mut start, mut start_of_ruff, mut idle) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..STARTS {
        let server = ours()?;
        start.push(server.start);
        idle.0.push(server.resident_bytes()?);
        server.close()?;
        let server = ruff()?;
        start_of_ruff.push(server.start);
        server.close()?;
    }

    let program = program();
    let (mut server, mut peer) = (ours()?, ruff()?);
    server.open(OTHER, "csv", &table(100))?;
    peer.open(PROGRAM, "python", &program)?;
    let (mut hover, mut hover_of_ruff) = (Samples::default(), Samples::default());
    for number in 0..HOVERS {
        hover.0.push(server.time("textDocument/hover", at(OTHER, number % 100, 3))?);
        // The one thing that ruff hovers: the code of a `noqa`.
        hover_of_ruff.0.push(peer.time("textDocument/hover", at(PROGRAM, 0, 20))?);
    }
    server.close()?;
    peer.close()?;

    let (mut memory, mut memory_of_ty) = (Samples::default(), Samples::default());
    for (mut server, samples) in [(ours()?, &mut memory), (ty()?, &mut memory_of_ty)] {
        server.open(PROGRAM, "python", &program)?;
        for number in 0..EDITS {
            server.change(PROGRAM, number + 2, 1 + number % 50, (0, 0), "#")?;
        }
        server.request("textDocument/hover", at(PROGRAM, 1, 1))?;
        samples.0.push(server.resident_bytes()?);
        server.close()?;
    }
    Ok(vec![
        Row::beside("server start → `initialize` answer", Unit::Time, start, ("ruff server", start_of_ruff), 1.0),
        Row::beside("hover on an idle server, p99", Unit::Time, hover, ("ruff server", hover_of_ruff), 3.0).by(Measure::P99),
        Row::beside("memory after 480 edits", Unit::Memory, memory, ("ty server", memory_of_ty), 1.0),
        Row::alone("memory of an idle server", Unit::Memory, idle, 35e6),
    ])
}

/// First paint, typing, a storm of edits, and edits at 1 MB/s beside other requests.
fn with_a_large_table() -> Result<Vec<Row>> {
    let text = table(TABLE_ROWS);
    let mut profile = Samples::default();
    for _ in 0..10 {
        let began = Instant::now();
        ensure!(live::profile(&text, Format::Delimited(None), &|| false).is_some(), "a table has a profile");
        profile.push(began.elapsed());
    }
    let mut paint = Samples::default();
    for _ in 0..10 {
        let mut server = ours()?;
        let began = Instant::now();
        server.open(TABLE, "csv", &text)?;
        server.request("textDocument/inlayHint", whole(TABLE))?;
        paint.push(began.elapsed());
        server.close()?;
    }

    let mut server = ours()?;
    server.open(TABLE, "csv", &text)?;
    server.open(OTHER, "csv", &table(100))?;
    server.request("textDocument/inlayHint", whole(TABLE))?;
    let mut version = 1;
    let mut key = |server: &mut Server, line: usize, typed: &str| {
        version += 1;
        server.change(TABLE, version, line, (0, 0), typed)
    };

    let mut keystroke = Samples::default();
    for number in 0..KEYSTROKES {
        let began = Instant::now();
        key(&mut server, 1 + number * 7 % TABLE_ROWS, "1")?;
        server.request("textDocument/hover", at(TABLE, 1 + number * 7 % TABLE_ROWS, 0))?;
        keystroke.push(began.elapsed());
    }

    // What typing alone costs: ten keys a second, and the pause after them in which the columns are looked at.
    let before = server.processor_seconds()?;
    for _ in 0..KEYSTROKES {
        key(&mut server, 1, "1")?;
        std::thread::sleep(Duration::from_millis(100));
    }
    server.request("textDocument/inlayHint", whole(TABLE))?;
    #[allow(clippy::cast_precision_loss)]
    let typing = Samples(vec![(server.processor_seconds()? - before) / KEYSTROKES as f64]);

    let (mut beside, mut same) = (Samples::default(), Samples::default());
    let typed = "7".repeat(EDIT_BYTES);
    let began = Instant::now();
    for tick in 0_u32.. {
        if began.elapsed() > EDITING {
            break;
        }
        key(&mut server, 1 + tick as usize % TABLE_ROWS, &typed)?;
        match tick % 16 {
            0 => beside.0.push(server.time("textDocument/hover", at(OTHER, 5, 3))?),
            8 => same.0.push(server.time("textDocument/codeAction", whole(TABLE))?),
            _ => {}
        }
        std::thread::sleep((began + Duration::from_millis(1) * (tick + 1)).saturating_duration_since(Instant::now()));
    }
    server.close()?;

    let mut server = ours()?;
    server.open(TABLE, "csv", &text)?;
    let mut storm = Samples::default();
    let began = Instant::now();
    for number in 0..STORM {
        server.change(TABLE, number + 2, 1 + number * 7 % TABLE_ROWS, (0, 0), "1")?;
    }
    server.request("textDocument/hover", at(TABLE, 1, 0))?;
    storm.push(began.elapsed());
    server.close()?;
    Ok(vec![
        Row::alone("live profile of 50,000 rows", Unit::Time, profile, 0.050),
        Row::alone("50,000-row table: open → hint", Unit::Time, paint, 0.050),
        Row::alone("50,000-row table: keystroke → hover of the new text", Unit::Time, keystroke, 0.050),
        Row::alone("50,000-row table: processor time of a keystroke", Unit::Time, typing, 0.010),
        Row::alone("during 1 MB/s of edits: hover in another document, worst", Unit::Time, beside, 0.020).by(Measure::Worst),
        Row::alone("during 1 MB/s of edits: code actions in the document, worst", Unit::Time, same, 0.020).by(Measure::Worst),
        Row::alone("10,000 edits in a row, with the hover after them", Unit::Time, storm, 10.0),
    ])
}

/// A program of 16 MiB, nearly all of it one line of characters of four bytes, with a cell at its end: keys at the end of
/// the line, and its lenses.
fn with_an_endless_line() -> Result<Vec<Row>> {
    let mut server = started(true)?;
    server.open(PROGRAM, "python", &format!("x = '{}'\n# %%\nx\n", "\u{1F600}".repeat(ENDLESS)))?;
    server.open(OTHER, "csv", &table(100))?;
    server.request("textDocument/hover", at(OTHER, 5, 3))?;
    let (mut key, mut lenses) = (Samples::default(), Samples::default());
    // In units of UTF-16, of which such a character has two.
    let end = 5 + 2 * ENDLESS;
    for number in 0..KEYSTROKES {
        let began = Instant::now();
        server.change(PROGRAM, number + 2, 0, (end, end), "1")?;
        server.request("textDocument/hover", at(OTHER, 5, 3))?;
        key.push(began.elapsed());
        lenses.0.push(server.time("textDocument/codeLens", whole(PROGRAM))?);
    }
    server.close()?;
    Ok(vec![
        Row::alone("line of 16 MiB: key at its end → hover in another document, p99", Unit::Time, key, 0.020).by(Measure::P99),
        Row::alone("program of 16 MiB: lenses, p99", Unit::Time, lenses, 0.020).by(Measure::P99),
    ])
}

/// Requests about a large table while code in the sandbox prints as fast as it can.
fn while_a_run_prints() -> Result<Vec<Row>> {
    let mut server = ours()?;
    server.open(TABLE, "csv", &table(TABLE_ROWS))?;
    let code = "while True:\n    print('x' * 1000)\n";
    server.open(PROGRAM, "python", code)?;
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}});
    let run = json!({"command": "codeinterp.runSelection", "arguments": [{"uri": PROGRAM, "range": range}]});
    let run = server.request("workspace/executeCommand", run)?["run"].clone();
    server.wait(|message| message["params"]["run"] == run && message["params"]["step"] == 1)?;
    let (mut hover, mut hints, mut actions) = (Samples::default(), Samples::default(), Samples::default());
    for number in 0..HOVERS {
        hover.0.push(server.time("textDocument/hover", at(TABLE, number * 31, 3))?);
        hints.0.push(server.time("textDocument/inlayHint", whole(TABLE))?);
        actions.0.push(server.time("textDocument/codeAction", whole(TABLE))?);
    }
    server.request("workspace/executeCommand", json!({"command": "codeinterp.cancel", "arguments": [{}]}))?;
    server.wait(|message| message["params"]["run"] == run && message["params"]["status"] == "cancelled")?;
    server.close()?;
    let row = |what: &str, samples| Row::alone(what, Unit::Time, samples, 0.010).by(Measure::P99);
    Ok(vec![
        row("while a run prints: hover on 50,000 rows, p99", hover),
        row("while a run prints: hints, p99", hints),
        row("while a run prints: code actions, p99", actions),
    ])
}

/// A table of sales: dates, words, whole and broken numbers, some missing.
fn table(rows: usize) -> String {
    let mut text = String::from("date,region,product,units,price,note\n");
    for row in 0..rows {
        let price = if row % 40 == 7 { String::new() } else { format!("{}.{:02}", 9 + row * 13 % 70, row * 7 % 100) };
        let region = ["north", "south", "east", "west"][row % 4];
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "2024-{:02}-{:02},{region},P-{},{},{price},order {row} of many",
            row % 12 + 1,
            row % 28 + 1,
            row % 300,
            row * 37 % 91
        );
    }
    text
}

/// A program of a thousand lines.
fn program() -> String {
    let mut text = String::from("import os  # noqa: F401\n");
    for number in 0..500 {
        // Writing to a String can't fail.
        let _ = write!(text, "def f{number}(x: int) -> int:\n    return x + {number}\n");
    }
    text
}

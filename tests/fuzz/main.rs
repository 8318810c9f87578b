//! What comes from outside is parsed without a panic, whatever it is: frames and messages of the pipe, server-sent
//! events, markdown of a model, messages of an editor. A slice of it runs with all tests; a long run is
//! `PROPTEST_CASES=1000000 cargo test --release --test fuzz`, and for the framing of the language server, edits of its
//! documents and live profiles, which are tested where they are, `PROPTEST_CASES=1000000 cargo test --release --lib`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod editor;

use std::collections::HashSet;

use bytes::BytesMut;
use codeinterp::agent::parse;
use codeinterp::jupyter::frame::{Frame, FrameCodec};
use codeinterp::jupyter::message::Message;
use codeinterp::jupyter::outputs::Outputs;
use codeinterp::jupyter::reply::{Display, ExecuteReply, FileList, Greeting, KernelReady, Status};
use codeinterp::llm::sse;
use codeinterp::report::sanitize::sanitize;
use proptest::prelude::*;
use proptest::sample::select;
use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::{Map, Value, json};
use tokio_util::codec::Decoder as _;

/// Any JSON, with the names that the protocol uses among its keys and strings.
fn any_json() -> impl Strategy<Value = Value> {
    let names = || {
        select(vec![
            "data",
            "metadata",
            "transient",
            "display_id",
            "name",
            "text",
            "stdout",
            "stderr",
            "wait",
            "codeinterp",
            "dataframe",
            "rows",
            "columns",
            "figure",
            "axes",
            "title",
            "text/plain",
            "text/html",
            "image/png",
            "status",
            "ename",
            "streams",
            "files",
            "created",
            "variables",
            "shape",
            "cause",
            "kind",
            "late",
            "skipped_bytes",
            "",
        ])
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        names().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((names(), inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())),
        ]
    })
}

fn any_message() -> impl Strategy<Value = Value> {
    let kinds = select(vec![
        "stream",
        "display_data",
        "execute_result",
        "update_display_data",
        "clear_output",
        "execute_reply",
        "kernel_died",
        "status",
        "x",
    ]);
    (kinds, any_json(), any_json(), any_json()).prop_map(|(kind, parent, metadata, content)| {
        json!({"header": {"msg_type": kind}, "parent_header": parent, "metadata": metadata, "content": content})
    })
}

/// Markdown made of the pieces that attacks are made of.
fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        select(vec![
            "```python\n",
            "```",
            "~~~",
            "\n",
            "\n\n",
            "<think>",
            "</think>",
            "<script>",
            "<img src=x>",
            "![a](",
            "[a](",
            "[a]: ",
            ")",
            "]",
            "(",
            "[",
            "!",
            "http://evil.example/x",
            "command:x",
            "artifacts/a.png",
            "a.png",
            "<",
            ">",
            "|",
            "| - |\n",
            "> ",
            "- ",
            "    ",
            "\t",
            "`",
            "*",
            "&lt;",
            "\\",
            "\u{202e}",
            "\u{1b}[31m",
            "\0",
            "javascript:",
            "data:text/html,",
            "<!--",
            "-->",
            "<a href=\"",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..16)) {
        let mut buffer = BytesMut::new();
        for piece in pieces {
            buffer.extend_from_slice(&piece);
            loop {
                match FrameCodec.decode(&mut buffer) {
                    Ok(Some(Frame::Json(payload))) => drop(Message::parse(&payload)),
                    Ok(Some(Frame::Chunk { .. })) => {}
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    #[test]
    fn kernel_messages(messages in prop::collection::vec(any_message(), 0..12), garbage in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut outputs = Outputs::default();
        drop(Message::parse(&garbage));
        for message in messages {
            let Ok(message) = Message::parse(message.to_string().as_bytes()) else { continue };
            drop(message.clone().content::<ExecuteReply>());
            drop(message.clone().content::<Display>());
            drop(message.clone().content::<FileList>());
            drop(message.clone().content::<Greeting>());
            drop(message.clone().content::<KernelReady>());
            drop(message.clone().content::<Status>());
            outputs.apply(message);
        }
        drop((outputs.figures(), outputs.result()));
        prop_assert!(outputs.into_vec().len() <= 2000);
    }

    #[test]
    fn server_sent_events(pieces in prop::collection::vec(prop_oneof![
        prop::collection::vec(any::<u8>(), 0..32),
        select(vec!["data: ", "data:[DONE]", "\n", "\r", "\r\n", "event: x", ": comment", "é"]).prop_map(|text| text.as_bytes().to_vec()),
    ], 0..32)) {
        let mut split = sse::Decoder::default();
        let mut whole = sse::Decoder::default();
        let joined = whole.push(&pieces.concat());
        let mut events = Vec::new();
        for piece in &pieces {
            match split.push(piece) {
                Ok(found) => events.extend(found),
                Err(error) => {
                    prop_assert_eq!(joined, Err(error));
                    return Ok(());
                }
            }
        }
        prop_assert_eq!(joined, Ok(events), "where the stream is split makes no difference");
        prop_assert_eq!(split.finish(), whole.finish());
    }

    #[test]
    fn markdown_of_a_model(text in any_markdown()) {
        drop(parse::parse(&text));
        let artifacts = HashSet::from(["a.png"]);
        let safe = sanitize(&text, &artifacts, "artifacts/");
        for event in Parser::new_ext(&safe, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS) {
            match event {
                Event::Html(html) | Event::InlineHtml(html) => prop_assert!(false, "HTML {:?} in {:?}", html, safe),
                Event::Start(Tag::Image { dest_url, .. }) => prop_assert_eq!(dest_url.as_ref(), "artifacts/a.png", "{:?}", safe),
                Event::Start(Tag::Link { dest_url, .. }) => {
                    prop_assert!(!dest_url.contains(':'), "a link to {:?} in {:?}", dest_url, safe);
                }
                _ => {}
            }
        }
    }
}

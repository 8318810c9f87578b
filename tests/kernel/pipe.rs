//! The host's end alone, against a far end that lies: what a real supervisor never sends.

use std::time::Duration;

use codeinterp::sandbox::link::{Link, LinkError, LinkState};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};

struct FarEnd {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
}

impl FarEnd {
    fn connect() -> (Link, Self) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (near_reader, near_writer) = split(near);
        let (reader, writer) = split(far);
        (Link::open(near_reader, near_writer), Self { reader, writer })
    }

    async fn send_raw(&mut self, kind: u8, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes().to_vec();
        frame.push(kind);
        frame.extend_from_slice(payload);
        self.writer.write_all(&frame).await.unwrap();
    }

    async fn send(&mut self, msg_type: &str, parent: Option<&str>, content: Value) {
        let message = json!({
            "header": {"msg_id": "x", "msg_type": msg_type},
            "parent_header": parent.map(|id| json!({"msg_id": id})),
            "metadata": {}, "content": content, "channel": "iopub",
        });
        self.send_raw(1, message.to_string().as_bytes()).await;
    }

    async fn receive(&mut self) -> Value {
        let mut head = [0; 5];
        self.reader.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; u32::from_be_bytes(head[..4].try_into().unwrap()) as usize];
        self.reader.read_exact(&mut payload).await.unwrap();
        serde_json::from_slice(&payload).unwrap_or_default()
    }
}

fn id(request: &Value) -> &str {
    request["header"]["msg_id"].as_str().unwrap()
}

#[tokio::test]
async fn only_answers_to_outstanding_requests_are_taken() {
    let (link, mut far) = FarEnd::connect();
    let asking = tokio::spawn({
        let link = link.clone();
        async move { link.ask::<Value>("ping_request", json!({})).await }
    });
    let request = far.receive().await;
    for (msg_type, parent) in [
        ("ping_reply", None),
        ("ping_reply", Some("nobody")),
        ("stream", Some(id(&request))),
        ("unheard_of", Some(id(&request))),
        ("transfer_begin", Some("nobody")),
        ("kernel_ready", Some("nobody")),
    ] {
        far.send(msg_type, parent, json!({"status": "ok", "forged": true})).await;
    }
    far.send_raw(1, b"not json").await;
    far.send_raw(1, b"{\"header\": 3, \"content\": {}}").await;
    far.send_raw(2, &[7; 40]).await;
    far.send("ping_reply", Some(id(&request)), json!({"status": "ok", "right": 1})).await;
    assert_eq!(asking.await.unwrap().unwrap()["right"], 1);
    assert_eq!(link.dropped(), 9);
    far.send("ping_reply", Some(id(&request)), json!({"status": "ok"})).await;
    far.send("supervisor_ready", None, json!({"protocol": 1, "python": "3.x", "workdir": "/w"})).await;
    assert_eq!(link.greeting().await.unwrap().workdir, "/w");
    assert_eq!(link.dropped(), 10, "a second answer belongs to nobody");
}

#[tokio::test]
async fn a_broken_frame_closes_the_link_and_wakes_everybody() {
    for bytes in [&[0xff, 0xff, 0xff, 0xff, 1][..], &[0, 0, 0, 1, 9, 0][..], &[0, 0, 0, 3, 2, 1, 2, 3][..]] {
        let (link, mut far) = FarEnd::connect();
        let asking = tokio::spawn({
            let link = link.clone();
            async move { link.ask::<Value>("ping_request", json!({})).await }
        });
        far.receive().await;
        far.writer.write_all(bytes).await.unwrap();
        let refused = asking.await.unwrap();
        assert!(matches!(&refused, Err(LinkError::Closed(reason)) if reason.contains("not allowed")), "{refused:?}");
        assert!(matches!(&*link.state().borrow(), LinkState::Closed(_)));
        assert!(matches!(link.ask::<Value>("ping_request", json!({})).await, Err(LinkError::Closed(_))));
    }
}

#[tokio::test]
async fn the_end_of_the_pipe_and_a_failed_supervisor_are_told() {
    let (link, mut far) = FarEnd::connect();
    far.send("supervisor_failed", None, json!({"evalue": "IPython cannot be loaded"})).await;
    drop(far);
    assert_eq!(link.greeting().await, Err(LinkError::Closed("IPython cannot be loaded".to_owned())));
    let (link, far) = FarEnd::connect();
    drop(far);
    assert!(matches!(link.greeting().await, Err(LinkError::Closed(_))));
}

#[tokio::test]
async fn another_version_of_the_protocol_is_refused() {
    let (link, mut far) = FarEnd::connect();
    far.send("supervisor_ready", None, json!({"protocol": 99})).await;
    assert!(matches!(link.greeting().await, Err(LinkError::Protocol(text)) if text.contains("99")));
}

#[tokio::test]
async fn a_file_that_is_more_than_asked_for_or_not_what_it_says_is_refused() {
    for (chunks, claimed) in [(3, 30), (1, 11), (1, 10)] {
        let (link, mut far) = FarEnd::connect();
        let getting = tokio::spawn({
            let link = link.clone();
            async move { link.get_file("a", 20).await }
        });
        let request = far.receive().await;
        let transfer = [9; 16];
        far.send("transfer_begin", Some(id(&request)), json!({"transfer": "09".repeat(16)})).await;
        for _ in 0..chunks {
            far.send_raw(2, &[&transfer[..], &[1; 10][..]].concat()).await;
        }
        let reply = json!({"status": "ok", "bytes": claimed, "sha256": "0".repeat(64)});
        far.send("get_file_reply", Some(id(&request)), reply).await;
        assert!(matches!(getting.await.unwrap(), Err(LinkError::Protocol(_))));
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_is_forgotten_and_breaks_nothing() {
    let (link, mut far) = FarEnd::connect();
    let given_up = tokio::time::timeout(Duration::from_millis(1), link.ask::<Value>("ping_request", json!({}))).await;
    assert!(given_up.is_err());
    let first = far.receive().await;
    far.send("ping_reply", Some(id(&first)), json!({"status": "ok"})).await;
    let asking = tokio::spawn({
        let link = link.clone();
        async move { link.ask::<Value>("ping_request", json!({})).await }
    });
    let second = far.receive().await;
    far.send("ping_reply", Some(id(&second)), json!({"status": "ok"})).await;
    assert!(asking.await.unwrap().is_ok());
    assert_eq!(link.dropped(), 1);
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_far_ends_input() {
    let (link, mut far) = FarEnd::connect();
    drop(link);
    assert_eq!(far.reader.read(&mut [0; 10]).await.unwrap(), 0);
}

//! Messages on the pipe: requests out, and what is taken of the messages that come in.

use bytes::Bytes;
use jupyter_protocol::{JupyterMessage, JupyterMessageContent, UnknownMessage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::frame::Frame;

/// A message from the sandbox, reduced to what is used of it. Every part is hostile.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its type, for example `execute_reply`.
    pub msg_type: String,
    /// Id of the request that it belongs to.
    pub parent: Option<String>,
    /// Its metadata.
    pub metadata: Map<String, Value>,
    /// Its content.
    pub content: Map<String, Value>,
}

/// A message that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("unreadable message: {0}")]
pub struct MessageError(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Wire {
    header: WireHeader,
    #[serde(default)]
    parent_header: Option<WireParent>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    content: Map<String, Value>,
}

#[derive(Deserialize)]
struct WireHeader {
    msg_type: String,
}

#[derive(Deserialize)]
struct WireParent {
    // Jupyter says "no parent" by an empty object too.
    #[serde(default)]
    msg_id: Option<String>,
}

impl Message {
    /// Reads the payload of a JSON frame.
    pub fn parse(payload: &[u8]) -> Result<Self, MessageError> {
        let wire: Wire = serde_json::from_slice(payload)?;
        Ok(Self {
            msg_type: wire.header.msg_type,
            parent: wire.parent_header.and_then(|parent| parent.msg_id),
            metadata: wire.metadata.unwrap_or_default(),
            content: wire.content,
        })
    }

    /// The content as a typed value.
    pub fn content<T: DeserializeOwned>(self) -> Result<T, MessageError> {
        Ok(serde_json::from_value(Value::Object(self.content))?)
    }
}

/// A request to the supervisor, with the id under which its answer comes.
#[derive(Debug)]
pub struct Request {
    /// Id of the message.
    pub id: String,
    /// The frame to send.
    pub frame: Frame,
}

impl Request {
    /// A request of the Jupyter protocol.
    pub fn new(content: impl Into<JupyterMessageContent>, metadata: Value) -> Result<Self, MessageError> {
        let mut message = JupyterMessage::new(content, None);
        message.metadata = metadata;
        let text = serde_json::to_vec(&message)?;
        Ok(Self { id: message.header.msg_id, frame: Frame::Json(Bytes::from(text)) })
    }

    /// A request of our own in the same envelope.
    pub fn own(msg_type: &str, content: Value) -> Result<Self, MessageError> {
        Self::new(UnknownMessage { msg_type: msg_type.to_owned(), content }, Value::Object(Map::new()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_of_our_own_keeps_its_type_and_content() {
        let request = Request::own("ping_request", json!({"a": 1})).unwrap();
        let Frame::Json(text) = request.frame else { panic!("not JSON") };
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["header"]["msg_type"], "ping_request");
        assert_eq!(value["header"]["msg_id"], request.id);
        assert_eq!(value["content"], json!({"a": 1}));
        assert_eq!(value["metadata"], json!({}));
    }

    #[test]
    fn a_message_without_an_object_as_content_is_an_error() {
        assert!(Message::parse(br#"{"header":{"msg_type":"stream"},"content":3}"#).is_err());
        assert!(Message::parse(b"[]").is_err());
    }
}

//! Framing on the sandbox's pipe: big-endian u32 payload length, u8 kind, payload (`frames.py` is the other end).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

/// Largest JSON message taken from a sandbox. A display of 32 MiB in base64 fits.
pub const MAX_JSON: usize = 64 << 20;
/// Largest piece of a file in one frame.
pub const MAX_CHUNK: usize = 1 << 20;

const HEADER: usize = 5;
const KIND_JSON: u8 = 1;
const KIND_RAW: u8 = 2;
const ID: usize = 16;

/// Names one transfer of a file; random.
pub type TransferId = [u8; ID];

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A JSON message, not yet parsed.
    Json(Bytes),
    /// A piece of a file.
    Chunk {
        /// The transfer that it belongs to.
        transfer: TransferId,
        /// At most [`MAX_CHUNK`] bytes.
        data: Bytes,
    },
}

/// The stream cannot be cut into frames any more.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Unknown kind, or a length that its kind may not have.
    #[error("a frame of kind {kind} with {length} bytes is not allowed")]
    NotAllowed {
        /// The kind.
        kind: u8,
        /// Announced length of the payload in bytes.
        length: usize,
    },
    /// The pipe failed.
    #[error("the pipe failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Cuts and joins frames; holds at most one frame.
#[derive(Debug, Default)]
pub struct FrameCodec;

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = FrameError;

    fn decode(&mut self, source: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some((head, _)) = source.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [a, b, c, d, kind] = *head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let allowed = match kind {
            KIND_JSON => length <= MAX_JSON,
            KIND_RAW => (ID..=ID + MAX_CHUNK).contains(&length),
            _ => false,
        };
        if !allowed {
            return Err(FrameError::NotAllowed { kind, length });
        }
        if source.len() < HEADER + length {
            // Grown step by step: an announced length alone must not cost memory.
            source.reserve((HEADER + length - source.len()).min(1 << 20));
            return Ok(None);
        }
        source.advance(HEADER);
        let mut payload = source.split_to(length).freeze();
        if kind == KIND_JSON {
            return Ok(Some(Frame::Json(payload)));
        }
        let mut transfer = [0; ID];
        payload.copy_to_slice(&mut transfer);
        Ok(Some(Frame::Chunk { transfer, data: payload }))
    }
}

impl Encoder<Frame> for FrameCodec {
    type Error = FrameError;

    fn encode(&mut self, frame: Frame, target: &mut BytesMut) -> Result<(), FrameError> {
        let (kind, length, limit) = match &frame {
            Frame::Json(text) => (KIND_JSON, text.len(), MAX_JSON),
            Frame::Chunk { data, .. } => (KIND_RAW, ID + data.len(), ID + MAX_CHUNK),
        };
        let announced = u32::try_from(length).ok().filter(|_| length <= limit);
        let announced = announced.ok_or(FrameError::NotAllowed { kind, length })?;
        target.reserve(HEADER + length);
        target.put_u32(announced);
        target.put_u8(kind);
        match frame {
            Frame::Json(text) => target.put_slice(&text),
            Frame::Chunk { transfer, data } => {
                target.put_slice(&transfer);
                target.put_slice(&data);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
        let json = bytes().prop_map(Frame::Json);
        let chunk = (any::<TransferId>(), bytes()).prop_map(|(transfer, data)| Frame::Chunk { transfer, data });
        prop::collection::vec(prop_oneof![json, chunk], 0..8)
    }

    proptest! {
        #[test]
        fn frames_survive_any_split_of_the_stream(frames in frames(), step in 1usize..64) {
            let mut whole = BytesMut::new();
            for frame in &frames {
                FrameCodec.encode(frame.clone(), &mut whole).unwrap();
            }
            let (mut buffer, mut found) = (BytesMut::new(), Vec::new());
            for piece in whole.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some(frame) = FrameCodec.decode(&mut buffer).unwrap() {
                    found.push(frame);
                }
            }
            prop_assert_eq!(found, frames);
        }

        #[test]
        fn garbage_never_panics(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut buffer = BytesMut::from(&garbage[..]);
            while let Ok(Some(_)) = FrameCodec.decode(&mut buffer) {}
        }
    }

    #[test]
    fn an_announced_length_above_the_cap_is_refused_before_its_payload() {
        let mut buffer = BytesMut::from(&[0xff, 0xff, 0xff, 0xff, KIND_JSON][..]);
        assert!(matches!(FrameCodec.decode(&mut buffer), Err(FrameError::NotAllowed { .. })));
    }
}

//! Server-sent events, as they stream: bytes in, data of whole events out. Bounded, whatever the server sends.
//!
//! Format: the HTML standard's "Server-sent events". Only `data:` matters here; other fields are passed over.

/// Longest line, and most data of one event, in bytes.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Why bytes are no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line or an event is too long.
    #[error("a line of the answer is longer than {MAX_EVENT_BYTES} bytes")]
    TooLong,
    /// A line is no UTF-8.
    #[error("the answer is not UTF-8 text")]
    Encoding,
}

/// Reads events out of pieces that may be split anywhere.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    data: Option<String>,
    /// The last byte was a carriage return: a line feed after it belongs to the same line end.
    after_return: bool,
}

impl Decoder {
    /// Takes a piece in and gives the data of the events that it completes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, SseError> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (body, end) = match part.split_last() {
                Some((end @ (b'\n' | b'\r'), body)) => (body, Some(*end)),
                _ => (part, None),
            };
            let continues = self.after_return && body.is_empty() && end == Some(b'\n');
            self.after_return = end == Some(b'\r');
            if continues {
                continue;
            }
            if self.line.len() + body.len() > MAX_EVENT_BYTES {
                return Err(SseError::TooLong);
            }
            self.line.extend_from_slice(body);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                events.extend(self.end_of_line(&line)?);
            }
        }
        Ok(events)
    }

    /// The event that the end of the stream completes: the standard drops it, but some servers leave out the last blank line.
    pub fn finish(mut self) -> Result<Option<String>, SseError> {
        let line = std::mem::take(&mut self.line);
        let event = self.end_of_line(&line)?;
        Ok(event.or(self.data))
    }

    fn end_of_line(&mut self, line: &[u8]) -> Result<Option<String>, SseError> {
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let line = std::str::from_utf8(line).map_err(|_| SseError::Encoding)?;
        if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            let data = self.data.get_or_insert_default();
            if data.len() + value.len() > MAX_EVENT_BYTES {
                return Err(SseError::TooLong);
            }
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(value);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<String>, SseError> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(decoder.push(piece)?);
        }
        events.extend(decoder.finish()?);
        Ok(events)
    }

    const STREAM: &[u8] = ": comment\r\n\r\ndata: {\"a\":\"图\"}\r\n\r\nevent: x\ndata: one\ndata:two\n\ndata: [DONE]".as_bytes();

    proptest! {
        #[test]
        fn events_do_not_depend_on_where_the_bytes_are_split(first in 0..STREAM.len(), second in 0..STREAM.len()) {
            let (low, high) = (first.min(second), first.max(second));
            let events = decode(&[&STREAM[..low], &STREAM[low..high], &STREAM[high..]]);
            prop_assert_eq!(events, Ok(vec!["{\"a\":\"图\"}".to_owned(), "one\ntwo".to_owned(), "[DONE]".to_owned()]));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&bytes]);
        }
    }

    #[test]
    fn an_endless_line_is_refused_before_it_is_kept() {
        let mut decoder = Decoder::default();
        let block = vec![b'x'; 1 << 20];
        let outcome = (0..100).find_map(|_| decoder.push(&block).err());
        assert_eq!(outcome, Some(SseError::TooLong));
        assert!(decoder.line.len() <= MAX_EVENT_BYTES);
    }
}

//! Messages of one execution, collected into its outputs.

use serde_json::Value;

use super::message::Message;
use super::reply::Display;
use crate::agent::execution::{ExecutionEvent, FigureDescription, MimeBundle, Output, StreamName};

/// Outputs kept of one execution, streams and displays together.
const MAX_OUTPUTS: usize = 2000;
const MAX_DISPLAY_ID: usize = 256;
const MAX_FIGURES: usize = 64;
const MAX_FIGURE_DETAIL: usize = 16 << 10;

/// Applies messages in order: joins streams, replaces updated displays, clears.
#[derive(Debug, Default)]
pub struct Outputs {
    list: Vec<Output>,
    /// Metadata of our own, beside each output.
    marks: Vec<Value>,
    /// Whole kept text of each stream, which `clear_output` does not touch.
    stdout: String,
    stderr: String,
    clear_next: bool,
    dropped: u64,
}

impl Outputs {
    /// Takes a message; the event is what changed, for whoever watches live. Unknown types are not ours to judge: `None`.
    pub fn apply(&mut self, message: Message) -> Option<ExecutionEvent> {
        // What comes after its cell has ended belongs to no step.
        if message.metadata.get("late").is_some() {
            return None;
        }
        match message.msg_type.as_str() {
            "stream" => self.stream(&message),
            "clear_output" => self.clear(message.content.get("wait") == Some(&Value::Bool(true))),
            "display_data" => self.display(message, false),
            "execute_result" => self.display(message, true),
            "update_display_data" => self.update(message),
            _ => None,
        }
    }

    fn stream(&mut self, message: &Message) -> Option<ExecutionEvent> {
        let name = match message.content.get("name")?.as_str()? {
            "stdout" => StreamName::Stdout,
            "stderr" => StreamName::Stderr,
            _ => return None,
        };
        let mut text = message.content.get("text")?.as_str()?.to_owned();
        if let Some(skipped) = message.metadata.get("skipped_bytes").and_then(Value::as_u64) {
            text = format!("\n[... {skipped} bytes left out ...]\n{text}");
        }
        self.clear_if_due();
        match name {
            StreamName::Stdout => self.stdout.push_str(&text),
            StreamName::Stderr => self.stderr.push_str(&text),
        }
        match self.list.last_mut() {
            Some(Output::Stream { name: last, text: kept }) if *last == name => kept.push_str(&text),
            _ => self.push(Output::Stream { name, text: text.clone() }, Value::Null),
        }
        Some(ExecutionEvent::Stream(name, text))
    }

    fn clear(&mut self, wait: bool) -> Option<ExecutionEvent> {
        if wait {
            self.clear_next = true;
            return None;
        }
        self.list.clear();
        self.marks.clear();
        self.clear_next = false;
        Some(ExecutionEvent::Clear)
    }

    fn clear_if_due(&mut self) {
        if std::mem::take(&mut self.clear_next) {
            self.list.clear();
            self.marks.clear();
        }
    }

    fn display(&mut self, message: Message, result: bool) -> Option<ExecutionEvent> {
        let display: Display = message.content().ok()?;
        let mark = display.metadata.get("codeinterp").cloned().unwrap_or_default();
        let data = marked(display.data, &mark);
        if data.is_empty() {
            return None;
        }
        self.clear_if_due();
        let id = display.transient.get("display_id").and_then(Value::as_str).filter(|id| id.len() <= MAX_DISPLAY_ID);
        let output = if result { Output::ExecuteResult { data } } else { Output::DisplayData { data, display_id: id.map(str::to_owned) } };
        self.push(output.clone(), mark);
        Some(ExecutionEvent::Output(output))
    }

    fn update(&mut self, message: Message) -> Option<ExecutionEvent> {
        let display: Display = message.content().ok()?;
        let wanted = display.transient.get("display_id").and_then(Value::as_str)?.to_owned();
        let mark = display.metadata.get("codeinterp").cloned().unwrap_or_default();
        let new = marked(display.data, &mark);
        let mut found = false;
        for (output, old_mark) in self.list.iter_mut().zip(&mut self.marks) {
            if let Output::DisplayData { data, display_id: Some(id) } = output
                && *id == wanted
            {
                data.clone_from(&new);
                old_mark.clone_from(&mark);
                found = true;
            }
        }
        found.then_some(ExecutionEvent::Update(wanted, new))
    }

    fn push(&mut self, output: Output, mark: Value) {
        if self.list.len() >= MAX_OUTPUTS {
            self.dropped += 1;
            return;
        }
        self.list.push(output);
        self.marks.push(mark);
    }

    /// Outputs that were over the limit of one execution.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whole kept text of one stream.
    pub fn text(&self, name: StreamName) -> &str {
        match name {
            StreamName::Stdout => &self.stdout,
            StreamName::Stderr => &self.stderr,
        }
    }

    /// `text/plain` of the last result.
    pub fn result(&self) -> Option<String> {
        self.list.iter().rev().find_map(|output| match output {
            Output::ExecuteResult { data } => data.get("text/plain")?.as_str().map(str::to_owned),
            _ => None,
        })
    }

    /// Descriptions of figures, with the place of each among the displays that are images.
    pub fn figures(&self) -> Vec<FigureDescription> {
        let images = self.list.iter().zip(&self.marks).filter(|(output, _)| is_image(output));
        let described = images.enumerate().filter_map(|(index, (_, mark))| {
            let detail = mark.get("figure")?.clone();
            // A description is for prompts: one that is longer than its chart's code is of no use there.
            if detail.to_string().len() > MAX_FIGURE_DETAIL {
                return Some(FigureDescription { index, ..FigureDescription::default() });
            }
            let first_axes = detail.pointer("/axes/0/title");
            let titles = [detail.get("title"), first_axes];
            let title = titles.into_iter().flatten().filter_map(Value::as_str).find(|title| !title.is_empty()).map(str::to_owned);
            Some(FigureDescription { index, title, detail })
        });
        described.take(MAX_FIGURES).collect()
    }

    /// The outputs in order.
    pub fn into_vec(self) -> Vec<Output> {
        self.list
    }
}

fn is_image(output: &Output) -> bool {
    match output {
        Output::DisplayData { data, .. } | Output::ExecuteResult { data } => data.keys().any(|mime| mime.starts_with("image/")),
        _ => false,
    }
}

/// Puts `[DataFrame r×c]` before the text of a table.
fn marked(mut data: MimeBundle, mark: &Value) -> MimeBundle {
    let size = mark.get("dataframe").and_then(|table| Some((table.get("rows")?.as_u64()?, table.get("columns")?.as_u64()?)));
    if let (Some((rows, columns)), Some(Value::String(text))) = (size, data.get_mut("text/plain")) {
        *text = format!("[DataFrame {rows}×{columns}]\n{text}");
    }
    data
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(msg_type: &str, content: Value) -> Message {
        let Value::Object(content) = content else { panic!("content must be an object") };
        Message { msg_type: msg_type.to_owned(), parent: None, metadata: serde_json::Map::new(), content }
    }

    fn stream(text: &str) -> Message {
        message("stream", json!({"name": "stdout", "text": text}))
    }

    fn display(id: &str, text: &str) -> Message {
        message("display_data", json!({"data": {"text/plain": text}, "metadata": {}, "transient": {"display_id": id}}))
    }

    #[test]
    fn pieces_of_a_stream_are_joined() {
        let mut outputs = Outputs::default();
        outputs.apply(stream("a"));
        outputs.apply(stream("b"));
        assert_eq!(outputs.text(StreamName::Stdout), "ab");
        assert_eq!(outputs.into_vec().len(), 1);
    }

    #[test]
    fn an_update_replaces_the_display_of_its_id() {
        let mut outputs = Outputs::default();
        outputs.apply(display("bar", "10 %"));
        let update = message("update_display_data", json!({"data": {"text/plain": "90 %"}, "transient": {"display_id": "bar"}}));
        assert!(matches!(outputs.apply(update), Some(ExecutionEvent::Update(id, _)) if id == "bar"));
        let [Output::DisplayData { data, .. }] = &outputs.into_vec()[..] else { panic!("one display expected") };
        assert_eq!(data["text/plain"], "90 %");
    }

    #[test]
    fn a_waiting_clear_happens_with_the_next_output() {
        let mut outputs = Outputs::default();
        outputs.apply(stream("old"));
        outputs.apply(message("clear_output", json!({"wait": true})));
        outputs.apply(stream("new"));
        assert_eq!(outputs.text(StreamName::Stdout), "oldnew", "the record keeps what was printed");
        assert_eq!(outputs.into_vec(), [Output::Stream { name: StreamName::Stdout, text: "new".to_owned() }]);
    }

    #[test]
    fn late_messages_change_nothing() {
        let mut outputs = Outputs::default();
        let mut late = stream("late");
        late.metadata.insert("late".to_owned(), Value::Bool(true));
        assert_eq!(outputs.apply(late), None);
        assert!(outputs.into_vec().is_empty());
    }

    #[test]
    fn a_table_is_marked_with_its_size() {
        let mut outputs = Outputs::default();
        outputs.apply(message(
            "execute_result",
            json!({"data": {"text/plain": "   a\n0  1"}, "metadata": {"codeinterp": {"dataframe": {"rows": 1, "columns": 1}}}}),
        ));
        assert_eq!(outputs.result().as_deref(), Some("[DataFrame 1×1]\n   a\n0  1"));
    }

    #[test]
    fn malformed_contents_are_passed_over() {
        let mut outputs = Outputs::default();
        for content in [json!({}), json!({"data": 3}), json!({"name": 1, "text": []}), json!({"data": {}, "metadata": []})] {
            for kind in ["stream", "display_data", "update_display_data", "execute_result", "clear_output", "unheard_of"] {
                outputs.apply(message(kind, content.clone()));
            }
        }
        assert!(outputs.into_vec().is_empty());
    }
}

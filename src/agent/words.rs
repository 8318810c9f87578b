//! What the loop itself says to the model and to the person, in the language of the question.

use super::ports::ModelError;
use super::run::Step;
use crate::profile::Language;

/// Lines of an output that stand for a missing conclusion.
const LAST_LINES: usize = 20;

/// The loop's sentences in one language.
#[derive(Debug, Clone, Copy)]
pub struct Words(pub Language);

impl Words {
    /// The forced conclusion.
    pub fn conclude_now(self) -> &'static str {
        self.0.pick(
            "No more code can be executed. Give the final conclusion now, from the results above, in words only. Don't write code. Say what remains unknown.",
            "不能再执行代码了。请基于以上分析给出最终结论（不要写代码），并说明哪些仍不清楚。",
        )
    }

    /// A forced conclusion that held only code.
    pub fn words_only(self) -> &'static str {
        self.0.pick(
            "Code is not executed any more. Answer in words, without any code block.",
            "代码不会再被执行。请只用文字回答，不要代码块。",
        )
    }

    /// A turn that was cut by the token limit.
    pub fn cut_by_length(self) -> &'static str {
        self.0.pick(
            "Your turn was cut off by the token limit, so nothing of it was executed. Send it again, shorter: one small code block, or a short conclusion.",
            "你的回复因长度限制被截断，其中的代码没有执行。请缩短后重新发送：一个小代码块，或简短的结论。",
        )
    }

    /// Half a fence.
    pub fn fence_not_closed(self) -> &'static str {
        self.0.pick(
            "The code block was not closed, so it was not executed. Send the whole block again, closed with ```.",
            "代码块没有结束标记，因此没有执行。请重新发送完整的代码块，并用 ``` 结束。",
        )
    }

    /// A block in another language.
    pub fn only_python(self, language: &str) -> String {
        let language: String = language.chars().filter(|c| c.is_alphanumeric() || " +-#_".contains(*c)).take(20).collect();
        match self.0 {
            Language::English => format!(
                "The block in {language} language was not executed: only Python runs here. Write it in Python, in one block fenced with ```python, or give the conclusion in words."
            ),
            Language::Chinese => {
                format!("{language} 代码块没有执行：这里只能执行 Python。请改用 Python（用 ```python 包裹），或用文字给出结论。")
            }
        }
    }

    /// An empty turn.
    pub fn nothing_said(self) -> &'static str {
        self.0.pick(
            "Your turn was empty. Write one Python code block, or give the conclusion in words.",
            "你的回复是空的。请写一个 Python 代码块，或用文字给出结论。",
        )
    }

    /// The error of a run whose model said nothing.
    pub fn no_answer(self) -> &'static str {
        self.0.pick("The model gave an empty answer twice.", "模型两次给出空回复。")
    }

    /// What to do about a model that doesn't answer.
    pub fn no_answer_hint(self) -> &'static str {
        self.0.pick(
            "Ask again, put the question more simply, or choose another model; the steps so far are kept.",
            "请重新提问、简化问题或更换模型；已执行的步骤会保留。",
        )
    }

    /// The error of a run without a conclusion.
    pub fn no_conclusion(self) -> &'static str {
        self.0.pick("The model gave no conclusion in words when it was asked for one.", "模型没有按要求给出文字结论。")
    }

    /// The server read much less than it was sent.
    pub fn cut_in_silence(self, read: u64, sent: u64) -> String {
        match self.0 {
            Language::English => format!(
                "The model's server read {read} tokens of a conversation of about {sent}: its context window is small (with Ollama set OLLAMA_CONTEXT_LENGTH). Older outputs are left out from here on."
            ),
            Language::Chinese => format!(
                "模型服务器只读取了约 {sent} 个 token 对话中的 {read} 个：其上下文窗口较小（Ollama 请设置 OLLAMA_CONTEXT_LENGTH）。此后将省略较早的输出。"
            ),
        }
    }

    /// The time for the conclusion was up as well.
    pub fn no_conclusion_in_time(self) -> &'static str {
        self.0.pick("The model gave no conclusion before the time was up.", "模型没有在时限内给出结论。")
    }

    /// What stands for a conclusion that the model did not give: the last output, as it was printed.
    pub fn last_output(self, steps: &[Step]) -> Option<String> {
        let shown = |step: &Step| [step.stdout.trim(), step.result.as_deref().unwrap_or_default().trim()].join("\n").trim().to_owned();
        let (step, text) = steps.iter().rev().map(|step| (step.step, shown(step))).find(|(_, text)| !text.is_empty())?;
        let lines: Vec<&str> = text.lines().collect();
        // The end of an output mostly holds its results.
        let text = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        let fence = super::transcript::fence(&text);
        Some(match self.0 {
            Language::English => format!("The model gave no conclusion. Step {step} printed last:\n\n{fence}text\n{text}\n{fence}"),
            Language::Chinese => format!("模型没有给出结论。第 {step} 步最后输出：\n\n{fence}text\n{text}\n{fence}"),
        })
    }

    /// The error of a filtered answer.
    pub fn filtered(self) -> &'static str {
        self.0.pick("The provider's filter withheld the model's answer.", "模型的回复被服务商的内容过滤拦截。")
    }

    /// What to do about it.
    pub fn filtered_hint(self) -> &'static str {
        self.0.pick("Put the question differently, or choose another model.", "请换一种问法，或更换模型。")
    }

    /// Blocks that were not run since an earlier one failed or the steps are used up.
    pub fn not_executed(self, blocks: usize) -> String {
        match self.0 {
            Language::English if blocks == 1 => "The block after it was not executed.".to_owned(),
            Language::English => format!("The {blocks} blocks after it were not executed."),
            Language::Chinese => format!("其后的 {blocks} 个代码块没有执行。"),
        }
    }

    /// Code that has run before.
    pub fn ran_before(self) -> &'static str {
        self.0.pick(
            "This very code had been executed before. Variables persist: go on from its result, or give the conclusion.",
            "这段代码之前已执行过。变量会保留：请基于其结果继续，或给出结论。",
        )
    }

    /// Code that the person did not want to run.
    pub fn declined(self) -> &'static str {
        self.0.pick(
            "The person declined to execute this code. Suggest another way, or give the conclusion from what is known.",
            "用户拒绝执行这段代码。请换一种方法，或根据已有结果给出结论。",
        )
    }

    /// Goes before pictures.
    pub fn pictures(self) -> &'static str {
        self.0.pick("The charts of the step:", "该步骤的图表：")
    }

    /// A call that can't be understood.
    pub fn bad_call(self, fault: CallFault) -> String {
        let reason = match fault {
            CallFault::UnknownTool => self.0.pick("there is only the tool `python`", "只有 `python` 这一个工具"),
            CallFault::NoCode => self
                .0
                .pick("its arguments must be {\"code\": \"…\"} with the Python code", "参数必须是 {\"code\": \"…\"}，内容为 Python 代码"),
        };
        match self.0 {
            Language::English => format!("Nothing was executed: {reason}."),
            Language::Chinese => format!("没有执行任何代码：{reason}。"),
        }
    }

    /// Numbers of an answer that no output holds.
    pub fn check_numbers(self, numbers: &[String]) -> String {
        let numbers = numbers.join(", ");
        match self.0 {
            Language::English => format!(
                "These numbers of your answer stand in no output so far: {numbers}. Check them: print them with code, or give the answer again with only numbers that were printed."
            ),
            Language::Chinese => {
                format!("你的回答中有些数字没有出现在任何输出中：{numbers}。请核实：用代码打印出来，或只用已打印的数字重新回答。")
            }
        }
    }

    /// A stream that broke off and is asked for again.
    pub fn broken_off(self, error: &ModelError) -> String {
        match self.0 {
            Language::English => format!("{error}; nothing of it was executed, and it was asked for again."),
            Language::Chinese => format!("模型的回复中断（{error}）；其中没有执行任何代码，已重新请求。"),
        }
    }

    /// A check of numbers that failed for the model's sake.
    pub fn unchecked(self, error: &ModelError) -> String {
        match self.0 {
            Language::English => format!("The answer's numbers could not be checked again: {error}."),
            Language::Chinese => format!("无法再次核实回答中的数字：{error}。"),
        }
    }

    /// Stands for an output that was left out of a request.
    pub fn left_out(self, bytes: usize) -> String {
        match self.0 {
            Language::English => format!("[{bytes} bytes of older output left out to save room; the kernel's variables persist]"),
            Language::Chinese => format!("[为节省空间省略了 {bytes} 字节的较早输出；内核变量仍保留]"),
        }
    }

    /// Stands for the rest of the latest output, where the model refused to read it whole.
    pub fn rest_left_out(self, bytes: usize) -> String {
        match self.0 {
            Language::English => format!("[{bytes} more bytes left out: the conversation is too long for the model; print less]"),
            Language::Chinese => format!("[其余 {bytes} 字节已省略：对话超出了模型的长度限制，请减少输出]"),
        }
    }

    /// The code of a selection or a repeated run raised.
    pub fn code_failed(self, step: u32, what: &str) -> String {
        match self.0 {
            Language::English => format!("Step {step} failed: {what}"),
            Language::Chinese => format!("第 {step} 步执行失败：{what}"),
        }
    }
}

/// What is wrong with a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// It names another tool.
    UnknownTool,
    /// It holds no code.
    NoCode,
}

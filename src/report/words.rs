//! The fixed texts of a report in English and Chinese.

use crate::agent::run::RunStatus;
use crate::profile::Language;

/// Fixed texts of a report.
pub(super) struct Words {
    pub analysis: &'static str,
    pub charts: &'static str,
    pub files_made: &'static str,
    pub steps: &'static str,
    pub step: &'static str,
    pub files: &'static str,
    pub about: &'static str,
    pub model: &'static str,
    pub sandbox: &'static str,
    pub time: &'static str,
    pub status: &'static str,
    pub tokens: &'static str,
    pub running: &'static str,
    pub no_answer: &'static str,
    pub what_next: &'static str,
    pub from: &'static str,
    pub truncated: &'static str,
    pub result: &'static str,
    pub code_and_output: &'static str,
    pub sent: &'static str,
    pub unsupported: &'static str,
}

pub(super) fn words(language: Language) -> &'static Words {
    match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE,
    }
}

pub(super) fn status(status: RunStatus, language: Language) -> &'static str {
    match (language, status) {
        (Language::English, RunStatus::Queued) => "waiting for an earlier run",
        (Language::English, RunStatus::Running) => "running",
        (Language::English, RunStatus::Completed) => "completed",
        (Language::English, RunStatus::Incomplete) => "incomplete: a limit was reached, the answer is from what was known by then",
        (Language::English, RunStatus::Failed) => "failed",
        (Language::English, RunStatus::Cancelled) => "cancelled",
        (Language::Chinese, RunStatus::Queued) => "等待前一个任务",
        (Language::Chinese, RunStatus::Running) => "运行中",
        (Language::Chinese, RunStatus::Completed) => "已完成",
        (Language::Chinese, RunStatus::Incomplete) => "未完成：达到上限，结论基于当时已知的结果",
        (Language::Chinese, RunStatus::Failed) => "失败",
        (Language::Chinese, RunStatus::Cancelled) => "已取消",
    }
}

static ENGLISH: Words = Words {
    analysis: "Analysis",
    charts: "Charts",
    files_made: "Files it made",
    steps: "Steps",
    step: "Step",
    files: "Data",
    about: "About this run",
    model: "Model",
    sandbox: "Sandbox",
    time: "Time",
    status: "Status",
    tokens: "tokens",
    running: "Running …",
    no_answer: "There is no answer.",
    what_next: "What to do",
    from: "from",
    truncated: "kept {kept} of {total} bytes of output",
    result: "Result",
    code_and_output: "code and output",
    sent: "Sent",
    unsupported: "No step printed this number.",
};

static CHINESE: Words = Words {
    analysis: "分析",
    charts: "图表",
    files_made: "生成的文件",
    steps: "步骤",
    step: "步骤",
    files: "数据",
    about: "关于本次运行",
    model: "模型",
    sandbox: "沙箱",
    time: "用时",
    status: "状态",
    tokens: "词元",
    running: "运行中……",
    no_answer: "没有结论。",
    what_next: "下一步",
    from: "来自",
    truncated: "输出共 {total} 字节，保留 {kept} 字节",
    result: "结果",
    code_and_output: "代码与输出",
    sent: "已发送",
    unsupported: "没有任何步骤输出过这个数字。",
};

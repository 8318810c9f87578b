//! Numbers of an answer: each links to the step that printed it, and one that nothing holds is marked.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::sanitize;
use crate::agent::evidence::{Evidence, Sources, Support, numbers};
use crate::agent::run::Run;

/// Stands behind a number that no step printed.
pub(super) const MARK: &str = "†";

/// An answer with its links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linked {
    /// Markdown, not yet sanitized.
    pub text: String,
    /// Some number is marked.
    pub unsupported: bool,
}

/// `answer` with a link at each number that a step printed; `anchor` names the place of a step in the document.
/// Code, links and headings stay as they are.
pub(super) fn linked(answer: &str, run: &Run, anchor: impl Fn(u32) -> String) -> Linked {
    let mut linked = Linked { text: answer.to_owned(), unsupported: false };
    if run.steps.is_empty() {
        return linked;
    }
    let evidence = Evidence::of(&Sources::of_run(run));
    let plain = plain_ranges(answer);
    // From the end, so that places before stay where they are.
    for number in numbers(answer).into_iter().rev() {
        if !plain.iter().any(|range| range.start <= number.range.start && number.range.end <= range.end) {
            continue;
        }
        match evidence.support(&number) {
            Support::Step(step) => {
                let link = format!("[{}](#{})", &answer[number.range.clone()], anchor(step));
                linked.text.replace_range(number.range, &link);
            }
            Support::None => {
                linked.text.insert_str(number.range.end, MARK);
                linked.unsupported = true;
            }
            Support::Given => {}
        }
    }
    linked
}

/// Where the text is plain words.
fn plain_ranges(markdown: &str) -> Vec<std::ops::Range<usize>> {
    let mut inside = 0_usize;
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (event, range) in Parser::new_ext(markdown, sanitize::OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::CodeBlock(_) | Tag::Heading { .. } | Tag::HtmlBlock) => inside += 1,
            Event::End(TagEnd::Link | TagEnd::Image | TagEnd::CodeBlock | TagEnd::Heading(_) | TagEnd::HtmlBlock) => {
                inside = inside.saturating_sub(1);
            }
            Event::Text(_) if inside == 0 => match ranges.last_mut() {
                // Adjacent pieces of text may divide a number.
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            },
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::run::Step;

    fn run() -> Run {
        Run {
            question: "And of 2024?".to_owned(),
            steps: vec![
                Step { step: 1, stdout: "rows 150".to_owned(), ..Step::default() },
                Step { step: 2, stdout: "mean 5.84333".to_owned(), ..Step::default() },
            ],
            ..Run::default()
        }
    }

    fn check(answer: &str, expected: &str) {
        assert_eq!(linked(answer, &run(), |step| format!("step-{step}")).text, expected);
    }

    #[test]
    fn a_number_links_to_the_step_that_printed_it() {
        check("**150** rows of 2024, mean 5.84.", "**[150](#step-1)** rows of 2024, mean [5.84](#step-2).");
        check("| n |\n|---|\n| 150 |\n", "| n |\n|---|\n| [150](#step-1) |\n");
    }

    #[test]
    fn a_number_that_no_step_printed_is_marked() {
        check("The mean is 7.25.", "The mean is 7.25†.");
        assert!(linked("The mean is 7.25.", &run(), |_| String::new()).unsupported);
    }

    #[test]
    fn code_links_and_headings_stay_as_they_are() {
        for text in ["`150` and 5 of 2024", "[150](#x)", "# 150 rows", "```\n150\n```"] {
            check(text, text);
        }
    }
}

//! Numbers of an answer: each links to the step that printed it, and one that nothing holds is marked.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::sanitize;
use crate::agent::evidence::{Evidence, Sources, Support, numbers};
use crate::agent::run::Run;
use crate::profile::ProfileOutcome;

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
/// Code, links, headings and names of the run's files stay as they are.
pub(super) fn linked(answer: &str, run: &Run, anchor: impl Fn(u32) -> String) -> Linked {
    let mut linked = Linked { text: answer.to_owned(), unsupported: false };
    if run.steps.is_empty() {
        return linked;
    }
    let evidence = Evidence::of(&Sources::of_run(run));
    let plain = plain_ranges(answer);
    let names = name_ranges(answer, run);
    // From the end, so that places before stay where they are.
    for number in numbers(answer).into_iter().rev() {
        if !plain.iter().any(|range| range.start <= number.range.start && number.range.end <= range.end) {
            continue;
        }
        if names.iter().any(|range| range.start < number.range.end && number.range.start < range.end) {
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

/// Where the answer names a file of the run, whole or without its folder.
fn name_ranges(answer: &str, run: &Run) -> Vec<std::ops::Range<usize>> {
    // A name may be escaped as markdown: it is looked for in the text without those backslashes.
    let mut text = String::with_capacity(answer.len());
    let mut places = Vec::with_capacity(answer.len() + 1);
    let mut rest = answer.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c == '\\' && rest.peek().is_some_and(|(_, next)| next.is_ascii_punctuation()) {
            continue;
        }
        text.push(c);
        places.extend(at..at + c.len_utf8());
    }
    places.push(answer.len());
    let files = run.inputs.iter().map(|input| input.name.as_str());
    let files = files.chain(run.files.iter().map(ProfileOutcome::file)).chain(run.artifacts.iter().map(|artifact| artifact.name.as_str()));
    let files = files.chain(run.steps.iter().flat_map(|step| step.files.iter().map(|file| file.path.as_str())));
    let names: BTreeSet<&str> = files.flat_map(|name| [name, name.rsplit('/').next().unwrap_or(name)]).collect();
    // A name of digits alone can't be told from a number.
    let names = names.into_iter().filter(|name| name.chars().any(char::is_alphabetic));
    names.flat_map(|name| text.match_indices(name).map(|(at, found)| places[at]..places[at + found.len()]).collect::<Vec<_>>()).collect()
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
    fn a_number_within_the_name_of_a_file_is_none() {
        let input =
            |name: &str| crate::agent::run::InputFile { name: name.to_owned(), source: String::new(), sha256: String::new(), bytes: 1 };
        let run = Run { inputs: vec![input("data/名 %[150].csv"), input("150")], ..run() };
        for (answer, expected) in [
            ("名 %[150].csv has 150 rows", "名 %[150].csv has [150](#step-1) rows"),
            ("名 %\\[150\\].csv has 150 rows", "名 %\\[150\\].csv has [150](#step-1) rows"),
            ("data/名 %[150].csv", "data/名 %[150].csv"),
        ] {
            assert_eq!(linked(answer, &run, |step| format!("step-{step}")).text, expected);
        }
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

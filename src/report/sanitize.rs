//! Markdown from a model, made safe to be rendered: no HTML, no remote content, no command links.

use std::collections::HashSet;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::escape;

/// The markdown that is read: `CommonMark` with tables, strikethrough and task lists, as the editors' previews have them.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Rewrites `markdown` so that a viewer shows its words, lists, tables and code, and nothing else:
///
/// - HTML becomes visible text.
/// - An image stays where it names one of `artifacts`; any other becomes its alternative text.
/// - A link stays where it leads to a place in the document or to an artifact; any other becomes its text followed by
///   its address as code, so that a person sees where it would lead before going there.
/// - Control sequences and bidi controls go.
///
/// Links and images are rewritten to point below `folder` (`artifacts/`).
pub fn sanitize(markdown: &str, artifacts: &HashSet<&str>, folder: &str) -> String {
    let text = escape::plain(markdown);
    let options = OPTIONS;
    let mut open: Vec<Rewritten> = Vec::new();
    let mut events: Vec<Event<'_>> = Vec::new();
    for event in Parser::new_ext(&text, options) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => open.push(start_link(&mut events, &dest_url, artifacts, folder)),
            Event::Start(Tag::Image { dest_url, .. }) => open.push(start_image(&mut events, &dest_url, artifacts, folder)),
            Event::End(TagEnd::Link | TagEnd::Image) => match open.pop() {
                Some(Rewritten::Kept(end)) => events.push(Event::End(end)),
                Some(Rewritten::Shown(address)) if !address.is_empty() => {
                    events.push(Event::Text(" ".into()));
                    events.push(Event::Code(address.into()));
                }
                Some(Rewritten::Shown(_) | Rewritten::Dropped) | None => {}
            },
            // A block of HTML becomes a block of code; HTML within a line becomes code within the line.
            Event::Start(Tag::HtmlBlock) => events.push(Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced("text".into())))),
            Event::End(TagEnd::HtmlBlock) => events.push(Event::End(TagEnd::CodeBlock)),
            Event::Html(html) => events.push(Event::Text(html)),
            Event::InlineHtml(html) => {
                // Two pieces of code side by side would be read as one, with other ends.
                if matches!(events.last(), Some(Event::Code(_))) {
                    events.push(Event::Text(" ".into()));
                }
                events.push(Event::Code(html));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language: String = info.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').take(20).collect();
                events.push(Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language.into()))));
            }
            other => events.push(other),
        }
    }
    let mut out = String::with_capacity(text.len() + 64);
    let written = pulldown_cmark_to_cmark::cmark(events.iter(), &mut out, options);
    unescape_decimals(&mut out);
    if written.is_err() || !is_safe(&out, options, folder) {
        // What can't be written again, or reads differently once written, is shown as it is, as code.
        return escape::fenced(&text, "text");
    }
    out
}

/// Takes the backslash out of `22\.5`: what is written again has one behind every number that begins a piece of text,
/// as a list would begin so. With a digit after the point there is no list, and people read the markdown itself too.
fn unescape_decimals(markdown: &mut String) {
    let is_digit = |at: Option<usize>| at.and_then(|at| markdown.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    let escapes: Vec<usize> = Parser::new_ext(markdown, OPTIONS)
        .into_offset_iter()
        // Text that was escaped begins behind its backslash, which is so in words alone and never in code.
        .filter(|(event, range)| matches!(event, Event::Text(text) if text.starts_with('.')) && markdown[..range.start].ends_with('\\'))
        .map(|(_, range)| range.start - 1)
        .filter(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 2)))
        .collect();
    for at in escapes.into_iter().rev() {
        markdown.remove(at);
    }
}

/// Whether what was written holds, as a viewer will read it, nothing but what was meant to stay.
fn is_safe(markdown: &str, options: Options, folder: &str) -> bool {
    Parser::new_ext(markdown, options).all(|event| match event {
        Event::Html(_) | Event::InlineHtml(_) => false,
        Event::Start(Tag::Image { dest_url, .. }) => dest_url.starts_with(folder) && !dest_url.contains(':'),
        Event::Start(Tag::Link { dest_url, .. }) => !dest_url.contains(':') && (dest_url.starts_with(folder) || is_step(&dest_url)),
        _ => true,
    })
}

enum Rewritten {
    Kept(TagEnd),
    Shown(String),
    Dropped,
}

/// Whether a link leads to a step of this document, in either of its languages.
fn is_step(target: &str) -> bool {
    let number = target.strip_prefix("#step-").or_else(|| target.strip_prefix("#步骤-"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn start_link(events: &mut Vec<Event<'_>>, target: &str, artifacts: &HashSet<&str>, folder: &str) -> Rewritten {
    let link = if is_step(target) {
        target.to_owned()
    } else if let Some(name) = artifact_of(target, artifacts) {
        format!("{folder}{}", escape::link_target(&name))
    } else {
        return Rewritten::Shown(target.to_owned());
    };
    events.push(Event::Start(Tag::Link {
        link_type: LinkType::Inline,
        dest_url: link.into(),
        title: CowStr::Borrowed(""),
        id: CowStr::Borrowed(""),
    }));
    Rewritten::Kept(TagEnd::Link)
}

fn start_image(events: &mut Vec<Event<'_>>, target: &str, artifacts: &HashSet<&str>, folder: &str) -> Rewritten {
    match artifact_of(target, artifacts) {
        // SVG can hold scripts and remote content: never inlined.
        Some(name) if !name.to_ascii_lowercase().ends_with(".svg") => {
            let link = format!("{folder}{}", escape::link_target(&name));
            events.push(Event::Start(Tag::Image {
                link_type: LinkType::Inline,
                dest_url: link.into(),
                title: CowStr::Borrowed(""),
                id: CowStr::Borrowed(""),
            }));
            Rewritten::Kept(TagEnd::Image)
        }
        _ => Rewritten::Dropped,
    }
}

/// The artifact that a link target of a model names: bare, or below `artifacts/`, `./`, `sandbox:` or the working directory.
fn artifact_of(target: &str, artifacts: &HashSet<&str>) -> Option<String> {
    let rest = target.strip_prefix("sandbox:").or_else(|| target.strip_prefix("attachment:")).unwrap_or(target);
    let rest = rest.strip_prefix("/workspace/").or_else(|| rest.strip_prefix("./")).unwrap_or(rest);
    if rest.contains(':') || rest.starts_with('/') {
        return None;
    }
    let name = rest.rsplit('/').next()?;
    artifacts.get(name).map(|name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &str) {
        let artifacts = HashSet::from(["chart-1.png", "evil.svg"]);
        assert_eq!(sanitize(input, &artifacts, "artifacts/"), expect);
    }

    #[test]
    fn plain_markdown_is_kept() {
        check("# A\n\n- **b** and `c`\n", "# A\n\n* **b** and `c`");
    }

    #[test]
    fn decimals_are_not_escaped_and_code_is_as_it_was() {
        check("[22.1667](#step-2) and **1.5**", "[22.1667](#step-2) and **1.5**");
        check("22.5 is it\n\n```\n1\\.5\n```", "22.5 is it\n\n````\n1\\.5\n````");
        check("`1\\.5` 1\\. a", "`1\\.5` 1. a");
        check("1\\. a", "1\\. a");
    }

    #[test]
    fn charts_of_the_run_are_shown_and_other_images_are_not() {
        check("![a](chart-1.png)", "![a](artifacts/chart-1.png)");
        check("![a](sandbox:/workspace/chart-1.png)", "![a](artifacts/chart-1.png)");
        check("![a](https://evil.example/x?d=1)", "a");
        check("![a][r]\n\n[r]: https://evil.example/x", "a");
        check("![a](artifacts/evil.svg)", "a");
    }

    #[test]
    fn links_that_lead_out_are_shown_as_text() {
        check("[go](https://evil.example/)", "go `https://evil.example/`");
        check("[run](command:workbench.action.terminal.new)", "run `command:workbench.action.terminal.new`");
        check("<https://evil.example/>", "https://evil.example/ `https://evil.example/`");
        check("[step 2](#step-2)", "[step 2](#step-2)");
        check("[步骤 2](#步骤-2)", "[步骤 2](#步骤-2)");
    }

    #[test]
    fn html_becomes_text() {
        let artifacts = HashSet::new();
        for input in [
            "[a]()<think>",
            "[a](x)<b>",
            "<b><i>",
            "<img src=https://evil.example/x>",
            "a <script>alert(1)</script> b",
            "<iframe\nsrc=x>\n\n",
            "<!-- x --><b onclick=x>",
        ] {
            let output = sanitize(input, &artifacts, "");
            let html = Parser::new(&output).any(|event| matches!(event, Event::Html(_) | Event::InlineHtml(_)));
            assert!(!html, "{input} → {output}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_html_and_no_foreign_target_survives(text in "(<|>|!|\\[|\\]|\\(|\\)|`|\n| |a|https://e.x|:|command:x|\\||-|&lt;|\\\\|\"){0,30}") {
            let output = sanitize(&text, &HashSet::new(), "");
            for event in Parser::new_ext(&output, Options::ENABLE_TABLES) {
                let bad = matches!(event, Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Image { .. } | Tag::Link { .. }));
                proptest::prop_assert!(!bad, "{:?} in {:?}", event, output);
            }
        }
    }
}

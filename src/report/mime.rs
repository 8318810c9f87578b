//! The MIME bundles of a step's outputs, made safe to stand in a notebook: what a viewer shows neither runs code nor
//! loads anything from elsewhere.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::{escape, sanitize};
use crate::agent::execution::MimeBundle;

/// Stands in for a display of which nothing can be shown.
const LEFT_OUT: &str = "(left out: it would run scripts or load from elsewhere)";

/// Elements of HTML that only arrange words.
const TAGS: [&str; 33] = [
    "table",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "caption",
    "div",
    "span",
    "p",
    "br",
    "hr",
    "pre",
    "code",
    "b",
    "strong",
    "i",
    "em",
    "u",
    "small",
    "sub",
    "sup",
    "ul",
    "ol",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
];
/// Elements whose contents are no words of the page.
const SKIPPED: [&str; 13] =
    ["script", "style", "iframe", "object", "svg", "math", "noscript", "template", "textarea", "title", "xmp", "noembed", "noframes"];

/// What an SVG of a plotting library names without loading it: namespaces, its document type, the library.
const NAMESPACES: [&str; 5] =
    ["-//W3C//DTD SVG 1.1//EN", "http://www.w3.org/", "http://creativecommons.org/", "http://purl.org/", "https://matplotlib.org/"];

/// The bundle with the representations that are safe, made so where that takes a rewrite. Others are left out: scripts,
/// widgets, and whatever type is not known here.
pub(super) fn safe(data: &MimeBundle) -> MimeBundle {
    let mut out: MimeBundle = data.iter().filter_map(|(mime, value)| Some((mime.clone(), representation(mime, value)?))).collect();
    if out.is_empty() && !data.is_empty() {
        out.insert("text/plain".to_owned(), json!(LEFT_OUT));
    }
    out
}

fn representation(mime: &str, value: &Value) -> Option<Value> {
    match mime {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/json" => Some(value.clone()),
        "text/plain" => Some(json!(escape::plain(value.as_str()?))),
        "text/markdown" => Some(json!(sanitize::sanitize(value.as_str()?, &HashSet::new(), ""))),
        "text/latex" => value.as_str().filter(|latex| is_formula(latex)).map(|latex| json!(escape::plain(latex))),
        "text/html" => html(value.as_str()?).map(Value::String),
        "image/svg+xml" => value.as_str().filter(|svg| is_drawing(svg)).map(|svg| json!(svg)),
        _ if mime.starts_with("application/vnd.plotly.") || mime.starts_with("application/vnd.vega") => {
            (!names_an_address(value)).then(|| value.clone())
        }
        _ => None,
    }
}

/// HTML written again with the elements that arrange words, without attributes but those of a table. `None` where no
/// word is left.
fn html(source: &str) -> Option<String> {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static ATTRIBUTE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"\s(?:(?:border|colspan|rowspan)="\d{1,4}"|class="dataframe")"#).unwrap());
    let mut out = String::with_capacity(source.len());
    let mut words = false;
    let mut rest = source;
    while let Some(at) = rest.find('<') {
        words |= text(&mut out, &rest[..at]);
        let tag = &rest[at..];
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let closing = tag[1..].starts_with('/');
        let name_at = 1 + usize::from(closing);
        let length = tag[name_at..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        let name = tag[name_at..name_at + length].to_ascii_lowercase();
        if name.is_empty() && !closing && !tag[1..].starts_with(['!', '?']) {
            out.push_str("&lt;");
            rest = &tag[1..];
            continue;
        }
        let end = end_of_tag(tag);
        rest = tag.get(end + 1..).unwrap_or_default();
        if SKIPPED.contains(&name.as_str()) && !closing {
            rest = after_element(rest, &name);
        } else if TAGS.contains(&name.as_str()) {
            out.push_str(if closing { "</" } else { "<" });
            out.push_str(&name);
            if !closing {
                ATTRIBUTE.find_iter(&tag[name_at + length..end]).for_each(|attribute| out.push_str(attribute.as_str()));
            }
            out.push('>');
        }
    }
    words |= text(&mut out, rest);
    words.then_some(out)
}

/// Adds words of a page, entities as they are; whether there are any.
fn text(out: &mut String, words: &str) -> bool {
    out.push_str(&escape::plain(words).replace('>', "&gt;"));
    !words.trim().is_empty()
}

/// Where a tag ends: at its `>` outside of quotes, or with the text.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// What follows the end tag of the element `name`; nothing where it has none.
fn after_element<'a>(text: &'a str, name: &str) -> &'a str {
    // Lower case in ASCII keeps every place.
    let Some(at) = text.to_ascii_lowercase().find(&format!("</{name}")) else { return "" };
    text[at..].split_once('>').map_or("", |(_, after)| after)
}

/// Whether an SVG only draws: no script, no HTML within, no animation that could change a link, and no reference but to
/// places in itself. Where entities or escapes could hide one, it does not count as a drawing.
fn is_drawing(svg: &str) -> bool {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static REFUSED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?xi) <\s*(?:\w+:)? (?:script|foreignobject|iframe|object|embed|animate|set|handler|listener|a)
                | [\s/'\x22] on\w+ \s* = | <! \s* (?:entity|attlist) | xml-stylesheet | @import | image-set | \bsrc\b | \w+ script \s* :
                | \\ | data \s* :",
        )
        .unwrap()
    });
    #[expect(clippy::unwrap_used, reason = "a constant pattern, compiled by the tests")]
    static REFERENCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"(?i)(?:href\s*=|url\s*\()\s*(["']?\s*\S?)"#).unwrap());
    let inside = REFERENCE.captures_iter(svg).all(|found| found[1].ends_with('#'));
    let named = NAMESPACES.iter().fold(svg.to_owned(), |svg, namespace| svg.replace(namespace, ""));
    let mut entities = svg.match_indices('&').map(|(at, _)| &svg[at + 1..]);
    let plain = entities.all(|entity| ["lt;", "gt;", "amp;", "quot;", "apos;"].iter().any(|known| entity.starts_with(known)));
    inside && plain && !named.contains("//") && !REFUSED.is_match(svg)
}

/// Whether LaTeX is a formula alone: no command that links, loads or styles.
fn is_formula(latex: &str) -> bool {
    let refused = ["\\href", "\\url", "\\require", "\\include", "\\html", "\\style", "\\class", "\\data", "\\cssId", "\\unicode"];
    !refused.iter().any(|command| latex.contains(command))
}

/// Whether a chart's specification names an address that a viewer might load, anywhere but where its format is named.
fn names_an_address(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("//") || text.contains("\\\\") || text.contains("script:"),
        Value::Array(entries) => entries.iter().any(names_an_address),
        Value::Object(entries) => entries
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "$schema" | "plotlyServerURL"))
            .any(|(key, entry)| key.contains("//") || names_an_address(entry)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(data: Value) -> Value {
        let Value::Object(bundle) = data else { return Value::Null };
        Value::Object(safe(&bundle))
    }

    #[test]
    fn a_table_stays_a_table() {
        let pandas = "<div>\n<style scoped>\n .dataframe th { color: red }\n</style>\n<table border=\"1\" class=\"dataframe\">\n<tr style=\"text-align: right;\"><th colspan=\"2\">a &lt; b</th></tr></table>\n</div>";
        let table = "<div>\n\n<table border=\"1\" class=\"dataframe\">\n<tr><th colspan=\"2\">a &lt; b</th></tr></table>\n</div>";
        assert_eq!(html(pandas).as_deref(), Some(table));
    }

    #[test]
    fn html_keeps_its_words_alone() {
        for (source, expected) in [
            ("<b onclick=\"x()\">a</b><script>x()</script>", Some("<b>a</b>")),
            ("<p style='background:url(https://e.x)'>a<img src=https://e.x>b", Some("<p>ab")),
            ("<a href=\"https://e.x\">go</a> 1 < 2 > 0", Some("go 1 &lt; 2 &gt; 0")),
            ("<td border=\"1\" title=\"><script>\">a</td>", Some("<td border=\"1\">a</td>")),
            ("<scr<script>x</script>ipt>y()", Some("xipt&gt;y()")),
            ("a<!-- <b> --><!doctype html><?x ?></SCRIPT>", Some("a")),
            ("<iframe src=\"https://e.x\">a</iframe>", None),
            ("<img src=\"https://e.x", None),
        ] {
            assert_eq!(html(source).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn a_drawing_stays_and_what_runs_or_loads_goes() {
        let drawing = r##"<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"><style type="text/css">*{stroke-linejoin: round}</style><defs><path id="a" d="M 0 0"/></defs><use xlink:href="#a" style="clip-path: url(#b)"/></svg>"##;
        assert!(is_drawing(drawing));
        for part in [
            "<script>x()</script>",
            "<foreignObject/>",
            "<g onload=\"x()\"/>",
            "<image xlink:href=\"https://e.x/a\"/>",
            "<image href='a.png'/>",
            "<rect fill=\"url( 'https://e.x' )\"/>",
            "<rect fill=\"u\\72l(x)\"/>",
            "<rect fill=\"url&lpar;x)\"/>",
            "<set attributeName=\"href\" to=\"x\"/>",
            "<a href=\"#b\">x</a>",
            "<style>@import 'x'</style>",
        ] {
            assert!(!is_drawing(&format!("<svg>{part}</svg>")), "{part}");
        }
    }

    #[test]
    fn charts_that_load_nothing_stay() {
        let plotly = json!({"application/vnd.plotly.v1+json": {"data": [{"y": [1]}], "config": {"plotlyServerURL": "https://plot.ly"}}});
        assert_eq!(shown(plotly.clone()), plotly);
        let vega = json!({"application/vnd.vegalite.v5+json": {"$schema": "https://vega.github.io/x", "data": {"url": "https://e.x/?d"}}});
        assert_eq!(shown(vega), json!({"text/plain": LEFT_OUT}));
    }

    #[test]
    fn scripts_and_unknown_types_go() {
        let script = json!({"application/javascript": "x()", "application/x-y": 1, "text/plain": "<Javascript>"});
        assert_eq!(shown(script), json!({"text/plain": "<Javascript>"}));
        let markdown = json!({"text/markdown": "a ![c](https://e.x/?d=1)"});
        assert_eq!(shown(markdown), json!({"text/markdown": "a c"}));
        let latex = json!({"text/latex": "$\\frac{1}{2} < x$", "text/plain": "x"});
        assert_eq!(shown(latex.clone()), latex);
    }
}

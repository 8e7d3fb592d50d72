//! A value in the format of its content type, inert.

use leptos::prelude::*;
use serde_json::Value;
use shared::definition::ContentType;

use crate::components::inert::{InertImage, in_pieces, inert};
use crate::components::markdown::Markdown;
use crate::state::diffs::text_of;
use crate::state::extent;
use crate::state::invisible_characters;
use crate::state::markdown::{self, Address};
use crate::state::words::{self, count};

/// Shows a value in the format of its content type, and warns of hidden characters in it.
#[component]
pub fn ValueView(
    /// The format.
    content_type: ContentType,
    value: Value,
) -> impl IntoView {
    let text = text_of(&value);
    let hidden = invisible_characters::count(&text);
    let warning = (hidden > 0).then(|| {
        let text = format!("{} in this text, shown as marks.", count(hidden, "hidden character", "hidden characters"));
        view! { <p class="banner warn">{text}</p> }
    });
    let too_long = content_type == ContentType::Code && text.lines().count() > extent::MAX_LAID_OUT;
    let view = match (&value, content_type) {
        (Value::String(_), _) if too_long => plain_text(&text),
        (value, _) if is_nothing(value) => view! { <p class="none">"Nothing yet"</p> }.into_any(),
        (Value::String(text), ContentType::Markdown) => view! { <Markdown text=text.clone() /> }.into_any(),
        (Value::String(text), ContentType::Text) => {
            view! { <div class="prose plain">{in_pieces(text)}</div> }.into_any()
        }
        (Value::String(text), ContentType::Image) => {
            view! { <div class="prose"><InertImage address=Address::new(text) alt="Picture" /></div> }.into_any()
        }
        (Value::String(text), _) => view! { <pre class="code numbered">{lines(text)}</pre> }.into_any(),
        // What is decided on is as large as a text beside it.
        (Value::Number(_) | Value::Bool(_), _) => view! { <div class="prose plain">{text}</div> }.into_any(),
        (value, _) if extent::has_more_than(value, extent::MAX_LAID_OUT) => plain_text(&text),
        (Value::Array(rows), ContentType::Table) if rows.iter().all(Value::is_object) => table(rows),
        (value, _) => view! { <div class="json">{json(value)}</div> }.into_any(),
    };
    view! {
        {warning}
        {view}
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null()
        || value.as_str().is_some_and(|text| text.trim().is_empty() && invisible_characters::count(text) == 0)
}

fn lines(text: &str) -> Vec<AnyView> {
    text.lines().map(|line| view! { <span class="l">{inert(line)}"\n"</span> }.into_any()).collect()
}

fn table(rows: &[Value]) -> AnyView {
    let mut columns: Vec<String> = Vec::new();
    for row in rows.iter().filter_map(Value::as_object) {
        for key in row.keys() {
            if !columns.contains(key) {
                columns.push(key.clone());
            }
        }
    }
    let class = |value: Option<&Value>| if value.is_some_and(Value::is_number) { "num" } else { "" };
    let first = rows.first();
    let head = columns.iter().map(|column| {
        let class = class(first.and_then(|row| row.get(column)));
        view! { <th class=class>{inert(column)}</th> }
    });
    let head = head.collect_view();
    let rows = rows
        .iter()
        .map(|row| {
            let cells = columns
                .iter()
                .map(|column| {
                    let value = row.get(column);
                    view! { <td class=class(value)>{value.map(plain)}</td> }
                })
                .collect_view();
            view! { <tr>{cells}</tr> }
        })
        .collect_view();
    view! { <div class="wrap"><table class="table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div> }
        .into_any()
}

/// A value in a table cell; strings have no quotation marks.
fn plain(value: &Value) -> AnyView {
    match value {
        Value::Null => view! { <span class="muted">"–"</span> }.into_any(),
        Value::String(text) => inert(text).into_any(),
        Value::Array(_) | Value::Object(_) => view! { <code>{inert(&words::json(value))}</code> }.into_any(),
        other => words::json(other).into_any(),
    }
}

/// A text among other values, in full: Markdown is laid out, with its source folded below.
#[component]
fn LongText(text: String) -> impl IntoView {
    if markdown::is_likely(&text) {
        let source = text.clone();
        view! {
            <ValueView content_type=ContentType::Markdown value=Value::String(text) />
            <details class="source"><summary>"Source"</summary><pre>{in_pieces(&source)}</pre></details>
        }
        .into_any()
    } else {
        view! { <ValueView content_type=ContentType::Text value=Value::String(text) /> }.into_any()
    }
}

/// Named values for people to read: texts are laid out below their names.
pub fn texts<'a>(fields: impl IntoIterator<Item = (&'a String, &'a Value)>) -> AnyView {
    let value = |value: &Value| match value {
        Value::String(text) => view! { <LongText text=text.clone() /> }.into_any(),
        value => view! { <div class="json">{json(value)}</div> }.into_any(),
    };
    let fields = fields.into_iter().map(|(name, field)| view! { <dt>{inert(name)}</dt><dd>{value(field)}</dd> });
    view! { <dl class="texts">{fields.collect_view()}</dl> }.into_any()
}

/// JSON as a tree in which nothing is folded away. A value with too many parts is shown as plain text.
pub fn json(value: &Value) -> AnyView {
    if extent::has_more_than(value, extent::MAX_LAID_OUT) {
        return plain_text(&text_of(value));
    }
    tree(value)
}

/// A value with too many parts, as plain text.
fn plain_text(text: &str) -> AnyView {
    view! {
        <p class="none">{format!("More than {} parts: all of it, as plain text.", extent::MAX_LAID_OUT)}</p>
        <div class="rest">{in_pieces(text)}</div>
    }
    .into_any()
}

fn tree(value: &Value) -> AnyView {
    match value {
        Value::Object(fields) if fields.is_empty() => view! { <code class="v">"{}"</code> }.into_any(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| view! { <dt>{inert(name)}</dt><dd>{tree(value)}</dd> })
                .collect_view();
            view! { <dl class="args">{fields}</dl> }.into_any()
        }
        Value::Array(entries) if entries.is_empty() => view! { <code class="v">"[]"</code> }.into_any(),
        Value::Array(entries) => {
            let entries = entries.iter().map(|entry| view! { <li>{tree(entry)}</li> }).collect_view();
            view! { <ol class="list-json" start="0">{entries}</ol> }.into_any()
        }
        Value::String(text) if text.contains('\n') || text.chars().count() > 200 => {
            view! { <div class="long"><LongText text=text.clone() /></div> }.into_any()
        }
        Value::String(text) => view! { <code class="v s">"\""{inert(text)}"\""</code> }.into_any(),
        other => view! { <code class="v n">{words::json(other)}</code> }.into_any(),
    }
}

//! Markdown as elements. Nothing is ever set as HTML: each element is made from a tree that contains only text.

use std::cell::Cell;

use leptos::prelude::*;

use super::inert::{InertImage, InertLink, in_pieces, inert};
use crate::state::markdown::{Block, Document, Inline, parse};

#[component]
pub fn Markdown(#[prop(into)] text: String) -> impl IntoView {
    let Document { blocks: laid_out, rest } = parse(&text);
    let rest = (!rest.is_empty()).then(|| {
        view! {
            <p class="muted small">"This text is too long or complex to be formatted in full. The rest, as it was written:"</p>
            <div class="raw rest">{in_pieces(rest.trim_end())}</div>
        }
    });
    view! { <div class="prose">{blocks(laid_out, &Cell::new(1))}{rest}</div> }
}

/// `heading` is the level of the previous heading. The page has the only h1, and no level is skipped, whatever the text
/// says.
fn blocks(blocks: Vec<Block>, heading: &Cell<u8>) -> Vec<AnyView> {
    blocks.into_iter().map(|one| block(one, heading)).collect()
}

fn block(block: Block, heading: &Cell<u8>) -> AnyView {
    match block {
        Block::Heading(depth, text) => {
            let text = inlines(text);
            heading.set((depth + 1).min(heading.get() + 1).min(4));
            match heading.get() {
                2 => view! { <h2>{text}</h2> }.into_any(),
                3 => view! { <h3>{text}</h3> }.into_any(),
                _ => view! { <h4>{text}</h4> }.into_any(),
            }
        }
        Block::Paragraph(text) => view! { <p>{inlines(text)}</p> }.into_any(),
        Block::Code(language, text) => {
            let language = (!language.is_empty()).then(|| view! { <span class="language">{inert(&language)}</span> });
            view! { <pre class="code">{language}<code>{inert(text.trim_end_matches('\n'))}</code></pre> }.into_any()
        }
        Block::Quote(inside) => view! { <blockquote>{blocks(inside, heading)}</blockquote> }.into_any(),
        Block::List(start, entries) => {
            let entries = entries.into_iter().map(|entry| view! { <li>{tight(entry, heading)}</li> }).collect_view();
            match start {
                Some(start) => view! { <ol start=start.to_string()>{entries}</ol> }.into_any(),
                None => view! { <ul>{entries}</ul> }.into_any(),
            }
        }
        Block::Table(rows) => {
            let mut rows = rows.into_iter();
            let head = rows.next().unwrap_or_default();
            let head = head.into_iter().map(|cell| view! { <th>{inlines(cell)}</th> }).collect_view();
            let rows = rows
                .map(|row| {
                    let cells = row.into_iter().map(|cell| view! { <td>{inlines(cell)}</td> }).collect_view();
                    view! { <tr>{cells}</tr> }
                })
                .collect_view();
            view! {
                <div class="wrap"><table class="table"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>
            }
            .into_any()
        }
        Block::Source(text) => {
            view! { <pre class="raw" title="Shown as it was written">{inert(text.trim_end())}</pre> }.into_any()
        }
        Block::Rule => view! { <hr /> }.into_any(),
    }
}

/// An item of a list, whose first paragraph needs no box of its own.
fn tight(mut entry: Vec<Block>, heading: &Cell<u8>) -> Vec<AnyView> {
    match entry.first_mut() {
        Some(Block::Paragraph(text)) => {
            let first = inlines(std::mem::take(text));
            let mut views = vec![view! { <span>{first}</span> }.into_any()];
            views.extend(blocks(entry.split_off(1), heading));
            views
        }
        _ => blocks(entry, heading),
    }
}

fn inlines(inlines: Vec<Inline>) -> Vec<AnyView> {
    inlines.into_iter().map(inline).collect()
}

fn inline(piece: Inline) -> AnyView {
    match piece {
        Inline::Text(text) => inert(&text).into_any(),
        Inline::Code(text) => view! { <code>{inert(&text)}</code> }.into_any(),
        Inline::Source(text) => {
            view! { <code class="raw" title="Shown as it was written">{inert(&text)}</code> }.into_any()
        }
        Inline::Emphasis(inside) => view! { <em>{inlines(inside)}</em> }.into_any(),
        Inline::Strong(inside) => view! { <strong>{inlines(inside)}</strong> }.into_any(),
        Inline::Strike(inside) => view! { <s>{inlines(inside)}</s> }.into_any(),
        Inline::Link(address, inside) => view! { <InertLink address=address>{inlines(inside)}</InertLink> }.into_any(),
        Inline::Image(address, alt) => view! { <InertImage address=address alt=alt /> }.into_any(),
        Inline::Task(done) => view! { <span class="task">{if done { "☑ " } else { "☐ " }}</span> }.into_any(),
        Inline::Break => view! { <br /> }.into_any(),
    }
}

//! The usage of the run before the request: each model call, and the total.

use leptos::prelude::*;
use shared::run::{AgentCall, AgentToolCall};

use super::pane::Pane;
use crate::components::inert::{in_pieces, inert};
use crate::state::diffs::text_of;
use crate::state::words;

/// The model calls, folded away below their total.
#[component]
pub fn Took(pane: Pane) -> impl IntoView {
    let usage = Memo::new(move |_| pane.review.with(|review| review.usage.clone()));
    move || {
        let usage = usage.get();
        let summary = usage.summary()?;
        let elapsed = if usage.elapsed_ms > 0 {
            format!(". Asked {} into the run", words::duration_ms(usage.elapsed_ms))
        } else {
            String::new()
        };
        let rows = usage.agent_calls.iter().map(row).collect_view();
        Some(view! {
            <section>
                <h2 class="sub">"Usage so far"</h2>
                <p>{format!("{summary}{elapsed}.")}</p>
                <details class="fold">
                    <summary>"Model calls"</summary>
                    <table class="took">
                        <thead><tr><th>"Agent"</th><th class="num">"Tokens"</th><th class="num">"Cost"</th><th class="num">"Time"</th></tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </details>
            </section>
        })
    }
}

/// The row of a model call, with its input, output and tool calls folded below, as far as they were kept.
fn row(call: &AgentCall) -> impl IntoView + use<> {
    let texts = [("Input", &call.input), ("Output", &call.output)];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut parts: Vec<_> = texts.map(|(name, text)| (name.to_owned(), text.clone())).collect();
    parts.extend(call.tools.iter().map(tool));
    let said = (!parts.is_empty()).then(|| {
        let parts = parts.into_iter().map(|(name, text)| view! { <dt>{inert(&name)}</dt><dd>{in_pieces(&text)}</dd> });
        view! {
            <tr>
                <td colspan="4">
                    <details class="fold"><summary>"Messages"</summary><dl class="said-in">{parts.collect_view()}</dl></details>
                </td>
            </tr>
        }
    });
    let cost = if call.cost_usd > 0.0 { words::dollars(call.cost_usd) } else { "–".to_owned() };
    view! {
        <tr>
            <td><b>{inert(&call.agent)}</b><br /><span class="tiny muted">{inert(&call.model)}</span></td>
            <td class="num">{words::thousands(call.tokens)}</td>
            <td class="num">{cost}</td>
            <td class="num">{words::duration_ms(call.duration_ms)}</td>
        </tr>
        {said}
    }
}

/// A tool call as a heading, and its arguments and result as a text.
fn tool(call: &AgentToolCall) -> (String, String) {
    let arguments = text_of(&call.arguments);
    let came = match (&call.result, &call.error) {
        (_, Some(error)) => format!("\nfailed: {error}"),
        (Some(result), None) => format!("\n{}", text_of(result)),
        (None, None) => String::new(),
    };
    (format!("Called {}", call.name), format!("{arguments}{came}"))
}

//! What the run has used before this was asked: each call of a model, and all together.

use leptos::prelude::*;
use shared::run::AgentCall;

use super::pane::Pane;
use crate::components::inert::inert;
use crate::state::words;

/// The calls, folded.
#[component]
pub fn Took(pane: Pane) -> impl IntoView {
    let usage = Memo::new(move |_| pane.review.with(|review| review.usage.clone()));
    move || {
        let usage = usage.get();
        let summary = usage.summary()?;
        let elapsed = (usage.elapsed_ms > 0)
            .then(|| format!(", {} after the run began", words::duration_ms(usage.elapsed_ms)))
            .unwrap_or_default();
        let rows = usage.agent_calls.iter().map(row).collect_view();
        Some(view! {
            <section>
                <h2 class="sub">"What it took"</h2>
                <p>{format!("{summary}{elapsed}.")}</p>
                <details class="fold">
                    <summary>"Each call"</summary>
                    <table class="took">
                        <thead><tr><th>"Agent"</th><th class="num">"Tokens"</th><th class="num">"Cost"</th><th class="num">"Time"</th></tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </details>
            </section>
        })
    }
}

fn row(call: &AgentCall) -> impl IntoView + use<> {
    let cost = if call.cost_usd > 0.0 { words::dollars(call.cost_usd) } else { "–".to_owned() };
    view! {
        <tr>
            <td><b>{inert(&call.agent)}</b><br /><span class="tiny muted">{inert(&call.model)}</span></td>
            <td class="num">{words::thousands(call.tokens)}</td>
            <td class="num">{cost}</td>
            <td class="num">{words::duration_ms(call.duration_ms)}</td>
        </tr>
    }
}

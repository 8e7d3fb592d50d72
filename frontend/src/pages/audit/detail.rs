//! The details of an entry: what was seen, decided and changed, and the entry as it is stored.

use leptos::prelude::*;
use serde_json::Value;
use shared::decision::{ActionDecision, Decision, Verdict, Via};
use shared::definition::ContentType;
use shared::log::{Entry, EventData, ToolExecuted};
use shared::review::Review;

use crate::components::diff::Diff;
use crate::components::inert::{in_pieces, inert};
use crate::components::review::recorded::recorded;
use crate::components::review::sent::sent as sent_list;
use crate::state::diffs::text_of;
use crate::state::story::decision_of;
use crate::state::{calls, sent};

#[component]
pub fn Detail(entry: StoredValue<Entry>) -> impl IntoView {
    let entry = entry.get_value();
    let event = &entry.event;
    let data = event.read();
    let review = data.as_ref().and_then(EventData::review).cloned();
    let acts = data.as_ref().map(|data| event.acts_of(data)).unwrap_or_default();
    let decision = review.as_ref().and_then(|review| decision_of(&entry, acts, review)).cloned();
    let fact = |name: &'static str, value: String| view! { <dt>{name}</dt><dd>{value}</dd> };
    let run = event.run_id.map(|run| view! {
        <dt>"run"</dt><dd><a href=format!("/runs/{run}")>{run.to_string()}</a>" "<a href=format!("/audit?run={run}") class="muted">"only this run"</a></dd>
    });
    let seen = event.review_id.map(|review| view! {
        <dt>"review"</dt><dd><a href=format!("/reviews/{review}")>{review.to_string()}</a>" "<a href=format!("/audit?review={review}") class="muted">"only this review"</a></dd>
    });
    let token = event.token.map(|token| view! {
        <dt>"token"</dt><dd>{token.to_string()}" "<a href=format!("/audit?q={token}") class="muted">"only this token"</a></dd>
    });
    let digest = match &data {
        Some(EventData::ReviewViewed(viewed)) => Some(&viewed.digest),
        Some(EventData::FlowSaved(saved)) => Some(&saved.digest),
        Some(EventData::ToolExecuted(call)) => Some(&call.digest),
        _ => None,
    };
    let digest = digest.map(|digest| fact("digest", digest.clone()));
    let decided = decision.as_ref().map(|decision| {
        let (revision, digest) = match &decision.shown {
            Some(shown) => (shown.revision, &shown.digest),
            None => (decision.revision, &decision.digest),
        };
        let below = match &decision.shown {
            Some(_) => Some(format!(
                "This is the content below. With the changes it became revision {}, {}.",
                decision.revision, decision.digest
            )),
            None => review
                .as_ref()
                .is_some_and(|review| review.digest == *digest)
                .then(|| "Digest matches the content of this entry, which is shown below.".to_owned()),
        };
        // The person who gave the remembered approval did not see this review.
        let grant = decision.grant.map(|grant| {
            view! {
                {fact("approved by", format!("{}, under the remembered approval {grant}", decision.by))}
            }
        });
        view! {
            {grant}
            {fact("seen", format!("revision {revision}, {digest}"))}
            {below.map(|below| view! { <dt></dt><dd class="go">{below}</dd> })}
            {fact("via", via(decision).to_owned())}
        }
    });
    let seal = entry.sealed.map_or_else(|| "not yet".to_owned(), |number| format!("by seal {number}"));
    let raw = serde_json::to_string_pretty(&entry).unwrap_or_default();
    let call = match data {
        Some(EventData::ToolExecuted(call)) => Some(call_view(*call)),
        _ => None,
    };
    view! {
        <div class="audit-detail">
            <dl class="facts-list">{fact("at", event.at.to_string())}{token}{run}{seen}{digest}{decided}{fact("sealed", seal)}</dl>
            {review.map(|review| view! { <Seen review decision/> })}
            {call}
            <details class="fold"><summary>"The entry as it is stored"</summary><pre class="audit-json">{in_pieces(&raw)}</pre></details>
        </div>
    }
}

/// The channel of a decision. In records of older versions, a token does not show.
fn via(decision: &Decision) -> &'static str {
    match decision.via {
        Via::Human | Via::Run if decision.token.is_some() => "API",
        Via::Human | Via::Run => "console or API",
        Via::Timeout => "timer",
        Via::Auto if decision.grant.is_some() => "remembered approval",
        Via::Auto => "automatic handler",
        Via::Judge => "judge",
        Via::Webhook => "webhook",
        Via::Slack => "Slack",
        Via::Cli => "terminal",
    }
}

/// The content that a review showed, the text of the decision, and its changes.
#[component]
fn Seen(review: Review, decision: Option<Decision>) -> impl IntoView {
    let said = match &decision {
        Some(decision) => sent::with(&review, decision),
        None => sent::by_program(&review),
    };
    // What a judge or a program said is no words of a person.
    let advice = review.deciding_advice().filter(|_| decision.is_none());
    let advice = advice.map(|advice| view! { <blockquote>{inert(&advice.to_string())}</blockquote> });
    let said = (advice.is_some() || !said.is_empty()).then(|| {
        view! { <h2 class="sub">"What they said"</h2>{advice}{(!said.is_empty()).then(|| sent_list(&said))} }
    });
    let mut review = review;
    // After a vote with changes, the review contains the new values, so those seen before it are restored.
    if let Some(shown) = decision.as_ref().and_then(|decision| decision.shown.as_ref()) {
        for item in &mut review.items {
            if let Some(value) = shown.values.get(&item.key) {
                item.value.clone_from(value);
            }
        }
    }
    let changes: Vec<_> = decision.as_ref().map(|decision| changes(&review, decision)).unwrap_or_default();
    // A vote alone approves nothing.
    let sides = if review.resolution.is_some() { "proposed and approved" } else { "shown and changed" };
    let changed = (!changes.is_empty()).then(|| {
        let card = |(name, content_type, old, new): EditedValue| {
            view! {
                <section class="card"><header><code>{inert(&name)}</code><span class="muted">{sides}</span></header>
                    <div class="in"><Diff content_type old new/></div></section>
            }
        };
        let cards = changes.into_iter().map(card).collect_view();
        view! { <h2 class="sub">"What they changed"</h2>{cards} }
    });
    view! {
        {said}
        {changed}
        <h2 class="sub">"What was shown"</h2>
        {recorded(review, decision.as_ref())}
    }
}

type EditedValue = (String, ContentType, Value, Value);

/// All values that the decision changed: edited items, then edited arguments.
fn changes(review: &Review, decision: &Decision) -> Vec<EditedValue> {
    let mut changes: Vec<EditedValue> = Vec::new();
    for (key, new) in &decision.edits {
        let item = review.items.iter().find(|item| item.key == *key);
        let (content_type, old) =
            item.map_or((ContentType::Json, Value::Null), |item| (item.content_type, item.value.clone()));
        changes.push((key.clone(), content_type, old, new.clone()));
    }
    if let Verdict::Actions { decisions, .. } = &decision.verdict {
        for action in &review.actions {
            if let Some(ActionDecision::Edit { arguments }) = decisions.get(&action.id) {
                let (old, new) = (Value::Object(action.arguments.clone()), Value::Object(arguments.clone()));
                changes.push((calls::named(review, action), ContentType::Json, old, new));
            }
        }
    }
    changes
}

/// A tool call: its arguments, its request, and the result or error.
fn call_view(call: ToolExecuted) -> impl IntoView {
    let part = |title: &'static str, text: String| {
        view! { <section class="card"><header><b>{title}</b></header><pre class="value-code">{in_pieces(&text)}</pre></section> }
    };
    view! {
        {part("Called with", text_of(&Value::Object(call.arguments)))}
        {call.request.and_then(|request| request.text()).map(|sent| part("Sent", sent))}
        {call.result.map(|answer| part("Answer", text_of(&answer)))}
        {call.error.map(|error| part("Error", error.message))}
    }
}

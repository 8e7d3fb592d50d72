//! A review as it was shown, with nothing to decide, and what was said of each call: for the record.

use leptos::prelude::*;
use shared::decision::Decision;
use shared::review::{Action, Item, Review};

use super::action::{asked, place};
use super::options::options;
use super::request::request;
use super::stakes::stakes;
use super::value::ValueView;
use crate::components::inert::{inert, named};
use crate::components::markdown::Markdown;
use crate::state::{action_words, calls, distinction, record, words};

/// All that a decision on the review is bound to, and the outcome of each call by `decision`, or else by the review's
/// resolution.
pub fn recorded(review: Review, decision: Option<&Decision>) -> AnyView {
    let prompt = distinction::prompt(&review).map(ToOwned::to_owned);
    let alternatives = review.stakes.alternatives.iter().map(|one| view! { <li>{inert(&one.to_string())}</li> });
    let alternatives = (!review.stakes.alternatives.is_empty()).then(|| {
        view! { <div><h3 class="sub">"Alternatives"</h3><ul class="plain">{alternatives.collect_view()}</ul></div> }
    });
    view! {
        <p class="shown-title"><b>{inert(&review.title)}</b></p>
        {stakes(&review.stakes, words::category(&review))}
        {prompt.map(|prompt| view! { <div class="prompt"><Markdown text=prompt /></div> })}
        {review.items.iter().cloned().map(item).collect_view()}
        {review.actions.iter().map(|action| call(&review, action, decision)).collect_view()}
        {(!review.options.is_empty()).then(|| options(&review.options, None))}
        {alternatives}
    }
    .into_any()
}

fn item(item: Item) -> impl IntoView {
    view! {
        <section class="card">
            <header>
                <code>{inert(&item.key)}</code>
                {item.label.map(|label| view! { <span class="muted">{inert(&label)}</span> })}
            </header>
            <ValueView content_type=item.content_type value=item.value />
        </section>
    }
}

fn call(review: &Review, action: &Action, decision: Option<&Decision>) -> AnyView {
    let words = action_words::words(review, action);
    let by_decision = decision.and_then(|decision| record::outcome_by(review, action, &decision.verdict));
    let outcome = by_decision.or_else(|| record::outcome_of(review, action));
    let says = outcome.as_ref().map(|outcome| {
        if record::is_vetoed(review, action) { ("tag stop", words.blocked.to_owned()) } else { outcome.says(words) }
    });
    let message = outcome.as_ref().and_then(|outcome| outcome.message());
    let message = message.map(|text| view! { <blockquote>{inert(text)}</blockquote> });
    let sent = action
        .request
        .as_ref()
        .map(|sent| request(sent, &serde_json::Value::Object(action.arguments.clone()), Signal::stored(true)));
    view! {
        <section class="card action" aria-label=named(&calls::named(review, action))>
            <header>
                <code>{inert(&action.name)}</code>
                {place(review, action)}
                <span class="muted cut">{action_words::kind(action)}</span>
                <span class="grow"></span>
                {says.map(|(class, says)| view! { <span class=class>{says}</span> })}
            </header>
            {message}
            {action.stakes.as_deref().and_then(|own| stakes(own, own.category.clone()))}
            {action.description.as_ref().map(|text| view! { <p class="describes">{inert(text)}</p> })}
            <div class:json=!action_words::is_read(action.action_type)>{asked(action)}</div>
            {sent}
        </section>
    }
    .into_any()
}

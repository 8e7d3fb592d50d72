//! What was sent with the decisions on a review, as far as the outcome in words does not quote it in full.

use leptos::prelude::*;
use shared::decision::Decision;
use shared::review::Review;

use super::pane::Pane;
use super::value::texts;
use crate::components::focus::focus_on;
use crate::state::sent::{self, Sent};

/// Texts and values as a list, with their titles.
pub fn sent(all: &[Sent]) -> AnyView {
    texts(all.iter().map(|sent| (&sent.title, &sent.value)))
}

/// A card for each decision that carried more than the outcome says.
#[component]
pub fn SentWithIt(pane: Pane) -> impl IntoView {
    let cards = Memo::new(move |_| pane.review.with(|review| cards(review)));
    move || {
        let card = |(title, all): (String, Vec<Sent>)| {
            let name = title.clone();
            view! {
                <section class="card sent" data-review=pane.id.to_string() tabindex="-1" aria-label=name>
                    <header><b>{title}</b></header>
                    {sent(&all)}
                </section>
            }
        };
        cards.get().into_iter().map(card).collect_view()
    }
}

/// A button that leads to the card, if a resolved review has one.
#[component]
pub fn ReadIt(pane: Pane) -> impl IntoView {
    let has_card = Memo::new(move |_| pane.review.with(|review| !cards(review).is_empty()));
    let read = move |_| focus_on(format!(".card.sent[data-review='{}']", pane.id));
    move || {
        has_card.get().then(|| {
            view! { <button type="button" class="link" on:click=read>"See all that was sent"</button>" " }
        })
    }
}

fn cards(review: &Review) -> Vec<(String, Vec<Sent>)> {
    let resolving = review.resolution.iter().filter_map(|resolution| resolution.decision.as_deref());
    let is_vote = |decision: &&Decision| !review.decisions.contains(decision);
    // Of several decisions on a review that is over, the outcome quotes the one that resolved it.
    let is_quoted = |decision: &Decision| {
        review.is_pending()
            || review.resolution.as_ref().is_some_and(|resolution| resolution.decision.as_deref() == Some(decision))
    };
    let people = review.decisions.iter().chain(resolving.filter(is_vote)).map(|decision| {
        let title = match &review.voting {
            Some(_) => format!("Sent with the vote of {}", decision.voter()),
            None => "Sent with the decision".to_owned(),
        };
        let mut all = sent::with(review, decision);
        all.retain(|sent| !is_quoted(decision) || !sent.is_told());
        (title, all)
    });
    let mut by_program = sent::by_program(review);
    by_program.retain(|sent| !sent.is_told());
    people.chain([("Sent with the decision".to_owned(), by_program)]).filter(|(_, all)| !all.is_empty()).collect()
}

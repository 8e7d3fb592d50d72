//! Further acts on a review: delegating, reassigning and withdrawing it. Typed text is kept until it is sent.

use leptos::prelude::*;
use shared::access::Act;
use shared::api::Reason;
use shared::deputy::Delegate;

use super::pane::Pane;
use super::reassign::ReassignDialog;
use crate::client::use_post;
use crate::components::button::Button;
use crate::components::commands::{Command, Commands};
use crate::components::dialog::Dialog;
use crate::components::inert::{inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::drafts::Form;
use crate::state::palette::Section;
use crate::state::shortcuts::DELEGATE;
use crate::state::{effects, words};

/// The buttons, the dialog in which one delegates or withdraws the review, and the one in which one reassigns it.
#[component]
pub fn More(pane: Pane) -> impl IntoView {
    let open = RwSignal::new(false);
    // Whether the dialog delegates the review; otherwise it withdraws it.
    let hands = RwSignal::new(true);
    let text = RwSignal::new(String::new());
    let problem = RwSignal::new(None::<String>);
    let pending = move || pane.review.with(|review| review.is_pending());
    let hand = Memo::new(move |_| pending() && pane.access.get().is_allowed());
    let withdraw = Memo::new(move |_| pending() && pane.review.with(|review| pane.session.may(Act::Withdraw(review))));
    let reassign = Memo::new(move |_| pending() && pane.review.with(|review| pane.session.may(Act::Reassign(review))));
    let form = move |hand: bool| if hand { Form::Delegation(pane.id) } else { Form::Withdrawal(pane.id) };
    let kept = move |hand: bool| {
        let kept = pane.workspace.form(&form(hand));
        kept.and_then(|kept| kept.get("text")?.as_str().map(ToOwned::to_owned)).unwrap_or_default()
    };
    let typed = move |said: String| {
        let fields = || [("text".to_owned(), said.clone().into())].into_iter().collect();
        let typed = (!said.trim().is_empty()).then(fields);
        pane.workspace.write_form(&form(hands.get_untracked()), typed, false);
        text.set(said);
    };
    let start = move |hand: bool| {
        hands.set(hand);
        text.set(kept(hand));
        problem.set(None);
        open.set(true);
    };
    // Loaded at each opening, since the people who may decide can change.
    let names = LocalResource::new(move || {
        let asked = open.get() && hands.get();
        async move {
            if !asked {
                return Vec::new();
            }
            match pane.api.reviewers(Some(pane.id)).await {
                Ok(page) => page.items.iter().map(|user| (user.username.to_string(), words::user(user))).collect(),
                Err(refused) => {
                    problem.set(Some(refused.to_string()));
                    Vec::new()
                }
            }
        }
    });
    // A kept choice counts only once the list shows it.
    let chosen = move || {
        let chosen = text.get_untracked();
        let is_shown = |names: &Option<Vec<(String, String)>>| names.iter().flatten().any(|(name, _)| *name == chosen);
        names.with_untracked(is_shown).then_some(chosen)
    };
    let (delegate, delegating) = use_post(format!("delegation of {}", pane.id), move |to: Delegate, key| async move {
        pane.take_answer(pane.api.delegate(pane.id, &to, Some(&key)).await, &form(true), open, problem)
    });
    let (withdrawal, withdrawing) =
        use_post(format!("withdrawal of {}", pane.id), move |reason: Reason, key| async move {
            pane.take_answer(pane.api.withdraw(pane.id, &reason, Some(&key)).await, &form(false), open, problem)
        });
    let busy = Signal::derive(move || delegating.get() || withdrawing.get());
    let send = move || {
        if !hands.get_untracked() {
            let said = text.get_untracked().trim().to_owned();
            withdrawal.run(Reason { reason: Some(said).filter(|said| !said.is_empty()) });
        } else if let Some(to) = chosen().and_then(|to| to.parse().ok()) {
            delegate.run(Delegate { to });
        } else {
            problem.set(Some("Choose a person.".to_owned()));
        }
    };
    let commands = expect_context::<Commands>();
    let delegates = move || hand.get_untracked().then(|| "Delegate this review…".to_owned());
    commands.on_key(Section::Review, DELEGATE, delegates, move || start(true));
    commands.offer(Section::Review, move || {
        let withdraws = || Command::new("Withdraw this review…", move || start(false));
        let reassigns = || Command::new("Reassign this review…", move || pane.reassigning.set(true));
        let reassigns = reassign.get_untracked().then(reassigns);
        reassigns.into_iter().chain(withdraw.get_untracked().then(withdraws)).collect()
    });
    let title =
        Signal::derive(move || if hands.get() { "Delegate this review" } else { "Withdraw this review?" }.to_owned());
    view! {
        <span class="asides">
            {move || hand.get().then(|| view! { <button class="b ghost sm" on:click=move |_| start(true)>"Delegate"</button> })}
            {move || reassign.get().then(|| view! { <button class="b ghost sm" on:click=move |_| pane.reassigning.set(true)>"Reassign"</button> })}
            {move || withdraw.get().then(|| view! { <button class="b ghost sm" on:click=move |_| start(false)>"Withdraw"</button> })}
            <Dialog open title>
                <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                    {move || if hands.get() {
                        view! {
                            <p>"They decide instead of you. You can still see it, but no longer decide."</p>
                            <select class="select" aria-label="Who decides instead" on:change=while_shown(move |event| typed(event_target_value(&event)))>
                                <option value="">"Choose a person"</option>
                                {move || names.get().unwrap_or_default().into_iter().map(|(name, shown)| {
                                    let chosen = text.with_untracked(|text| *text == name);
                                    view! { <option value=name selected=chosen>{named(&shown)}</option> }
                                }).collect_view()}
                            </select>
                        }.into_any()
                    } else {
                        view! {
                            <p>{move || pane.review.with(|review| effects::of_withdrawal(review))}" This cannot be undone."</p>
                            <textarea class="textarea" aria-label="Reason (recorded)" placeholder="Reason (recorded)"
                                prop:value=text on:input=move |event| typed(event_target_value(&event))></textarea>
                        }.into_any()
                    }}
                    {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{inert_code(&problem)}</p> })}
                    <div class="actions">
                        <Button off=busy class=move || if hands.get() { "b primary" } else { "b stop" }>{move || if hands.get() { "Delegate" } else { "Withdraw" }}</Button>
                    </div>
                </form>
            </Dialog>
            <ReassignDialog pane=pane />
        </span>
    }
}

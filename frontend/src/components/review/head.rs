//! The head of the pane: the origin of the review, its title, what is at stake, the remaining time, and the claim.

use leptos::html;
use leptos::prelude::*;
use shared::author::Author;
use shared::id::NodeId;
use shared::inbox::SOON;
use shared::review::Review;

use super::more::More;
use super::pane::Pane;
use super::stakes::at_stake;
use crate::components::arrival;
use crate::components::button::Button;
use crate::components::commands::{Command, Commands};
use crate::components::glyph::Glyph;
use crate::components::inert::inert;
use crate::components::time;
use crate::state::palette::Section;
use crate::state::{effects, words};

#[component]
pub fn Head(pane: Pane, back: Callback<()>) -> impl IntoView {
    let crumbs = Memo::new(move |_| {
        pane.review.with(|review| {
            let flow = review.flow.as_ref().map(ToString::to_string);
            let node = review.node.as_ref().map(NodeId::place);
            // A review without a flow only has an asker.
            let node = node.or_else(|| flow.is_none().then(|| words::asker(review)));
            (flow, review.flow_title.clone(), review.run_id, node)
        })
    });
    let title = Memo::new(move |_| pane.review.with(|review| review.title.clone()));
    let heading = arrival::heading::<html::H1>();
    view! {
        <div class="head">
            // With the keyboard, this skips everything above and beside the decision.
            <Show when=move || pane.is_open()>
                <button type="button" class="b to-decision" on:click=move |_| pane.go_to_decision()>"Skip to the decision"</button>
            </Show>
            <div class="crumbs">
                <button class="b ghost sm back" on:click=move |_| back.run(()) aria-label="Back to the list">
                    <Glyph icon=icondata::LuArrowLeft />
                </button>
                {move || {
                    let (flow, flow_title, run, node) = crumbs.get();
                    let name = flow_title.or_else(|| flow.clone()).unwrap_or_default();
                    let flow = flow.map(|flow| view! { <a href=format!("/flows/{flow}") class="cut">{inert(&name)}</a> });
                    let run = run.map(|run| {
                        let short = words::tail(run);
                        view! { <span aria-hidden="true">"›"</span><a href=format!("/runs/{run}") class="nowrap" title=run.to_string()>"run "{short}</a> }
                    });
                    let arrow = flow.is_some().then(|| view! { <span aria-hidden="true">"›"</span> });
                    let node = node.map(|node| view! { {arrow}<span class="cut">{node}</span> });
                    view! { <nav class="trail" aria-label="Origin">{flow}{run}{node}</nav> }
                }}
                <Claim pane=pane />
                <More pane=pane />
            </div>
            <h1 node_ref=heading tabindex="-1" dir="auto">{move || inert(&title.get())}</h1>
            <div class="facts">
                <Facts pane=pane />
            </div>
        </div>
    }
}

/// What is at stake, the round, the cost so far, and the remaining time.
#[component]
pub fn Facts(pane: Pane) -> impl IntoView {
    let facts = Memo::new(move |_| pane.review.with(|review| facts(review)));
    view! {
        {move || facts.get().into_iter().map(|(class, text)| view! { <span class=class>{inert(&text)}</span> }).collect_view()}
        <Due pane=pane />
    }
}

/// What is at stake, the round and the cost so far, as CSS classes and texts of tags.
fn facts(review: &Review) -> Vec<(&'static str, String)> {
    let mut facts = at_stake(&review.stakes, words::category(review));
    facts.extend(words::round(review).map(|round| ("tag", round)));
    facts.extend(review.escalated.iter().map(|role| ("tag warn", format!("escalated to {role}"))));
    if review.usage.total_tokens > 0 {
        let tokens = words::thousands(review.usage.total_tokens);
        facts.push((
            "tag",
            if review.usage.total_cost_usd > 0.0 {
                format!("{}, {tokens} tokens", words::dollars(review.usage.total_cost_usd))
            } else {
                format!("{tokens} tokens")
            },
        ));
    }
    facts
}

/// The time until the deadline on the server's clock, and what happens then.
#[component]
fn Due(pane: Pane) -> impl IntoView {
    let times = Memo::new(move |_| {
        pane.review.with(|review| {
            let expires = review.expires_at.filter(|_| review.is_pending())?;
            Some((review.created_at, expires, effects::at_deadline(review)))
        })
    });
    view! {
        {move || {
            times
                .get()
                .map(|(created, expires, then)| {
                    let part = move || {
                        let all = (expires.0 - created.0).max(1);
                        let left = (expires.0 - pane.live.now.get().0).clamp(0, all);
                        left / (all / 100).max(1)
                    };
                    let soon = move || expires < pane.live.now.get().after(SOON);
                    let then = then.map(|then| format!(", then {then}")).unwrap_or_default();
                    let text = move || match words::left(pane.live.now.get(), expires) {
                        Some(left) => format!("{left} left{then}"),
                        None => "Expired".to_owned(),
                    };
                    view! {
                        <span class="due" class:soon=soon title=format!("until {}", time::full(expires))>
                            <span>{text}</span>
                            <span class="bar" aria-hidden="true"><i style:width=move || format!("{}%", part())></i></span>
                        </span>
                    }
                })
        }}
    }
}

/// The person who has claimed the review, and a button to claim or release it.
#[component]
fn Claim(pane: Pane) -> impl IntoView {
    let act = Action::new_local(move |&take: &bool| async move {
        let answer = if take { pane.api.claim(pane.id).await } else { pane.api.release(pane.id).await };
        match answer {
            Ok(decided) => pane.live.inbox.update(|inbox| inbox.put(decided.review, pane.live.server_now())),
            Err(problem) => pane.notifier.bad(problem.to_string()),
        }
    });
    let busy = act.pending();
    let set = move |take: bool| {
        act.dispatch_local(take);
    };
    let claim = Memo::new(move |_| {
        pane.review.with(|review| review.claimed_by.clone()).filter(|claim| claim.until > pane.live.now.get())
    });
    let may = Memo::new(move |_| pane.review.with(|review| review.is_pending()) && pane.access.get().is_allowed());
    let shown = Memo::new(move |_| (claim.get(), may.get()));
    let is_mine = move |by: &str| pane.session.username().as_deref() == Some(by);
    expect_context::<Commands>().offer(Section::Review, move || {
        let command = match shown.get_untracked() {
            _ if busy.get_untracked() => None,
            (None, true) => Some(Command::new("Claim this review", move || set(true))),
            (Some(claim), true) if is_mine(&claim.by) => Some(Command::new("Release this review", move || set(false))),
            _ => None,
        };
        command.into_iter().collect()
    });
    view! {
        <span class="claim">
            {move || match shown.get() {
                (Some(claim), may) => {
                    let mine = is_mine(&claim.by);
                    let until = format!(" until {}", time::clock(claim.until));
                    let by = words::authors(&[Author::from(&claim)], pane.session.username().as_deref());
                    let text = format!("Claimed by {by}");
                    let whole = format!("{text}{until}");
                    view! {
                        <span class="face" aria-hidden="true">{words::initials(&claim.by)}</span>
                        <span title=whole>{text}<span class="until">{until}</span></span>
                        {(mine && may)
                            .then(|| view! { <Button class="b ghost sm" off=busy press=move |()| set(false)>"Release"</Button> })}
                    }
                        .into_any()
                }
                (None, true) => {
                    view! {
                        <Button
                            class="b ghost sm"
                            title="Tells the other reviewers that you are working on this, for a limited time"
                            off=busy
                            press=move |()| set(true)
                        >
                            <Glyph icon=icondata::LuHand />
                            "Claim"
                        </Button>
                    }
                        .into_any()
                }
                (None, false) => ().into_any(),
            }}
        </span>
    }
}

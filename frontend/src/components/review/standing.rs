//! What to know before a decision: the state of the votes, the claim, and why this person may not decide.

use leptos::prelude::*;
use shared::access::{Access, Act};
use shared::author::Author;

use super::pane::Pane;
use crate::components::glyph::Glyph;
use crate::components::inert::inert;
use crate::components::time;
use crate::state::sentences::sentence;
use crate::state::{votes, words};

/// The state of the votes, and problems with them, for which admins are offered a remedy.
#[component]
pub fn Votes(pane: Pane) -> impl IntoView {
    move || {
        let (alarm, text) = pane.review.with(|review| votes::standing(review, pane.session.username().as_deref()))?;
        let class = if alarm { "banner stop" } else { "banner" };
        let may = alarm && pane.is_alone() && pane.review.with(|review| pane.session.may(Act::Reassign(review)));
        let reassign = may.then(|| {
            view! { <button type="button" class="b sm" on:click=move |_| pane.reassigning.set(true)>"Reassign"</button> }
        });
        Some(view! {
            <p class=class role=pane.status_role()>
                <Glyph icon=icondata::LuUsers /><span>{inert(&text)}</span>{reassign}
            </p>
        })
    }
}

/// Says that another person has claimed the review.
#[component]
pub fn ClaimedByOther(pane: Pane) -> impl IntoView {
    let claim = Memo::new(move |_| {
        let me = pane.session.username();
        let now = pane.live.now.get();
        pane.review.with(|review| {
            let claim = review.claimed_by.as_ref()?;
            (claim.until > now && me.as_deref() != Some(claim.by.as_str())).then(|| claim.clone())
        })
    });
    let says = move || {
        let claim = claim.get()?;
        let (by, until) = (words::authors_first(&[Author::from(&claim)], None), time::clock(claim.until));
        let text = format!("{by} has claimed this until {until}. You can still decide it first.");
        Some(view! { <p class="banner warn"><Glyph icon=icondata::LuUserRound /><span>{text}</span></p> })
    };
    view! { <div class="stage" role=pane.status_role()>{says}</div> }
}

/// Says who paused the review, and what that means; also confirms the pause to that person.
#[component]
pub fn PausedSince(pane: Pane) -> impl IntoView {
    let paused = Memo::new(move |_| pane.review.with(|review| review.paused.clone().filter(|_| review.is_pending())));
    let says = move || {
        let paused = paused.get()?;
        let who = words::person(&paused.by, pane.session.username().as_deref());
        let text = format!(
            "Paused by {who} since {}. The deadline is suspended, and nothing continues until somebody decides.",
            time::day(paused.at)
        );
        Some(view! { <p class="banner"><Glyph icon=icondata::LuPause /><span>{text}</span></p> })
    };
    view! { <div class="stage" role=pane.status_role()>{says}</div> }
}

/// Says why this person cannot decide.
#[component]
pub fn Why(pane: Pane) -> impl IntoView {
    move || {
        let Access::Denied(reason) = pane.access.get() else { return None };
        let me = pane.session.username();
        let reason = pane.review.with(|review| {
            let me = me.as_deref()?;
            let rule = &review.reviewers;
            let chose = review.reassignments.iter().any(|change| change.by.as_str() == me);
            let barred = !chose && review.barred.iter().any(|name| name.as_str() == me);
            let own = if rule.not_requester && review.requested_by.as_str() == me {
                "You launched this run; somebody else has to decide this".to_owned()
            } else if let (Some(node), true) = (&rule.not_same_as, barred) {
                format!("You decided at “{node}”; somebody else has to decide this (four eyes)")
            } else {
                sentence(reason)
            };
            review.is_pending().then_some(own)
        })?;
        Some(view! { <p class="banner"><Glyph icon=icondata::LuBan />{reason}". You can read it."</p> })
    }
}

//! Why the person is asked, what follows from the decision, and what others said about it.

use leptos::prelude::*;
use shared::author::Author;
use shared::review::{Review, ReviewKind};

use super::pane::Pane;
use crate::components::inert::inert;
use crate::components::time::{Ago, full};
use crate::state::words;

/// Who asks whom, with what consequences, and which alternatives there are.
#[component]
pub fn Context(pane: Pane) -> impl IntoView {
    let stakes = Memo::new(move |_| pane.review.with(|review| review.stakes.clone()));
    view! {
        <section>
            <h2 class="sub">"Requested by"</h2>
            <p>{move || pane.review.with(|review| inert(&requester(review, pane.session.username().as_deref())))}</p>
        </section>
        <section>
            <h2 class="sub">"Who decides"</h2>
            <p>{move || pane.review.with(|review| inert(&deciders(review)))}</p>
            {move || {
                let changes = pane.review.with(|review| review.reassignments.clone());
                changes.iter().map(|change| view! { <p>{inert(&change.to_string())}</p> }).collect_view()
            }}
            {move || {
                let said = pane.review.with(|review| review.advice.clone());
                said.iter().map(|advice| view! { <p class="advice">{inert(&advice.to_string())}</p> }).collect_view()
            }}
            {move || {
                let asked = pane.review.with(|review| review.asked.clone())?;
                let waiting = words::asked_too(&asked, pane.live.now.get());
                let until = asked.until.map(full);
                Some(view! { <p class="advice" title=until>{inert(&waiting)}</p> })
            }}
        </section>
        {move || list("Consequences", &stakes.get().consequences)}
        {move || {
            let texts: Vec<_> = stakes.get().alternatives.iter().map(ToString::to_string).collect();
            list("Alternatives", &texts)
        }}
    }
}

#[component]
pub fn CommentList(pane: Pane) -> impl IntoView {
    let comments = Memo::new(move |_| pane.review.with(|review| review.comments.clone()));
    move || {
        comments
            .get()
            .into_iter()
            .map(|comment| {
                let author = words::authors_first(&[(&comment).into()], None);
                view! {
                    <p><b>{author}</b>" "<span class="muted tiny"><Ago at=comment.at /></span><br />{inert(&comment.text)}</p>
                }
            })
            .collect_view()
    }
}

fn list(title: &'static str, texts: &[String]) -> Option<impl IntoView + use<>> {
    (!texts.is_empty()).then(|| {
        let texts = texts.iter().map(|text| view! { <li>{inert(text)}</li> }).collect_view();
        view! { <section><h2 class="sub">{title}</h2><ul class="plain">{texts}</ul></section> }
    })
}

/// Who started the run or asked the question, and on whose behalf.
fn requester(review: &Review, me: Option<&str>) -> String {
    let whom = [("for", &review.context.user), ("of", &review.context.tenant)];
    let whom: String = whom.iter().filter_map(|(what, who)| who.as_ref().map(|who| format!(" {what} {who}"))).collect();
    format!("{}{whom}", words::person_first(&review.requested_by, me))
}

/// Who may decide, and how their decisions become one.
fn deciders(review: &Review) -> String {
    let named = words::whom(&review.reviewers);
    let named = named.join(", ");
    // A username keeps its case.
    let mut who = match named.strip_prefix("the ") {
        Some(roles) => format!("The {roles}"),
        None if named.is_empty() => "Any reviewer".to_owned(),
        None => named,
    };
    if !review.reviewers.tags.is_empty() {
        who = format!("{who} who also has the tag {}", review.reviewers.tags.join(" and "));
    }
    let handed =
        review.delegations.iter().map(|handed| format!(" Delegated by {} to {}.", Author::from(handed), handed.to));
    let handed = handed.collect::<Vec<_>>().concat();
    let not = if review.reviewers.not_requester { " Not the person who launched the run." } else { "" };
    let how = match review.kind {
        ReviewKind::Handoff => ", to take care of it",
        _ if review.voting.is_some() => ", by vote",
        _ if review.reviewers.roles.is_empty() && review.reviewers.users.len() == 1 => "",
        _ => ", the first decision wins",
    };
    format!("{who}{how}.{not}{handed}")
}

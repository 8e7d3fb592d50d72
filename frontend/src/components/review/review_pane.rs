//! The review pane: loads a review, keeps track of what the person has seen, and assembles its parts.

use std::time::Duration;

use leptos::prelude::*;
use shared::error::{Code, Problem};
use shared::id::ReviewId;

use super::bar::Bar;
use super::changed::{Changed, LastRound};
use super::content::Content;
use super::head::Head;
use super::keys;
use super::load::OpenedReview;
use super::pane::Pane;
use super::sent::SentWithIt;
use super::side::Side;
use crate::components::archived::Archived;
use crate::components::arrival;
use crate::components::glyph::Glyph;
use crate::components::held::HeldBar;
use crate::components::inert::named;
use crate::components::states::{Empty, Failed, Loading};
use crate::state::inbox::InboxRow;
use crate::state::option_fields;
use crate::state::outbox::Sending;

/// A pane to read and decide a review.
#[component]
pub fn ReviewPane(
    id: ReviewId,
    /// Called when the person returns to the list, on a narrow screen.
    #[prop(into)]
    back: Callback<()>,
) -> impl IntoView {
    let opened = OpenedReview::new(id);
    let OpenedReview { row, problem, .. } = opened;
    arrival::title(move || {
        let title = row.with(|row| row.as_ref().map(|row| row.review.title.clone()));
        let title = title.map(|title| named(&title));
        title.map_or_else(|| "Review".to_owned(), |title| format!("Review: {title}"))
    });
    let known = Memo::new(move |_| row.with(Option::is_some));
    view! {
        <article class="read" aria-label="Review" tabindex="-1">
            {move || {
                if known.get() {
                    return view! { <LoadedReview id=id row=row back=back /> }.into_any();
                }
                match problem.get() {
                    None => view! { <Loading rows=7 /> }.into_any(),
                    Some(problem) if problem.code == Code::NotFound => view! {
                        <Empty icon=icondata::LuSearch title="Review not found" page=true>
                            <p>"It does not exist, or you do not have access."</p>
                            <button class="b" on:click=move |_| back.run(())>"Back to the inbox"</button>
                        </Empty>
                    }
                    .into_any(),
                    Some(Problem { archived: Some(archived), .. }) => view! {
                        <Archived title="This review is archived" relation="It belongs to" archived=*archived>
                            <button class="b" on:click=move |_| back.run(())>"Back to the inbox"</button>
                        </Archived>
                    }
                    .into_any(),
                    Some(problem) => {
                        let retry = Callback::new(move |()| opened.again());
                        view! {
                            <Failed title="The review could not be loaded" problem retry page=true>
                                <button class="b ghost back" on:click=move |_| back.run(())>
                                    <Glyph icon=icondata::LuArrowLeft />
                                    "Back to the list"
                                </button>
                            </Failed>
                        }
                        .into_any()
                    }
                }
            }}
        </article>
    }
}

#[component]
fn LoadedReview(id: ReviewId, row: Memo<Option<InboxRow>>, back: Callback<()>) -> impl IntoView {
    // The row exists from here on, since the open review is never dropped.
    let Some(pane) = Pane::new(id, row, false) else { return ().into_any() };
    let review = pane.review;
    // The form of an accepted decision closes; that of an undone one opens again. If the server refused values in the
    // form, it is open already: the decision may have left the outbox before this effect ran.
    Effect::new(move |before: Option<Option<Sending>>| {
        let now = pane.workspace.outbox.with(|outbox| outbox.get(id).cloned());
        if let (Some(ended), None, true) = (before.flatten(), &now, pane.mistakes.with_untracked(Vec::is_empty)) {
            pane.filling.update(|open| {
                *open = review.with_untracked(|review| option_fields::after(review, &ended, open.take()));
            });
        }
        now
    });
    // The decision is rendered first; the side column follows in a task of its own.
    let beside = RwSignal::new(false);
    set_timeout(
        move || {
            // It fails only if the pane is gone meanwhile.
            let _ = beside.try_set(true);
        },
        Duration::ZERO,
    );
    let view = view! {
        <Head pane=pane back=back />
        // What scrolls must take the focus for that, as it may contain nothing focusable: on small screens all of it,
        // otherwise the content beside the side column.
        <div class="body" tabindex=move || (!pane.is_open()).then_some("0")>
            <div class="main" tabindex="0" role="group" aria-label="Content">
                <Changed pane=pane />
                <LastRound pane=pane />
                <Content pane=pane />
                <SentWithIt pane=pane />
            </div>
            <Show when=move || beside.get()>
                <Side pane=pane />
            </Show>
        </div>
        // For narrow screens, where the list with its own bar is out of sight.
        <HeldBar open=Some(id) />
        <Bar pane=pane />
    };
    // Its commands are listed before those of the parts.
    keys::listen(pane);
    view.into_any()
}

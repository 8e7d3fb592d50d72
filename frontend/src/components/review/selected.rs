//! The page on which selected reviews are read, one below the other, and decided with one button. Each decision is sent
//! like one on the review's own page, and has a result of its own.

use std::collections::BTreeMap;

use leptos::html;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use shared::error::Code;
use shared::id::ReviewId;
use shared::review::Review;

use super::bar::General;
use super::changed::{Changed, LastRound, find_round};
use super::choices::{Choices, draft_of};
use super::content::Content;
use super::context::{CommentList, Context};
use super::head::Facts;
use super::load::OpenedReview;
use super::pane::Pane;
use super::progress::Progress;
use super::sent::SentWithIt;
use super::standing::{ClaimedByOther, PausedSince, Votes, Why};
use crate::client::{Live, Workspace};
use crate::components::arrival;
use crate::components::autosize::grow_once_shown;
use crate::components::button::Button;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, named};
use crate::components::notice::Notifier;
use crate::components::selecting::Selecting;
use crate::components::states::{Empty, Failed, Loading};
use crate::state::inbox::{InboxRow, address};
use crate::state::selection::{PlainChoice, Selection, choices};
use crate::state::standing::{Standing, summary};
use crate::state::words;

/// The panes on the page.
type Panes = StoredValue<BTreeMap<ReviewId, Pane>, LocalStorage>;

#[component]
pub fn SelectedReviews(
    /// Called when the person returns to the list.
    #[prop(into)]
    back: Callback<()>,
) -> impl IntoView {
    let selecting = expect_context::<Selecting>();
    let none = Memo::new(move |_| selecting.selection.with(|selection| selection.shown().is_empty()));
    view! {
        <article class="read together" aria-label="Selected reviews" tabindex="-1">
            {move || if none.get() {
                view! {
                    <Empty icon=icondata::LuListChecks title="No reviews are selected" page=true>
                        <p>"Select reviews in the inbox to read and decide them here."</p>
                        <button class="b" on:click=move |_| back.run(())>"Go to the inbox"</button>
                    </Empty>
                }
                .into_any()
            } else {
                view! { <Together selecting back /> }.into_any()
            }}
        </article>
    }
}

#[component]
fn Together(selecting: Selecting, back: Callback<()>) -> impl IntoView {
    let live = expect_context::<Live>();
    let workspace = expect_context::<Workspace>();
    let selection = selecting.selection;
    let ids = Memo::new(move |_| selection.with(Selection::shown));
    let panes: Panes = StoredValue::new_local(BTreeMap::new());
    let standings = Memo::new(move |_| {
        let rows = live.inbox.with(|inbox| ids.get().iter().map(|id| inbox.get(*id).cloned()).collect::<Vec<_>>());
        rows.iter().flatten().map(|row| selecting.standing(row)).collect::<Vec<_>>()
    });
    let is_any = move |wanted: Standing| standings.with(|all| all.contains(&wanted));
    let is_open = Memo::new(move |_| is_any(Standing::Open));
    let held = Memo::new(move |_| {
        let held = workspace.outbox.with(crate::state::outbox::Outbox::held);
        ids.with(|ids| held.iter().copied().filter(|id| ids.contains(id)).collect::<Vec<_>>())
    });
    arrival::title(|| "Review and decide".to_owned());
    let heading = arrival::heading::<html::H1>();
    view! {
        <div class="head">
            <div class="crumbs">
                <button class="b ghost sm back" on:click=move |_| back.run(()) aria-label="Back to the list">
                    <Glyph icon=icondata::LuArrowLeft />
                </button>
                <span>"Selected reviews"</span>
            </div>
            <h1 node_ref=heading tabindex="-1">"Review and decide"</h1>
            <p class="facts" role="status">{move || standings.with(|all| summary(all))}</p>
        </div>
        <div class="body">
            <div class="main" tabindex="0" role="group" aria-label="Content">
                <For each=move || ids.get() key=|id| *id let:id>
                    <SelectedReview id selecting panes />
                </For>
            </div>
        </div>
        <div class="decide">
            <Held held />
            <Show
                when=move || is_open.get()
                fallback=move || {
                    view! {
                        <div class="acts">
                            <button type="button" class="b" on:click=move |_| back.run(())>"Back to the inbox"</button>
                        </div>
                    }
                }
            >
                <Note selecting />
                <Send selecting panes />
            </Show>
        </div>
    }
}

#[component]
fn Held(held: Memo<Vec<ReviewId>>) -> impl IntoView {
    let workspace = expect_context::<Workspace>();
    let says = move || words::count(held.with(Vec::len), "decision is", "decisions are");
    let notifier = expect_context::<Notifier>();
    let undo = move |_| {
        let undone = held.get_untracked().into_iter().filter_map(|id| workspace.undo(id)).count();
        notifier.say(format!("{} undone.", words::count(undone, "decision", "decisions")));
    };
    view! {
        <div class="stage" role="status">
            <Show when=move || !held.with(Vec::is_empty)>
                <div class="banner accent">
                    <span class="grow"><b>{says}</b>" sent in a moment, or when you leave this tab."</span>
                    <button type="button" class="b sm" on:click=undo><Glyph icon=icondata::LuUndo2 />"Undo all"</button>
                </div>
            </Show>
        </div>
    }
}

/// The note that goes with each decision. Reviews that are selected after it was written have none until the person says
/// so.
#[component]
fn Note(selecting: Selecting) -> impl IntoView {
    const LABEL: &str = "Add a note to each decision";
    let node = NodeRef::<html::Textarea>::new();
    let selection = selecting.selection;
    let text = Memo::new(move |_| selection.with(|selection| selection.note.text.clone()));
    let without = Memo::new(move |_| {
        selection.with(|Selection { note, .. }| !note.is_blank()).then_some(())?;
        let without = |selection: &Selection| selection.ticked().filter(|id| !selection.note.is_for(*id)).count();
        Some(selection.with(without)).filter(|without| *without > 0)
    });
    let says = move |without: usize| {
        let some = words::count(without, "review that was", "reviews that were");
        format!("The note is not sent with {some} selected after you wrote it.")
    };
    let for_all = move |_| selection.update(|selection| selection.write_note(selection.note.text.clone()));
    Effect::new(move |_| {
        text.track();
        grow_once_shown(node);
    });
    let write = move |event| selection.update(|selection| selection.write_note(event_target_value(&event)));
    view! {
        <label class="say">
            <span class="sr">{LABEL}</span>
            <textarea node_ref=node rows="1" placeholder=LABEL prop:value=text on:input=write></textarea>
        </label>
        <div class="stage" role="status">
            {move || without.get().map(|without| view! {
                <p class="banner">
                    <span class="grow">{says(without)}</span>
                    <button type="button" class="b sm" on:click=for_all>"Send it with all"</button>
                </p>
            })}
        </div>
    }
}

/// The buttons that choose for all, and the one that sends what is chosen.
#[component]
fn Send(selecting: Selecting, panes: Panes) -> impl IntoView {
    let workspace = expect_context::<Workspace>();
    let selection = selecting.selection;
    let number = Memo::new(move |_| selection.with(|selection| selection.chosen().len()));
    let choose_all = move |accepts: bool| {
        let all: Vec<Pane> = panes.with_value(|panes| panes.values().copied().collect());
        for pane in all {
            let review = pane.review.get_untracked();
            let usual = |choice: &PlainChoice| choice.usual && choice.accepts == accepts;
            if let Some(PlainChoice { intent, .. }) = choices(&review).into_iter().find(usual)
                && !untrack(move || pane.has_changed())
            {
                selection.update(|selection| selection.choose_for_all(pane.id, intent, review.revision));
            }
        }
    };
    let send = move |()| {
        for (id, choice) in selection.with_untracked(Selection::chosen) {
            let Some(pane) = panes.with_value(|panes| panes.get(&id).copied()) else { continue };
            let review = pane.review.get_untracked();
            // What changed a moment ago is shown again first.
            if review.revision != choice.revision || untrack(move || pane.has_changed() || !pane.is_undecided()) {
                continue;
            }
            let note = selection.with_untracked(|selection| selection.note.of(id).to_owned());
            let draft = draft_of(&review, note);
            let mistakes = workspace.decide_with(&review, &draft, &choice.intent).err();
            pane.mistakes.set(mistakes.unwrap_or_default());
        }
    };
    let label = move || match number.get() {
        0 => "Send decisions".to_owned(),
        number => format!("Send {}", words::count(number, "decision", "decisions")),
    };
    let nothing = Signal::derive(move || number.get() == 0);
    let is_begun = Memo::new(move |_| selection.with(Selection::has_single_choices));
    let (approve, reject) = (
        move || if is_begun.get() { "Approve the rest" } else { "Approve all" },
        move || if is_begun.get() { "Reject the rest" } else { "Reject all" },
    );
    view! {
        <div class="acts">
            <button type="button" class="b" on:click=move |_| choose_all(true)>{approve}</button>
            <button type="button" class="b" on:click=move |_| choose_all(false)>{reject}</button>
            <Button class="b primary send" off=nothing press=send>{label}</Button>
        </div>
    }
}

/// A review on the page, as soon as it is loaded.
#[component]
fn SelectedReview(id: ReviewId, selecting: Selecting, panes: Panes) -> impl IntoView {
    let opened = OpenedReview::new(id);
    let OpenedReview { row, problem, .. } = opened;
    let known = Memo::new(move |_| row.with(Option::is_some));
    let title =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.review.title.clone())).unwrap_or_default());
    let name = format!("selected-{id}");
    let named_by = name.clone();
    let search = use_location().search;
    let href = move || address::review(id, &search.get());
    let leave_out = move |_| selecting.selection.update(|selection| selection.remove(id));
    let under_way =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| selecting.standing(row))) == Some(Standing::Sending));
    view! {
        <section class="one" role="group" aria-labelledby=named_by>
            <header>
                <h2 id=name dir="auto"><a href=href>{move || inert(&title.get())}</a></h2>
                <Show when=move || !under_way.get()>
                    <button
                        type="button"
                        class="b ghost sm icon"
                        title="Leave out"
                        aria-label=move || format!("Leave out “{}”", named(&title.get()))
                        on:click=leave_out
                    >
                        <Glyph icon=icondata::LuX />
                    </button>
                </Show>
            </header>
            {move || {
                if known.get() {
                    return view! { <LoadedReview id row selecting panes /> }.into_any();
                }
                match problem.get() {
                    None => view! { <Loading rows=4 /> }.into_any(),
                    Some(problem) if problem.code == Code::NotFound => {
                        view! { <p class="banner">"It does not exist, or you do not have access."</p> }.into_any()
                    }
                    Some(problem) => {
                        let retry = Callback::new(move |()| opened.again());
                        view! { <Failed title="The review could not be loaded" problem retry /> }.into_any()
                    }
                }
            }}
        </section>
    }
}

#[component]
fn LoadedReview(id: ReviewId, row: Memo<Option<InboxRow>>, selecting: Selecting, panes: Panes) -> impl IntoView {
    // The row exists from here on, since selected reviews are never dropped.
    let Some(pane) = Pane::new(id, row, true) else { return ().into_any() };
    panes.update_value(|panes| {
        panes.insert(id, pane);
    });
    on_cleanup(move || {
        // It fails only if the page is gone, too.
        let _ = panes.try_update_value(|panes| panes.remove(&id));
    });
    let from = Memo::new(move |_| pane.review.with(|review| words::origin(review)));
    let commented = Memo::new(move |_| pane.review.with(|review| !review.comments.is_empty()));
    let can_decide =
        Memo::new(move |_| row.with(|row| row.as_ref().map(|row| selecting.standing(row))) == Some(Standing::Open));
    load_round(pane);
    view! {
        <div class="facts">
            <span class="cut">{move || inert(&from.get())}</span>
            <Facts pane=pane />
        </div>
        <Changed pane=pane />
        <LastRound pane=pane />
        <Content pane=pane />
        <SentWithIt pane=pane />
        <div class="context">
            <Context pane=pane />
            <Show when=move || commented.get()>
                <section><h2 class="sub">"Comments"</h2><CommentList pane=pane /></section>
            </Show>
        </div>
        <div class="verdict">
            <Votes pane=pane />
            <Progress pane=pane />
            <PausedSince pane=pane />
            <Why pane=pane />
            <Show when=move || can_decide.get()><ClaimedByOther pane=pane /></Show>
            <General pane=pane />
            <Choices pane selecting row />
        </div>
    }
    .into_any()
}

/// Loads the report of the run if the review is not its node's first, so that the previous round can be shown.
fn load_round(pane: Pane) {
    let is_later = |review: &Review| review.visit.is_some_and(|visit| visit > 1);
    let run = pane.review.with_untracked(|review| review.run_id.filter(|_| is_later(review)));
    let Some(run) = run else { return };
    let loaded = LocalResource::new(move || async move { pane.api.report(run).await.ok() });
    find_round(pane, Memo::new(move |_| loaded.get().flatten()));
}

//! The review pane: loads a review, keeps what the person has seen of it, and puts its parts together.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use serde_json::Value;
use shared::access::{Access, Act};
use shared::decision::Verdict;
use shared::error::{Code, Mistake};
use shared::id::ReviewId;
use shared::review::{Action, Item, Review};

use super::action::ActionCard;
use super::bar::Bar;
use super::changed::Changed;
use super::head::Head;
use super::item::ItemCard;
use super::keys;
use super::option_form::WhatWentWithIt;
use super::side::Side;
use crate::client::{Api, Live, Session, Workspace, use_api};
use crate::components::arrival;
use crate::components::focus::{MISTAKE, focus_on};
use crate::components::glyph::Glyph;
use crate::components::inert::{inert_code, named};
use crate::components::notice::Notifier;
use crate::components::states::{Empty, Failed, Loading};
use crate::state::drafts::Draft;
use crate::state::guardrail_notes::Answered;
use crate::state::option_fields::{self, PLACE};
use crate::state::outbox::{Sending, Stage};
use crate::state::verdict::keys::on_enter;
use crate::state::verdict::{Intent, choice};
use crate::state::{changes, words};

/// The first button of an action for which nothing was chosen yet.
const UNDECIDED: &str = ".card.action:not(:has(footer [aria-pressed=true])) :is(.unfold, footer:not([hidden]) button)";

/// What the parts of the pane share. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Pane {
    pub id: ReviewId,
    /// As it is now.
    pub review: Memo<Arc<Review>>,
    /// As the person saw it before it changed, until they have read the change.
    pub before: RwSignal<Option<Arc<Review>>>,
    /// The revision that the person knows.
    pub known: RwSignal<u32>,
    /// Whether this person may decide it, and if not, why.
    pub access: Memo<Access>,
    /// Mistakes in what was typed, from here or from the server.
    pub mistakes: RwSignal<Vec<Mistake>>,
    /// The option whose form is open.
    pub filling: RwSignal<Option<String>>,
    /// Raised when the first thing that can be edited shall open.
    pub edit: Trigger,
    /// How many forms hold something that cannot be read yet.
    pub unsound: RwSignal<usize>,
    /// What guardrails said of what was typed.
    pub checked: RwSignal<Answered>,
    /// Drafts and decisions under way.
    pub workspace: Workspace,
    pub api: Api,
    notifier: Notifier,
}

impl Pane {
    /// What was typed. Follows it.
    pub fn draft(self) -> Draft {
        self.workspace.draft(self.id)
    }

    /// Whether it can be decided by this person: it waits, they may, and nothing is on its way.
    pub fn is_open(self) -> bool {
        self.review.with(|review| review.is_pending())
            && self.access.get().is_allowed()
            && self.workspace.outbox.with(|outbox| outbox.get(self.id).is_none())
    }

    /// Whether the content has changed since the person read it, or since they wrote what is kept here.
    pub fn has_changed(self) -> bool {
        let known = self.known.get();
        let behind = |review: &Review| {
            self.workspace.drafts.with(|drafts| drafts.review(self.id).is_some_and(|draft| draft.is_behind(review)))
        };
        self.review.with(|review| review.revision > known || behind(review))
    }

    /// The person has read the change.
    pub fn read_change(self) {
        let review = self.review.get_untracked();
        self.known.set(review.revision);
        self.workspace.see(&review);
        self.mistakes.set(Vec::new());
    }

    /// Sends what Ctrl+Enter sends: the form that is open, the choices that were made, or the text. Where something has
    /// to be chosen first, goes there.
    pub fn send(self) {
        if !untrack(move || self.is_open()) {
            return;
        }
        let (review, draft) = (self.review.get_untracked(), self.workspace.draft_now(self.id));
        let filled = untrack(move || self.filled()).map(|option| option.id);
        match on_enter(&review, &draft, filled.as_deref()) {
            Some(intent) => self.decide(&intent),
            None => self.go_to_decision(),
        }
    }

    /// Gives the focus to what is decided next.
    pub fn go_to_decision(self) {
        let (review, draft) = (self.review.get_untracked(), self.workspace.draft_now(self.id));
        // All together are approved by a button: where some were chosen, or each has to be, the next one is due.
        if review.is_one_by_one() || review.actions.iter().any(|action| choice(action, &draft).is_some()) {
            focus_on(UNDECIDED);
        } else {
            focus_on(".acts button");
        }
    }

    /// Sends a decision, where the review is open and what it shows was seen and is complete; else says what is missing.
    pub fn decide(self, intent: &Intent) {
        if !untrack(move || self.is_open()) {
            return;
        }
        if untrack(move || self.has_changed()) {
            self.notifier.bad("The content has changed. Look at the change before you decide.");
            return;
        }
        if self.unsound.get_untracked() > 0 {
            self.notifier.bad("A field that you are editing is not complete yet.");
            focus_on(MISTAKE);
            return;
        }
        match self.workspace.decide(&self.review.get_untracked(), intent) {
            Ok(()) => self.mistakes.set(Vec::new()),
            Err(mistakes) => {
                self.mistakes.set(mistakes);
                focus_on(MISTAKE);
            }
        }
    }
}

/// A review, to be read and decided.
#[component]
pub fn ReviewPane(
    id: ReviewId,
    /// Called when the person wants back to the list, on a narrow screen.
    #[prop(into)]
    back: Callback<()>,
) -> impl IntoView {
    let live = Live::expect();
    let api = use_api();
    let row = Memo::new(move |_| live.inbox.with(|inbox| inbox.get(id).cloned()));
    arrival::title(move || {
        let title = row.with(|row| row.as_ref().map(|row| row.review.title.clone()));
        let title = title.map(|title| named(&title));
        title.map_or_else(|| "Review".to_owned(), |title| format!("Review: {title}"))
    });
    // Also where the list has it: the server records who has opened a review.
    let read = LocalResource::new(move || async move {
        api.review(id).await.map(|review| live.inbox.update(|inbox| inbox.read(review, live.server_now())))
    });
    let problem = Memo::new(move |_| read.get().and_then(Result::err));
    let known = Memo::new(move |_| row.with(Option::is_some));
    // What happened meanwhile was told to nobody, or with other rights: it is read again, and stays on screen.
    Effect::new(move |before: Option<u64>| {
        let renewed = live.renewed.get();
        if before.is_some_and(|before| before != renewed) {
            read.refetch();
        }
        renewed
    });
    Effect::new(move |_| {
        if problem.with(|problem| problem.as_ref().is_some_and(|problem| problem.code == Code::NotFound)) {
            live.inbox.update(|inbox| inbox.lose(id, live.server_now()));
        }
    });
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
                    Some(problem) => {
                        let retry = Callback::new(move |()| read.refetch());
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
fn LoadedReview(id: ReviewId, row: Memo<Option<crate::state::inbox::InboxRow>>, back: Callback<()>) -> impl IntoView {
    let session = Session::expect();
    // The row exists from here on: the fold never forgets what is open.
    let first = row.get_untracked().map(|row| row.review);
    let Some(first) = first else { return ().into_any() };
    let fallback = Arc::clone(&first);
    let review = Memo::new(move |_| row.get().map_or_else(|| Arc::clone(&fallback), |row| row.review));
    let gone = Memo::new(move |_| row.with(|row| row.as_ref().is_some_and(|row| row.gone)));
    let access = Memo::new(move |_| {
        if gone.get() {
            return Access::Denied("you no longer have access to this review");
        }
        review.with(|review| session.access(Act::Decide(review)))
    });
    let workspace = Workspace::expect();
    // What was written on an older revision is shown beside what is new.
    let draft = workspace.draft_now(id);
    let before = draft.is_behind(&first).then(|| draft.saw(&first)).flatten().map(Arc::new);
    let known = if draft.is_behind(&first) { draft.revision } else { first.revision };
    let pane = Pane {
        id,
        review,
        before: RwSignal::new(before),
        known: RwSignal::new(known),
        access,
        mistakes: RwSignal::new(Vec::new()),
        filling: RwSignal::new(workspace.outbox.with_untracked(|outbox| {
            option_fields::begun(&first, &draft, outbox.get(id).map(|sending| &sending.request))
        })),
        edit: Trigger::new(),
        unsound: RwSignal::new(0),
        checked: RwSignal::new(None),
        workspace,
        api: use_api(),
        notifier: Notifier::expect(),
    };
    // What was shown before a change is kept, so that the change can be shown.
    Effect::new(move |previous: Option<Arc<Review>>| {
        let now = review.get();
        if let Some(previous) = previous.filter(|previous| previous.revision < now.revision) {
            // What one has changed by deciding, one knows.
            if changes::is_own(&previous, &now, session.username().as_deref())
                && pane.known.get_untracked() == previous.revision
            {
                pane.known.set(now.revision);
                pane.workspace.see(&now);
            } else {
                pane.before.set(Some(previous));
            }
        }
        now
    });
    // What the server refused as invalid stands at its fields, in the form where it was typed.
    Effect::new(move |_| {
        let refused = pane.workspace.outbox.with(|outbox| {
            let sending = outbox.get(id)?;
            let Stage::Refused(problem) = &sending.stage else { return None };
            (!problem.errors.is_empty()).then(|| (problem.errors.clone(), sending.request.verdict.clone()))
        });
        if let Some((mistakes, verdict)) = refused {
            if let (Verdict::Choose { option, .. }, true) =
                (verdict, mistakes.iter().any(|mistake| mistake.path.starts_with(PLACE)))
            {
                pane.filling.set(Some(option));
            }
            pane.mistakes.set(mistakes);
            focus_on(MISTAKE);
            pane.workspace.outbox.update(|outbox| outbox.dismiss(id));
        }
    });
    // What was accepted is forgotten, and its form closes; what was undone is open again, as it was. What was refused for
    // what stands in the form is open too: it may have left the outbox before this was seen.
    Effect::new(move |before: Option<Option<Sending>>| {
        let now = pane.workspace.outbox.with(|outbox| outbox.get(id).cloned());
        if let (Some(ended), None, true) = (before.flatten(), &now, pane.mistakes.with_untracked(Vec::is_empty)) {
            pane.filling.update(|open| {
                *open = review.with_untracked(|review| option_fields::after(review, &ended, open.take()));
            });
        }
        now
    });
    keys::listen(pane);
    // What is decided comes first: the column beside it is made in a task of its own.
    let beside = RwSignal::new(false);
    set_timeout(
        move || {
            // It fails only where one has walked on meanwhile.
            let _ = beside.try_set(true);
        },
        Duration::ZERO,
    );
    let prompt = Memo::new(move |_| review.with(|review| review.prompt.clone()));
    let asks = Memo::new(move |_| review.with(|review| words::who_asks(review)));
    let items = Memo::new(move |_| review.with(|review| review.items.clone()));
    let actions = Memo::new(move |_| review.with(|review| review.actions.clone()));
    view! {
        <Head pane=pane back=back />
        // Where there is little room it scrolls, by keys too: there may be nothing in it that has the focus.
        <div class="body" tabindex=move || (!pane.is_open()).then_some("0")>
            <div class="main">
                <Changed pane=pane />
                <div class="prompt">
                    {move || asks.get().map(|asks| view! { <p class="asks small muted">{inert_code(&asks)}</p> })}
                    {move || view! { <crate::components::markdown::Markdown text=prompt.get() /> }}
                </div>
                <For each=move || items.get() key=item_key let:item>
                    <ItemCard pane=pane item=item />
                </For>
                <For each=move || actions.get() key=action_key let:action>
                    <ActionCard pane=pane action=action />
                </For>
                <WhatWentWithIt pane=pane />
            </div>
            <Show when=move || beside.get()>
                <Side pane=pane />
            </Show>
        </div>
        <Bar pane=pane />
    }
    .into_any()
}

/// A card is made anew only when what it shows has changed.
fn item_key(item: &Item) -> (String, String, bool) {
    (item.key.clone(), item.value.to_string(), item.editable)
}

fn action_key(action: &Action) -> (String, String) {
    (action.id.clone(), Value::Object(action.arguments.clone()).to_string())
}

//! The review pane: loads a review, keeps track of what the person has seen, and assembles its parts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use serde_json::Value;
use shared::access::{Access, Act};
use shared::decision::Verdict;
use shared::error::Code;
use shared::id::ReviewId;
use shared::review::{Action, Item, Review, ReviewOption};

use super::action::ActionCard;
use super::bar::Bar;
use super::changed::{Changed, LastRound};
use super::head::Head;
use super::item::ItemCard;
use super::keys;
use super::options::options;
use super::pane::Pane;
use super::sent::SentWithIt;
use super::side::Side;
use crate::client::{Live, Session, Workspace, use_api};
use crate::components::arrival;
use crate::components::focus::{MISTAKE, focus_on};
use crate::components::glyph::Glyph;
use crate::components::held::HeldBar;
use crate::components::inert::{inert_code, named};
use crate::components::markdown::Markdown;
use crate::components::notice::Notifier;
use crate::components::states::{Empty, Failed, Loading};
use crate::state::option_fields::{self, PLACE};
use crate::state::outbox::{Sending, Stage};
use crate::state::{changes, subject, words};

/// A pane to read and decide a review.
#[component]
pub fn ReviewPane(
    id: ReviewId,
    /// Called when the person returns to the list, on a narrow screen.
    #[prop(into)]
    back: Callback<()>,
) -> impl IntoView {
    let live = Live::expect();
    let api = use_api();
    let workspace = Workspace::expect();
    let row = Memo::new(move |_| live.inbox.with(|inbox| inbox.get(id).cloned()));
    arrival::title(move || {
        let title = row.with(|row| row.as_ref().map(|row| row.review.title.clone()));
        let title = title.map(|title| named(&title));
        title.map_or_else(|| "Review".to_owned(), |title| format!("Review: {title}"))
    });
    // Loaded even if the list has it, since the server records who has opened a review. What is loaded again is compared
    // with what the person has seen, and they say when they have read it.
    let opened = StoredValue::new(false);
    let read = LocalResource::new(move || async move {
        let review = if opened.get_value() { api.unviewed_review(id).await } else { api.review(id).await };
        review.map(|review| {
            // The page may have been left.
            opened.try_update_value(|opened| *opened = true);
            live.inbox.update(|inbox| inbox.read(review, live.server_now()));
        })
    });
    let problem = Memo::new(move |_| read.get().and_then(Result::err));
    let known = Memo::new(move |_| row.with(Option::is_some));
    // Messages do not say who has voted in secret, and the person may have voted in another tab or program.
    let secret = Memo::new(move |_| {
        row.with(|row| row.as_ref().filter(|row| row.review.is_secret()).map(|row| row.review.version))
    });
    Effect::new(move |before: Option<Option<u64>>| {
        let now = secret.get();
        if before.flatten().is_some() && now.is_some() && before.flatten() != now {
            read.refetch();
        }
        now
    });
    // After a lost connection the review is read again; until then the old content stays on screen.
    live.on_return(move || read.refetch());
    Effect::new(move |_| {
        if problem.with(|problem| problem.as_ref().is_some_and(|problem| problem.code == Code::NotFound)) {
            live.inbox.update(|inbox| inbox.lose(id, live.server_now()));
            workspace.overtake(id);
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
    // The row exists from here on, since the open review is never dropped.
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
    // A draft on an older revision is shown with what has changed since.
    let draft = workspace.draft_now(id);
    let before = draft.is_behind(&first).then(|| draft.saw(&first)).flatten().map(Arc::new);
    let known = if draft.is_behind(&first) { draft.revision } else { first.revision };
    let pane = Pane {
        id,
        review,
        before: RwSignal::new(before),
        round: RwSignal::new(None),
        known: RwSignal::new(known),
        access,
        mistakes: RwSignal::new(Vec::new()),
        filling: RwSignal::new(workspace.outbox.with_untracked(|outbox| {
            option_fields::begun(&first, &draft, outbox.get(id).map(|sending| &sending.request))
        })),
        edit: Trigger::new(),
        flaws: RwSignal::new(BTreeMap::new()),
        checked: RwSignal::new(None),
        workspace,
        api: use_api(),
        notifier: Notifier::expect(),
    };
    // The content before a change is kept, so that the difference can be shown.
    Effect::new(move |previous: Option<Arc<Review>>| {
        let now = review.get();
        // After several changes, the content before the first of them stays.
        let known = |previous: &Arc<Review>| previous.revision == pane.known.get_untracked();
        if let Some(previous) = previous.filter(known).filter(|previous| previous.revision < now.revision) {
            // The person knows what they have changed by deciding.
            if changes::is_own(&previous, &now, session.username().as_deref()) {
                pane.known.set(now.revision);
                pane.workspace.see(&now);
            } else {
                pane.before.set(Some(previous));
            }
        }
        now
    });
    // Mistakes found by the server are shown at their fields, in the form where they were typed.
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
            pane.workspace.dismiss(id);
        }
    });
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
    let prompt = Memo::new(move |_| review.with(|review| subject::prompt(review).map(ToOwned::to_owned)));
    let asks = Memo::new(move |_| review.with(|review| words::who_asks(review)));
    let items = Memo::new(move |_| review.with(|review| review.items.clone()));
    let actions = Memo::new(move |_| review.with(|review| review.actions.clone()));
    // The bar has room for the description of one option at a time.
    let described = Memo::new(move |_| {
        let is_described = |option: &ReviewOption| option.description.is_some();
        review.with(|review| if review.options.iter().any(is_described) { review.options.clone() } else { Vec::new() })
    });
    let view = view! {
        <Head pane=pane back=back />
        // What scrolls must take the focus for that, as it may contain nothing focusable: on small screens all of it,
        // otherwise the content beside the side column.
        <div class="body" tabindex=move || (!pane.is_open()).then_some("0")>
            <div class="main" tabindex="0" role="group" aria-label="Content">
                <Changed pane=pane />
                <LastRound pane=pane />
                <div class="prompt">
                    {move || asks.get().map(|asks| view! { <p class="asks small muted">{inert_code(&asks)}</p> })}
                    {move || prompt.get().map(|prompt| view! { <Markdown text=prompt /> })}
                </div>
                <For each=move || items.get() key=item_key let:item>
                    <ItemCard pane=pane item=item />
                </For>
                <For each=move || actions.get() key=action_key let:action>
                    <ActionCard pane=pane action=action />
                </For>
                {move || described.with(|described| (!described.is_empty()).then(|| options(described)))}
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

/// The key of a card, which is rendered again only when its content changes.
fn item_key(item: &Item) -> (String, String, bool) {
    (item.key.clone(), item.value.to_string(), item.editable)
}

fn action_key(action: &Action) -> (String, String) {
    (action.id.clone(), Value::Object(action.arguments.clone()).to_string())
}

//! The list of the inbox: a window onto the server's list. Only the visible rows are in the page; rows that come or
//! leave above them do not move them.

mod around;
mod position;
mod row;
mod select_box;

use leptos::html;
use leptos::prelude::*;
use leptos::tachys::reactive_graph::OwnedView;
use leptos::tachys::view::keyed::keyed;
use leptos::task::spawn_local;
use shared::id::ReviewId;

use self::around::Around;
use self::position::ListPosition;
use self::row::QueueRow;
use super::focus::focus_on;
use super::glyph::Glyph;
use super::selecting::Selecting;
use crate::client::{GlobalSignal, Live, ReviewList, Session, Workspace, after_paint};

/// The number of rows in the page above and below the visible ones, as soon as these are painted.
const BEYOND: usize = 8;
/// The distance from the last row in memory at which more rows are loaded.
const AHEAD: usize = 25;

/// The list of reviews. Only the rows in and near the visible part are in the page.
#[component]
pub fn Queue(
    #[prop(into)] open: Signal<Option<ReviewId>>,
    /// The review that is selected with the keyboard.
    #[prop(into)]
    at: Signal<Option<ReviewId>>,
    /// The suffix of the rows' addresses: the filter.
    #[prop(into)]
    search: Signal<String>,
    /// The number of rows in the whole list; `None` if unknown.
    #[prop(into)]
    total: Signal<Option<u64>>,
    /// The number of new rows above the visible ones. Set here; [`ToMoreUrgent`] shows it.
    above: RwSignal<usize>,
    /// The element that scrolls the rows.
    scroller: NodeRef<html::Div>,
) -> impl IntoView {
    let live = expect_context::<Live>();
    let list = expect_context::<ReviewList>();
    let (workspace, session, selecting) =
        (expect_context::<Workspace>(), expect_context::<Session>(), expect_context::<Selecting>());
    let position = ListPosition::new(at, search, above, scroller);
    let first = position.first;
    let seen = Memo::new(move |_| position.rows_in_sight());
    let beyond = RwSignal::new(0);
    spawn_local(async move {
        after_paint().await;
        // It fails only if the list is gone.
        let _ = beyond.try_set(BEYOND);
    });

    let ids = Memo::new(move |_| {
        let (first, seen, beyond) = (first.get(), seen.get(), beyond.get());
        live.inbox.with(|inbox| {
            let window = inbox.window();
            let (before, rows) = (window.before(), window.rows());
            let from = first.saturating_sub(before + beyond).min(rows.len());
            let to = (first + seen + beyond).saturating_sub(before).min(rows.len());
            let mut ids: Vec<ReviewId> = rows[from..to.max(from)].iter().map(|row| row.id).collect();
            // The row with the focus stays in the page, however far the person scrolls.
            if let Some(at) = at.get().filter(|at| !ids.contains(at))
                && let Some(index) = inbox.index(at)
            {
                let end = if index < before + from { 0 } else { ids.len() };
                ids.insert(end, at);
            }
            ids
        })
    });
    let look_around = move || {
        let (at, ids) = (at.get(), ids.get());
        let drafted =
            workspace.drafts.with(|drafts| ids.iter().copied().filter(|id| drafts.review(*id).is_some()).collect());
        let stages = workspace.outbox.with(|outbox| {
            let stage = |id: &ReviewId| Some((*id, outbox.get(*id)?.stage.clone()));
            ids.iter().filter_map(stage).collect()
        });
        Around {
            selected: selecting.selection.with(|selection| selection.ticked().collect()),
            viewer: session.principal(),
            open: open.get(),
            at,
            stop: at.filter(|at| ids.contains(at)).or_else(|| ids.first().copied()),
            search: search.get(),
            total: total.get(),
            drafted,
            stages,
        }
    };
    let around = GlobalSignal::new(untrack(look_around));
    Effect::new(move |_| around.set(look_around()));

    let version = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().version()));
    // Rows that will soon be visible are loaded.
    Effect::new(move |_| {
        let (first, seen, _) = (first.get(), seen.get(), version.get());
        if list.busy.get() || list.error.with(Option::is_some) {
            return;
        }
        let (before, end, more) = live.inbox.with_untracked(|inbox| {
            let window = inbox.window();
            (window.before(), window.before() + window.rows().len(), window.has_more())
        });
        if before > 0 && position.is_laid_out() && first < before + BEYOND {
            list.back_to(first.saturating_sub(AHEAD));
        } else if more && first + seen + AHEAD > end {
            list.more();
        }
    });

    view! {
        <div
            class="rows"
            class:selecting=move || selecting.selection.with(|selection| selection.ticked().next().is_some())
            node_ref=scroller
            on:scroll=move |_| position.scrolled()
            on:mouseenter=move |_| position.hold()
            on:focusin=move |_| position.hold()
        >
            <ul role="list" aria-label="Reviews, the most urgent first" node_ref=position.rows>
                {list_of_rows(ids, around, selecting)}
            </ul>
        </div>
    }
}

/// Shows how many new rows are above the visible ones, and scrolls to them. It is beside the heading, where it covers
/// and moves no row.
#[component]
pub fn ToMoreUrgent(above: RwSignal<usize>, scroller: NodeRef<html::Div>) -> impl IntoView {
    let to_top = move |_| {
        let Some(scroller) = scroller.get_untracked() else { return };
        scroller.set_scroll_top(0);
        // The button disappears once the list has been scrolled; the first row is in the page by then.
        spawn_local(async move {
            after_paint().await;
            focus_on(".rows .row");
        });
    };
    view! {
        <Show when=move || { above.get() > 0 }>
            <button class="above" on:click=to_top>
                <Glyph icon=icondata::LuArrowUp />
                {move || format!("{} more urgent", above.get())}
            </button>
        </Show>
    }
}

/// The rows in the page, each kept while it is among them. Like `For`, but the owners of rows are not children of the
/// list's owner, which would keep a slot for each child it ever had: rows come and go by the thousand.
fn list_of_rows(ids: Memo<Vec<ReviewId>>, around: GlobalSignal<Around>, selecting: Selecting) -> impl IntoView {
    let live = expect_context::<Live>();
    let row = move |_, id| {
        let owner = Owner::default();
        let view = owner.with(|| {
            provide_context(live);
            view! { <QueueRow id around selecting /> }.into_any()
        });
        (drop::<usize>, OwnedView::new_with_owner(view, owner))
    };
    move || keyed(ids.get(), |id| *id, row)
}

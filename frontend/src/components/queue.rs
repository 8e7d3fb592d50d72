//! The list of the inbox: a window over the server's list. Only the rows in sight are in the page; what comes or leaves
//! above them does not move them.

use leptos::html;
use leptos::prelude::*;
use leptos::tachys::reactive_graph::OwnedView;
use leptos::tachys::view::keyed::keyed;
use leptos::task::spawn_local;
use shared::id::ReviewId;

use super::focus::focus_on;
use super::glyph::Glyph;
use super::queue_row::{Around, QueueRow};
use super::resize::on_resize;
use crate::client::{GlobalSignal, Live, ReviewList, Session, Workspace, after_paint};

/// So many rows are in the page above and below those in sight, as soon as these are painted.
const BEYOND: usize = 8;
/// So many rows before the end of what is in memory more is asked for.
const AHEAD: usize = 25;
/// How high a row is until the style has said it, in CSS pixels.
const HEIGHT: f64 = 77.0;

/// The list of reviews. Only the rows in and near the visible part are in the page.
#[component]
pub fn Queue(
    /// Which one is read.
    #[prop(into)]
    open: Signal<Option<ReviewId>>,
    /// Which one the keys stand on.
    #[prop(into)]
    at: Signal<Option<ReviewId>>,
    /// What is behind the addresses of rows: the filter.
    #[prop(into)]
    search: Signal<String>,
    /// How many rows the whole list has; none: not known.
    #[prop(into)]
    total: Signal<Option<u64>>,
    /// How many rows that came stand above what is in sight. Set here; [`ToMoreUrgent`] shows it.
    above: RwSignal<usize>,
    /// What the rows are scrolled in.
    scroller: NodeRef<html::Div>,
) -> impl IntoView {
    let live = Live::expect();
    let list = ReviewList::expect();
    let (workspace, session) = (Workspace::expect(), Session::expect());
    let rows = NodeRef::<html::Ul>::new();
    // Nothing is above a list that is not there any more; nor is the page, perhaps.
    on_cleanup(move || {
        let _ = above.try_set(0);
    });
    // Where the list stands. Told by the browser's events, since asking it would have it lay out the page at once.
    let height = RwSignal::new(HEIGHT);
    let top = StoredValue::new(0.0);
    // How high the list is; 0 until it was laid out.
    let extent = RwSignal::new(0.0);
    on_resize(scroller, move |scroller| {
        extent.set(f64::from(scroller.client_height()));
        if let Some(own) = row_height(scroller).filter(|own| (height.get_untracked() - *own).abs() > 0.1) {
            height.set(own);
        }
    });
    // The first row in sight.
    let first = RwSignal::new(0_usize);
    let seen = Memo::new(move |_| {
        extent.track();
        in_sight(height.get())
    });
    let beyond = RwSignal::new(0);
    spawn_local(async move {
        after_paint().await;
        // It fails only where the list has gone meanwhile.
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
            // Who has the focus keeps it, however far one scrolls.
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
        let sending =
            workspace.outbox.with(|outbox| ids.iter().copied().filter(|id| outbox.is_under_way(*id)).collect());
        Around {
            open: open.get(),
            at,
            stop: at.filter(|at| ids.contains(at)).or_else(|| ids.first().copied()),
            search: search.get(),
            total: total.get(),
            me: session.username(),
            drafted,
            sending,
        }
    };
    let around = GlobalSignal::new(untrack(look_around));
    Effect::new(move |_| around.set(look_around()));

    // What is in sight stays where it is, whatever comes or leaves above it.
    let anchor = StoredValue::new(None::<(ReviewId, usize)>);
    // The filter whose list it stood in.
    let held_in = StoredValue::new(search.get_untracked());
    let hold = move || {
        if scroller.get_untracked().is_none() {
            return;
        }
        let (top, height, extent) = (top.get_value(), height.get_untracked(), extent.get_untracked());
        live.inbox.with_untracked(|inbox| {
            let window = inbox.window();
            let in_sight = |index: &usize| {
                let place = row_to_pixel(*index, height);
                place + height > top && place < top + extent
            };
            let at = at.get_untracked().and_then(|at| Some((at, inbox.index(at).filter(in_sight)?)));
            let row = |index: usize| window.rows().get(index.checked_sub(window.before())?).map(|row| (row.id, index));
            anchor.set_value(at.or_else(|| row(pixel_to_row(top, height))));
        });
        held_in.set_value(search.get_untracked());
    };
    // A list that is shorter than its column is held as a long one is, on room below its rows. The browser cuts a place that
    // is behind the end, so the end is moved first.
    let make_room = move |room: f64| {
        let Some(rows) = rows.get_untracked() else { return };
        let length = live.inbox.with_untracked(|inbox| inbox.window().before() + inbox.window().rows().len());
        let style = web_sys::HtmlElement::style(&rows);
        drop(style.set_property("height", &format!("max(calc(var(--row) * {length}), {}px)", pixels(room))));
    };
    let scrolled = move || {
        let Some(scroller) = scroller.get_untracked() else { return };
        top.set_value(f64::from(scroller.scroll_top()));
        let row = pixel_to_row(top.get_value(), height.get_untracked());
        if first.get_untracked() != row {
            first.set(row);
        }
        if row == 0 && above.get_untracked() > 0 {
            above.set(0);
            make_room(0.0);
        }
        hold();
    };
    let scroll_to = move |place: f64| {
        if let Some(scroller) = scroller.get_untracked() {
            scroller.set_scroll_top(pixels(place));
            scrolled();
        }
    };
    let version = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().version()));
    Effect::new(move |_| {
        version.track();
        if rows.get().is_none() {
            return;
        }
        let (top, height, extent) = (top.get_value(), height.get_untracked(), extent.get_untracked());
        let (moved, has_row) = live.inbox.with_untracked(|inbox| {
            let index = |(id, was): (ReviewId, usize)| Some((was, inbox.index(id)?));
            let window = inbox.window();
            (anchor.get_value().and_then(index), pixel_to_row(top, height) < window.before() + window.rows().len())
        });
        // Another list is shown from its top.
        let is_other = top <= 0.0 && held_in.with_value(|filter| search.with_untracked(|now| now != filter));
        if let Some((was, is)) = moved.filter(|(was, is)| was != is && !is_other) {
            let place = top + row_to_pixel(is, height) - row_to_pixel(was, height);
            above.update(|above| *above = (*above + is).saturating_sub(was));
            make_room(if above.get_untracked() > 0 { place + extent } else { 0.0 });
            scroll_to(place);
        } else {
            make_room(if above.get_untracked() > 0 && has_row { top + extent } else { 0.0 });
            hold();
        }
    });
    // Where the keys stand is in sight.
    let is_laid_out = Memo::new(move |_| extent.get() > 0.0);
    Effect::new(move |_| {
        let (Some(at), true) = (at.get(), is_laid_out.get()) else { return };
        let Some(index) = live.inbox.with_untracked(|inbox| inbox.index(at)) else { return };
        let (top, height, extent) = (top.get_value(), height.get_untracked(), extent.get_untracked());
        let place = row_to_pixel(index, height);
        if place < top {
            scroll_to(place);
        } else if place + height > top + extent {
            scroll_to(place + height - extent);
        } else {
            hold();
        }
    });
    // What will be in sight soon is asked for.
    Effect::new(move |_| {
        let (first, seen, _) = (first.get(), seen.get(), version.get());
        if list.busy.get() || list.error.with(Option::is_some) {
            return;
        }
        let (before, end, more) = live.inbox.with_untracked(|inbox| {
            let window = inbox.window();
            (window.before(), window.before() + window.rows().len(), window.has_more())
        });
        if before > 0 && first < before + BEYOND {
            list.back_to(first.saturating_sub(AHEAD));
        } else if more && first + seen + AHEAD > end {
            list.more();
        }
    });

    view! {
        <div class="rows" node_ref=scroller on:scroll=move |_| scrolled() on:mouseenter=move |_| hold() on:focusin=move |_| hold()>
            <ul role="list" aria-label="Reviews, the most urgent first" node_ref=rows>
                {list_of_rows(ids, around)}
            </ul>
        </div>
    }
}

/// Says how many rows have come above what is in sight, and goes to them. Beside the heading, where it covers no row and
/// moves none.
#[component]
pub fn ToMoreUrgent(above: RwSignal<usize>, scroller: NodeRef<html::Div>) -> impl IntoView {
    let to_top = move |_| {
        let Some(scroller) = scroller.get_untracked() else { return };
        scroller.set_scroll_top(0);
        // The button goes when the list has been scrolled; the first row is in the page by then.
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

/// The rows in the page, each kept while it is among them. As `For` makes them, but their owners are no children of the
/// list's: an owner keeps a place for each child that it ever had, and rows come and go by the thousand.
fn list_of_rows(ids: Memo<Vec<ReviewId>>, around: GlobalSignal<Around>) -> impl IntoView {
    let live = Live::expect();
    let row = move |_, id| {
        let owner = Owner::default();
        let view = owner.with(|| {
            provide_context(live);
            view! { <QueueRow id around /> }.into_any()
        });
        (drop::<usize>, OwnedView::new_with_owner(view, owner))
    };
    move || keyed(ids.get(), |id| *id, row)
}

/// How many rows fit into the window of the browser: at least as many as into the list.
fn in_sight(height: f64) -> usize {
    let window = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(1000.0);
    pixel_to_row(window, height) + 1
}

/// How high the style makes a row.
fn row_height(list: &web_sys::Element) -> Option<f64> {
    let style = window().get_computed_style(list).ok().flatten()?;
    // A whole number: to read others takes code as large as some pages.
    let pixels: u32 = style.get_property_value("--row").ok()?.trim().strip_suffix("px")?.parse().ok()?;
    Some(f64::from(pixels))
}

fn row_to_pixel(row: usize, height: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no browser shows 2^52 rows")]
    let row = row as f64;
    row * height
}

fn pixel_to_row(pixel: f64, height: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the page, and not before its top")]
    let row = (pixel.max(0.0) / height) as usize;
    row
}

fn pixels(pixels: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "no browser has a page of 2^31 pixels")]
    let pixels = pixels.round() as i32;
    pixels
}

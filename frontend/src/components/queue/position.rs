//! The scroll position of the inbox. Visible rows stay in place, whatever comes or leaves above them, and the selected
//! row is visible.

use leptos::html;
use leptos::prelude::*;
use shared::id::ReviewId;

use crate::client::{Live, ReviewList};
use crate::components::resize::on_resize;

/// How high a row is until the style has said it, in CSS pixels.
const HEIGHT: f64 = 77.0;

/// The place of the list in its column. Told by the browser's events, since asking it would have it lay out the page at
/// once.
#[derive(Clone, Copy)]
pub struct Position {
    live: Live,
    list: ReviewList,
    /// What the rows are scrolled in.
    pub scroller: NodeRef<html::Div>,
    /// The rows.
    pub rows: NodeRef<html::Ul>,
    /// The first row in sight.
    pub first: RwSignal<usize>,
    /// How many rows that came stand above what is in sight.
    pub above: RwSignal<usize>,
    /// Which row the keys stand on.
    at: Signal<Option<ReviewId>>,
    /// The filter whose list it is.
    search: Signal<String>,
    /// The height of a row, in CSS pixels.
    height: RwSignal<f64>,
    /// How far it is scrolled, in CSS pixels.
    top: StoredValue<f64>,
    /// How high the column is, in CSS pixels; 0 until it was laid out.
    extent: RwSignal<f64>,
    /// The row that stays where it is, and its index there.
    anchor: StoredValue<Option<(ReviewId, usize)>>,
    /// The filter whose list the anchor stood in.
    held_in: StoredValue<String>,
}

impl Position {
    /// The top of a list that is not laid out yet.
    pub fn new(
        at: Signal<Option<ReviewId>>,
        search: Signal<String>,
        above: RwSignal<usize>,
        scroller: NodeRef<html::Div>,
    ) -> Self {
        let position = Self {
            live: Live::expect(),
            list: ReviewList::expect(),
            scroller,
            rows: NodeRef::new(),
            first: RwSignal::new(0),
            above,
            at,
            search,
            height: RwSignal::new(HEIGHT),
            top: StoredValue::new(0.0),
            extent: RwSignal::new(0.0),
            anchor: StoredValue::new(None),
            held_in: StoredValue::new(search.get_untracked()),
        };
        position.follow_the_layout();
        position.follow_the_list();
        position.follow_the_keys();
        // Nothing is above a list that is not there any more; nor is the page, perhaps.
        on_cleanup(move || {
            let _ = above.try_set(0);
        });
        position
    }

    /// How many rows fit into the window of the browser: at least as many as into the list.
    pub fn rows_in_sight(self) -> usize {
        self.extent.track();
        let window = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(1000.0);
        pixel_to_row(window, self.height.get()) + 1
    }

    /// Takes in that somebody, or the browser, has scrolled.
    pub fn scrolled(self) {
        let Some(scroller) = self.scroller.get_untracked() else { return };
        self.top.set_value(f64::from(scroller.scroll_top()));
        self.list.place.set_value(self.top.get_value());
        let row = pixel_to_row(self.top.get_value(), self.height.get_untracked());
        if self.first.get_untracked() != row {
            self.first.set(row);
        }
        if row == 0 && self.above.get_untracked() > 0 {
            self.above.set(0);
            self.make_room(0.0);
        }
        self.hold();
    }

    /// From here on, the row that the keys stand on stays where it is if it is in sight, else the first one in sight.
    pub fn hold(self) {
        if self.scroller.get_untracked().is_none() {
            return;
        }
        let (top, height, extent) = self.measures();
        self.live.inbox.with_untracked(|inbox| {
            let window = inbox.window();
            let in_sight = |index: &usize| {
                let place = row_to_pixel(*index, height);
                place + height > top && place < top + extent
            };
            let at = self.at.get_untracked().and_then(|at| Some((at, inbox.index(at).filter(in_sight)?)));
            let row = |index: usize| window.rows().get(index.checked_sub(window.before())?).map(|row| (row.id, index));
            self.anchor.set_value(at.or_else(|| row(pixel_to_row(top, height))));
        });
        self.held_in.set_value(self.search.get_untracked());
    }

    fn measures(self) -> (f64, f64, f64) {
        (self.top.get_value(), self.height.get_untracked(), self.extent.get_untracked())
    }

    /// Whether it is known what is in sight.
    pub fn is_laid_out(self) -> bool {
        self.extent.get() > 0.0
    }

    fn follow_the_layout(self) {
        let Self { scroller, height, extent, .. } = self;
        // Who comes back to the list finds it where they left it.
        let left = StoredValue::new(self.list.place.get_value());
        on_resize(scroller, move |scroller| {
            if let Some(own) = row_height(scroller).filter(|own| (height.get_untracked() - *own).abs() > 0.1) {
                height.set(own);
            }
            let now = f64::from(scroller.client_height());
            if now > 0.0
                && let Some(place) = left.try_update_value(std::mem::take).filter(|place| *place > 0.0)
            {
                self.scroll_to(place);
            }
            extent.set(now);
        });
    }

    fn follow_the_list(self) {
        let Self { live, rows, above, search, .. } = self;
        let version = Memo::new(move |_| live.inbox.with(|inbox| inbox.window().version()));
        Effect::new(move |_| {
            // Read, not only tracked: a memo that nobody reads follows nothing.
            version.with(|_| ());
            if rows.get().is_none() {
                return;
            }
            let (top, height, extent) = self.measures();
            let (moved, has_row) = live.inbox.with_untracked(|inbox| {
                let index = |(id, was): (ReviewId, usize)| Some((was, inbox.index(id)?));
                let window = inbox.window();
                let end = window.before() + window.rows().len();
                (self.anchor.get_value().and_then(index), pixel_to_row(top, height) < end)
            });
            // Another list is shown from its top.
            let is_other = top <= 0.0 && self.held_in.with_value(|filter| search.with_untracked(|now| now != filter));
            if let Some((was, is)) = moved.filter(|(was, is)| was != is && !is_other) {
                let place = top + row_to_pixel(is, height) - row_to_pixel(was, height);
                above.update(|above| *above = (*above + is).saturating_sub(was));
                self.make_room(if above.get_untracked() > 0 { place + extent } else { 0.0 });
                self.scroll_to(place);
            } else {
                self.make_room(if above.get_untracked() > 0 && has_row { top + extent } else { 0.0 });
                self.hold();
            }
        });
    }

    fn follow_the_keys(self) {
        let Self { live, at, .. } = self;
        let is_laid_out = Memo::new(move |_| self.extent.get() > 0.0);
        Effect::new(move |_| {
            let (Some(at), true) = (at.get(), is_laid_out.get()) else { return };
            let Some(index) = live.inbox.with_untracked(|inbox| inbox.index(at)) else { return };
            let (top, height, extent) = self.measures();
            let place = row_to_pixel(index, height);
            if place < top {
                self.scroll_to(place);
            } else if place + height > top + extent {
                self.scroll_to(place + height - extent);
            } else {
                self.hold();
            }
        });
    }

    fn scroll_to(self, place: f64) {
        if let Some(scroller) = self.scroller.get_untracked() {
            scroller.set_scroll_top(pixels(place));
            self.scrolled();
        }
    }

    /// A list that is shorter than its column is held as a long one is, on room below its rows. The browser cuts a place
    /// that is behind the end, so the end is moved first.
    fn make_room(self, room: f64) {
        let Some(rows) = self.rows.get_untracked() else { return };
        let length = self.live.inbox.with_untracked(|inbox| inbox.window().before() + inbox.window().rows().len());
        let style = web_sys::HtmlElement::style(&rows);
        drop(style.set_property("height", &format!("max(calc(var(--row) * {length}), {}px)", pixels(room))));
    }
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

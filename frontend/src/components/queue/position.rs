//! The scroll position of the inbox. Visible rows stay in place, whatever comes or leaves above them, and the selected
//! row is visible.

use leptos::html;
use leptos::prelude::*;
use shared::id::ReviewId;

use crate::client::{Live, ReviewList};
use crate::components::resize::on_resize;

/// The height of a row until the style sheet is read, in CSS pixels.
const HEIGHT: f64 = 77.0;

/// The scroll position of the list in its column. It follows the browser's events, since reading it from the element
/// would force a layout.
#[derive(Clone, Copy)]
pub struct ListPosition {
    live: Live,
    list: ReviewList,
    /// The element that scrolls the rows.
    pub scroller: NodeRef<html::Div>,
    /// The element that contains the rows.
    pub rows: NodeRef<html::Ul>,
    /// The index of the first visible row.
    pub first: RwSignal<usize>,
    /// The number of new rows above the visible ones.
    pub above: RwSignal<usize>,
    /// The row selected with the keyboard.
    at: Signal<Option<ReviewId>>,
    /// The filter of the list.
    search: Signal<String>,
    height: RwSignal<f64>,
    /// The scroll offset, in CSS pixels.
    top: StoredValue<f64>,
    /// The height of the column, in CSS pixels; 0 until it is laid out.
    extent: RwSignal<f64>,
    /// The row that must stay in place, and its index when this was decided.
    anchor: StoredValue<Option<(ReviewId, usize)>>,
    /// The filter of the list that the anchor belongs to.
    held_in: StoredValue<String>,
}

impl ListPosition {
    /// The position at the top of a list that is not laid out yet.
    pub fn new(
        at: Signal<Option<ReviewId>>,
        search: Signal<String>,
        above: RwSignal<usize>,
        scroller: NodeRef<html::Div>,
    ) -> Self {
        let position = Self {
            live: expect_context::<Live>(),
            list: expect_context::<ReviewList>(),
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
        // A list that is gone has no rows above; the signal may be gone too.
        on_cleanup(move || {
            let _ = above.try_set(0);
        });
        position
    }

    /// The number of rows that fit into the browser's window, which is at least the number of visible rows.
    pub fn rows_in_sight(self) -> usize {
        self.extent.track();
        let window = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(1000.0);
        pixel_to_row(window, self.height.get()) + 1
    }

    /// Handles scrolling by the person or the browser.
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

    /// Makes the selected row the anchor if it is visible, otherwise the first visible row.
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

    /// Whether the list is laid out, so that its visible rows are known.
    pub fn is_laid_out(self) -> bool {
        self.extent.get() > 0.0
    }

    fn follow_the_layout(self) {
        let Self { scroller, height, extent, .. } = self;
        // A person who returns to the list finds it where they left it.
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
            // The memo is read, not only tracked: one that nobody reads does not run.
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
            // A different list is shown from its top.
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

    /// Makes room below the rows, so that even a list shorter than its column can be scrolled to keep its rows in
    /// place. The browser does not scroll beyond the end, so the end is moved first.
    fn make_room(self, room: f64) {
        let Some(rows) = self.rows.get_untracked() else { return };
        let length = self.live.inbox.with_untracked(|inbox| inbox.window().before() + inbox.window().rows().len());
        let style = web_sys::HtmlElement::style(&rows);
        drop(style.set_property("height", &format!("max(calc(var(--row) * {length}), {}px)", pixels(room))));
    }
}

/// The height of a row in the style sheet.
fn row_height(list: &web_sys::Element) -> Option<f64> {
    let style = window().get_computed_style(list).ok().flatten()?;
    // A whole number: parsing fractions would add as much code as some pages have.
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

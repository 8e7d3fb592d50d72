//! The inbox as the server orders, filters and counts it: reads the pages that the window needs, and the counts. A
//! response to an older request never replaces a newer one.

use futures::FutureExt;
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::access::Principal;
use shared::api::{Page, ReviewQuery};
use shared::error::Problem;
use shared::inbox::{Facets, ReviewOrder};
use shared::review::Review;

use super::GlobalSignal;
use super::http::Api;
use super::live::Live;
use super::paint::after_paint;
use crate::state::inbox::{Inbox, PAGE, PAGES};
use crate::state::saved_views::FIRST;

/// The shortest time between two counts, in milliseconds.
const COUNT_EVERY: f64 = 3000.0;
/// The pause after a count, as a multiple of its duration, to spare slow servers.
const COUNT_SHARE: f64 = 20.0;
/// How long changes that only the server knows are collected before the list is reloaded, in milliseconds.
const GATHER: u32 = 4000;

/// The list of the inbox. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct ReviewList {
    /// The counts for other filters; `None` until they are known. Until [`Self::counted`], those of the filter before.
    pub facets: GlobalSignal<Option<Facets>>,
    /// Whether the counts belong to the current filter.
    pub counted: GlobalSignal<bool>,
    pub uncounted: GlobalSignal<Option<Problem>>,
    pub error: GlobalSignal<Option<Problem>>,
    pub busy: GlobalSignal<bool>,
    /// Whether the rows still belong to the filter before.
    pub outdated: GlobalSignal<bool>,
    /// The last scroll position of the list, in CSS pixels.
    pub place: StoredValue<f64>,
    query: StoredValue<ReviewQuery>,
    /// The number of the last request for the list; a response to an older one is dropped.
    turn: StoredValue<u64>,
    counting: StoredValue<Counting>,
    /// Whether changes that only the server knows are being collected.
    gathers: StoredValue<bool>,
    live: Live,
    api: Api,
}

#[derive(Default)]
struct Counting {
    turn: u64,
    /// Whether a count, or the pause after it, is in progress.
    busy: bool,
    again: bool,
}

impl ReviewList {
    pub fn new(api: Api, live: Live) -> Self {
        Self {
            facets: GlobalSignal::new(None),
            counted: GlobalSignal::new(false),
            uncounted: GlobalSignal::new(None),
            error: GlobalSignal::new(None),
            busy: GlobalSignal::new(false),
            outdated: GlobalSignal::new(false),
            place: StoredValue::new(0.0),
            query: StoredValue::default(),
            turn: StoredValue::default(),
            counting: StoredValue::default(),
            gathers: StoredValue::default(),
            live,
            api,
        }
    }

    /// Shows the matches of a query from the beginning, or from the current position if the query is unchanged.
    pub fn show(self, query: ReviewQuery, viewer: Principal) {
        let is_new = self.query.with_value(|before| *before != query);
        let is_read = self.live.inbox.with_untracked(|inbox| inbox.window().is_read());
        if !is_read {
            self.facets.set(None);
        }
        if is_new {
            self.place.set_value(0.0);
            self.counted.set(false);
            self.outdated.set(is_read);
        }
        self.query.set_value(query.clone());
        self.live.inbox.update_untracked(|inbox| inbox.show(query, viewer));
        if is_new || !is_read {
            self.fetch(Some(0), 1);
            self.counting.update_value(|counting| {
                *counting = Counting { turn: counting.turn + 1, ..Counting::default() };
            });
        } else {
            self.again();
        }
        // A list that is not loaded yet is counted after its rows have arrived.
        if is_read {
            self.count();
        }
    }

    /// Makes the list start at its top the next time, rather than at its last position.
    pub fn begin_at_top(self) {
        self.place.set_value(0.0);
        self.live.inbox.update_untracked(|inbox| {
            if inbox.window().before() > 0 {
                inbox.clear();
            }
        });
    }

    /// Reloads the rows in memory.
    pub fn again(self) {
        // The pages in memory belong to the filter before.
        if self.outdated.get_untracked() {
            return self.fetch(Some(0), 1);
        }
        let loaded = self.live.inbox.with_untracked(|inbox| inbox.window().loaded());
        self.fetch(Some(loaded.start), loaded.len().clamp(1, PAGES));
    }

    /// Loads the rows after those in memory.
    pub fn more(self) {
        if !self.busy.get_untracked()
            && self.live.is_followed()
            && self.live.inbox.with_untracked(|inbox| inbox.window().has_more())
        {
            self.fetch(None, 1);
        }
    }

    /// Reloads the part of the list around a row that is no longer in memory; `index` is its place in the whole list.
    pub fn back_to(self, index: usize) {
        if !self.busy.get_untracked() {
            let page = self.live.inbox.with_untracked(|inbox| inbox.window().page_of(index));
            self.fetch(Some(page.saturating_sub(1)), PAGES - 1);
        }
    }

    /// Reloads what only the server knows after a short delay, so that several changes share one request.
    pub fn again_soon(self) {
        if self.gathers.try_update_value(|gathers| std::mem::replace(gathers, true)) != Some(false) {
            return;
        }
        spawn_local(async move {
            TimeoutFuture::new(GATHER).await;
            // A load that is under way is waited for: where reviews arrive faster than the list is loaded, none would
            // ever end.
            while self.busy.get_untracked() {
                TimeoutFuture::new(GATHER).await;
            }
            self.gathers.set_value(false);
            if self.live.inbox.with_untracked(Inbox::is_doubtful) {
                self.again();
            }
        });
    }

    /// Loads `pages` pages beginning with the number `from`, or the next ones.
    fn fetch(self, from: Option<usize>, pages: usize) {
        let Some(turn) = self.turn.try_update_value(|turn| {
            *turn += 1;
            *turn
        }) else {
            return;
        };
        self.busy.set(true);
        let is_read = self.live.inbox.try_update_untracked(|inbox| {
            inbox.await_answer();
            inbox.window().is_read()
        });
        let mut asking = Box::pin(async move {
            let answer = self.read(from, pages).await;
            let inbox = self.live.inbox;
            if self.turn.get_value() != turn {
                inbox.update_untracked(Inbox::give_up);
                return;
            }
            let now = self.live.server_now();
            match answer {
                Ok(pages) => {
                    inbox.update(|inbox| inbox.take(from, pages, now));
                    self.outdated.set(false);
                    self.error.set(None);
                }
                Err(problem) => {
                    inbox.update(|inbox| {
                        inbox.give_up();
                        if self.outdated.get_untracked() {
                            inbox.clear();
                        }
                    });
                    self.outdated.set(false);
                    self.error.set(Some(problem));
                }
            }
            self.busy.set(false);
            if is_read == Some(false) {
                after_paint().await;
                self.count();
            }
        });
        // If the page has the response already, it is shown at once.
        if (&mut asking).now_or_never().is_none() {
            spawn_local(asking);
        }
    }

    async fn read(self, from: Option<usize>, pages: usize) -> Result<Vec<Page<Review>>, Problem> {
        let mut query = self.query.get_value();
        query.order = Some(ReviewOrder::Urgency);
        query.limit = Some(if self.live.is_followed() { PAGE } else { FIRST });
        query.cursor = self.live.inbox.with_untracked(|inbox| {
            let window = inbox.window();
            window.cursor(from.unwrap_or_else(|| window.loaded().end))
        });
        let mut read = Vec::new();
        loop {
            let page = self.api.reviews(&query).await?;
            query.cursor.clone_from(&page.next_cursor);
            read.push(page);
            if read.len() >= pages || query.cursor.is_none() {
                return Ok(read);
            }
        }
    }

    /// Counts soon, but not more often than the server can handle.
    pub fn count(self) {
        let turn = self.counting.try_update_value(|counting| {
            counting.again = true;
            (!std::mem::replace(&mut counting.busy, true)).then_some(counting.turn)
        });
        let Some(turn) = turn.flatten() else { return };
        let is_ours = move || self.counting.with_value(|counting| counting.turn == turn);
        spawn_local(async move {
            loop {
                let wanted = self.counting.try_update_value(|counting| {
                    let wanted = counting.turn == turn && std::mem::take(&mut counting.again);
                    if counting.turn == turn {
                        counting.busy = wanted;
                    }
                    wanted
                });
                if wanted != Some(true) {
                    return;
                }
                let began = js_sys::Date::now();
                let query = self.query.get_value();
                let answer = self.api.facets(&query).await;
                if !is_ours() {
                    return;
                }
                self.uncounted.set(answer.as_ref().err().cloned());
                match answer {
                    Ok(facets) => {
                        self.facets.set(Some(facets));
                        self.counted.set(true);
                    }
                    Err(_) if !self.counted.get_untracked() => self.facets.set(None),
                    Err(_) => {}
                }
                let took = js_sys::Date::now() - began;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds to minutes")]
                let pause = (took * COUNT_SHARE).clamp(COUNT_EVERY, 60_000.0) as u32;
                TimeoutFuture::new(pause).await;
            }
        });
    }
}

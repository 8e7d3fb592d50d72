//! Times for people, on the server's clock.

use leptos::prelude::*;
use shared::time::Timestamp;

use crate::client::Live;
use crate::state::words::{self, MONTHS};

/// How long ago something was, kept up to date; the full time is in the title.
#[component]
pub fn Ago(
    /// When it was.
    at: Timestamp,
) -> impl IntoView {
    let live = Live::expect();
    view! { <time datetime=at.to_string() title=full(at)>{move || words::ago(live.now.get(), at)}</time> }
}

/// When something was or will be, as [`day`] says it; the full time is in the title.
#[component]
pub fn At(at: Timestamp) -> impl IntoView {
    view! { <time datetime=at.to_string() title=full(at)>{day(at)}</time> }
}

/// A time in the person's own zone, whole, such as `20 Nov 2026, 22:31:04`.
pub fn full(at: Timestamp) -> String {
    let date = date(at);
    format!("{} {}, {}:{:02}", day_of(&date), date.get_full_year(), clock(at), date.get_seconds())
}

/// The hour and minute in the person's own zone, such as `14:05`.
pub fn clock(at: Timestamp) -> String {
    let date = date(at);
    format!("{:02}:{:02}", date.get_hours(), date.get_minutes())
}

/// The day, and the hour and minute, in the person's own zone, such as `20 Nov, 14:05`; with the year where it is another.
pub fn day(at: Timestamp) -> String {
    let (date, now) = (date(at), js_sys::Date::new_0());
    let year = date.get_full_year();
    let year = if year == now.get_full_year() { String::new() } else { format!(" {year}") };
    format!("{}{year}, {}", day_of(&date), clock(at))
}

/// When a day begins in the person's own zone. A day behind the end of the month is one of the next. None: there is
/// no such day, such as one in the year 999999.
pub fn begin_of_day(year: u32, month: u32, day: u32) -> Option<Timestamp> {
    let [month, day] = [month, day].map(|part| i32::try_from(part).unwrap_or(1));
    let date = js_sys::Date::new_with_year_month_day(year, month - 1, day);
    let millis = date.get_time();
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
    millis.is_finite().then(|| Timestamp(millis as i64 * 1000))
}

/// The day of the month, and the month.
fn day_of(date: &js_sys::Date) -> String {
    let month = MONTHS.get(date.get_month() as usize).copied().unwrap_or_default();
    format!("{} {month}", date.get_date())
}

fn date(at: Timestamp) -> js_sys::Date {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 53 bits until the year 287396")]
    js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(at.millis() as f64))
}

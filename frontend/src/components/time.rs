//! Times in words; relative ones follow the server's clock.

use leptos::prelude::*;
use shared::time::Timestamp;

use crate::client::Live;
use crate::state::words::{self, MONTHS};

/// The time since `at`, kept up to date; the full time is in the tooltip.
#[component]
pub fn Ago(at: Timestamp) -> impl IntoView {
    let live = expect_context::<Live>();
    view! { <time datetime=at.to_string() title=full(at)>{move || words::ago(live.now.get(), at)}</time> }
}

/// The full time in the person's time zone, such as `20 Nov 2026, 22:31:04`.
pub fn full(at: Timestamp) -> String {
    let date = date(at);
    format!("{} {}, {}", day_of(&date), date.get_full_year(), clock_to_second(at))
}

/// The hour and minute in the person's time zone, such as `14:05`.
pub fn clock(at: Timestamp) -> String {
    let date = date(at);
    format!("{:02}:{:02}", date.get_hours(), date.get_minutes())
}

/// The hour, minute and second in the person's time zone, such as `14:05:09`.
pub fn clock_to_second(at: Timestamp) -> String {
    format!("{}:{:02}", clock(at), date(at).get_seconds())
}

/// The day, hour and minute in the person's time zone, such as `20 Nov, 14:05`; with the year unless it is this one.
pub fn day(at: Timestamp) -> String {
    format!("{}, {}", day_alone(at), clock(at))
}

/// A time in the format of [`day`], with the second: for a record, in which the order within a minute matters.
#[component]
pub fn At(at: Timestamp) -> impl IntoView {
    let shown = format!("{}, {}", day_alone(at), clock_to_second(at));
    view! { <time datetime=at.to_string() title=full(at)>{shown}</time> }
}

/// The day in the person's time zone, such as `20 Nov`; with the year unless it is this one.
fn day_alone(at: Timestamp) -> String {
    let (date, now) = (date(at), js_sys::Date::new_0());
    let year = date.get_full_year();
    let year = if year == now.get_full_year() { String::new() } else { format!(" {year}") };
    format!("{}{year}", day_of(&date))
}

/// The start of a day in the person's time zone. A day after the end of the month counts into the next. `None` for
/// dates out of range, such as those in the year 999999.
pub fn begin_of_day(year: u32, month: u32, day: u32) -> Option<Timestamp> {
    let [month, day] = [month, day].map(|part| i32::try_from(part).unwrap_or(1));
    let date = js_sys::Date::new_with_year_month_day(year, month - 1, day);
    let millis = date.get_time();
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
    millis.is_finite().then(|| Timestamp(millis as i64 * 1000))
}

/// The day and month, such as `20 Nov`.
fn day_of(date: &js_sys::Date) -> String {
    let month = MONTHS.get(date.get_month() as usize).copied().unwrap_or_default();
    format!("{} {month}", date.get_date())
}

fn date(at: Timestamp) -> js_sys::Date {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 53 bits until the year 287396")]
    js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(at.millis() as f64))
}

//! `/api/v1/statistics`: the outcomes of the reviews that count for the caller.

use std::time::Duration;

use axum::Json;
use shared::access::Act;
use shared::error::Problem;
use shared::statistics::{DEFAULT_DAYS, GroupBy, MAX_DAYS, MAX_TIMES, Statistics, StatisticsQuery};
use shared::time::Timestamp;

use super::Caller;
use super::api::Api;
use super::body::Params;
use super::problem::Result;
use crate::store::TooMuch;

/// The longest name in a filter, in characters.
const MAX_NAME: usize = 200;
/// A day, in microseconds.
const DAY: i64 = 24 * 3_600_000_000;

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/statistics", "Count reviews by outcome", get);
}

async fn get(caller: Caller, Params(query): Params<StatisticsQuery>) -> Result<Json<Statistics>> {
    caller.may(Act::SeeStatistics)?;
    let (from, to) = range(&query, caller.state.clock.now())?;
    check(&query, from, to)?;
    let counted = caller.state.store.statistics(caller.principal(), &query, from, to).await?;
    let statistics = counted.map_err(|too_much| match too_much {
        TooMuch::Reviews(most) => {
            Problem::invalid("/from", format!("more than {most} reviews in this period: choose a shorter one"))
        }
        TooMuch::Groups => Problem::invalid("/by", "there are too many groups: filter, or group by something else"),
    })?;
    Ok(Json(statistics))
}

/// Returns the start and the end of the queried range, after checking its length.
fn range(query: &StatisticsQuery, now: Timestamp) -> std::result::Result<(Timestamp, Timestamp), Problem> {
    let to = query.to.unwrap_or(now);
    let usual = Timestamp(to.0.saturating_sub(DAY * i64::from(DEFAULT_DAYS)).max(0));
    let from = query.from.unwrap_or(usual);
    if from >= to {
        return Err(Problem::invalid("/from", format!("this must be before `to`, which is {to}")));
    }
    if to.since(from) > Duration::from_hours(24 * u64::from(MAX_DAYS)) {
        let earliest = Timestamp(to.0 - DAY * i64::from(MAX_DAYS));
        let why = format!("a period has at most {MAX_DAYS} days: start at {earliest} or later");
        return Err(Problem::invalid("/from", why));
    }
    Ok((from, to))
}

fn check(query: &StatisticsQuery, from: Timestamp, to: Timestamp) -> std::result::Result<(), Problem> {
    let StatisticsQuery { flow, tool, agent, role, reviewer, .. } = query;
    let named = [("/flow", flow), ("/tool", tool), ("/agent", agent), ("/role", role), ("/reviewer", reviewer)];
    for (path, name) in named {
        if name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME) {
            return Err(Problem::invalid(path, format!("at most {MAX_NAME} characters")));
        }
    }
    let length = query.by.and_then(GroupBy::length);
    if length.is_some_and(|length| (to.0 - from.0) / length >= i64::from(MAX_TIMES)) {
        let why = format!("this would be more than {MAX_TIMES} groups: use longer ones, or a shorter period");
        return Err(Problem::invalid("/by", why));
    }
    Ok(())
}

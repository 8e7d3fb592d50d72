//! The queue at 100,000 pending reviews: its first page, a page far behind, pages with filters that match little or
//! nothing, and all counts; for a reviewer with three roles and for an admin. Measured in this process, without HTTP.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use backend::clock::{Clock, SystemClock};
use backend::store::{Store, StoreOptions};
use serde_json::json;
use shared::access::Principal;
use shared::api::ReviewQuery;
use shared::definition::Severity;
use shared::inbox::ReviewOrder;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::cycles::forget;
use crate::report::Row;
use crate::server::Data;
use crate::{Options, below, median, percentile};

const PENDING: usize = 100_000;
/// The number of flows that ask, each of them one of [`ROLES`].
const FLOWS: usize = 60;
/// The roles that may decide; each flow asks one of them.
pub const ROLES: [&str; 12] =
    ["reviewer", "editor", "legal", "finance", "support", "risk", "security", "sales", "design", "data", "hr", "it"];
/// The number of reviews that one statement writes.
const CHUNK: usize = 200;
/// The number of reads of each kind in a round.
const READS: usize = 40;

/// Measures each kind of read in milliseconds, as median and 99th percentile, and the upgrade of the queue in seconds.
pub async fn pages(options: &Options, name: &str, postgres: Option<&str>) -> Result<Vec<Row>> {
    let data = Data::new(postgres).await?;
    let file = format!("sqlite:{}", data.path().join("queue.db").display());
    let url = data.database().unwrap_or(&file);
    let clock = Arc::new(SystemClock);
    let store = Store::open(StoreOptions::new(url.to_owned(), clock.clone())).await?;
    store.close().await;
    fill(url).await?;
    // Opening the store puts the reviews into the queue, as with a database of an earlier version.
    let started = Instant::now();
    let store = Store::open(StoreOptions::new(url.to_owned(), clock)).await?;
    let upgraded = started.elapsed().as_secs_f64();
    if !url.starts_with("sqlite") {
        // Autovacuum would do this within a minute.
        let mut connection = PgConnection::connect(url).await?;
        sqlx::raw_sql("VACUUM ANALYZE reviews").execute(&mut connection).await?;
        connection.close().await?;
    }
    let mut rows = vec![below(&format!("queue_{name}_upgrade"), upgraded, "s", 60.0)];
    let roles = |roles: &[&str]| roles.iter().map(|role| (*role).to_owned()).collect();
    let viewers = [
        ("reviewer", Principal::new("rita".parse()?, roles(&ROLES[..3]))),
        ("admin", Principal::new("boss".parse()?, roles(&["admin"]))),
    ];
    for (who, viewer) in viewers {
        let first = ReviewQuery { order: Some(ReviewOrder::Urgency), ..ReviewQuery::default() };
        let mut far = first.clone();
        for _ in 0..40 {
            far.limit = Some(200);
            far.cursor = Some(store.reviews(&viewer, &far).await?.next_cursor.context("there are more")?);
        }
        far.limit = None;
        let few = ReviewQuery { severity: Some(Severity::Critical), ..first.clone() };
        let none = ReviewQuery { flow: Some("none".to_owned()), ..first.clone() };
        let all = ReviewQuery::default();
        let words = ReviewQuery { q: Some("rare".to_owned()), ..ReviewQuery::default() };
        let mut took: [Vec<f64>; 7] = Default::default();
        for _ in 0..options.rounds * READS {
            for (what, took) in took.iter_mut().enumerate() {
                let started = Instant::now();
                match what {
                    0 => drop(store.reviews(&viewer, &first).await?),
                    1 => drop(store.reviews(&viewer, &far).await?),
                    2 => drop(store.reviews(&viewer, &few).await?),
                    3 => drop(store.reviews(&viewer, &none).await?),
                    4 => drop(store.facets(&viewer, &all).await?),
                    5 => drop(store.facets(&viewer, &words).await?),
                    _ => {
                        store.tally().await?.numbers(&viewer);
                    }
                }
                took.push(started.elapsed().as_secs_f64() * 1000.0);
            }
        }
        let names = ["first", "far", "filtered", "empty", "facets", "facets_words", "count"];
        for (what, took) in names.into_iter().zip(took) {
            let target = if what.starts_with("facets") { 250.0 } else { 50.0 };
            let named = |figure: &str| format!("queue_{name}_{who}_{what}_{figure}");
            rows.push(below(&named("median"), median(took.clone()), "ms", target));
            rows.push(below(&named("p99"), percentile(took, 99), "ms", target));
        }
    }
    store.close().await;
    if let Some(admin) = postgres {
        forget(admin, [data.database(), None]).await?;
    }
    Ok(rows)
}

/// Writes [`PENDING`] reviews as an earlier version did, without rows in the queue.
pub async fn fill(url: &str) -> Result<()> {
    let now = SystemClock.now().0;
    let mut statements = Vec::new();
    for chunk in 0..PENDING / CHUNK {
        let (mut reviews, mut audience) = (Vec::new(), Vec::new());
        for number in (chunk * CHUNK..).take(CHUNK) {
            let id = format!("{:032x}", number * 7919 % PENDING + (1 << 40));
            let flow = number % FLOWS;
            let role = ROLES[flow % ROLES.len()];
            let severity = if number % 5000 == 3 { "critical" } else { ["low", "medium", "high"][number / 7 % 3] };
            let asked = now - i64::try_from(number)? * 1_000_000;
            let due = now + i64::try_from(number * 31 % PENDING)? * 10_000_000;
            let due = (number % 3 > 0).then_some(due);
            let time = |at: i64| shared::time::Timestamp(at).to_string();
            let text = "What people read before they decide. ".repeat(20);
            let body = json!({
                "id": uuid(&id), "revision": 1, "digest": format!("sha256:{}", "0".repeat(64)), "version": 1,
                "kind": "approval", "status": "pending", "run_id": uuid(&id), "flow": format!("flow-{flow}"),
                "flow_title": "A flow", "node": "ask", "visit": 1, "title": format!("Review {number}"),
                "prompt": "May this go out?", "severity": severity, "reviewers": { "roles": [role] },
                "items": [{ "key": "draft", "content_type": "markdown", "value": text, "editable": true }],
                "options": [{ "id": "yes", "kind": "accept", "label": "Yes" }], "requested_by": "dev",
                "created_at": time(asked), "expires_at": due.map(time), "on_timeout": "reject",
            });
            let body = body.to_string().replace('\'', "''");
            let id = if url.starts_with("sqlite") { format!("x'{id}'") } else { format!("'{}'::uuid", uuid(&id)) };
            reviews.push(format!(
                "({id}, {id}, 'pending', 'approval', '{severity}', 'flow-{flow}', 'dev', 0, {asked}, '', '{body}')"
            ));
            for subject in [format!("role:{role}"), "asked:dev".to_owned()] {
                audience.push(format!("('{subject}', {asked}, {id})"));
            }
        }
        statements.push(format!(
            "INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, \
             search, body) VALUES {}; INSERT INTO review_audience (subject, created_at, review_id) VALUES {}",
            reviews.join(", "),
            audience.join(", ")
        ));
    }
    if let Some(path) = url.strip_prefix("sqlite:") {
        let connection = rusqlite::Connection::open(path)?;
        for statement in statements {
            connection.execute_batch(&format!("BEGIN; {statement}; COMMIT"))?;
        }
    } else {
        let mut connection = PgConnection::connect(url).await?;
        for statement in statements {
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        connection.close().await?;
    }
    Ok(())
}

fn uuid(hex: &str) -> String {
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

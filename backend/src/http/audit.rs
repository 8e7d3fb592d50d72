//! `/api/v1/audit`: the record, for admins.

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::stream::try_unfold;
use shared::access::Act;
use shared::api::{AuditQuery, MAX_LIMIT, Page};
use shared::error::Problem;
use shared::log::Entry;

use super::api::{Api, Operation};
use super::body::{Params, fit_params, limit, params};
use super::problem::Result;
use super::{AppState, Caller};
use crate::audit::Format;
use crate::store::Store;

pub(super) fn mount(api: &mut Api) {
    let list = Operation::new("The record, newest first", "PageOfEntries")
        .query(&["from", "to", "actor", "kind", "run", "review", "q", "limit", "cursor"]);
    api.get("/api/v1/audit", list, self::list);
    let export = Operation::new("The record as CSV or JSON lines, newest first", "File")
        .query(&["format", "from", "to", "actor", "kind", "run", "review", "q"]);
    api.get("/api/v1/audit/export", export, self::export);
}

async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(mut query): Params<AuditQuery>,
) -> Result<Json<Page<Entry>>> {
    caller.may(Act::ReadAudit)?;
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    Ok(Json(state.store.audit(&query).await?))
}

async fn export(State(state): State<AppState>, caller: Caller, request: Request) -> Result<Response> {
    caller.may(Act::ReadAudit)?;
    let (parts, _) = request.into_parts();
    let mut pairs = params(&parts)?;
    let format = pairs.iter().position(|(key, _)| key == "format").map(|place| pairs.remove(place).1);
    let format: Format = match format {
        Some(word) => word.parse().map_err(|why: String| Problem::invalid("/format", why))?,
        None => Format::Csv,
    };
    let mut query: AuditQuery = fit_params(pairs)?;
    check(&query)?;
    query.limit = Some(MAX_LIMIT);
    let disposition = format!("attachment; filename=\"countersign-audit.{}\"", format.extension());
    let mut response = Body::from_stream(rows(state.store.clone(), query, format)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// Page by page, so that a long export holds neither memory nor a reader of the database. A failure breaks the
/// transfer off, which the client sees.
fn rows(
    store: Store,
    query: AuditQuery,
    format: Format,
) -> impl futures::Stream<Item = std::result::Result<String, std::io::Error>> {
    try_unfold(Some((query, true)), move |next| {
        let store = store.clone();
        async move {
            let Some((mut query, first)) = next else { return Ok(None) };
            let page = store.audit(&query).await.map_err(std::io::Error::other)?;
            let mut text = if first { format.head().to_owned() } else { String::new() };
            for entry in &page.items {
                format.write(entry, &mut text).map_err(std::io::Error::other)?;
            }
            let next = page.next_cursor.map(|cursor| {
                query.cursor = Some(cursor);
                (query, false)
            });
            Ok(Some((text, next)))
        }
    })
}

/// Ids in a query must be ids: a mistyped one would find nothing, and look like an empty record.
fn check(query: &AuditQuery) -> std::result::Result<(), Problem> {
    for (path, id) in [("/run", &query.run), ("/review", &query.review)] {
        if id.as_ref().is_some_and(|id| id.parse::<shared::id::RunId>().is_err()) {
            return Err(Problem::invalid(path, "this is no id"));
        }
    }
    Ok(())
}

//! `/api/v1/audit`: the audit log, for admins.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::TryStreamExt as _;
use futures::stream::try_unfold;
use shared::access::Act;
use shared::api::{AuditQuery, MAX_LIMIT, Page};
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId};
use shared::log::{Entry, EntryKind, ReviewAct};
use shared::seal::{SealCheck, SealHead};
use shared::search::SearchResults;
use tokio::time::timeout;

use super::Caller;
use super::api::{Api, OperationDoc};
use super::archived::{review_gone, run_gone};
use super::body::{Params, fit_params, limit, params, refuse};
use super::pagination::List;
use super::problem::{Refused, Result};
use crate::audit::{Export, ExportError, Format};
use crate::store::Form;

const AUDIT: List = List("audit");
/// How long the verification may take before its response begins, and the interval of the spaces after that.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/audit", "List audit log entries, newest first", list);
    let search = OperationDoc::new("Search the audit log, most relevant entries first, with marked excerpts");
    api.get("/api/v1/audit/search", search.without(&["cursor"]), self::search);
    let export = OperationDoc::new("Export the audit log as CSV or JSON lines, newest first")
        .file("text/csv")
        .query(&["format", "from", "to", "actor", "kind", "act", "run", "review", "q"]);
    api.get("/api/v1/audit/export", export, self::export);
    api.get("/api/v1/audit/seal", "Get the newest seal of the audit log; 404 before the first", seal);
    let verify = OperationDoc::new("Verify the sealed audit log").answer::<SealCheck>();
    api.get("/api/v1/audit/verify", verify, self::verify);
}

async fn list(caller: Caller, Params(mut query): Params<AuditQuery>) -> Result<Json<Page<Entry>>> {
    caller.may(Act::ReadAudit)?;
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    query.cursor = AUDIT.place(query.cursor)?;
    let page = caller.state.store.audit(&query, Form::Whole).await?;
    if page.items.is_empty() && page.next_cursor.is_none() {
        check_archived(&caller, &query).await?;
    }
    Ok(Json(AUDIT.page(page)))
}

async fn search(caller: Caller, Params(mut query): Params<AuditQuery>) -> Result<Json<SearchResults<Entry>>> {
    caller.may(Act::ReadAudit)?;
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    refuse([
        ("/q", query.q.is_none(), "name the words to search for"),
        ("/cursor", query.cursor.is_some(), "results by relevance have no pages: leave it out"),
    ])?;
    let found = caller.state.store.search_audit(&query).await?;
    if found.items.is_empty() && !found.at_least {
        check_archived(&caller, &query).await?;
    }
    Ok(Json(found))
}

async fn export(caller: Caller, request: Request) -> Result<Response> {
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
    check_archived(&caller, &query).await?;
    query.limit = Some(MAX_LIMIT);
    let export = Export::begin(caller.state.store.clone(), format, query).await.map_err(not_begun)?;
    let pages = export.pages().inspect_err(|error| tracing::warn!(%error, "an export of the audit log was aborted"));
    let disposition = format!("attachment; filename=\"countersign-audit.{}\"", format.extension());
    let mut response = Body::from_stream(pages).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    if let Ok(disposition) = HeaderValue::try_from(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

fn not_begun(error: ExportError) -> Refused {
    match error {
        ExportError::Store(error) => error.into(),
        error => {
            let retry_after = matches!(error, ExportError::Unexplained).then_some(5);
            Problem { retry_after, ..Problem::new(Code::Unavailable) }.detail(error.to_string()).into()
        }
    }
}

async fn seal(caller: Caller) -> Result<Json<SealHead>> {
    caller.may(Act::ReadAudit)?;
    let head = caller.state.seals.head(&caller.state.store).await?;
    Ok(Json(head.ok_or_else(|| Problem::new(Code::NotFound))?))
}

/// Verifies the audit log. If that takes longer than a handler may, the response begins with spaces, which JSON allows,
/// so that no proxy gives up.
async fn verify(caller: Caller) -> Result<Response> {
    caller.may(Act::ReadAudit)?;
    let mut check = Box::pin(async move { caller.state.seals.check(&caller.state.store).await });
    if let Ok(checked) = timeout(ANSWER_WITHIN, &mut check).await {
        return Ok(Json(checked?).into_response());
    }
    let later = try_unfold(Some(check), |check| async move {
        let Some(mut check) = check else { return Ok(None) };
        match timeout(ANSWER_WITHIN, &mut check).await {
            Ok(checked) => {
                let checked = checked.map_err(std::io::Error::other)?;
                serde_json::to_string(&checked).map(|text| Some((text, None))).map_err(std::io::Error::other)
            }
            Err(_) => Ok(Some((" ".to_owned(), Some(check)))),
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(later)).into_response())
}

/// Returns `410` for a query for the entries of a run or a review that was archived, since they are in its file now:
/// without this check, it would seem as if nothing had happened.
async fn check_archived(caller: &Caller, query: &AuditQuery) -> Result<()> {
    let run = query.run.as_deref().and_then(|id| id.parse::<RunId>().ok());
    let review = query.review.as_deref().and_then(|id| id.parse::<ReviewId>().ok());
    let gone = match (run, review) {
        (Some(run), _) => run_gone(caller, run).await?,
        (None, Some(review)) => review_gone(caller, review).await?,
        (None, None) => return Ok(()),
    };
    if gone.code == Code::RunArchived { Err(gone.into()) } else { Ok(()) }
}

/// Checks the ids, kinds and acts of a query. Without the check, the result for a mistyped one would be empty.
fn check(query: &AuditQuery) -> std::result::Result<(), Problem> {
    for (path, id) in [("/run", &query.run), ("/review", &query.review)] {
        if id.as_ref().is_some_and(|id| id.parse::<RunId>().is_err()) {
            return Err(Problem::invalid(path, "this is not an id"));
        }
    }
    if let Some(acts) = &query.act
        && let Some(why) = acts.split(',').find_map(|act| act.parse::<ReviewAct>().err())
    {
        return Err(Problem::invalid("/act", why));
    }
    if let Some(kind) = &query.kind
        && EntryKind::of_word(kind).is_none()
    {
        return Err(Problem::invalid("/kind", format!("`{kind}` is not a kind of entry, such as `review.resolved`")));
    }
    Ok(())
}

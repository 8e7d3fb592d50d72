//! Lists of reviews, and their counts.

use axum::Json;
use shared::access::Act;
use shared::api::{Page, ReviewQuery};
use shared::error::Problem;
use shared::inbox::{Facets, ReviewOrder};
use shared::review::{Review, ReviewStatus};
use shared::search::SearchResults;

use super::super::Caller;
use super::super::api::{Api, OperationDoc};
use super::super::body::{Params, limit, refuse};
use super::super::pagination::List;
use super::super::problem::Result;

const REVIEWS: List = List("reviews");
const QUEUE: List = List("queue");
const DECIDED: List = List("decided reviews");
/// The longest name of a flow, role or tag in a filter, in characters.
const MAX_NAME: usize = 200;
/// The longest search, in characters.
const MAX_SEARCH: usize = 500;

pub(super) fn mount(api: &mut Api) {
    let about = "List reviews, newest or most urgent first, or those that a person decided";
    api.get("/api/v1/reviews", about, list);
    let search = OperationDoc::new("Search reviews, most relevant first, with marked excerpts");
    api.get("/api/v1/reviews/search", search.without(&["order", "cursor"]), self::search);
    let facets = OperationDoc::new("Count pending reviews, in total and by facet");
    let facets = facets.without(&["run", "requested_by", "decided_by", "order", "limit", "cursor"]);
    api.get("/api/v1/reviews/facets", facets, self::facets);
}

async fn list(caller: Caller, Params(mut query): Params<ReviewQuery>) -> Result<Json<Page<Review>>> {
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    check_decider(&caller, &query)?;
    let list = match query.order.unwrap_or_default() {
        ReviewOrder::Newest if query.decided_by.is_some() => DECIDED,
        ReviewOrder::Newest => REVIEWS,
        ReviewOrder::Urgency => {
            refuse([("/order", query.run.is_some(), "the reviews of a run are always listed newest first")])?;
            only_newest(&query)?;
            only_pending(&query, "only pending reviews can be ordered by urgency: use `pending`, or leave it out")?;
            QUEUE
        }
    };
    query.cursor = list.place(query.cursor)?;
    Ok(Json(list.page(caller.state.store.reviews(caller.principal(), &query).await?)))
}

async fn search(caller: Caller, Params(mut query): Params<ReviewQuery>) -> Result<Json<SearchResults<Review>>> {
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    check_decider(&caller, &query)?;
    let why = "results by relevance have no other order and no pages: leave it out";
    refuse([
        ("/q", query.q.is_none(), "name the words to search for"),
        ("/order", query.order.is_some(), why),
        ("/cursor", query.cursor.is_some(), why),
    ])?;
    Ok(Json(caller.state.store.search_reviews(caller.principal(), &query).await?))
}

async fn facets(caller: Caller, Params(query): Params<ReviewQuery>) -> Result<Json<Facets>> {
    check(&query)?;
    only_pending(&query, "only pending reviews are counted: use `pending`, or leave it out")?;
    refuse([("/run", query.run.is_some(), "counts cover all runs: leave it out")])?;
    only_newest(&query)?;
    let why = "counts have no order and no pages: leave it out";
    refuse([
        ("/order", query.order.is_some(), why),
        ("/limit", query.limit.is_some(), why),
        ("/cursor", query.cursor.is_some(), why),
    ])?;
    Ok(Json(caller.state.store.facets(caller.principal(), &query).await?))
}

fn only_newest(query: &ReviewQuery) -> std::result::Result<(), Problem> {
    let requested = "reviews of a requester are listed newest first, and not counted";
    let decided = "what a person decided is listed with the newest decision first, and not counted";
    refuse([
        ("/requested_by", query.requested_by.is_some(), requested),
        ("/decided_by", query.decided_by.is_some(), decided),
    ])
}

/// Checks whether the caller may list what the named person decided.
fn check_decider(caller: &Caller, query: &ReviewQuery) -> Result<()> {
    let Some(by) = &query.decided_by else { return Ok(()) };
    let why = "what a person decided is listed whoever may decide it now: leave it out";
    refuse([("/assigned", query.assigned.is_some(), why)])?;
    caller.may(Act::SeeDecisionsBy(by.username(&caller.principal().username)))
}

fn only_pending(query: &ReviewQuery, why: &str) -> std::result::Result<(), Problem> {
    refuse([("/status", query.status.is_some_and(|status| status != ReviewStatus::Pending), why)])
}

fn check(query: &ReviewQuery) -> std::result::Result<(), Problem> {
    match too_long(query) {
        Some((field, why)) => Err(Problem::invalid(format!("/{field}"), why)),
        None => Ok(()),
    }
}

/// Returns the first member with too long a text, and what is wrong with it.
fn too_long(query: &ReviewQuery) -> Option<(&'static str, String)> {
    let texts = [
        ("flow", &query.flow, MAX_NAME),
        ("role", &query.role, MAX_NAME),
        ("tag", &query.tag, MAX_NAME),
        ("q", &query.q, MAX_SEARCH),
    ];
    let is_too_long = |text: &Option<String>, most| text.as_ref().is_some_and(|text| text.chars().count() > most);
    let (field, _, most) = texts.into_iter().find(|(_, text, most)| is_too_long(text, *most))?;
    Some((field, format!("at most {most} characters")))
}

/// Returns the first member that a saved view of the inbox cannot have, and why.
pub(in crate::http) fn wrong_filter(query: &ReviewQuery) -> Option<(&'static str, String)> {
    let others = [
        ("status", query.status.is_some()),
        ("run", query.run.is_some()),
        ("requested_by", query.requested_by.is_some()),
        ("decided_by", query.decided_by.is_some()),
        ("order", query.order.is_some()),
        ("limit", query.limit.is_some()),
        ("cursor", query.cursor.is_some()),
    ];
    let other = others.into_iter().find(|(_, is_set)| *is_set);
    let other = other.map(|(field, _)| (field, "a view only has filters of the inbox: leave this out".to_owned()));
    other.or_else(|| too_long(query))
}

//! Lists of reviews, and their counts.

use axum::Json;
use shared::api::{Page, ReviewQuery};
use shared::error::Problem;
use shared::inbox::{Facets, ReviewOrder};
use shared::review::{Review, ReviewStatus};
use shared::search::Found;

use super::super::Caller;
use super::super::api::{Api, OperationDoc};
use super::super::body::{Params, limit};
use super::super::pagination::List;
use super::super::problem::Result;

const REVIEWS: List = List("reviews");
const QUEUE: List = List("queue");
/// The longest name of a flow, role or tag in a filter, in characters.
const MAX_NAME: usize = 200;
/// The longest search, in characters.
const MAX_SEARCH: usize = 500;

pub(super) fn mount(api: &mut Api) {
    let list = OperationDoc::new("List reviews, newest or most urgent first").answer::<Page<Review>>();
    api.get("/api/v1/reviews", list, self::list);
    let search = OperationDoc::new("Search reviews, most relevant first, with marked excerpts")
        .answer::<Found<Review>>()
        .without(&["order", "cursor"]);
    api.get("/api/v1/reviews/search", search, self::search);
    let facets = OperationDoc::new("Count pending reviews, in total and by facet").answer::<Facets>().without(&[
        "run",
        "requested_by",
        "order",
        "limit",
        "cursor",
    ]);
    api.get("/api/v1/reviews/facets", facets, self::facets);
}

async fn list(caller: Caller, Params(mut query): Params<ReviewQuery>) -> Result<Json<Page<Review>>> {
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    let list = match query.order.unwrap_or_default() {
        ReviewOrder::Newest => REVIEWS,
        ReviewOrder::Urgency => {
            if query.run.is_some() {
                return Err(Problem::invalid("/order", "the reviews of a run are always listed newest first").into());
            }
            only_newest(&query)?;
            only_pending(&query, "only pending reviews can be ordered by urgency: use `pending`, or leave it out")?;
            QUEUE
        }
    };
    query.cursor = list.place(query.cursor)?;
    Ok(Json(list.page(caller.state.store.reviews(caller.principal(), &query).await?)))
}

async fn search(caller: Caller, Params(mut query): Params<ReviewQuery>) -> Result<Json<Found<Review>>> {
    query.limit = Some(limit(query.limit)?);
    check(&query)?;
    let why = "results by relevance have no other order and no pages: leave it out";
    for (path, wrong, why) in [
        ("/q", query.q.is_none(), "name the words to search for"),
        ("/order", query.order.is_some(), why),
        ("/cursor", query.cursor.is_some(), why),
    ] {
        if wrong {
            return Err(Problem::invalid(path, why).into());
        }
    }
    Ok(Json(caller.state.store.search_reviews(caller.principal(), &query).await?))
}

async fn facets(caller: Caller, Params(query): Params<ReviewQuery>) -> Result<Json<Facets>> {
    check(&query)?;
    only_pending(&query, "only pending reviews are counted: use `pending`, or leave it out")?;
    if query.run.is_some() {
        return Err(Problem::invalid("/run", "counts cover all runs: leave it out").into());
    }
    only_newest(&query)?;
    for (path, said) in
        [("/order", query.order.is_some()), ("/limit", query.limit.is_some()), ("/cursor", query.cursor.is_some())]
    {
        if said {
            return Err(Problem::invalid(path, "counts have no order and no pages: leave it out").into());
        }
    }
    Ok(Json(caller.state.store.facets(caller.principal(), &query).await?))
}

fn only_newest(query: &ReviewQuery) -> std::result::Result<(), Problem> {
    if query.requested_by.is_some() {
        return Err(Problem::invalid(
            "/requested_by",
            "reviews of a requester are listed newest first, and not counted",
        ));
    }
    Ok(())
}

fn only_pending(query: &ReviewQuery, why: &str) -> std::result::Result<(), Problem> {
    match query.status {
        None | Some(ReviewStatus::Pending) => Ok(()),
        Some(_) => Err(Problem::invalid("/status", why)),
    }
}

fn check(query: &ReviewQuery) -> std::result::Result<(), Problem> {
    let named = [("/flow", &query.flow), ("/role", &query.role), ("/tag", &query.tag)];
    let named = named.map(|(path, text)| (path, text, MAX_NAME));
    for (path, text, most) in named.into_iter().chain([("/q", &query.q, MAX_SEARCH)]) {
        if text.as_ref().is_some_and(|text| text.chars().count() > most) {
            return Err(Problem::invalid(path, format!("at most {most} characters")));
        }
    }
    Ok(())
}

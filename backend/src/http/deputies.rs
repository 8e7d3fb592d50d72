//! `/api/v1/deputies`: who decides for people who are away; `/api/v1/reviewers`: the people who can be chosen as
//! deputies, or to whom a review can be delegated.

use std::time::Duration;

use axum::Json;
use axum::response::NoContent;
use serde::Deserialize;
use shared::access::{Act, Principal, REVIEWER, access, may_be_handed};
use shared::api::{Page, User};
use shared::deputy::{Deputyship, NewDeputy};
use shared::error::{Code, Problem};
use shared::id::{DeputyId, ReviewId};

use super::api::Api;
use super::body::{self, Id, Params, refuse};
use super::outputs::Created;
use super::pagination::{List, Paging};
use super::problem::{Result, unexpected};
use super::{Caller, Write};
use crate::auth::check_text;
use crate::clock::Moment;
use crate::store::{self, Committed};

/// The longest duration of a deputyship.
const MAX_DURATION: Duration = Duration::from_hours(24 * 366);

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/deputies", "List your deputies, and the people you stand in for (for admins: all)", list);
    api.post("/api/v1/deputies", "Name a deputy for a person who is away", create);
    api.delete("/api/v1/deputies/{id}", "Remove a deputy", remove);
    api.get("/api/v1/reviewers", "List reviewers by name, or those to whom a review can be delegated", reviewers);
}

/// Lists the deputyships; admins see all.
async fn list(caller: Caller, Params(paging): Params<Paging>) -> Result<Json<Page<Deputyship>>> {
    let mut items = caller.state.store.deputyships().await?;
    items.retain(|span| access(caller.principal(), Act::SeeDeputyship(span)).is_allowed());
    Ok(Json(List("deputies").newest(items, paging, |span| (span.created_at, span.id))?))
}

async fn create(write: Write, body::Json { value, digest }: body::Json<NewDeputy>) -> Result<Created<Deputyship>> {
    let caller = &write.caller;
    let moment = Moment::of(&*caller.state.clock);
    let person = value.person.unwrap_or_else(|| caller.principal().username.clone());
    caller.may(Act::NameDeputy(&person, &value.deputy))?;
    caller.in_session()?;
    check_text("/note", value.note.as_deref())?;
    let from = value.from.unwrap_or(moment.now);
    refuse([
        ("/until", value.until <= from.max(moment.now), "must be after `from`, and not in the past"),
        ("/until", value.until > from.after(MAX_DURATION), "must be at most a year after `from`"),
    ])?;
    let span = Deputyship {
        id: DeputyId(moment.ids().uuid()),
        person,
        deputy: value.deputy,
        from,
        until: value.until,
        note: value.note.filter(|note| !note.trim().is_empty()),
        made_by: caller.principal().username.clone(),
        created_at: moment.now,
    };
    let operation = store::Operation::NameDeputy(Box::new(span));
    let Committed::Deputy { deputyship } = write.commit(digest, operation).await? else { return Err(unexpected()) };
    caller.state.authenticator.invalidate();
    Ok(Created(*deputyship))
}

async fn remove(write: Write, Id(id): Id<DeputyId>) -> Result<NoContent> {
    write.commit_without_body(store::Operation::RemoveDeputy(id)).await?;
    write.caller.state.authenticator.invalidate();
    Ok(NoContent)
}

/// The review for which names are requested.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct For {
    review: Option<ReviewId>,
}

/// Lists names only, without addresses.
async fn reviewers(caller: Caller, Params(For { review }): Params<For>) -> Result<Json<Page<User>>> {
    caller.may(Act::SeeReviewers)?;
    let review = match review {
        Some(id) => {
            let review = caller.state.store.review(id).await?.ok_or_else(|| Problem::new(Code::NotFound))?;
            caller.may(Act::SeeReview(&review))?;
            Some(review)
        }
        None => None,
    };
    let mut items = caller.state.store.users().await?;
    items.retain(|user| {
        let them = Principal::new(user.username.clone(), user.roles.iter().cloned().collect());
        let fits = review.as_ref().is_none_or(|review| may_be_handed(&them, review).is_ok());
        user.active && user.username != caller.principal().username && them.has(REVIEWER) && fits
    });
    for user in &mut items {
        user.email = None;
    }
    Ok(Json(Page { items, next_cursor: None }))
}

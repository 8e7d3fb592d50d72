//! `/api/v1/notifications`: people's notification settings, and failed deliveries.

use axum::Json;
use axum::response::NoContent;
use serde::Deserialize;
use shared::access::Act;
use shared::api::Page;
use shared::error::{Code, Mistake, Problem, pointer};
use shared::id::{DeliveryId, Username};
use shared::notification::{Delivery, DeliveryQuery, Notifications, TestNotification};

use super::api::Api;
use super::body::{self, Id, Params, limit};
use super::pagination::List;
use super::problem::Result;
use super::{AppState, Caller, Write};
use crate::auth::check_text;
use crate::notify::{RuleMistake, Untested, is_address, is_slack_user_id, rule_mistakes};
use crate::store::{self, ChosenNotifications};

/// The mistake in something that is no member ID in Slack.
pub(super) const NO_SLACK_USER_ID: &str = "must be the member ID from the profile in Slack, such as U024BE7LH";

const DELIVERIES: List = List("deliveries");

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/notifications", "Get your notification settings; admins may get those of others", get);
    let about = "Set your notifications, or return to the server's rules by leaving out `rules`; admins may set those \
        of others";
    api.put("/api/v1/notifications", about, put);
    api.post("/api/v1/notifications/test", "Send yourself a test message", test);
    let about = "List deliveries, newest first; by default, those that were given up";
    api.get("/api/v1/notifications/deliveries", about, deliveries);
    api.post("/api/v1/notifications/deliveries/{id}/retry", "Retry a failed delivery", retry);
}

/// The person whose settings are meant; default: the caller.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Whose {
    user: Option<Username>,
}

impl Whose {
    fn name(self, caller: &Caller) -> Result<Username> {
        let name = self.user.unwrap_or_else(|| caller.principal().username.clone());
        caller.may(Act::ManageNotifications(&name))?;
        Ok(name)
    }
}

async fn get(caller: Caller, Params(whose): Params<Whose>) -> Result<Json<Notifications>> {
    let name = whose.name(&caller)?;
    if caller.state.store.user(&name).await?.is_none() {
        return Err(Problem::new(Code::NotFound).into());
    }
    let chosen = caller.state.store.notifications(&name).await?;
    Ok(Json(with_defaults(&caller.state, chosen)))
}

async fn put(
    write: Write,
    Params(whose): Params<Whose>,
    body::Json { value, digest }: body::Json<Notifications>,
) -> Result<Json<Notifications>> {
    let username = whose.name(&write.caller)?;
    let mut notifications = checked(value)?;
    let before = write.caller.state.store.notifications(&username).await.ok().flatten().unwrap_or_default();
    let has_same_member = before.slack_user_id.is_some() && notifications.slack_user_id == before.slack_user_id;
    // A confirmation is never lost by settings without it, and none is given for another ID than the stored one.
    notifications.slack_confirmed = has_same_member && (notifications.slack_confirmed || before.slack_confirmed);
    let chosen = Box::new(ChosenNotifications { username, notifications: notifications.clone() });
    write.commit(digest, store::Operation::ChooseNotifications(chosen)).await?;
    Ok(Json(with_defaults(&write.caller.state, Some(notifications))))
}

async fn test(caller: Caller, body::Json { value, .. }: body::Json<TestNotification>) -> Result<NoContent> {
    let name = &caller.principal().username;
    caller.may(Act::ManageNotifications(name))?;
    let person = caller.state.store.user(name).await?.ok_or_else(|| Problem::new(Code::Unauthenticated))?;
    let chosen = caller.state.store.notifications(name).await?.unwrap_or_default();
    let nowhere = || Problem::invalid("/channel", "this server has no notification channels outside the console");
    let notifications = caller.state.outside.notifications.as_ref().ok_or_else(nowhere)?;
    match notifications.test(value.channel, &person, &chosen).await {
        Ok(()) => Ok(NoContent),
        Err(Untested::TooSoon(seconds)) => {
            let problem = Problem { retry_after: Some(seconds), ..Problem::new(Code::TooManyRequests) };
            Err(problem.detail("a test was sent a moment ago").into())
        }
        Err(Untested::Failed(why)) => Err(Problem::invalid("/channel", why).into()),
    }
}

fn with_defaults(state: &AppState, chosen: Option<Notifications>) -> Notifications {
    match &state.outside.notifications {
        Some(notifications) => notifications.with_defaults(chosen),
        None => chosen.unwrap_or_default(),
    }
}

/// Normalises notification settings and checks them; the problem lists every error.
fn checked(chosen: Notifications) -> Result<Notifications> {
    let blank = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let chosen = Notifications {
        slack_user_id: blank(chosen.slack_user_id),
        email: blank(chosen.email),
        available: Vec::new(),
        default_rules: Vec::new(),
        ..chosen
    };
    check_text("/email", chosen.email.as_deref())?;
    let mut mistakes = Vec::new();
    let mut wrong = |path: String, why: &str| mistakes.push(Mistake::new(path, "invalid", why));
    for RuleMistake { rule, why } in rule_mistakes(chosen.rules.as_deref().unwrap_or_default()) {
        let path = rule.map(|(index, field)| pointer(["rules", &index.to_string(), field]));
        wrong(path.unwrap_or_else(|| "/rules".to_owned()), &why);
    }
    if chosen.slack_user_id.as_deref().is_some_and(|id| !is_slack_user_id(id)) {
        wrong("/slack_user_id".to_owned(), NO_SLACK_USER_ID);
    }
    if chosen.email.as_deref().is_some_and(|address| !is_address(address)) {
        wrong("/email".to_owned(), "must be an address such as ana@example.org");
    }
    if mistakes.is_empty() { Ok(chosen) } else { Err(Problem::new(Code::Invalid).errors(mistakes).into()) }
}

async fn deliveries(caller: Caller, Params(mut query): Params<DeliveryQuery>) -> Result<Json<Page<Delivery>>> {
    caller.may(Act::ManageDeliveries)?;
    query.limit = Some(limit(query.limit)?);
    query.cursor = DELIVERIES.place(query.cursor)?;
    Ok(Json(DELIVERIES.page(caller.state.store.deliveries(&query).await?)))
}

/// Needs no idempotency key: a message that is already waiting cannot be retried.
async fn retry(caller: Caller, Id(id): Id<DeliveryId>) -> Result<NoContent> {
    caller.may(Act::ManageDeliveries)?;
    if !caller.state.store.retry_delivery(id).await? {
        return Err(Problem::new(Code::NotFound).detail("there is no given-up message with this id").into());
    }
    tracing::info!(%id, by = %caller.principal().username, "a notification will be retried");
    Ok(NoContent)
}

//! `/api/v1/slack/…`: button presses and reactions in Slack decide reviews, with the same commit and the same rights as
//! everywhere. Slack identifies the member; each person sets their member ID in their notification settings.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use shared::JsonMap;
use shared::api::DecisionEffect;
use shared::decision::Via;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use tokio::sync::oneshot;

use super::AppState;
use super::api::{Api, OperationDoc};
use super::body::read;
use super::problem::{Result, unexpected};
use crate::engine::Input;
use crate::notify::{ButtonPress, Interaction, InteractionReply, NotificationService, Reaction, SlackEvent};
use crate::problem::of_commit;
use crate::store::{self, Actor, Change, Committed, IdempotencyKey};

/// How long a response waits for the decision; Slack allows three seconds. A slower decision, for example with a
/// guardrail that calls a webhook, continues, and its result reaches the person in a message.
const DECISION_TIMEOUT: Duration = Duration::from_secs(2);
/// The header with which Slack marks a repeated event.
const RETRY: &str = "x-slack-retry-num";

pub(super) fn mount(api: &mut Api) {
    let press = OperationDoc::new("Receive a button press, or the reason for one, from Slack, signed by Slack").open();
    // Only a dialog that stays open gets a body.
    let press = press.answer::<JsonMap>();
    api.post("/api/v1/slack/interactions", press.body::<JsonMap>("application/x-www-form-urlencoded"), interactions);
    let reaction = OperationDoc::new("Receive a reaction from Slack, signed by Slack").answer::<JsonMap>().open();
    api.post("/api/v1/slack/events", reaction.body::<JsonMap>("application/json"), events);
}

async fn interactions(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<Response> {
    let (notifications, body) = from_slack(&state, &headers, body).await?;
    let Some(interaction) = Interaction::read(&body) else { return Ok(StatusCode::OK.into_response()) };
    let (response, mut awaited) = oneshot::channel();
    let decided = async move {
        if interaction.press.asks_reason {
            return ask_reason(&state, &notifications, &interaction).await;
        }
        let press = interaction.press.clone();
        let reply = decide(&state, &notifications, &interaction.user, press, None, body.len() as u64).await;
        let lost =
            || InteractionReply::Tell("The server has a problem, and your decision may be lost. Try again.".to_owned());
        let (reply, done) = reply.map_or_else(|problem| (lost(), Err(problem)), |reply| (reply, Ok(())));
        if let Some(reply) = in_dialog(&interaction, reply, response) {
            notifications.reply(&interaction, reply);
        }
        done
    };
    let done = soon(decided).await;
    // From now on, whatever was not sent reaches the person in a message.
    awaited.close();
    if let Ok(kept_open) = awaited.try_recv() {
        return Ok(Json(kept_open).into_response());
    }
    done.map(IntoResponse::into_response)
}

/// Sends the response that keeps a dialog open if nothing was decided, unless Slack no longer waits for it. Returns what
/// remains to be told.
fn in_dialog(
    interaction: &Interaction,
    reply: InteractionReply,
    response: oneshot::Sender<Value>,
) -> Option<InteractionReply> {
    match reply {
        InteractionReply::Refuse { why, message } => {
            let is_told = interaction.keep_open(&why).is_some_and(|kept_open| response.send(kept_open).is_ok());
            if is_told { message.map(InteractionReply::Show) } else { Some(InteractionReply::Refuse { why, message }) }
        }
        reply => Some(reply),
    }
}

async fn events(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<Json<Value>> {
    let (notifications, body) = from_slack(&state, &headers, body).await?;
    let reaction = match SlackEvent::read(&body) {
        Some(SlackEvent::Reaction(reaction)) => reaction,
        Some(SlackEvent::Challenge(challenge)) => return Ok(Json(json!({ "challenge": challenge }))),
        None => return Ok(Json(json!({}))),
    };
    let (bytes, again) = (body.len() as u64, headers.contains_key(RETRY));
    let decided = async move {
        let decided = decide_by_reaction(&state, &notifications, &reaction, bytes).await;
        if decided.is_err() {
            notifications.whisper(&reaction, "The server has a problem, and your decision may be lost. Try again.");
        }
        let Some(reply) = decided? else { return Ok(()) };
        match reply {
            // A repeated event: the person was already told the result of the first one.
            _ if again => {}
            InteractionReply::Tell(text) | InteractionReply::Refuse { why: text, .. } => {
                notifications.whisper(&reaction, &text);
            }
            // The notifier updates the message when it reads in the log that the review is over.
            InteractionReply::Show(_) => {}
        }
        Ok(())
    };
    soon(decided).await.map(|_| Json(json!({})))
}

/// Reads a request and checks Slack's signature; `401` if it is not valid, or if there are no notification channels.
async fn from_slack(state: &AppState, headers: &HeaderMap, body: Body) -> Result<(NotificationService, Vec<u8>)> {
    let body = read(headers, body).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signed = |notifications: &&NotificationService| {
        notifications.is_from_slack(header("x-slack-request-timestamp"), header("x-slack-signature"), &body)
    };
    let Some(notifications) = state.outside.notifications.as_ref().filter(signed).cloned() else {
        let detail = "the signature is not from this server's Slack app, or the request is older than five minutes";
        return Err(Problem::new(Code::Unauthenticated).detail(detail).into());
    };
    Ok((notifications, body))
}

/// Waits for a decision up to [`DECISION_TIMEOUT`], and returns `200` if it takes longer.
async fn soon(decided: impl Future<Output = Result<()>> + Send + 'static) -> Result<StatusCode> {
    match tokio::time::timeout(DECISION_TIMEOUT, tokio::spawn(decided)).await {
        Ok(Ok(done)) => done.map(|()| StatusCode::OK),
        Ok(Err(_)) => Err(unexpected()),
        Err(_) => Ok(StatusCode::OK),
    }
}

/// Asks the person who pressed a button for the reason, if the review still waits. Nothing is decided by this.
async fn ask_reason(state: &AppState, notifications: &NotificationService, interaction: &Interaction) -> Result<()> {
    let reply = match state.store.review(interaction.press.review).await? {
        Some(review) if review.is_pending() => {
            notifications.ask_reason(interaction, &review);
            return Ok(());
        }
        Some(review) => {
            let why = format!("Nothing was decided: the review is over. {}", notifications.outcome(&review));
            InteractionReply::Refuse { why, message: Some(notifications.over(&review)) }
        }
        None => InteractionReply::refuse("Nothing was decided: the review does not exist."),
    };
    notifications.reply(interaction, reply);
    Ok(())
}

/// Decides by a reaction, and returns the reply to the person. `None` if the message does not ask for a pending review.
async fn decide_by_reaction(
    state: &AppState,
    notifications: &NotificationService,
    reaction: &Reaction,
    bytes: u64,
) -> Result<Option<InteractionReply>> {
    let Some((review, channel, shown)) = state.store.message_with_reactions(&reaction.receipt()).await? else {
        return Ok(None);
    };
    let Some(now) = state.store.review(review).await? else { return Ok(None) };
    if !now.is_pending() {
        return Ok(None);
    }
    let Some(press) = notifications.press_of(reaction, &now, &channel, &shown) else {
        let text = "Nothing was decided: this message no longer accepts this reaction. Open the review to decide.";
        return Ok(Some(InteractionReply::refuse(text)));
    };
    // Slack repeats an event if it got no response. The key keeps the repetition from overwriting a vote that was
    // changed in the meantime.
    let key = reaction.event.clone().map(|event| IdempotencyKey {
        scope: "slack/events".to_owned(),
        body: Sha256::digest(&event).into(),
        key: event,
    });
    decide(state, notifications, &reaction.user, press, key, bytes).await.map(Some)
}

/// Decides, and returns the reply to the person. `bytes` is the size of the request, which is charged to the person's
/// budget.
async fn decide(
    state: &AppState,
    notifications: &NotificationService,
    slack_user: &str,
    press: ButtonPress,
    key: Option<IdempotencyKey>,
    bytes: u64,
) -> Result<InteractionReply> {
    let person = state.store.person_of_slack(slack_user).await?;
    let Some((person, confirmed)) = person.filter(|(person, _)| person.user.active) else {
        tracing::info!(slack_user, "an unknown Slack user tried to decide");
        return Ok(InteractionReply::refuse(format!(
            "Nothing was decided: Countersign does not know {slack_user}. Ask an admin to set this member ID for you."
        )));
    };
    if !confirmed {
        let name = &person.user.username;
        tracing::info!(slack_user, user = %name, "a Slack user whom nobody has confirmed tried to decide");
        return Ok(InteractionReply::refuse(format!(
            "Nothing was decided: an admin entered {slack_user} for `{name}`, who has not confirmed it. If that is you, \
             log in to the console and confirm it under You (for admins: People), Notifications."
        )));
    }
    if state.authenticator.policy().lacks_factor(&person) {
        let text = "Nothing was decided: set up a second factor first, in the console under You (for admins: People), Security.";
        return Ok(InteractionReply::refuse(text));
    }
    let review = press.review;
    let Some(shown) = state.store.review(review).await? else {
        return Ok(InteractionReply::refuse("Nothing was decided: the review does not exist."));
    };
    let mut principal = person.principal(None);
    principal.stands_for = state.store.standing(&person).await?.stands_for;
    let (budgets, uptime) = (&state.options.budgets, state.clock.uptime());
    if let Err(problem) = budgets.admit(&principal, 0, uptime) {
        return Ok(refused(notifications, review, &problem));
    }
    budgets.settle(&principal, 0, bytes, uptime);
    let input = Input::decide(review, principal.clone(), Via::Slack, press.request(&shown));
    let operation = store::Operation::Review { review, input: Box::new(input) };
    let change = Change { by: Some(Actor::of(principal.clone())), key, operation };
    tracing::info!(%review, user = %principal.username, "a user decides in Slack");
    match state.store.commit(change).await {
        Ok(Committed::Decided { decided }) if decided.outcome == DecisionEffect::Resolved => {
            Ok(InteractionReply::Show(notifications.over(&decided.review)))
        }
        Ok(Committed::Decided { .. }) => {
            Ok(InteractionReply::Tell("Your decision was recorded; the review is still waiting for others.".into()))
        }
        Ok(_) => Err(unexpected()),
        Err(error) => Ok(refused(notifications, review, &of_commit(error, Some(&principal)))),
    }
}

/// Returns the reply for a decision that was refused, with a new version of the message if it is outdated.
fn refused(notifications: &NotificationService, review: ReviewId, problem: &Problem) -> InteractionReply {
    tracing::info!(%review, %problem, "nothing was decided in Slack");
    match (problem.code, &problem.review) {
        (Code::ReviewResolved, Some(now)) => InteractionReply::Refuse {
            why: format!("Nothing was decided: the review is over. {}", notifications.outcome(now)),
            message: Some(notifications.over(now)),
        },
        (Code::RevisionChanged, Some(now)) => InteractionReply::Refuse {
            why: "Nothing was decided: the content has changed. Look at it again before you decide.".to_owned(),
            message: Some(notifications.open(now)),
        },
        _ => InteractionReply::refuse(format!("Nothing was decided: {problem}.")),
    }
}

//! `/api/v1/slack/interactions`: a button that was pressed in Slack decides a review, through the same commit and with
//! the same rights as everywhere. Slack shows who pressed it; whom that is here, the person themselves has said.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use shared::api::DecisionEffect;
use shared::decision::Via;
use shared::error::{Code, Problem};
use shared::id::ReviewId;

use super::AppState;
use super::api::{Api, Operation};
use super::body::read;
use super::problem::{Result, unexpected};
use crate::engine::Input;
use crate::notify::{Interaction, NotificationService, Reply};
use crate::problem::of_commit;
use crate::store::{self, Actor, Change, Committed};

pub(super) fn mount(api: &mut Api) {
    let body = Some(("SlackInteraction", "application/x-www-form-urlencoded"));
    let press = Operation::new("Receive a button press from Slack, signed by Slack", "").open();
    api.post("/api/v1/slack/interactions", Operation { body, ..press }, interactions);
}

async fn interactions(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Result<StatusCode> {
    let body = read(&headers, body).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signed = |notifications: &&NotificationService| {
        notifications.is_from_slack(header("x-slack-request-timestamp"), header("x-slack-signature"), &body)
    };
    let Some(notifications) = state.outside.notifications.as_ref().filter(signed) else {
        let detail =
            "the signature is not that of this server's app in Slack, or the request is older than five minutes";
        return Err(Problem::new(Code::Unauthenticated).detail(detail).into());
    };
    let Some(interaction) = Interaction::read(&body) else { return Ok(StatusCode::OK) };
    let reply = decide(&state, notifications, &interaction, body.len() as u64).await?;
    notifications.reply(&interaction, reply);
    Ok(StatusCode::OK)
}

/// Decides, and says what to tell who pressed. `bytes`: what was sent, which counts as written by them.
async fn decide(
    state: &AppState,
    notifications: &NotificationService,
    interaction: &Interaction,
    bytes: u64,
) -> Result<Reply> {
    let person = state.store.person_of_slack(&interaction.user).await?;
    let Some(person) = person.filter(|person| person.user.active) else {
        tracing::info!(slack_user = interaction.user, "somebody pressed a button who is not known here");
        return Ok(Reply::Tell(format!(
            "Nothing was decided: Countersign does not know who {} is. Set this member ID in its settings.",
            interaction.user
        )));
    };
    let review = interaction.press.review;
    let Some(shown) = state.store.review(review).await? else {
        return Ok(Reply::Tell("Nothing was decided: there is no such review.".to_owned()));
    };
    let mut principal = person.principal(None);
    (principal.stands_for, _) = state.store.standing(&person).await?;
    let (budgets, now) = (&state.edge.budgets, state.clock.now());
    if let Err(problem) = budgets.admit(&principal, now) {
        return Ok(refused(notifications, review, &problem));
    }
    budgets.charge(&principal, bytes, now);
    let request = interaction.press.clone().request(&shown);
    let input = Input::decide(review, principal.clone(), Via::Slack, request);
    let operation = store::Operation::Review { review, input: Box::new(input) };
    let change = Change { by: Some(Actor::of(principal.clone())), key: None, operation };
    tracing::info!(%review, user = %principal.username, "a button was pressed in Slack");
    match state.store.commit(change).await {
        Ok(Committed::Decided { decided }) if decided.outcome == DecisionEffect::Resolved => {
            Ok(Reply::Show { message: notifications.over(&decided.review), tell: None })
        }
        Ok(Committed::Decided { .. }) => {
            Ok(Reply::Tell("Your decision counts; the review still waits for others.".into()))
        }
        Ok(_) => Err(unexpected()),
        Err(error) => Ok(refused(notifications, review, &of_commit(error, Some(&principal)))),
    }
}

/// What to tell where it was not decided, and what the message should show now.
fn refused(notifications: &NotificationService, review: ReviewId, problem: &Problem) -> Reply {
    tracing::info!(%review, %problem, "a button in Slack decided nothing");
    match (problem.code, &problem.review) {
        (Code::ReviewResolved, Some(now)) => Reply::Show {
            message: notifications.over(now),
            tell: Some(format!("Nothing was decided: the review is over. {}", notifications.outcome(now))),
        },
        (Code::RevisionChanged, Some(now)) => Reply::Show {
            message: notifications.open(now),
            tell: Some("Nothing was decided: what is shown has changed. Look at it again, and decide then.".to_owned()),
        },
        _ => Reply::Tell(format!("Nothing was decided: {problem}.")),
    }
}

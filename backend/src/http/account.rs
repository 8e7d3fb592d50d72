//! `/api/v1/me/…`: people's own accounts. Only in a session: a token is not the person.

use axum::Json;
use axum::http::StatusCode;
use shared::api::{
    BeginSecondFactor, NewPassword, NewSecondFactor, OwnPassword, Page, RecoveryCodes, SecondFactorCode,
    SecondFactorState, SessionInfo,
};
use shared::error::{Code, Problem};
use shared::id::SessionId;

use super::api::{Api, OperationDoc};
use super::body::{self, Id};
use super::caller::InSession;
use super::problem::Result;

pub(super) fn mount(api: &mut Api) {
    let password = OperationDoc::new("Change your password; all other sessions end");
    api.put("/api/v1/me/password", password.status(204), self::password);
    let confirm = OperationDoc::new("Confirm your session with your password, for what needs a recent login");
    api.post("/api/v1/me/confirm", confirm.status(204), self::confirm);
    api.get(
        "/api/v1/me/sessions",
        OperationDoc::new("List your sessions, newest first").answer::<Page<SessionInfo>>(),
        sessions,
    );
    let others = OperationDoc::new("End all your sessions but this one").status(204);
    api.delete("/api/v1/me/sessions", others, end_others);
    api.delete("/api/v1/me/sessions/{id}", OperationDoc::new("End a session").status(204), end);
    api.get(
        "/api/v1/me/totp",
        OperationDoc::new("Get the status of your second factor").answer::<SecondFactorState>(),
        state,
    );
    let begin = OperationDoc::new("Create the secret of a second factor; it is shown once").answer::<NewSecondFactor>();
    api.post("/api/v1/me/totp", begin.status(201), begin_totp);
    let confirm = OperationDoc::new("Turn the second factor on, with one of its codes").answer::<RecoveryCodes>();
    api.post("/api/v1/me/totp/confirm", confirm, confirm_totp);
    let remove = OperationDoc::new("Turn the second factor off, with one of its codes or a recovery code");
    api.post("/api/v1/me/totp/remove", remove.status(204), remove_totp);
}

async fn password(session: InSession, body::Json { value, .. }: body::Json<NewPassword>) -> Result<StatusCode> {
    session.state.authenticator.change_password(&session.identity, value).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn confirm(session: InSession, body::Json { value, .. }: body::Json<OwnPassword>) -> Result<StatusCode> {
    session.state.authenticator.confirm_session(&session.identity, value.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn sessions(session: InSession) -> Result<Json<Page<SessionInfo>>> {
    Ok(Json(Page { items: session.state.authenticator.sessions(&session.identity).await?, next_cursor: None }))
}

async fn end(session: InSession, Id(id): Id<SessionId>) -> Result<StatusCode> {
    if !session.state.authenticator.end_sessions(&session.identity, Some(id)).await? {
        return Err(Problem::new(Code::NotFound).into());
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn end_others(session: InSession) -> Result<StatusCode> {
    session.state.authenticator.end_sessions(&session.identity, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn state(session: InSession) -> Result<Json<SecondFactorState>> {
    Ok(Json(session.state.authenticator.second_factor(&session.identity).await?))
}

async fn begin_totp(
    session: InSession,
    body::Json { value, .. }: body::Json<BeginSecondFactor>,
) -> Result<(StatusCode, Json<NewSecondFactor>)> {
    let new = session.state.authenticator.begin_second_factor(&session.identity, value.password).await?;
    Ok((StatusCode::CREATED, Json(new)))
}

async fn confirm_totp(
    session: InSession,
    body::Json { value, .. }: body::Json<SecondFactorCode>,
) -> Result<Json<RecoveryCodes>> {
    Ok(Json(session.state.authenticator.confirm_second_factor(&session.identity, &value.code).await?))
}

async fn remove_totp(session: InSession, body::Json { value, .. }: body::Json<SecondFactorCode>) -> Result<StatusCode> {
    session.state.authenticator.remove_second_factor(&session.identity, &value.code).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! `/api/v1/me/…`: people's own accounts. Only in a session: a token is not the person.

use axum::Json;
use axum::response::NoContent;
use shared::api::{
    BeginSecondFactor, NewPassword, NewSecondFactor, Page, RecoveryCodes, SecondFactorCode, SecondFactorState,
    SessionConfirmation, SessionInfo,
};
use shared::error::{Code, Problem};
use shared::id::SessionId;

use super::api::Api;
use super::body::{self, Id};
use super::caller::InSession;
use super::outputs::Created;
use super::problem::Result;

pub(super) fn mount(api: &mut Api) {
    api.put("/api/v1/me/password", "Change your password; all other sessions end", password);
    let about = "Confirm your session, with your password and second factor, for what needs a recent login";
    api.post("/api/v1/me/confirm", about, confirm);
    api.get("/api/v1/me/sessions", "List your sessions, newest first", sessions);
    api.delete("/api/v1/me/sessions", "End all your sessions but this one", end_others);
    api.delete("/api/v1/me/sessions/{id}", "End a session", end);
    api.get("/api/v1/me/totp", "Get the status of your second factor", state);
    api.post("/api/v1/me/totp", "Create the secret of a second factor; it is shown once", begin_totp);
    api.post("/api/v1/me/totp/confirm", "Turn the second factor on, with one of its codes", confirm_totp);
    let about = "Turn the second factor off, with one of its codes or a recovery code";
    api.post("/api/v1/me/totp/remove", about, remove_totp);
}

async fn password(session: InSession, body::Json { value, .. }: body::Json<NewPassword>) -> Result<NoContent> {
    session.state.authenticator.change_password(&session.identity, value).await?;
    Ok(NoContent)
}

async fn confirm(session: InSession, body::Json { value, .. }: body::Json<SessionConfirmation>) -> Result<NoContent> {
    session.state.authenticator.confirm_session(&session.identity, value).await?;
    Ok(NoContent)
}

async fn sessions(session: InSession) -> Result<Json<Page<SessionInfo>>> {
    Ok(Json(Page { items: session.state.authenticator.sessions(&session.identity).await?, next_cursor: None }))
}

async fn end(session: InSession, Id(id): Id<SessionId>) -> Result<NoContent> {
    if !session.state.authenticator.end_sessions(&session.identity, Some(id)).await? {
        return Err(Problem::new(Code::NotFound).into());
    }
    Ok(NoContent)
}

async fn end_others(session: InSession) -> Result<NoContent> {
    session.state.authenticator.end_sessions(&session.identity, None).await?;
    Ok(NoContent)
}

async fn state(session: InSession) -> Result<Json<SecondFactorState>> {
    Ok(Json(session.state.authenticator.second_factor(&session.identity).await?))
}

async fn begin_totp(
    session: InSession,
    body::Json { value, .. }: body::Json<BeginSecondFactor>,
) -> Result<Created<NewSecondFactor>> {
    let new = session.state.authenticator.begin_second_factor(&session.identity, value.password).await?;
    Ok(Created(new))
}

async fn confirm_totp(
    session: InSession,
    body::Json { value, .. }: body::Json<SecondFactorCode>,
) -> Result<Json<RecoveryCodes>> {
    Ok(Json(session.state.authenticator.confirm_second_factor(&session.identity, &value.code).await?))
}

async fn remove_totp(session: InSession, body::Json { value, .. }: body::Json<SecondFactorCode>) -> Result<NoContent> {
    session.state.authenticator.remove_second_factor(&session.identity, &value.code).await?;
    Ok(NoContent)
}

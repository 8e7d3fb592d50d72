//! The caller's own account: password, sessions, second factor. Also what admins do to the accounts of others.

use serde::de::DeserializeOwned;

use super::{ApiResult, Client, Transport, segment};
use crate::api::{
    BeginSecondFactor, Erasure, LinkSecret, NewPassword, NewSecondFactor, Page, RecoveryCodes, SecondFactorCode,
    SecondFactorState, SessionConfirmation, SessionInfo, User,
};
use crate::id::SessionId;
use crate::saved_view::Views;
use crate::single_sign_on::LoginWays;

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    /// `GET /api/v1/session`: the identity provider that people may log in with, if there is one; needs no login.
    pub async fn login_ways(&self) -> ApiResult<LoginWays> {
        self.get("/api/v1/session".into()).await
    }

    /// `POST /api/v1/session/link`: the user whom the secret of a login link would log in; does not use up the link,
    /// and needs no login.
    pub async fn link_owner(&self, token: String) -> ApiResult<User> {
        self.send("POST", "/api/v1/session/link".into(), &LinkSecret { token }, None).await
    }

    /// `POST /api/v1/me/confirm`: confirms the session with the caller's password and, if they have a second factor, a
    /// code, for what needs a recent login. A token may not call this.
    pub async fn confirm_session(&self, confirmation: &SessionConfirmation) -> ApiResult<()> {
        self.send("POST", "/api/v1/me/confirm".into(), confirmation, None).await
    }

    /// `PUT /api/v1/me/password`: changes the caller's own password, and ends all their other sessions. Their tokens
    /// stay, unless the body says otherwise. A token may not call this.
    pub async fn change_password(&self, password: &NewPassword) -> ApiResult<()> {
        self.send("PUT", "/api/v1/me/password".into(), password, None).await
    }

    /// `GET /api/v1/me/views`: the caller's saved views of the inbox.
    pub async fn saved_views(&self) -> ApiResult<Views> {
        self.get("/api/v1/me/views".into()).await
    }

    /// `PUT /api/v1/me/views`: replaces these views, and returns them with their new revision; `409` if they were changed
    /// since the revision that the body names. A token may not call this.
    pub async fn save_views(&self, views: &Views) -> ApiResult<Views> {
        self.send("PUT", "/api/v1/me/views".into(), views, None).await
    }

    /// `GET /api/v1/me/sessions`: the caller's sessions that have not ended, newest first; not with a token.
    pub async fn sessions(&self) -> ApiResult<Page<SessionInfo>> {
        self.get("/api/v1/me/sessions".into()).await
    }

    /// `DELETE /api/v1/me/sessions[/{id}]`: ends a session of the caller; without an id, all except the current one.
    pub async fn end_sessions(&self, id: Option<SessionId>) -> ApiResult<()> {
        let id = id.map_or(String::new(), |id| format!("/{id}"));
        self.send("DELETE", format!("/api/v1/me/sessions{id}"), &(), None).await
    }

    /// `GET /api/v1/me/totp`: whether the caller has a second factor, and whether they must have one; not with a token.
    pub async fn second_factor(&self) -> ApiResult<SecondFactorState> {
        self.get("/api/v1/me/totp".into()).await
    }

    /// `POST /api/v1/me/totp`: makes the secret of a second factor, which counts once it is confirmed; `409` if the
    /// caller already has a second factor. People who have no password leave it out, and must have logged in within the
    /// last ten minutes. A token may not call this.
    pub async fn begin_second_factor(&self, password: Option<String>) -> ApiResult<NewSecondFactor> {
        self.send("POST", "/api/v1/me/totp".into(), &BeginSecondFactor { password }, None).await
    }

    /// `POST /api/v1/me/totp/confirm`: turns the second factor on with a code that the app shows now, and returns its
    /// recovery codes this once. A token may not call this.
    pub async fn confirm_second_factor(&self, code: String) -> ApiResult<RecoveryCodes> {
        self.send("POST", "/api/v1/me/totp/confirm".into(), &SecondFactorCode { code }, None).await
    }

    /// `POST /api/v1/me/totp/remove`: turns the caller's second factor off, with a code or a recovery code. A token may
    /// not call this.
    pub async fn remove_second_factor(&self, code: String) -> ApiResult<()> {
        self.send("POST", "/api/v1/me/totp/remove".into(), &SecondFactorCode { code }, None).await
    }

    /// `DELETE /api/v1/users/{username}/personal-data`: erases a person who may no longer log in, and returns how far
    /// the erasure is; admins only. `409` while reviews or runs still depend on the person.
    pub async fn erase_person(&self, username: &str) -> ApiResult<Erasure> {
        self.send("DELETE", format!("/api/v1/users/{}/personal-data", segment(username)?), &(), None).await
    }

    /// `DELETE /api/v1/users/{username}/totp`: removes a person's second factor without a code; admins only.
    pub async fn reset_second_factor(&self, username: &str) -> ApiResult<()> {
        self.send("DELETE", format!("/api/v1/users/{}/totp", segment(username)?), &(), None).await
    }
}

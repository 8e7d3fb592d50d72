//! Users, and the caller's own tokens.

use serde::de::DeserializeOwned;

use super::{ApiResult, Client, Transport, query_string, segment};
use crate::api::{NewToken, NewUser, Page, Token, User, UserPatch};
use crate::id::{TokenId, Username};

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    /// `GET /api/v1/users`: all people with an account, by name; admins only.
    pub async fn users(&self) -> ApiResult<Page<User>> {
        self.get_all("/api/v1/users").await
    }

    /// `POST /api/v1/users`: adds a person, who may log in at once, and returns them; admins only.
    pub async fn create_user(&self, user: &NewUser) -> ApiResult<User> {
        self.send("POST", "/api/v1/users".into(), user, None).await
    }

    /// `PATCH /api/v1/users/{username}`: changes what `patch` sets, and returns the person; admins only.
    pub async fn update_user(&self, username: &str, patch: &UserPatch) -> ApiResult<User> {
        self.send("PATCH", format!("/api/v1/users/{}", segment(username)?), patch, None).await
    }

    /// `GET /api/v1/tokens`: the caller's tokens, newest first, without secrets; expired ones until they are removed.
    pub async fn tokens(&self) -> ApiResult<Page<Token>> {
        self.get_all("/api/v1/tokens").await
    }

    /// `GET /api/v1/tokens?user=`: the same of somebody else; admins only.
    pub async fn tokens_of(&self, owner: &Username) -> ApiResult<Page<Token>> {
        let user = query_string(&serde_json::json!({ "user": owner }));
        self.get_all(&format!("/api/v1/tokens{user}")).await
    }

    /// `POST /api/v1/tokens`: creates a token of the caller, and returns it with its secret; only in a session, soon
    /// after a login or [`Self::confirm_session`].
    pub async fn create_token(&self, token: &NewToken) -> ApiResult<Token> {
        self.send("POST", "/api/v1/tokens".into(), token, None).await
    }

    /// `DELETE /api/v1/tokens/{id}`: revokes a token of the caller; for admins, of anyone.
    pub async fn revoke_token(&self, id: TokenId) -> ApiResult<()> {
        self.send("DELETE", format!("/api/v1/tokens/{id}"), &(), None).await
    }
}

//! How a session determines its caller and their rights: an interface of the authentication that `live` needs but does
//! not know. Imports `shared` and the actor of `crate::store`.

use async_trait::async_trait;
use axum::http::HeaderMap;
use shared::error::Problem;

use crate::store::Actor;

/// Who is calling. Not imported from where it is written, so that `live` does not depend on how people log in.
#[async_trait]
pub trait Authenticate: Send + Sync + 'static {
    /// Whether a page of this `Origin` may open sockets; programs send none, and may.
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool;

    /// Whoever sends these headers; `unauthenticated` where that is nobody.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Actor, Problem>;

    /// The same person with the rights of now, read from the store and not from what was remembered;
    /// `unauthenticated` where their session or token no longer holds.
    async fn refresh(&self, actor: &Actor) -> Result<Actor, Problem>;

    /// Counts a write of theirs; refuses it where they have written as much as they may.
    fn admit(&self, _actor: &Actor) -> Result<(), Problem> {
        Ok(())
    }

    /// Counts how many bytes the write has written.
    fn charge(&self, _actor: &Actor, _bytes: usize) {}
}

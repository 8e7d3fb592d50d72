//! The authentication that sessions need: an interface, since `live` does not depend on how people log in.

use async_trait::async_trait;
use axum::http::HeaderMap;
use shared::error::Problem;

use crate::store::Actor;

/// Determines callers, their current rights and their write budgets.
#[async_trait]
pub trait Authenticate: Send + Sync + 'static {
    /// Whether a page with this `Origin` may open sockets. Programs send no origin, and may.
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool;

    /// Returns the sender of these headers. Fails with `unauthenticated` if the credential is missing or not valid.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Actor, Problem>;

    /// Returns the same person with their current rights, read from the store and not from a cache. Fails with
    /// `unauthenticated` if the session or token is no longer valid.
    async fn refresh(&self, actor: &Actor) -> Result<Actor, Problem>;

    /// Counts a write. Fails if the person has used up their write budget.
    fn admit(&self, _actor: &Actor) -> Result<(), Problem> {
        Ok(())
    }

    /// Counts the bytes of a write.
    fn charge(&self, _actor: &Actor, _bytes: usize) {}
}

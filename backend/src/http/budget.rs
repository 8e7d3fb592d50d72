//! Charges requests that write to the budget of their caller.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use futures::TryStreamExt as _;
use shared::access::Principal;

use super::AppState;
use super::body::MAX_BODY;
use super::problem::Result;

/// Counts a write of the caller, who will also pay for its size; `429` if the budget is used up. Does nothing for
/// requests that are not counted.
pub(super) fn admit(state: &AppState, parts: &Parts, caller: &Principal) -> Result<()> {
    let Some(Bill(costs)) = parts.extensions.get::<Bill>() else { return Ok(()) };
    state.edge.budgets.admit(caller, costs.announced, state.clock.uptime())?;
    let _ = costs.payer.set(caller.clone());
    Ok(())
}

/// The charge for the size of a write. Clones are the same charge.
#[derive(Clone)]
pub(super) struct Bill(Arc<Costs>);

struct Costs {
    /// The caller; empty until they are admitted.
    payer: OnceLock<Principal>,
    /// The most bytes that the body may have.
    announced: u64,
    /// The bytes of the body that have been read.
    read: AtomicU64,
}

impl Bill {
    /// Creates the charge of a request, and counts the bytes of its body. `None` if the request only reads or removes
    /// something: a removal takes back what another write has made, and whoever has used up their budget must still be
    /// able to revoke a token or to end a session.
    pub fn of(request: &mut Request) -> Option<Self> {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE) {
            return None;
        }
        let largest = MAX_BODY as u64;
        let announced = request.body().size_hint().exact().map_or(largest, |size| size.min(largest));
        let costs = Arc::new(Costs { payer: OnceLock::new(), announced, read: AtomicU64::new(0) });
        let counted = Arc::clone(&costs);
        let body = mem::take(request.body_mut()).into_data_stream().inspect_ok(move |chunk| {
            counted.read.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        });
        *request.body_mut() = Body::from_stream(body);
        request.extensions_mut().insert(Self(Arc::clone(&costs)));
        Some(Self(costs))
    }

    /// Charges the size of the request and of the response to the caller, because the log stores about as much. Failed
    /// requests are free.
    pub fn settle(self, state: &AppState, response: &Response) {
        let Self(costs) = self;
        let Some(payer) = costs.payer.get() else { return };
        let mut bytes = 0;
        if response.status().is_success() {
            let answered = response.body().size_hint().exact().unwrap_or(0);
            bytes = costs.read.load(Ordering::Relaxed).saturating_add(answered);
        }
        state.edge.budgets.settle(payer, costs.announced, bytes, state.clock.uptime());
    }
}

//! Charges requests that write to the budget of their caller.

use std::sync::{Arc, OnceLock};

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use shared::access::Principal;

use super::AppState;
use super::body::MAX_BODY;
use super::problem::Result;

/// The caller of a request that writes, once known.
#[derive(Clone, Default)]
pub(super) struct Payer(Arc<OnceLock<Principal>>);

/// Counts a write of the caller; `429` if their budget is used up.
pub(super) fn admit(state: &AppState, parts: &Parts, caller: &Principal) -> Result<()> {
    let Some(Payer(payer)) = parts.extensions.get::<Payer>() else { return Ok(()) };
    state.edge.budgets.admit(caller, state.clock.uptime())?;
    let _ = payer.set(caller.clone());
    Ok(())
}

/// The charge of a write, which is applied when it is answered.
pub(super) struct Bill {
    payer: Payer,
    sent: u64,
}

impl Bill {
    /// Creates the charge of a request; none if it only reads.
    pub fn of(request: &mut Request) -> Option<Self> {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let payer = Payer::default();
        request.extensions_mut().insert(payer.clone());
        let sent = request.body().size_hint().exact().unwrap_or(MAX_BODY as u64);
        Some(Self { payer, sent })
    }

    /// Charges the request and the response: the log stores about as much of both.
    pub fn charge(self, state: &AppState, response: &Response) {
        if response.status().is_success()
            && let Some(payer) = self.payer.0.get()
        {
            let answered = response.body().size_hint().exact().unwrap_or(0);
            state.edge.budgets.charge(payer, self.sent.saturating_add(answered), state.clock.uptime());
        }
    }
}

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

/// The caller whose budget a write is charged to; empty until the caller is known.
#[derive(Clone, Default)]
pub(super) struct Payer(Arc<OnceLock<Principal>>);

/// Counts a write of the caller, who will also pay for its size; `429` if the budget is used up. Does nothing for
/// requests that only read.
pub(super) fn admit(state: &AppState, parts: &Parts, caller: &Principal) -> Result<()> {
    let Some(Payer(payer)) = parts.extensions.get::<Payer>() else { return Ok(()) };
    state.edge.budgets.admit(caller, state.clock.uptime())?;
    let _ = payer.set(caller.clone());
    Ok(())
}

/// The charge for the size of a write, which is applied when the request was answered.
pub(super) struct Bill {
    payer: Payer,
    sent: u64,
}

impl Bill {
    /// Creates the charge of a request; `None` if it only reads.
    pub fn of(request: &mut Request) -> Option<Self> {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let payer = Payer::default();
        request.extensions_mut().insert(payer.clone());
        let sent = request.body().size_hint().exact().unwrap_or(MAX_BODY as u64);
        Some(Self { payer, sent })
    }

    /// Charges the size of the request and of the response to the caller, because the log stores about as much. Failed
    /// requests are free.
    pub fn charge(self, state: &AppState, response: &Response) {
        if response.status().is_success()
            && let Some(payer) = self.payer.0.get()
        {
            let answered = response.body().size_hint().exact().unwrap_or(0);
            state.edge.budgets.charge(payer, self.sent.saturating_add(answered), state.clock.uptime());
        }
    }
}

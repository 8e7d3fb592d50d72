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

use super::AppState;
use super::body::MAX_BODY;
use super::problem::Result;
use crate::auth::Identity;

/// Counts a write of the caller, who will also pay for its size; `429` if the budget is used up. Does nothing for
/// requests that are not counted.
pub(super) fn admit(state: &AppState, parts: &Parts, caller: &Arc<Identity>) -> Result<()> {
    // A reservation ends once, so it must not be made again if the caller is looked up again.
    let costs = parts.extensions.get::<Arc<Costs>>().filter(|costs| costs.payer.get().is_none());
    let Some(costs) = costs else { return Ok(()) };
    state.options.budgets.admit(&caller.principal, costs.announced, state.clock.uptime())?;
    let _ = costs.payer.set(Arc::clone(caller));
    Ok(())
}

/// The charge for the size of a write. It is made when this is dropped, also if the client hangs up.
pub(super) struct Bill {
    state: AppState,
    costs: Arc<Costs>,
    /// The bytes to charge; `None` if nothing was answered.
    bytes: Option<u64>,
}

/// What a request costs, as an extension of it.
struct Costs {
    /// The caller; empty until they were admitted.
    payer: OnceLock<Arc<Identity>>,
    /// The most bytes that the body may have.
    announced: u64,
    read: AtomicU64,
}

impl Bill {
    /// Creates the charge of a request, and counts the bytes of its body. `None` if the request only reads or removes
    /// something: a removal takes back what another write has made, and whoever has used up their budget must still be
    /// able to revoke a token or to end a session.
    pub fn of(request: &mut Request, state: &AppState) -> Option<Self> {
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
        request.extensions_mut().insert(Arc::clone(&costs));
        Some(Self { state: state.clone(), costs, bytes: None })
    }

    /// Charges the size of the request and of the response to the caller, because the log stores about as much. Failed
    /// requests are free.
    pub fn settle(mut self, response: &Response) {
        let answered = || response.body().size_hint().exact().unwrap_or(0);
        let bytes = if response.status().is_success() { self.costs.read().saturating_add(answered()) } else { 0 };
        self.bytes = Some(bytes);
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        let Self { state, costs, bytes } = self;
        let Some(payer) = costs.payer.get() else { return };
        // What was read before the client hung up may be written nevertheless.
        let bytes = bytes.unwrap_or_else(|| costs.read());
        state.options.budgets.settle(&payer.principal, costs.announced, bytes, state.clock.uptime());
    }
}

impl Costs {
    fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

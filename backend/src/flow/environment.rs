//! The part of the server's environment that flows use.

use std::sync::Arc;

use shared::JsonMap;

use crate::mask::Mask;

/// What flows use of the environment of the server that runs them.
#[derive(Debug, Default)]
pub struct Environment {
    /// The value of `env` in templates and conditions.
    pub env: JsonMap,
    /// The values of secrets, which the guardrail `secrets` looks for. Flows never see them.
    pub secrets: Arc<Mask>,
}

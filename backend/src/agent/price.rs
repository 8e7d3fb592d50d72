//! The prices of tokens, from the server's settings. No prices are built in: they change, and a wrong price is worse
//! than none.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::failed;
use crate::engine::{ModelRequest, TaskFailure};

/// The price of a model's tokens, in US dollars per million.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "PriceSettings")]
pub struct Price {
    input: f64,
    output: f64,
}

/// A price as written in the settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceSettings {
    input: f64,
    output: f64,
}

impl TryFrom<PriceSettings> for Price {
    type Error = &'static str;

    fn try_from(PriceSettings { input, output }: PriceSettings) -> Result<Self, Self::Error> {
        let fits = |price: f64| price.is_finite() && price >= 0.0;
        if fits(input) && fits(output) {
            Ok(Self { input, output })
        } else {
            Err("a price is in US dollars per million tokens, 0 or more")
        }
    }
}

/// Prices by model, with the provider as in flows (`openai/gpt-5-mini`) or without it (`gpt-5-mini`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// Returns the price of a model. `None` if the settings have none.
    pub fn of(&self, model: &str) -> Option<Price> {
        let without_provider = || self.0.get(model.split_once('/')?.1);
        self.0.get(model).or_else(without_provider).copied()
    }

    /// Returns the price for a call. Fails if the price is unknown but the agent has a cost budget, which could not be
    /// enforced.
    pub(super) fn for_call(&self, request: &ModelRequest) -> Result<Option<Price>, TaskFailure> {
        let price = self.of(&request.model);
        let limited = request.budget.as_ref().is_some_and(|budget| budget.cost_usd.is_some());
        if price.is_none() && limited {
            let ModelRequest { agent, model, .. } = request;
            let message = format!(
                "agent `{agent}` has a cost budget, but the price of `{model}` is unknown: add \
                 [prices.\"{model}\"] with input and output to the server's settings, or remove budget.cost_usd"
            );
            return Err(failed(message, false));
        }
        Ok(price)
    }
}

/// The numbers of tokens that a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub input: u64,
    pub output: u64,
}

impl Tokens {
    pub(super) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl Price {
    /// Returns the cost of these tokens, in US dollars. Discounts, such as for cached input, are not considered.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 tokens, more than any call has")]
    pub(super) fn cost_usd(self, tokens: Tokens) -> f64 {
        (tokens.input as f64 * self.input + tokens.output as f64 * self.output) / 1e6
    }
}

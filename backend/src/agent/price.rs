//! The prices of tokens, from the server's settings. No prices are built in: they change, and a wrong one is worse than
//! none.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::failed;
use crate::engine::{ModelRequest, TaskFailure};

/// What the tokens of one model cost, in US dollars for a million.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "PriceSettings")]
pub struct Price {
    input: f64,
    output: f64,
}

/// A price as it stands in the settings.
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

/// Prices by model, as flows name it (`openai/gpt-5-mini`) or without the provider (`gpt-5-mini`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// The price of a model; none where the settings have none.
    pub fn of(&self, model: &str) -> Option<Price> {
        let without_provider = || self.0.get(model.split_once('/')?.1);
        self.0.get(model).or_else(without_provider).copied()
    }

    /// The price for a call. Where it is not known, nothing could keep a budget of costs: the call is not made.
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

/// How many tokens a call used.
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
    /// What these tokens cost, in US dollars. Discounts, as for cached input, are not known here.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 tokens, more than any call has")]
    pub(super) fn cost_usd(self, tokens: Tokens) -> f64 {
        (tokens.input as f64 * self.input + tokens.output as f64 * self.output) / 1e6
    }
}

//! Checks values that occur in several parts of a flow: the name of a model, the URL of a program, and the time to
//! answer.

use shared::time::Span;

use super::Checker;
use crate::flow::host_of;

/// The known providers of models.
const PROVIDERS: [&str; 4] = ["openai", "anthropic", "ollama", "demo"];

/// Checks the name of a model.
pub fn model(checker: &mut Checker<'_>, path: &str, named: &str) {
    let (provider, model) = named.split_once('/').unwrap_or((named, ""));
    if !PROVIDERS.contains(&provider) || model.is_empty() {
        let guess = checker.guess(provider, PROVIDERS);
        let message = format!("a model is `provider/model` with one of the providers {}{guess}", PROVIDERS.join(", "));
        checker.invalid(path, message);
    }
}

/// Checks the URL of a program that is asked.
pub fn url(checker: &mut Checker<'_>, path: &str, url: &str) {
    let is_template = ["{{", "{%"].iter().any(|mark| url.contains(mark));
    if is_template || host_of(url).is_none() {
        checker.invalid(path, "expected a literal URL, such as `https://approvals.example.com/decide`");
    }
}

/// Checks a time to answer.
pub fn wait(checker: &mut Checker<'_>, path: &str, span: Option<Span>) {
    if let Some(why) = span.and_then(Span::why_no_wait) {
        checker.invalid(path, why);
    }
}

//! The costs of calls, and budgets that could not be enforced.

use serde_json::{Value, json};

use super::server::{Answer, Body, Server};
use super::wire::{WIRES, Wire};
use super::*;

fn priced(wire: Wire, server: &Server, prices: Value) -> Models {
    Models::new(ModelOptions { prices: serde_json::from_value(prices).unwrap(), ..wire.options(server) }).unwrap()
}

#[tokio::test]
async fn a_call_is_priced_once_by_the_settings() {
    for wire in WIRES {
        let server = Server::start(Answer::whole(wire.answer(&["Hi"], &[]))).await;
        let model = wire.model("m-5-mini");
        let request = request(&model, vec![user("Hi")]);
        let cost = async |prices: Value| {
            priced(wire, &server, prices).call(&request, &|_| {}).await.unwrap().cost_usd * 1_000_000.0
        };
        let close = |cost: f64, to: f64| assert!((cost - to).abs() < 1e-9, "{wire:?}: {cost} is not {to}");
        close(cost(json!({ "m-5-mini": { "input": 0.25, "output": 2.0 } })).await, 5.0 * 0.25 + 4.0 * 2.0);
        let mut both = json!({ "m-5-mini": { "input": 9, "output": 9 } });
        both[&model] = json!({ "input": 1, "output": 0 });
        close(cost(both).await, 5.0);
        close(cost(json!({ "m-5": { "input": 9, "output": 9 } })).await, 0.0);
    }
}

#[tokio::test]
async fn a_failed_call_is_priced_like_an_answer() {
    for wire in WIRES {
        let server = Server::start(Answer::whole(wire.cut_off(&["Half a sen"], &[]))).await;
        let models = priced(wire, &server, json!({ "m": { "input": 1, "output": 2 } }));
        let failure = models.call(&request(&wire.model("m"), vec![user("Hi")]), &|_| {}).await.unwrap_err();
        let usage = failure.usage.unwrap();
        assert_eq!(usage.tokens, 9, "{wire:?}");
        assert!((usage.cost_usd - 13e-6).abs() < 1e-12, "{wire:?}: {usage:?}");
    }
    // What was reported before the time was over counts too.
    let server = Server::start(Answer::new(Body::Silence(Wire::Anthropic.begun(&["Hel"])))).await;
    let options = ModelOptions { timeout: Duration::from_secs(2), ..Wire::Anthropic.options(&server) };
    let call = request("anthropic/m", vec![user("Hi")]);
    let failure = Models::new(options).unwrap().call(&call, &|_| {}).await.unwrap_err();
    assert_eq!(failure.usage.map(|usage| usage.tokens), Some(6), "{failure:?}");
}

#[tokio::test]
async fn a_budget_that_could_not_be_kept_stops_the_call() {
    let uncounted = |wire: Wire| {
        let body = String::from_utf8(wire.answer(&["Hi"], &[])).unwrap();
        body.replace("tokens\":", "toggles\":").replace("eval_count", "evil_count")
    };
    for wire in WIRES {
        let server = Server::start(Answer::whole(uncounted(wire))).await;
        let mut request = request(&wire.model("m"), vec![user("Hi")]);
        request.budget = Some(shared::definition::Budget { tokens: None, cost_usd: Some(0.5) });
        let unknown = wire.models(&server).call(&request, &|_| {}).await.unwrap_err();
        let setting = format!("[prices.\"{}\"]", wire.model("m"));
        assert!(unknown.message.contains(&setting), "{}", unknown.message);
        assert!(server.heard().is_empty(), "nothing is sent that could not be counted");
        let prices = json!({ "m": { "input": 1, "output": 1 } });
        let silent = priced(wire, &server, prices).call(&request, &|_| {}).await.unwrap_err();
        assert!(silent.message.contains("does not report how many tokens"), "{}", silent.message);
        assert!(!unknown.retryable && !silent.retryable);

        request.model = "demo/writer".to_owned();
        let cost = wire.models(&server).call(&request, &|_| {}).await.unwrap().cost_usd;
        assert!(cost.abs() < f64::EPSILON, "demo is free");
    }
}

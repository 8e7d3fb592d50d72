//! The metrics of requests: how many there were, and how long they took. The recorder finds a metric by its labels, which
//! allocates each of them, so a metric is looked up once and then kept.

use std::collections::HashMap;
use std::time::Duration;

use metrics::{Counter, Histogram};
use parking_lot::RwLock;

#[derive(Default)]
pub(super) struct RequestMetrics(RwLock<HashMap<String, RouteMetrics>>);

/// The metrics of a route, by method and status. There are few, since unknown methods share a label.
type RouteMetrics = HashMap<(&'static str, u16), (Counter, Histogram)>;

impl RequestMetrics {
    pub fn record(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let kept = self.0.read().get(route).and_then(|metrics| metrics.get(&(method, status)).cloned());
        let (requests, seconds) = kept.unwrap_or_else(|| self.look_up(method, route, status));
        requests.increment(1);
        seconds.record(took.as_secs_f64());
    }

    fn look_up(&self, method: &'static str, route: &str, status: u16) -> (Counter, Histogram) {
        let (route, status_label) = (route.to_owned(), status.to_string());
        let requests = metrics::counter!("countersign_http_requests_total", "method" => method,
            "route" => route.clone(), "status" => status_label);
        let seconds =
            metrics::histogram!("countersign_http_request_seconds", "method" => method, "route" => route.clone());
        let found = (requests, seconds);
        self.0.write().entry(route).or_default().insert((method, status), found.clone());
        found
    }
}

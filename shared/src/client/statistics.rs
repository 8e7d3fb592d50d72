//! Statistics of reviews.

use serde::de::DeserializeOwned;

use super::{ApiResult, Client, Transport, query_string};
use crate::statistics::{Statistics, StatisticsQuery};

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    /// `GET /api/v1/statistics`: counts reviews by outcome: all for admins; for others those that they decided and, if
    /// they are developers, those of flows of which they saved a version.
    pub async fn statistics(&self, query: &StatisticsQuery) -> ApiResult<Statistics> {
        self.get(format!("/api/v1/statistics{}", query_string(query))).await
    }
}

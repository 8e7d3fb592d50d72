//! What reviews come to.

use serde::de::DeserializeOwned;

use super::{ApiResult, Client, Transport, query_string};
use crate::statistics::{Statistics, StatisticsQuery};

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    /// `GET /api/v1/statistics`.
    pub async fn statistics(&self, query: &StatisticsQuery) -> ApiResult<Statistics> {
        self.get(format!("/api/v1/statistics{}", query_string(query))).await
    }
}

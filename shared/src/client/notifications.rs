//! Notification settings, and the messages that could not be delivered.

use serde::de::DeserializeOwned;

use super::{ApiResult, Client, Transport, query_string};
use crate::api::Page;
use crate::id::{DeliveryId, Username};
use crate::notification::{Channel, Delivery, Notifications, TestNotification};

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    /// `GET /api/v1/notifications`: the notification settings of the caller or, for admins, of somebody else, and the
    /// channels that the server has.
    pub async fn notifications(&self, of: Option<&Username>) -> ApiResult<Notifications> {
        let user = query_string(&serde_json::json!({ "user": of }));
        self.get(format!("/api/v1/notifications{user}")).await
    }

    /// `PUT /api/v1/notifications`: replaces these settings, and returns them as saved.
    pub async fn choose_notifications(
        &self,
        of: Option<&Username>,
        chosen: &Notifications,
    ) -> ApiResult<Notifications> {
        let user = query_string(&serde_json::json!({ "user": of }));
        self.send("PUT", format!("/api/v1/notifications{user}"), chosen, None).await
    }

    /// `POST /api/v1/notifications/test`: sends the caller a test message; `429` within 10 seconds of the last.
    pub async fn test_notification(&self, channel: Channel) -> ApiResult<()> {
        self.send("POST", "/api/v1/notifications/test".into(), &TestNotification { channel }, None).await
    }

    /// `GET /api/v1/notifications/deliveries`: the newest deliveries that were given up; admins only.
    pub async fn given_up(&self) -> ApiResult<Page<Delivery>> {
        self.get("/api/v1/notifications/deliveries".into()).await
    }

    /// `POST /api/v1/notifications/deliveries/{id}/retry`: sends a message that was given up once more; admins only.
    pub async fn retry_delivery(&self, id: DeliveryId) -> ApiResult<()> {
        self.send("POST", format!("/api/v1/notifications/deliveries/{id}/retry"), &(), None).await
    }
}

//! Callbacks: once a review without a flow is over, its answer is posted to the program that asked, if it gave a URL.
//! They are signed like webhooks, with a separate secret. The URL is read from the question, because it may contain a
//! secret of the receiver: no list and no log contains it.

use shared::access::{Act, access};
use shared::notification::Occasion;
use shared::time::Timestamp;

use super::failure::{DeliveryFailure, unread};
use super::plan::Announcement;
use super::settings::NotificationSecrets;
use super::webhook::{post, url_of};
use super::{Error, Outlets};
use crate::standard_webhooks::{SECRET, SigningKeys};
use crate::store::{self, DeliveryKind, NewDelivery, Store, StoredDelivery, UserRecord};

/// The error if a callback is requested from a server that has no secret for callbacks.
pub const NO_CALLBACKS: &str =
    "this server has no COUNTERSIGN_CALLBACK_SECRET: set it, or leave this out and read the answer with GET";
/// The environment variable of the secret.
const VARIABLE: &str = "COUNTERSIGN_CALLBACK_SECRET";

/// Posts answers to programs that asked without a flow, signed with these keys.
#[derive(Clone)]
pub(super) struct Callbacks(SigningKeys);

impl Callbacks {
    /// Reads the keys from the environment. Returns `None` if the secret is not set: then nothing is posted.
    pub fn new(secrets: &NotificationSecrets) -> Result<Option<Self>, Error> {
        let Some(secret) = secrets.get(VARIABLE) else { return Ok(None) };
        let keys = SigningKeys::read(secret).ok_or_else(|| Error::Settings(format!("{VARIABLE} is not {SECRET}")))?;
        Ok(Some(Self(keys)))
    }
}

impl Outlets {
    /// Checks that an answer can be posted to this URL. The error says why not.
    pub(super) fn check_callback(&self, url: &str) -> Result<(), String> {
        if self.callbacks.is_none() {
            return Err(NO_CALLBACKS.to_owned());
        }
        let url = url_of(url)?;
        self.clients.of(&url).map(|_| ()).map_err(|refused| refused.to_string())
    }

    /// Plans the callback for a review that is over. `None` if the review belongs to a flow's run, or its question has
    /// no callback URL.
    pub(super) async fn to_asker(
        &self,
        notice: &Announcement<'_>,
        store: &Store,
    ) -> Result<Option<NewDelivery>, store::Error> {
        let review = notice.review;
        if notice.occasion != Occasion::Resolved || review.run_id.is_some() {
            return Ok(None);
        }
        let asked = match store.question_of_review(review.id).await {
            // A question that cannot be read must not block the deliveries of other reviews.
            Err(store::Error::Stored(error)) => {
                tracing::error!(review = %review.id, error, "could not read whether an answer has to be posted");
                return Ok(None);
            }
            asked => asked?,
        };
        let wanted = asked.is_some_and(|asked| asked.callback_url.is_some());
        Ok(wanted.then(|| notice.delivery(DeliveryKind::Callback, &review.requested_by, &[])))
    }

    /// Posts an answer to the URL in the question, if the person who asked may still ask.
    pub(super) async fn call_back(
        &self,
        held: &StoredDelivery,
        store: &Store,
        now: Timestamp,
        body: String,
    ) -> Result<(), DeliveryFailure> {
        let lasting = |why: String| DeliveryFailure::lasting(why);
        // Worth a retry: another server may have the secret, or this one after a restart.
        let missing = || DeliveryFailure::passing(NO_CALLBACKS);
        let Callbacks(keys) = self.callbacks.as_ref().ok_or_else(missing)?;
        let asker = store.user(&held.target).await.map_err(|error| unread(&error))?;
        let may_ask = |asker: UserRecord| asker.user.active && access(&asker.principal(None), Act::Ask).is_allowed();
        if !asker.is_some_and(may_ask) {
            return Err(lasting("the person who asked may no longer ask".to_owned()));
        }
        let asked = store.question_of_review(held.review).await.map_err(|error| unread(&error))?;
        let url = asked
            .and_then(|asked| asked.callback_url)
            .ok_or_else(|| lasting("no callback was requested".to_owned()))?;
        let url = url_of(&url).map_err(lasting)?;
        post(&self.clients, &url, keys, held.id, now, body).await
    }
}

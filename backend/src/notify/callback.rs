//! Callbacks: once a review without a flow is over, its answer is posted to the program that asked, if it gave a URL, and
//! so is the end of a run to the program that started it. They are signed like webhooks, with a separate secret. The URL
//! may contain a secret of the receiver: no list and no entry of the log contains it, so it is read when it is needed.

use std::collections::BTreeSet;

use shared::access::{Act, access};
use shared::id::RunId;
use shared::log::{AnnouncedSubject, Entry};
use shared::notification::Occasion;
use shared::review::Review;
use shared::time::Timestamp;

use super::failure::DeliveryFailure;
use super::plan::Announcement;
use super::settings::NotificationSecrets;
use super::webhook::url_of;
use super::{Error, Outlets};
use crate::standard_webhooks::{SECRET, SigningKeys};
use crate::store::{self, DeliveryKind, DeliverySubject, NewDelivery, Store, StoredDelivery, UserRecord};

/// The error if a callback is requested from a server that has no secret for callbacks.
pub const NO_CALLBACKS: &str =
    "this server has no COUNTERSIGN_CALLBACK_SECRET: set it, or leave this out and read the answer with GET";
/// The longest callback URL, in bytes.
const MAX_URL: usize = 2048;
const VARIABLE: &str = "COUNTERSIGN_CALLBACK_SECRET";

/// Reads the keys that sign callbacks from the environment. Returns `None` if the secret is not set: then nothing is
/// posted.
pub(super) fn signing_keys(secrets: &NotificationSecrets) -> Result<Option<SigningKeys>, Error> {
    let wrong = || Error::Settings(format!("{VARIABLE} is not {SECRET}"));
    secrets.get(VARIABLE).map(|secret| SigningKeys::read(secret).ok_or_else(wrong)).transpose()
}

impl Outlets {
    /// Checks that messages can be posted to this URL. The error says why not.
    pub(super) fn check_callback(&self, url: &str) -> Result<(), String> {
        if self.callback_keys.is_none() {
            return Err(NO_CALLBACKS.to_owned());
        }
        if url.len() > MAX_URL {
            return Err(format!("at most {MAX_URL} bytes"));
        }
        let url = url_of(url)?;
        self.clients.of(&url).map(|_| ()).map_err(|refused| refused.to_string())
    }

    /// Plans the callback for a review or a run that is over. `None` if nobody wants one: a review that belongs to a
    /// flow's run has none. `runs` are the runs that have one.
    pub(super) async fn to_asker(
        &self,
        notice: &Announcement<'_>,
        runs: &BTreeSet<RunId>,
        store: &Store,
    ) -> Result<Option<NewDelivery>, store::Error> {
        let occasion = notice.announced.occasion;
        let (wanted, target) = match &notice.announced.about {
            AnnouncedSubject::Review(review) => {
                let is_over = occasion == Occasion::Resolved && review.run_id.is_none();
                (is_over && is_answer_wanted(review, store).await?, &review.requested_by)
            }
            AnnouncedSubject::Run(run) => (occasion.ends_run() && runs.contains(&run.id), &run.requested_by),
        };
        Ok(wanted.then(|| notice.delivery(DeliveryKind::Callback, target, &[])))
    }

    /// Posts a message to the URL in the question or the launch, if the person who asked or launched may still do so.
    pub(super) async fn call_back(
        &self,
        held: &StoredDelivery,
        store: &Store,
        now: Timestamp,
        body: String,
    ) -> Result<(), DeliveryFailure> {
        // Worth a retry: another server may have the secret, or this one after a restart.
        let missing = || DeliveryFailure::passing(NO_CALLBACKS);
        let keys = self.callback_keys.as_ref().ok_or_else(missing)?;
        let (act, refused, url) = match held.subject {
            DeliverySubject::Review(review, _) => {
                let asked =
                    store.question_of_review(review).await.map(|asked| asked.and_then(|asked| asked.callback_url));
                (Act::Ask, "the person who asked may no longer ask", asked)
            }
            DeliverySubject::Run(run) => (
                Act::Launch,
                "the person who launched the run may no longer launch runs",
                store.callback_of_run(run).await,
            ),
        };
        let asker = store.user(&held.target).await?;
        let still_may = |asker: UserRecord| asker.user.active && access(&asker.principal(None), act).is_allowed();
        if !asker.is_some_and(still_may) {
            return Err(DeliveryFailure::lasting(refused));
        }
        let url = url?.ok_or_else(|| DeliveryFailure::lasting("no callback was requested"))?;
        let url = url_of(&url).map_err(DeliveryFailure::lasting)?;
        self.post(&url, keys, held.id, now, body).await
    }
}

/// Returns those runs that end in these entries and have a callback.
pub(super) async fn runs_to_call_back(entries: &[Entry], store: &Store) -> Result<BTreeSet<RunId>, store::Error> {
    let ends = |entry: &&Entry| entry.event.kind.occasion().is_some_and(Occasion::ends_run);
    let ended: Vec<RunId> = entries.iter().filter(ends).filter_map(|entry| entry.event.run_id).collect();
    store.called_back_among(&ended).await
}

/// Whether the answer to a question without a flow is posted.
async fn is_answer_wanted(review: &Review, store: &Store) -> Result<bool, store::Error> {
    match store.question_of_review(review.id).await {
        // A question that cannot be read must not block the deliveries of other reviews.
        Err(store::Error::Stored(error)) => {
            tracing::error!(review = %review.id, error, "could not read whether an answer has to be posted");
            Ok(false)
        }
        asked => Ok(asked?.is_some_and(|asked| asked.callback_url.is_some())),
    }
}

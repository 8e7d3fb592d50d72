//! Tests of the promises of notifications, against servers that speak the real protocols.

mod feeder;
mod mails;
mod runs;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use shared::notification::Notifications;
use tokio::sync::watch;

use super::feed::Feeder;
use super::{NotificationSecrets, NotificationSettings, Notifier, NotifierOptions, Outlets};
use crate::clock::SharedClock;
use crate::store::tests::support::{World, actor};
use crate::store::{Change, ChosenNotifications, CommitError, Committed, Operation, Store};

/// The example secret of the Standard Webhooks specification.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The secret that replaces [`SECRET`]; the settings name both.
const NEXT_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// The URL of the console.
const URL: &str = "https://desk.example";

/// Reads settings as they are in the file, under `[notifications]`; receivers are on loopback.
fn settings(toml: &str) -> NotificationSettings {
    let whole = format!("allowed_hosts = [\"127.0.0.1\"]\n{toml}");
    toml::from_str(&whole).expect("the settings hold")
}

fn secrets() -> NotificationSecrets {
    let variables = [
        ("COUNTERSIGN_WEBHOOK_SECRET_DESK", format!("{NEXT_SECRET} {SECRET}")),
        ("COUNTERSIGN_CALLBACK_SECRET", SECRET.to_owned()),
    ];
    NotificationSecrets::from_env(variables.map(|(name, value)| (name.to_owned(), value)))
}

fn options(world: &World, store: &Store, settings: &NotificationSettings) -> NotifierOptions {
    let clock: SharedClock = world.clock.clone();
    let (store, settings, first_wait) = (store.clone(), settings.clone(), Duration::from_millis(20));
    NotifierOptions { store, clock, settings, secrets: secrets(), url: URL.to_owned(), first_wait }
}

async fn start(world: &World, settings: &NotificationSettings) -> Notifier {
    Notifier::run(options(world, &world.store, settings)).await.expect("it starts")
}

/// A feeder without a sender: deliveries wait.
async fn feeder(world: &World, settings: &NotificationSettings) -> Feeder {
    let outlets = Outlets::new(settings.clone(), &secrets(), URL.to_owned()).expect("the settings hold");
    let clock: SharedClock = world.clock.clone();
    Feeder::new(world.store.clone(), clock, Arc::new(outlets), watch::Sender::new(())).await.expect("reads")
}

/// Polls until something is there, advancing the clock by half a second each time.
async fn eventually<T>(world: &World, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        world.clock.advance(Duration::from_millis(500));
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what}: it did not happen");
}

/// Commits a person's choice of notifications.
async fn choose(world: &World, name: &str, notifications: Notifications) -> Result<Committed, CommitError> {
    let chosen = ChosenNotifications { username: name.parse().expect("a name"), notifications };
    let operation = Operation::ChooseNotifications(Box::new(chosen));
    world.store.commit(Change { by: Some(actor(name)), key: None, operation }).await
}

//! The sealer: signs the new entries of the log, off the write path. Commits are independent of it.
//!
//! Everything that can be read can be sealed: no row of the log ever appears before an existing one. Several servers on
//! one database may all try; each number is taken once, and the others continue from there. The server that sealed last
//! keeps sealing, so that the others need not read the same entries in vain.

use std::time::Duration;

use shared::time::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::head_file::HeadError;
use super::key::SealKey;
use super::row_authentication::MustBeAuthentic;
use super::seal::{Opened, hash, sealed_text};
use super::seals::Seals;
use super::verify::ROWS;
use crate::background::BackgroundTask;
use crate::clock::SharedClock;
use crate::store::{self, Authenticity, CommitFollower, Commits, Resume, Store};

/// The maximum number of entries in a seal, which only the entries of its last row may exceed.
const MAX_ENTRIES: usize = 512;
/// If more entries wait than one seal holds, and others commit, the rest as a multiple of the working time, since
/// running flows matters more. It is at most [`LONGEST_REST`].
const REST: u32 = 19;
/// After this many full seals in a row, the sealer is far behind, and rests only as long as it works: entries that are
/// not sealed can be neither archived nor erased.
const FAR_BEHIND: u32 = 40;
const LONGEST_REST: Duration = Duration::from_secs(2);
/// How old another server's last seal must be before this server takes over.
const TAKEOVER_AFTER: Duration = Duration::from_secs(6);
/// The minimum interval between messages about the head in the server's log.
const REPEAT_WARNING: Duration = Duration::from_hours(1);

/// The reason why nothing is sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The log or its seals cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The file of the head cannot be used.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The log or its seals are not valid, so nothing can be added.
    #[error("{0}; nothing more is sealed until this is fixed (`countersign audit verify`, docs/audit.md)")]
    Broken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sealed {
    /// Everything is sealed.
    All,
    /// A part is sealed, and more waits: the sealer rests before it goes on.
    Some,
    /// Another server seals.
    Elsewhere,
}

/// Seals the log.
pub struct Sealer {
    store: Store,
    key: SealKey,
    seals: Seals,
    clock: SharedClock,
    /// The number of the last seal that this server made.
    mine: Option<u64>,
    /// The number of the newest known seal, and the uptime when it was first seen.
    seen: (Option<u64>, Duration),
    /// The time at which the head was last logged.
    told: Timestamp,
    commits: watch::Receiver<Commits>,
    /// How many seals in a row left entries for the next one.
    full: u32,
}

impl CommitFollower for Sealer {
    type Error = SealError;
    const TROUBLE: &'static str = "the audit log was not sealed; everything sealed before can still be verified";
    /// Nothing is read while nothing is committed.
    const POLL: Duration = Duration::MAX;
    const GATHER: Duration = Duration::from_secs(2);
    const ENOUGH: u64 = 200;
    const AFTER_FAILURE: Duration = Duration::from_secs(30);

    async fn advance(&mut self) -> Result<Resume, SealError> {
        self.commits.mark_unchanged();
        let begun = Instant::now();
        let sealed = self.seal().await;
        Self::measure(&sealed);
        let sealed = sealed?;
        self.full = if sealed == Sealed::Some { self.full.saturating_add(1) } else { 0 };
        Ok(match sealed {
            Sealed::All => Resume::OnCommit,
            Sealed::Some => Resume::After(self.rest(begun.elapsed())),
            Sealed::Elsewhere => Resume::After(TAKEOVER_AFTER),
        })
    }
}

impl Sealer {
    /// Creates a sealer that signs with this key.
    pub fn new(store: Store, key: SealKey, seals: Seals, clock: SharedClock) -> Self {
        let (commits, seen, told) = (store.commits(), (None, Duration::ZERO), Timestamp::default());
        Self { store, key, seals, clock, mine: None, seen, told, commits, full: 0 }
    }

    /// Returns how long to rest after this much work, if more entries wait.
    fn rest(&self, worked: Duration) -> Duration {
        let busy = self.commits.has_changed().unwrap_or(true);
        let rest = if busy && self.full < FAR_BEHIND { REST } else { u32::from(busy) };
        (worked * rest).min(LONGEST_REST)
    }

    /// Starts sealing in the background.
    pub fn run(self) -> BackgroundTask {
        let (background, commits) = (self.store.background().clone(), self.store.commits());
        background.start("sealer", |stop| store::follow(self, commits, stop))
    }

    /// Makes the next seal, if there are entries to seal.
    pub(super) async fn seal(&mut self) -> Result<Sealed, SealError> {
        let last = self.last().await?;
        let (from, mut to) = match &last {
            Some(last) => (last.seal.to.clone(), last.to.clone()),
            None => (self.store.origin(), self.store.origin()),
        };
        let number = last.as_ref().map(|last| last.seal.number);
        let now = self.clock.now();
        if self.seen.0 != number {
            self.seen = (number, self.clock.uptime());
        }
        let is_fresh = last.as_ref().is_some_and(|last| {
            // A server whose clock was ahead may have made it. Then the time since it was first seen counts.
            let age = if last.seal.sealed_at <= now {
                now.since(last.seal.sealed_at)
            } else {
                self.clock.uptime().saturating_sub(self.seen.1)
            };
            age < TAKEOVER_AFTER
        });
        if is_fresh && number != self.mine {
            return Ok(Sealed::Elsewhere);
        }
        let must = MustBeAuthentic::after(&self.store, last.as_ref()).await?;
        let (mut hashes, mut more, mut authenticated) = (Vec::new(), true, None);
        'pages: while more && hashes.len() < MAX_ENTRIES {
            let page = self.store.record(&to, None, ROWS).await?;
            let page = page.ok_or_else(|| SealError::Broken("the newest seal is of another log".to_owned()))?;
            more = page.more;
            for row in page.rows {
                let refused = must.refuses(&row);
                let authentic = row.mac == Authenticity::Authentic;
                let unreadable = |why: String| format!("the log can no longer be read at {}: {why}", row.row);
                let (entries, refused) = match (row.entries, refused) {
                    (Ok(entries), refused) => (entries, refused),
                    (Err(why), refused) => (Vec::new(), Some(refused.unwrap_or_else(|| unreadable(why)))),
                };
                if !hashes.is_empty() && (refused.is_some() || authenticated != Some(authentic)) {
                    // The rows before it get their own seal.
                    more = true;
                    break 'pages;
                }
                if let Some(why) = refused {
                    return Err(SealError::Broken(why));
                }
                authenticated = Some(authentic);
                for (_, event) in entries {
                    let text = sealed_text(&event).map_err(|error| SealError::Broken(unreadable(error.to_string())))?;
                    hashes.push(hash(&text));
                }
                to = row.row;
                if hashes.len() >= MAX_ENTRIES {
                    more = true;
                    break;
                }
            }
        }
        if hashes.is_empty() {
            return Ok(Sealed::All);
        }
        let made = Opened::make(last.as_ref(), from, to, hashes, authenticated == Some(true), &self.key, now);
        let (opened, stored) = made.map_err(|error| SealError::Broken(error.to_string()))?;
        if self.store.add_seal(&stored).await? {
            self.mine = Some(stored.number);
            self.seals.keep(opened.head()).await?;
            self.report(&opened, now);
        }
        Ok(if more { Sealed::Some } else { Sealed::All })
    }

    /// Returns the newest seal. Fails unless it is signed by a trusted key and continues the stored head.
    async fn last(&self) -> Result<Option<Opened>, SealError> {
        let kept = self.seals.kept()?;
        self.check_key().await?;
        let stored = self.store.last_seal().await?;
        let last = stored.map(|stored| Opened::open(&stored, self.seals.trusted())).transpose();
        let last = last.map_err(SealError::Broken)?;
        if let Some(kept) = &kept {
            let continues = self.seals.continues(&self.store, kept, last.as_ref()).await?;
            continues.map_err(|why| {
                SealError::Broken(format!(
                    "{why}. If you restored a backup, check it and run `countersign audit accept`"
                ))
            })?;
        }
        if let Some(head) = last.as_ref().map(Opened::head).filter(|head| kept.as_ref() != Some(head)) {
            if kept.is_none() {
                tracing::warn!(%head, "no head of the audit log is stored here; the newest seal is accepted as it is");
            }
            self.seals.keep(head).await?;
        }
        Ok(last)
    }

    /// Checks that the registered key is this one: two servers with different keys would each consider the other's
    /// seals forged.
    async fn check_key(&self) -> Result<(), SealError> {
        let mine = self.key.public().to_string();
        match self.store.seal_key().await? {
            Some(registered) if registered != mine => Err(SealError::Broken(format!(
                "this database is sealed with {registered}, but this server has {mine}: give it the same \
                 seal.key, and start it again"
            ))),
            _ => Ok(()),
        }
    }

    fn report(&mut self, opened: &Opened, now: Timestamp) {
        if now.since(self.told) >= REPEAT_WARNING {
            self.told = now;
            tracing::info!(head = %opened.head(), entries = opened.sealed(), "the audit log is sealed");
        }
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("countersign_sealed_entries").set(opened.sealed() as f64);
    }

    /// Counts failures, and records whether sealing is refused.
    fn measure(sealed: &Result<Sealed, SealError>) {
        let refused = matches!(sealed, Err(SealError::Broken(_)));
        metrics::gauge!("countersign_seal_refused").set(if refused { 1.0 } else { 0.0 });
        if sealed.is_err() {
            metrics::counter!("countersign_seal_failures_total").increment(1);
        }
    }
}

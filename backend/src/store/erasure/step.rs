//! One step of an erasure: a run, or some log rows without a run, with everything that replaces the current data. It is
//! prepared outside of commits; its commit checks that nothing has changed since.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shared::api::Decided;
use shared::feedback::Feedback;
use shared::id::RunId;
use shared::log::Event;
use shared::review::Review;
use shared::run::{Run, RunStatus};
use shared::time::Timestamp;
use uuid::Uuid;

use super::super::blobs::{Blobs, NewBlobs, Owner, Reader, digest, encode, encode_owned, typed};
use super::super::db::{Arg, Conn, Row, Sql};
use super::super::feedback::{FEEDBACK, feedback_row};
use super::super::log_row::{Body, Form, owner_of_stored};
use super::super::packed::pack;
use super::super::review_row::{AUDIENCE, REVIEWS, audience_rows, review_row};
use super::super::row_mac::{Authenticity, RowKeys, Stored};
use super::super::{Error, Inner, ProviderAccount, Store};
use super::Erasing;
use super::document::{Document, ErasedLogRow, StoredPart, redacted};
use super::redact::{OwnAccount, names_with};
use crate::engine::RunState;

/// The number of keys in one statement.
const CHUNK: usize = 64;

/// The result of preparing a step.
#[derive(Debug)]
pub enum Prepared {
    /// Nothing names the person.
    Nothing,
    /// The run is not over, or has a pending review; it is erased later.
    Waits,
    /// A step to commit.
    Step(Box<ErasureStep>),
}

/// The changes that one transaction makes.
#[derive(Debug, Clone)]
pub struct ErasureStep {
    pub(in crate::store) erasing: Erasing,
    /// The run, with the number of its last log row when it was read. `None` for log rows without a run.
    pub(in crate::store) run: Option<(RunId, i64)>,
    /// The number of the first log row that was not indexed when the data were read.
    pub(in crate::store) indexed_to: i64,
    /// The number of the newest `entries.erased` entry when the data were read.
    pub(in crate::store) erasures: u64,
    pub(in crate::store) statements: Vec<Sql>,
    /// Whether reviews of the run change, and have to be indexed again.
    pub(in crate::store) reviews: bool,
    rows: Vec<ErasedRow>,
}

impl ErasureStep {
    /// The number of the newest `entries.erased` entry when the data were read.
    pub fn erasures(&self) -> u64 {
        self.erasures
    }

    /// The log rows that change.
    pub fn rows(&self) -> &[ErasedRow] {
        &self.rows
    }

    /// The person who is erased.
    pub fn erasing(&self) -> &Erasing {
        &self.erasing
    }
}

/// A log row that changes.
#[derive(Debug, Clone)]
pub struct ErasedRow {
    /// The number of the row in the log.
    pub number: i64,
    /// The entries before the change, in the form that is sealed.
    pub before: Vec<Event>,
    /// The entries after the change, in the form that is sealed.
    pub after: Vec<Event>,
}

const LOG: &str = "SELECT seq, body, at, commit_id, mac FROM log WHERE ";

impl Store {
    /// Prepares the erasure of the person from a run.
    pub async fn erase_of_run(&self, erasing: &Erasing, run: RunId) -> Result<Prepared, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let prepared = conn.erase_of_run(&self.inner, erasing, run).await?;
        conn.rollback().await?;
        Ok(prepared)
    }

    /// Prepares the erasure of the person from log rows that belong to no run.
    pub async fn erase_of_rows(&self, erasing: &Erasing, rows: &[i64]) -> Result<Prepared, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let sql = Sql::new(LOG).push("run_id IS NULL AND seq").among(rows.iter().copied()).push(" ORDER BY seq");
        let stored = conn.fetch(sql).await?.iter().map(log_row).collect::<Result<Vec<_>, _>>()?;
        let mut blobs = Blobs::default();
        let documents = conn.documents(Uuid::nil(), stored, &mut blobs).await?;
        let others = conn.others_with(erasing.account.as_ref(), &documents).await?;
        let account = erasing.account.as_ref().map(|account| OwnAccount { account, others: &others });
        let documents = redacted(documents, erasing, account);
        let mut step = Made::new(&self.inner, erasing, None);
        for document in documents.iter().filter(|document| document.is_changed()) {
            step.add(document)?;
        }
        let prepared = step.finish(&mut conn, None).await?;
        conn.rollback().await?;
        Ok(prepared)
    }
}

impl Conn {
    async fn erase_of_run(&mut self, inner: &Inner, erasing: &Erasing, run: RunId) -> Result<Prepared, Error> {
        let of_run = |sql: &str| Sql::new(sql).bind(run.0);
        let Some(row) = self.fetch_one(of_run("SELECT state, status, steps FROM runs WHERE id = ")).await? else {
            return Ok(Prepared::Nothing);
        };
        let is_over = RunStatus::of_word(&row.text(1)?).is_some_and(RunStatus::is_over);
        let mut stored = vec![(StoredPart::State, row.text(0)?)];
        stored.extend(row.text_opt(2)?.map(|steps| (StoredPart::Steps, steps)));
        for row in self.fetch(of_run("SELECT id, body FROM steps WHERE run_id = ")).await? {
            stored.push((StoredPart::Step(row.uuid(0)?), row.text(1)?));
        }
        let mut pending = false;
        for row in self.fetch(of_run("SELECT id, body, status FROM reviews WHERE run_id = ")).await? {
            stored.push((StoredPart::Review(row.uuid(0)?), row.text(1)?));
            pending |= row.text(2)? == "pending";
        }
        for row in self.fetch(of_run("SELECT id, body FROM feedback WHERE run_id = ")).await? {
            stored.push((StoredPart::Feedback(row.uuid(0)?), row.text(1)?));
        }
        let answers = "SELECT scope, key, answer FROM idempotency WHERE answer IS NOT NULL AND run_id = ";
        for row in self.fetch(of_run(answers)).await? {
            stored.push((StoredPart::Answer { scope: row.text(0)?, key: row.text(1)? }, row.text(2)?));
        }
        let mut last_row = 0;
        for row in self.fetch(of_run(&format!("{LOG}run_id = ")).push(" ORDER BY seq")).await? {
            last_row = row.int(0)?;
            stored.push(log_row(&row)?);
        }
        let mut blobs = Blobs::default();
        let documents = redacted(self.documents(run.0, stored, &mut blobs).await?, erasing, None);
        if !documents.iter().any(Document::is_changed) {
            return Ok(Prepared::Nothing);
        }
        let mut step = Made::new(inner, erasing, Some((run, last_row)));
        for document in &documents {
            if document.is_changed() {
                step.add(document)?;
            } else {
                step.kept.extend(blobs.reached(run.0, document.stored.clone())?);
            }
        }
        if pending || !is_over {
            return Ok(Prepared::Waits);
        }
        step.finish(self, Some(run.0)).await
    }

    /// Returns the names of people that documents have beside this account.
    async fn others_with(
        &mut self,
        account: Option<&ProviderAccount>,
        documents: &[Document],
    ) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        if let Some(account) = account {
            for document in documents {
                names_with(account, &document.after, &mut names);
            }
        }
        let sql = Sql::new("SELECT username FROM users WHERE username").among(&names);
        Ok(self.all(sql, Row::text).await?.into_iter().collect())
    }

    async fn documents(
        &mut self,
        run: Uuid,
        stored: Vec<(StoredPart, String)>,
        blobs: &mut Blobs,
    ) -> Result<Vec<Document>, Error> {
        let mut reader = Reader::verifying();
        for (of, stored) in &stored {
            match of {
                StoredPart::State => reader.add_state(run, Ok(stored.clone())),
                _ => reader.add(run, Ok(stored.clone())),
            }
        }
        let values = reader.finish::<Value>("what is stored", self, blobs).await?;
        let documents = stored.into_iter().zip(values);
        Ok(documents.map(|((of, stored), after)| Document { of, stored, before: None, after }).collect())
    }
}

fn log_row(row: &Row) -> Result<(StoredPart, String), Error> {
    let of = ErasedLogRow { seq: row.int(0)?, at: row.int(2)?, commit: row.uuid(3)?, mac: row.blob_opt(4)? };
    Ok((StoredPart::Row(of), row.text(1)?))
}

/// A step under construction.
struct Made<'a> {
    keys: Option<&'a RowKeys>,
    generation: &'a str,
    step: ErasureStep,
    blobs: NewBlobs,
    /// The blobs that unchanged data refer to.
    kept: BTreeSet<[u8; 32]>,
    /// The entries of changed rows, in the form for the index.
    indexed: BTreeMap<i64, Vec<Event>>,
}

impl<'a> Made<'a> {
    fn new(inner: &'a Inner, erasing: &Erasing, run: Option<(RunId, i64)>) -> Self {
        let step = ErasureStep {
            erasing: erasing.clone(),
            run,
            indexed_to: 0,
            erasures: 0,
            statements: Vec::new(),
            reviews: false,
            rows: Vec::new(),
        };
        Self {
            keys: inner.row_keys.as_ref(),
            generation: &inner.log.generation,
            step,
            blobs: NewBlobs::new(),
            kept: BTreeSet::new(),
            indexed: BTreeMap::new(),
        }
    }

    /// Adds the statements that replace a stored value.
    fn add(&mut self, document: &Document) -> Result<(), Error> {
        let run = self.step.run.map(|(run, _)| run);
        let key = run.map_or(Uuid::nil(), |run| run.0);
        let value = document.after.clone();
        let statements = &mut self.step.statements;
        match &document.of {
            StoredPart::State => {
                let state: RunState = typed("a state", value)?;
                let sql = Sql::new("UPDATE runs SET requested_by = ").bind(state.requested_by.as_str());
                let sql = sql.push(", format = ").bind(state.format).push(", state = ");
                let sql = sql.bind(pack(encode(key, &state, &mut self.blobs)?));
                statements.push(sql.push(" WHERE id = ").bind(key));
            }
            StoredPart::Steps => {
                let sql = Sql::new("UPDATE runs SET steps = ").bind(pack(encode(key, &value, &mut self.blobs)?));
                statements.push(sql.push(" WHERE id = ").bind(key));
            }
            StoredPart::Step(id) => {
                let sql = Sql::new("UPDATE steps SET body = ").bind(pack(encode(key, &value, &mut self.blobs)?));
                statements.push(sql.push(" WHERE run_id = ").bind(key).push(" AND id = ").bind(*id));
            }
            StoredPart::Review(id) => {
                let before: Review = typed("a review", document.before().clone())?;
                let review: Review = typed("a review", value)?;
                for row in audience_rows(&before) {
                    let sql = Sql::new(&AUDIENCE.delete()).push(" = (");
                    statements.push(sql.list(row).push(")"));
                }
                statements.push(Sql::new("DELETE FROM reviews WHERE id = ").bind(*id));
                let row = review_row(RunId(key), &review, None, &mut self.blobs)?;
                statements.push(Sql::new(&REVIEWS.insert()).values([row]));
                statements.push(Sql::new(&AUDIENCE.insert()).values(audience_rows(&review)));
                self.step.reviews = true;
            }
            StoredPart::Feedback(id) => {
                let feedback: Feedback = typed("feedback", value)?;
                statements.push(Sql::new("DELETE FROM feedback WHERE id = ").bind(*id));
                statements.push(Sql::new(&FEEDBACK.insert()).values([feedback_row(&feedback)]));
            }
            StoredPart::Answer { scope, key: name } => {
                // The answers about a run.
                let owner = || {
                    let decided = Owner::read_member::<Decided>(&value, "decided");
                    Owner::members([Owner::read_member::<Run>(&value, "run"), decided])
                };
                let answer = pack(encode_owned(key, &value, owner, &mut self.blobs)?);
                let sql = Sql::new("UPDATE idempotency SET answer = ").bind(answer);
                let sql = sql.push(" WHERE scope = ").bind(scope.as_str()).push(" AND key = ").bind(name.as_str());
                statements.push(sql);
            }
            StoredPart::Row(row) => self.row(document, row, run)?,
        }
        Ok(())
    }

    fn row(&mut self, document: &Document, row: &ErasedLogRow, run: Option<RunId>) -> Result<(), Error> {
        let ErasedLogRow { seq, at, commit, ref mac } = *row;
        let id = run.map(|run| run.0);
        let events = |value: &Value, form: Form| -> Result<Vec<Event>, Error> {
            let body: Body = typed("a row of the log", value.clone())?;
            Ok(body.unpack(Timestamp(at), run, form))
        };
        let whole = events(&document.after, Form::Whole)?;
        let owner = || owner_of_stored(&whole, &document.after);
        let body = pack(encode_owned(id.unwrap_or_default(), &document.after, owner, &mut self.blobs)?);
        let stored = |body| Stored { generation: self.generation, seq, commit, at, run: id, body };
        let mac = match mac {
            // A row from before rows were authenticated stays without an HMAC.
            None => None,
            Some(mac) => {
                let keys = self
                    .keys
                    .ok_or_else(|| Error::Settings("nothing is erased without the key of the audit log".to_owned()))?;
                match keys.check(&stored(&document.stored), Some(mac)) {
                    Authenticity::Authentic => Some(keys.mac(&stored(&body))),
                    Authenticity::Wrong => {
                        return Err(Error::Stored(format!("row {seq} of the log was changed after it was written")));
                    }
                    // If this server cannot check the row, it does not authenticate the new content either.
                    _ => Some(mac.clone()),
                }
            }
        };
        let sql = Sql::new("UPDATE log SET body = ").bind(body).push(", mac = ").bind(Arg::Blob(mac));
        self.step.statements.push(sql.push(" WHERE seq = ").bind(seq));
        let (before, after) = (events(document.before(), Form::Sealed)?, events(&document.after, Form::Sealed)?);
        self.step.rows.push(ErasedRow { number: seq, before, after });
        self.indexed.insert(seq, whole);
        Ok(())
    }

    /// Adds what follows from the changes: blobs, and the index of the log.
    async fn finish(mut self, conn: &mut Conn, run: Option<Uuid>) -> Result<Prepared, Error> {
        if self.step.statements.is_empty() {
            return Ok(Prepared::Nothing);
        }
        let mut there = BTreeSet::new();
        if let Some(run) = run {
            for row in conn.fetch(Sql::new("SELECT digest FROM blobs WHERE run_id = ").bind(run)).await? {
                there.insert(digest(&row.blob(0)?)?);
            }
        }
        self.kept.extend(self.blobs.keys().map(|(_, digest)| *digest));
        let statements = &mut self.step.statements;
        for ((run, digest), body) in &self.blobs {
            let row = vec![Arg::from(*run), digest.into(), pack(body.clone()).into()];
            let sql = Sql::new("INSERT INTO blobs (run_id, digest, body) ").values([row]);
            statements.push(sql.push(" ON CONFLICT (run_id, digest) DO NOTHING"));
        }
        let gone: Vec<&[u8; 32]> = there.difference(&self.kept).collect();
        for gone in gone.chunks(CHUNK) {
            let sql = Sql::new("DELETE FROM blobs WHERE run_id = ").bind(run).push(" AND digest IN (");
            statements.push(sql.list(gone.iter().copied()).push(")"));
        }
        let (indexed_to, index) = conn.reindexed(&self.indexed).await?;
        self.step.indexed_to = indexed_to;
        self.step.erasures = conn.last_erasure().await?;
        self.step.statements.extend(index);
        Ok(Prepared::Step(Box::new(self.step)))
    }
}

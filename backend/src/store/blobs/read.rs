//! Reads stored JSON: follows references, with one query per level, and inserts their values.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::super::Error;
use super::super::db::{Conn, Sql};
use super::super::driver_error::DriverError;
use super::super::packed::unpack;
use super::super::unreadable::reason;
use super::{BlobKey, Blobs, ESCAPE, LITERAL, digest, is_marked, reference};
use crate::engine::RunState;

/// Reads several stored values together, so that all their blobs take one query per level.
#[derive(Default)]
pub(in crate::store) struct Reader {
    values: Vec<(Uuid, StoredJson)>,
    /// Whether each blob is checked against its digest.
    verify: bool,
}

enum StoredJson {
    /// JSON without references, which is read as it is.
    Whole(String),
    /// JSON in which references have to be replaced.
    Parts(Value),
    /// Invalid JSON, with the reason.
    Broken(String),
}

impl Reader {
    /// Creates a reader that treats a changed blob as missing.
    pub fn verifying() -> Self {
        Self { verify: true, ..Self::default() }
    }

    /// Adds stored JSON of a column, which may not be text. [`Reader::finish`] returns values in the order in which they
    /// were added.
    pub fn add(&mut self, run: Uuid, stored: Result<String, DriverError>) {
        self.add_without(run, stored, |_| {});
    }

    /// Adds the stored state of a run, in this or an earlier format.
    pub fn add_state(&mut self, run: Uuid, stored: Result<String, DriverError>) {
        self.add_state_without(run, stored, |_| {});
    }

    /// Like [`Self::add`]; `hollow` empties the references that are not needed.
    pub fn add_without(&mut self, run: Uuid, stored: Result<String, DriverError>, hollow: impl FnOnce(&mut Value)) {
        let stored = match stored.and_then(unpack) {
            Ok(json) if is_marked(&json) => StoredJson::parse(&json, hollow),
            Ok(json) => StoredJson::Whole(json),
            Err(error) => StoredJson::Broken(error.to_string()),
        };
        self.values.push((run, stored));
    }

    /// Like [`Self::add_without`], for the stored state of a run, in this or an earlier format.
    pub fn add_state_without(
        &mut self,
        run: Uuid,
        stored: Result<String, DriverError>,
        hollow: impl FnOnce(&mut Value),
    ) {
        match stored.and_then(unpack) {
            Ok(json) if !RunState::is_current(&json) => {
                let upgraded = StoredJson::parse(&json, |state| {
                    RunState::upgrade(state);
                    hollow(state);
                });
                self.values.push((run, upgraded));
            }
            current => self.add_without(run, current, hollow),
        }
    }

    /// Reads the blobs and restores the values. `blobs` keeps what was read; `what` names the values in errors. Returns
    /// an error if any value cannot be read.
    pub async fn finish<T: DeserializeOwned>(
        self,
        what: &str,
        conn: &mut Conn,
        blobs: &mut Blobs,
    ) -> Result<Vec<T>, Error> {
        self.finish_each(what, conn, blobs).await?.into_iter().collect()
    }

    /// Like [`Self::finish`], with an [`Error::Stored`] in place of each value that cannot be read.
    pub async fn finish_each<T: DeserializeOwned>(
        self,
        what: &str,
        conn: &mut Conn,
        blobs: &mut Blobs,
    ) -> Result<Vec<Result<T, Error>>, Error> {
        let mut wanted = BTreeSet::new();
        for (run, stored) in &self.values {
            if let StoredJson::Parts(value) = stored {
                want(*run, value, blobs, &mut wanted);
            }
        }
        while !wanted.is_empty() {
            wanted = blobs.read(conn, &wanted, self.verify).await?;
        }
        let read = self.values.into_iter().map(|(run, stored)| {
            let read = match stored {
                StoredJson::Whole(text) => serde_json::from_str(&text).map_err(|error| reason(&error)),
                StoredJson::Parts(value) => restore(run, value, blobs)
                    .and_then(|value| serde_json::from_value(value).map_err(|error| reason(&error))),
                StoredJson::Broken(why) => Err(why),
            };
            read.map_err(|why| Error::Stored(format!("{what} of run {run}: {why}")))
        });
        Ok(read.collect())
    }
}

impl StoredJson {
    fn parse(text: &str, prepare: impl FnOnce(&mut Value)) -> Self {
        match serde_json::from_str(text) {
            Ok(mut value) => {
                prepare(&mut value);
                Self::Parts(value)
            }
            Err(error) => Self::Broken(reason(&error)),
        }
    }
}

impl Blobs {
    /// Reads these blobs. Returns the further blobs to which they refer.
    async fn read(
        &mut self,
        conn: &mut Conn,
        wanted: &BTreeSet<BlobKey>,
        verify: bool,
    ) -> Result<BTreeSet<BlobKey>, Error> {
        let mut next = BTreeSet::new();
        for keys in Vec::from_iter(wanted).chunks(500) {
            let rows = keys.iter().map(|(run, digest)| vec![(*run).into(), digest.into()]);
            let sql = Sql::new("SELECT b.run_id, b.digest, b.body FROM (")
                .values(rows)
                .push(") AS k JOIN blobs b ON b.run_id = k.column1 AND b.digest = k.column2");
            for row in conn.fetch(sql).await? {
                let (run, digest) = (row.uuid(0)?, digest(&row.blob(1)?)?);
                let Ok(text) = unpack(row.text(2)?) else { continue };
                if verify && digest != <[u8; 32]>::from(Sha256::digest(text.as_bytes())) {
                    continue;
                }
                // A blob that is not valid JSON counts as missing.
                if let Ok(value) = serde_json::from_str(&text) {
                    self.0.insert((run, digest), value);
                }
            }
            for (run, digest) in keys {
                if let Some(value) = self.0.get(&(*run, *digest)) {
                    want(*run, value, self, &mut next);
                }
            }
        }
        Ok(next)
    }

    /// Returns the blobs of a run that a stored value refers to, directly or through other blobs that were read.
    pub fn reached(&self, run: Uuid, stored: String) -> Result<BTreeSet<[u8; 32]>, Error> {
        let (mut reached, mut found) = (BTreeSet::new(), Vec::new());
        let json = unpack(stored)?;
        if is_marked(&json) {
            let value: Value = serde_json::from_str(&json).map_err(|error| Error::Stored(reason(&error)))?;
            references(&value, &mut found);
        }
        while let Some(digest) = found.pop() {
            if reached.insert(digest)
                && let Some(value) = self.0.get(&(run, digest))
            {
                references(value, &mut found);
            }
        }
        Ok(reached)
    }
}

fn want(run: Uuid, value: &Value, blobs: &Blobs, wanted: &mut BTreeSet<BlobKey>) {
    let mut found = Vec::new();
    references(value, &mut found);
    wanted.extend(found.into_iter().map(|digest| (run, digest)).filter(|key| !blobs.0.contains_key(key)));
}

fn references(value: &Value, found: &mut Vec<[u8; 32]>) {
    if let Some((_, digest)) = reference(value) {
        found.push(digest);
        return;
    }
    if let Some(members) = literal(value) {
        members.values().for_each(|member| references(member, found));
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => members.values().for_each(|member| references(member, found)),
        _ => {}
    }
}

pub(super) fn restore(run: Uuid, value: Value, blobs: &Blobs) -> Result<Value, String> {
    if let Some((_, digest)) = reference(&value) {
        let missing = || format!("it refers to a blob {} that is missing, invalid, or changed", hex::encode(digest));
        let blob = blobs.0.get(&(run, digest)).cloned().ok_or_else(missing)?;
        return restore(run, blob, blobs);
    }
    Ok(match value {
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| restore(run, item, blobs)).collect::<Result<_, _>>()?)
        }
        Value::Object(mut members) => {
            if members.len() == 1
                && let Some(Value::Object(inner)) = members.get_mut(LITERAL)
            {
                members = std::mem::take(inner);
            }
            let alone = members.len() == 1;
            let restored = members.into_iter().map(|(key, member)| {
                let key = match key.strip_prefix(ESCAPE) {
                    Some(escaped) if alone => escaped.to_owned(),
                    _ => key,
                };
                Ok((key, restore(run, member, blobs)?))
            });
            Value::Object(restored.collect::<Result<_, String>>()?)
        }
        plain => plain,
    })
}

/// Returns the members of an object that an earlier version has wrapped, if the value is one.
fn literal(value: &Value) -> Option<&Map<String, Value>> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get(LITERAL)?.as_object()
}

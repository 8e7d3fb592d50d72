//! Authenticates rows of the log when they are written: with an HMAC over the stored row and its place, by a key that
//! is not in the database. A row that is inserted, changed, copied or moved without the key has no valid HMAC.

use ring::hmac;
use uuid::Uuid;

/// The length of a key's id in bytes.
const ID: usize = 8;

/// A key that authenticates rows.
#[derive(Clone)]
pub struct RowKey {
    id: [u8; ID],
    key: hmac::Key,
}

/// The key that authenticates new rows, and its predecessors.
#[derive(Clone)]
pub struct RowKeys {
    current: RowKey,
    previous: Vec<RowKey>,
}

/// The result of checking a row's HMAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authenticity {
    /// The row was written here by a server that has the key.
    Authentic,
    /// The row has no HMAC.
    Missing,
    /// The HMAC does not belong to this row in this place.
    Wrong,
    /// The HMAC names a key that this server does not have.
    UnknownKey(String),
    /// This server has no keys for the check.
    Unchecked,
}

/// A row of the log as it is stored, with its place.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// The id that distinguishes the log from others.
    pub generation: &'a str,
    /// The number of the row in the log.
    pub seq: i64,
    /// The id of the transaction that wrote it.
    pub commit: Uuid,
    /// The time at which it was written, in microseconds since 1970.
    pub at: i64,
    /// The run of the row. `None` if it belongs to no run.
    pub run: Option<Uuid>,
    /// The row's events and inputs, as they are stored.
    pub body: &'a str,
}

impl Stored<'_> {
    /// The authenticated bytes. Everything before the body has a fixed or explicit length.
    fn message(&self) -> Vec<u8> {
        let generation = self.generation.as_bytes();
        let length = u64::try_from(generation.len()).unwrap_or(u64::MAX);
        [
            b"countersign log row 1\n",
            &length.to_be_bytes()[..],
            generation,
            &self.seq.to_be_bytes(),
            self.commit.as_bytes(),
            &self.at.to_be_bytes(),
            &[u8::from(self.run.is_some())],
            self.run.unwrap_or_default().as_bytes(),
            self.body.as_bytes(),
        ]
        .concat()
    }
}

impl RowKey {
    /// Creates a key with the id by which HMACs name it.
    pub fn new(id: [u8; ID], key: &[u8; 32]) -> Self {
        Self { id, key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }
}

impl RowKeys {
    /// Creates a set of keys. `current` authenticates new rows; rows of `previous` keys remain valid.
    pub fn new(current: RowKey, previous: Vec<RowKey>) -> Self {
        Self { current, previous }
    }

    /// Returns the id of the current key and the HMAC of the row, as they are stored with it.
    pub fn mac(&self, row: &Stored<'_>) -> Vec<u8> {
        [&self.current.id[..], hmac::sign(&self.current.key, &row.message()).as_ref()].concat()
    }

    pub(super) fn check(&self, row: &Stored<'_>, mac: Option<&[u8]>) -> Authenticity {
        let Some((id, tag)) = mac.and_then(|mac| mac.split_at_checked(ID)) else { return Authenticity::Missing };
        let key = std::iter::once(&self.current).chain(&self.previous).find(|key| key.id == id);
        match key {
            None => Authenticity::UnknownKey(hex::encode(id)),
            Some(key) => match hmac::verify(&key.key, &row.message(), tag) {
                Ok(()) => Authenticity::Authentic,
                Err(_) => Authenticity::Wrong,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Stored<'_> =
        Stored { generation: "aa", seq: 7, commit: Uuid::from_u128(1), at: 5, run: Some(Uuid::nil()), body: "{}" };

    #[test]
    fn a_row_is_authentic_as_it_was_written_and_where_it_was_written() {
        let key = |id: u8| RowKey::new([id; ID], &[id; 32]);
        let keys = RowKeys::new(key(1), Vec::new());
        let mac = keys.mac(&ROW);
        assert_eq!(keys.check(&ROW, Some(&mac)), Authenticity::Authentic);
        let others = [
            Stored { generation: "ab", ..ROW },
            Stored { seq: 8, ..ROW },
            Stored { commit: Uuid::from_u128(2), ..ROW },
            Stored { at: 6, ..ROW },
            Stored { run: None, ..ROW },
            Stored { body: "{ }", ..ROW },
        ];
        for other in others {
            assert_eq!(keys.check(&other, Some(&mac)), Authenticity::Wrong, "{other:?}");
        }
        assert_eq!(keys.check(&ROW, None), Authenticity::Missing);
        assert_eq!(keys.check(&ROW, Some(&mac[..ID - 1])), Authenticity::Missing);
        assert_eq!(keys.check(&ROW, Some(&mac[..ID])), Authenticity::Wrong);
        let renewed = RowKeys::new(key(2), vec![key(1)]);
        assert_eq!(renewed.check(&ROW, Some(&mac)), Authenticity::Authentic);
        let strangers = RowKeys::new(key(2), Vec::new());
        assert_eq!(strangers.check(&ROW, Some(&mac)), Authenticity::UnknownKey("01".repeat(ID)));
    }
}

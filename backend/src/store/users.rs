//! Users, and their credentials.

use std::collections::{BTreeMap, BTreeSet};

use shared::access::{Absent, Principal};
use shared::api::{Token, User};
use shared::deputy::Deputyship;
use shared::id::{DeputyId, Username};
use shared::time::Timestamp;
use uuid::Uuid;

use super::batch::Table;
use super::db::{Arg, Conn, Row, Sql};
use super::{Credential, CredentialKind, CredentialUse, Error, ProviderAccount, SecondFactor, Store, UserRecord};

pub(super) const USER: &str = "u.username, u.display_name, u.email, u.roles, u.active, u.password_hash, u.created_at, \
                    u.deputyships, u.second_factor, u.provider_account, u.signed_in_at";
pub(super) const USER_COLUMNS: usize = 11;
const CREDENTIAL: &str = "c.digest, c.kind, c.id, c.name, c.username, c.roles, c.created_at, c.expires_at, \
                          c.last_used_at, c.client, c.confirmed_at";
const CREDENTIAL_COLUMNS: usize = 11;

/// For whom a person stands in at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The people whose rights they have.
    pub stands_for: Vec<Absent>,
    /// The people whose deputy they are, also those who may not log in.
    pub deputy_of: BTreeSet<Username>,
    /// When that changes next by itself. `None` if it no longer does.
    pub until: Option<Timestamp>,
}

impl UserRecord {
    /// Returns the second factor that every login needs; `None` if there is none, or it is not confirmed yet.
    pub fn confirmed_factor(&self) -> Option<&SecondFactor> {
        self.second_factor.as_ref().filter(|factor| factor.confirmed)
    }

    /// Returns the person with their current rights: all their roles, or with a token, those of the token's roles that
    /// they still have.
    pub fn principal(&self, credential: Option<&Credential>) -> Principal {
        let all = Principal::new(self.user.username.clone(), self.user.roles.iter().cloned().collect());
        let Some(token) = credential.filter(|credential| credential.kind == CredentialKind::Token) else { return all };
        let roles: BTreeSet<String> = token.roles.iter().flatten().filter(|role| all.has(role)).cloned().collect();
        Principal { roles, token: true, token_id: token.id, ..all }
    }

    /// Returns the people for whom this person stands in at a moment; `person` looks up their records. People who may
    /// no longer log in have no rights that a deputy could use.
    pub fn stands_for<'p>(&self, now: Timestamp, person: impl Fn(&Username) -> Option<&'p Self>) -> Vec<Absent> {
        let people = self.deputy_of(now).into_iter().filter(|_| self.user.active);
        let absent = people.filter_map(|name| person(name).filter(|record| record.user.active));
        absent
            .map(|record| Absent {
                username: record.user.username.clone(),
                roles: record.user.roles.iter().cloned().collect(),
            })
            .collect()
    }

    /// Returns the people whose deputy this person is at a moment, whether or not they may log in.
    pub fn deputy_of(&self, now: Timestamp) -> BTreeSet<&Username> {
        self.deputyships.iter().filter(|span| span.holds(now)).map(|span| &span.person).collect()
    }

    /// When the result of [`Self::stands_for`] changes next by itself. `None` if it no longer does.
    pub fn changes_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.deputyships.iter().filter_map(|span| span.changes_after(now)).min()
    }
}

impl Credential {
    /// Whether the credential has expired.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl Store {
    /// Returns a person with the data that only the server may know. `None` if they do not exist.
    pub async fn user(&self, username: &str) -> Result<Option<UserRecord>, Error> {
        Ok(self.inner.db.read().await?.users([username]).await?.pop())
    }

    /// Returns the person with this account at the identity provider.
    pub async fn person_of(&self, account: &ProviderAccount) -> Result<Option<UserRecord>, Error> {
        Ok(self.inner.db.read().await?.people_of([account]).await?.pop())
    }

    /// Returns all people, by name.
    pub async fn users(&self) -> Result<Vec<User>, Error> {
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u ORDER BY u.username");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok(user(row, 0)?.user)).collect()
    }

    /// Returns everyone who may log in, with all their roles, by name.
    pub async fn people(&self) -> Result<Vec<Principal>, Error> {
        Ok(self.inner.db.read().await?.active().await?.into_values().collect())
    }

    /// Returns a session, token or link by the SHA-256 of its secret, with its person. `None` if there is none, or it
    /// has expired.
    pub async fn credential(&self, digest: &[u8; 32]) -> Result<Option<(Credential, UserRecord)>, Error> {
        let found = self.inner.db.read().await?.credentials([digest]).await?.pop();
        let now = self.inner.clock.now();
        Ok(found
            .filter(|(_, credential, _)| !credential.is_over(now))
            .map(|(_, credential, person)| (credential, person)))
    }

    /// Returns for whom a person stands in now.
    pub async fn standing(&self, record: &UserRecord) -> Result<Standing, Error> {
        let now = self.inner.clock.now();
        let people = self.inner.db.read().await?.absent([record], now).await?;
        let stands_for = record.stands_for(now, |name| people.iter().find(|person| person.user.username == *name));
        let deputy_of = record.deputy_of(now).into_iter().cloned().collect();
        Ok(Standing { stands_for, deputy_of, until: record.changes_after(now) })
    }

    /// Returns all deputyships that are not over, the latest added first.
    pub async fn deputyships(&self) -> Result<Vec<Deputyship>, Error> {
        let now = self.inner.clock.now();
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.deputyships <> '[]'");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        let mut all = Vec::new();
        for row in &rows {
            all.extend(user(row, 0)?.deputyships.into_iter().filter(|span| now < span.until));
        }
        all.sort_by_key(|span| std::cmp::Reverse((span.created_at, span.id)));
        Ok(all)
    }

    /// Returns the sessions of a person with the SHA-256 of their secrets, newest first.
    pub async fn sessions(&self, owner: &str) -> Result<Vec<([u8; 32], Credential)>, Error> {
        let now = self.inner.clock.now();
        let sql = Sql::new("SELECT ")
            .push(CREDENTIAL)
            .push(" FROM credentials c WHERE c.username = ")
            .bind(owner)
            .push(" AND c.kind = 'session' AND c.expires_at > ")
            .bind(now.0)
            .push(" ORDER BY c.created_at DESC, c.id DESC");
        self.inner.db.read().await?.fetch(sql).await?.iter().map(credential).collect()
    }

    /// Records when credentials were last used, by the SHA-256 of their secrets, in one transaction. This changes
    /// nobody's rights, so the log does not have it. The keys are in order, so that servers cannot deadlock.
    pub async fn credentials_used(&self, used: BTreeMap<[u8; 32], CredentialUse>) -> Result<(), Error> {
        let write = async move |mut conn: Conn| {
            for (digest, CredentialUse { at, until }) in used {
                let mut sql = Sql::new("UPDATE credentials SET last_used_at = ").bind(at.0);
                if let Some(until) = until {
                    sql = sql.push(", expires_at = ").bind(until.0);
                }
                conn.execute(sql.push(" WHERE digest = ").bind(&digest)).await?;
            }
            conn.commit().await
        };
        Ok(self.inner.db.write(write).await?)
    }

    /// Returns the tokens of a person, newest first.
    pub async fn tokens(&self, owner: &str) -> Result<Vec<Token>, Error> {
        let sql = Sql::new("SELECT ")
            .push(CREDENTIAL)
            .push(" FROM credentials c WHERE c.username = ")
            .bind(owner)
            .push(" AND c.kind = 'token' ORDER BY c.created_at DESC, c.id DESC");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().filter_map(|row| credential(row).map(|(_, credential)| token(credential)).transpose()).collect()
    }
}

/// Returns the token without its secret. `None` if the credential is not a token.
pub(super) fn token(credential: Credential) -> Option<Token> {
    Some(Token {
        id: credential.id?,
        name: credential.name.unwrap_or_default(),
        owner: credential.username,
        roles: credential.roles.unwrap_or_default(),
        created_at: credential.created_at,
        expires_at: credential.expires_at,
        last_used_at: credential.last_used_at,
        secret: None,
    })
}

impl Conn {
    pub async fn users<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<UserRecord>, Error> {
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.username").among(names);
        self.fetch(sql).await?.iter().map(|row| user(row, 0)).collect()
    }

    /// Returns people by their accounts at an identity provider.
    pub async fn people_of<'a>(
        &mut self,
        accounts: impl IntoIterator<Item = &'a ProviderAccount>,
    ) -> Result<Vec<UserRecord>, Error> {
        let accounts = accounts.into_iter().map(ToString::to_string);
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.provider_account").among(accounts);
        self.fetch(sql).await?.iter().map(|row| user(row, 0)).collect()
    }

    /// Returns the people for whom these people stand in at a moment. In a write transaction, their rows are locked
    /// until it ends, so that the rights of a deputy come from a person who does not change meanwhile.
    pub async fn absent<'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a UserRecord>,
        now: Timestamp,
    ) -> Result<Vec<UserRecord>, Error> {
        let spans = records.into_iter().flat_map(|record| &record.deputyships).filter(|span| span.holds(now));
        let names: BTreeSet<&str> = spans.map(|span| span.person.as_str()).collect();
        self.held_users(names).await
    }

    /// Returns people by name. In a write transaction, their rows are locked until it ends.
    pub async fn held_users<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<UserRecord>, Error> {
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.username").among(names);
        let sql = sql.push(if self.locks_rows() { " ORDER BY u.username FOR SHARE" } else { "" });
        self.fetch(sql).await?.iter().map(|row| user(row, 0)).collect()
    }

    /// Returns for each deputyship the person who is the deputy, if it exists.
    pub async fn deputies_of(&mut self, ids: impl IntoIterator<Item = DeputyId>) -> Result<Vec<UserRecord>, Error> {
        let mut found = Vec::new();
        for id in ids {
            let like = format!("%{id}%");
            let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.deputyships LIKE ").bind(like);
            found.extend(self.fetch(sql).await?.iter().map(|row| user(row, 0)).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(found)
    }

    /// Returns everyone who may log in, with their roles.
    pub async fn active(&mut self) -> Result<BTreeMap<Username, Principal>, Error> {
        let sql = Sql::new("SELECT ").push(USER).push(" FROM users u WHERE u.active = 1");
        let people = self.fetch(sql).await?;
        let people = people.iter().map(|row| Ok(user(row, 0)?.principal(None)));
        people.map(|person| person.map(|person| (person.username.clone(), person))).collect()
    }

    /// Returns credentials by the SHA-256 of their secrets, with their people, including expired ones.
    pub async fn credentials<'a>(
        &mut self,
        digests: impl IntoIterator<Item = &'a [u8; 32]>,
    ) -> Result<Vec<([u8; 32], Credential, UserRecord)>, Error> {
        let sql = Sql::new("SELECT ")
            .push(CREDENTIAL)
            .push(", ")
            .push(USER)
            .push(" FROM credentials c JOIN users u ON u.username = c.username WHERE c.digest")
            .among(digests);
        let rows = self.fetch(sql).await?;
        let read = rows.iter().map(|row| {
            let (digest, credential) = credential(row)?;
            Ok((digest, credential, user(row, CREDENTIAL_COLUMNS)?))
        });
        read.collect()
    }

    /// Returns tokens by their ids, including expired ones.
    pub async fn tokens(&mut self, ids: impl IntoIterator<Item = Uuid>) -> Result<Vec<([u8; 32], Credential)>, Error> {
        let sql = Sql::new("SELECT ").push(CREDENTIAL).push(" FROM credentials c WHERE c.id").among(ids);
        self.fetch(sql).await?.iter().map(credential).collect()
    }
}

pub(super) fn user(row: &Row, at: usize) -> Result<UserRecord, Error> {
    let name = row.text(at)?;
    let stored = |error: &dyn std::fmt::Display| Error::Stored(format!("user {name}: {error}"));
    let account = row.text_opt(at + 9)?;
    Ok(UserRecord {
        user: User {
            username: name.parse().map_err(|error| stored(&error))?,
            display_name: row.text_opt(at + 1)?,
            email: row.text_opt(at + 2)?,
            roles: serde_json::from_str(&row.text(at + 3)?).map_err(|error| stored(&error))?,
            active: row.int(at + 4)? != 0,
            created_at: Timestamp(row.int(at + 6)?),
            single_sign_on: account.is_some(),
            slack_user_id: None,
            stands_for: Vec::new(),
        },
        password_hash: row.text_opt(at + 5)?,
        deputyships: serde_json::from_str(&row.text(at + 7)?).map_err(|error| stored(&error))?,
        second_factor: match row.text_opt(at + 8)? {
            Some(text) => Some(serde_json::from_str(&text).map_err(|error| stored(&error))?),
            None => None,
        },
        account: account.map(|text| text.parse()).transpose().map_err(|error: &str| stored(&error))?,
        signed_in_at: row.int_opt(at + 10)?.map(Timestamp),
    })
}

fn credential(row: &Row) -> Result<([u8; 32], Credential), Error> {
    let stored = |error: &dyn std::fmt::Display| Error::Stored(format!("a credential: {error}"));
    let credential = Credential {
        kind: super::blobs::typed("a credential's kind", serde_json::Value::String(row.text(1)?))?,
        id: row.uuid_opt(2)?.map(shared::id::TokenId),
        name: row.text_opt(3)?,
        username: row.text(4)?.parse().map_err(|error| stored(&error))?,
        roles: row.text_opt(5)?.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| stored(&error))?,
        created_at: Timestamp(row.int(6)?),
        expires_at: row.int_opt(7)?.map(Timestamp),
        last_used_at: row.int_opt(8)?.map(Timestamp),
        client: row.text_opt(9)?.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| stored(&error))?,
        confirmed_at: row.int_opt(10)?.map(Timestamp),
    };
    Ok((super::blobs::digest(&row.blob(0)?)?, credential))
}

pub(super) const USERS: Table = Table {
    name: "users",
    key: "username",
    others: "display_name, email, roles, active, password_hash, created_at, deputyships, second_factor, \
             provider_account, signed_in_at",
};
pub(super) const CREDENTIALS: Table = Table {
    name: "credentials",
    key: "digest",
    others: "kind, id, name, username, roles, created_at, expires_at, last_used_at, client, confirmed_at",
};

pub(super) fn user_row(record: &UserRecord) -> Vec<Arg> {
    let user = &record.user;
    vec![
        user.username.as_str().into(),
        user.display_name.clone().into(),
        user.email.clone().into(),
        json(&user.roles).into(),
        user.active.into(),
        record.password_hash.clone().into(),
        user.created_at.0.into(),
        serde_json::json!(record.deputyships).to_string().into(),
        record.second_factor.as_ref().map(|factor| serde_json::json!(factor).to_string()).into(),
        record.account.as_ref().map(ToString::to_string).into(),
        record.signed_in_at.map(|at| at.0).into(),
    ]
}

pub(super) fn credential_row(digest: &[u8; 32], credential: &Credential) -> Vec<Arg> {
    vec![
        digest.into(),
        <&str>::from(credential.kind).into(),
        credential.id.map(|id| id.0).into(),
        credential.name.clone().into(),
        credential.username.as_str().into(),
        credential.roles.as_deref().map(json).into(),
        credential.created_at.0.into(),
        credential.expires_at.map(|at| at.0).into(),
        credential.last_used_at.map(|at| at.0).into(),
        credential.client.as_ref().map(|client| serde_json::json!(client).to_string()).into(),
        credential.confirmed_at.map(|at| at.0).into(),
    ]
}

fn json(roles: &[String]) -> String {
    serde_json::Value::from(roles).to_string()
}

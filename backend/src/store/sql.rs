//! Statements with their arguments, and the keys by which rows are counted: the common input of both databases.

use std::fmt::Write as _;

use serde_json::Value;
use uuid::Uuid;

/// The largest number of values of a list that are bound one by one. SQLite takes 32,766 arguments, PostgreSQL 65,535,
/// and a statement may have several lists.
const MOST_PLACES: usize = 4096;
/// What stands before the place of a list that is bound as one argument, an array, in PostgreSQL.
const UNNEST: &str = "SELECT unnest(";

/// A statement under construction, with its arguments.
#[derive(Debug, Default, Clone)]
pub(super) struct Sql {
    pub text: String,
    pub args: Vec<Bound>,
    /// Whether no row can match, so that the statement is not executed.
    pub is_void: bool,
}

impl Sql {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Puts text before the statement. It must never come from outside.
    pub fn around(mut self, before: &str) -> Self {
        self.text.insert_str(0, before);
        self
    }

    /// Adds text. It must never come from outside.
    pub fn push(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// The text for SQLite, with `?` for each `$n`: SQLite would look up `$n` arguments by name, one after the other.
    /// SQLite has no arrays, so a list that is bound as one argument is JSON.
    pub fn positional(&self) -> String {
        let mut parts = self.text.split('$');
        let mut args = self.args.iter();
        let mut text = String::with_capacity(self.text.len());
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            if let Some(Bound::Many(values)) = args.next() {
                text.truncate(text.len() - UNNEST.len());
                text.push_str(values.unnested_json());
            }
            text.push('?');
            text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        text
    }

    /// Adds an argument and its placeholder.
    pub fn bind(mut self, arg: impl Into<Arg>) -> Self {
        self.args.push(Bound::One(arg.into()));
        let _ = write!(self.text, "${}", self.args.len());
        self
    }

    /// Adds `$1, $2, …` with these arguments.
    pub fn list<A: Into<Arg>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for (index, arg) in args.into_iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            self = self.bind(arg);
        }
        self
    }

    /// Adds `IN ($1, $2, …)` with these arguments, one of which every row must have. If there are none, nothing is
    /// found, even after `NOT`. There may be any number of them: very many are bound as one argument.
    pub fn among<A: Into<Arg>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        let args: Vec<Arg> = args.into_iter().map(Into::into).collect();
        self.is_void |= args.is_empty();
        let many = if args.len() > MOST_PLACES { Values::of(&args) } else { None };
        let Some(values) = many else { return self.push(" IN (").list(args).push(")") };
        self.args.push(Bound::Many(values));
        let _ = write!(self.text, " IN ({UNNEST}${}))", self.args.len());
        self
    }

    /// Adds `VALUES ($1, $2), ($3, $4), …` with these arguments. If there are none, no row can match or is added.
    pub fn values(mut self, rows: impl IntoIterator<Item = Vec<Arg>>) -> Self {
        let before = self.args.len();
        self.text.push_str("VALUES ");
        for (index, row) in rows.into_iter().enumerate() {
            self.text.push_str(if index > 0 { ", (" } else { "(" });
            self = self.list(row);
            self.text.push(')');
        }
        self.is_void |= self.args.len() == before;
        self
    }
}

/// What is bound to one place of a statement.
#[derive(Debug, Clone)]
pub(super) enum Bound {
    One(Arg),
    /// A list, as an array or as JSON.
    Many(Values),
}

/// An argument; `None` is NULL of that type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    Int(Option<i64>),
    Text(Option<String>),
    Blob(Option<Vec<u8>>),
    Uuid(Option<Uuid>),
}

macro_rules! argument {
    ($($from:ty: $value:ident => $arg:expr,)+) => {$(
        impl From<$from> for Arg {
            fn from($value: $from) -> Self {
                $arg
            }
        }
    )+};
}

argument! {
    Option<i64>: value => Arg::Int(value),
    i64: value => Arg::Int(Some(value)),
    u32: value => Arg::Int(Some(value.into())),
    bool: value => Arg::Int(Some(value.into())),
    Option<String>: value => Arg::Text(value),
    String: value => Arg::Text(Some(value)),
    &String: value => Arg::Text(Some(value.clone())),
    &str: value => Arg::Text(Some(value.to_owned())),
    &[u8; 32]: value => Arg::Blob(Some(value.to_vec())),
    Option<Uuid>: value => Arg::Uuid(value),
    Uuid: value => Arg::Uuid(Some(value)),
}

/// Values of one type: a column of several rows, or a list.
#[derive(Debug, Clone)]
pub(super) enum Values {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Blob(Vec<Option<Vec<u8>>>),
    Uuid(Vec<Option<Uuid>>),
}

impl Values {
    /// Makes room for values of the type of an argument.
    pub fn like(arg: &Arg, capacity: usize) -> Self {
        match arg {
            Arg::Int(_) => Self::Int(Vec::with_capacity(capacity)),
            Arg::Text(_) => Self::Text(Vec::with_capacity(capacity)),
            Arg::Blob(_) => Self::Blob(Vec::with_capacity(capacity)),
            Arg::Uuid(_) => Self::Uuid(Vec::with_capacity(capacity)),
        }
    }

    /// Collects arguments. `None` if there are none, or they are of several types.
    fn of(args: &[Arg]) -> Option<Self> {
        let mut values = Self::like(args.first()?, args.len());
        args.iter().all(|arg| values.push(arg.clone())).then_some(values)
    }

    /// Adds a value. Returns `false` if it is of another type.
    pub fn push(&mut self, arg: Arg) -> bool {
        match (self, arg) {
            (Self::Int(values), Arg::Int(value)) => values.push(value),
            (Self::Text(values), Arg::Text(value)) => values.push(value),
            (Self::Blob(values), Arg::Blob(value)) => values.push(value),
            (Self::Uuid(values), Arg::Uuid(value)) => values.push(value),
            _ => return false,
        }
        true
    }

    /// The values as JSON: numbers as they are, all others as the hexadecimal digits of their bytes, since JSON has no
    /// bytes and SQLite's functions need not read every text as it was written.
    pub fn json(&self) -> String {
        let all: Value = match self {
            Self::Int(values) => values.iter().copied().collect(),
            Self::Text(values) => values.iter().map(|value| value.as_ref().map(hex::encode)).collect(),
            Self::Blob(values) => values.iter().map(|value| value.as_ref().map(hex::encode)).collect(),
            Self::Uuid(values) => values.iter().map(|value| value.as_ref().map(hex::encode)).collect(),
        };
        all.to_string()
    }

    /// SQLite's query of the values in [`Self::json`], up to the place of the argument.
    fn unnested_json(&self) -> &'static str {
        match self {
            Self::Int(_) => "SELECT value FROM json_each(",
            Self::Text(_) => "SELECT CAST(unhex(value) AS TEXT) FROM json_each(",
            Self::Blob(_) | Self::Uuid(_) => "SELECT unhex(value) FROM json_each(",
        }
    }
}

/// The columns by which rows are counted: an id and three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GroupKey {
    pub id: Uuid,
    pub numbers: [i64; 3],
}

//! Statements with their arguments, and the keys by which rows are counted: the common input of both databases.

use std::fmt::Write as _;

use uuid::Uuid;

/// A statement under construction, with its arguments.
#[derive(Debug, Default, Clone)]
pub(super) struct Sql {
    pub text: String,
    pub args: Vec<Arg>,
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
    pub fn positional(&self) -> String {
        let mut parts = self.text.split('$');
        let mut text = String::with_capacity(self.text.len());
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            text.push('?');
            text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        text
    }

    /// Adds an argument and its placeholder.
    pub fn bind(mut self, arg: impl Into<Arg>) -> Self {
        self.args.push(arg.into());
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

    /// Adds `IN ($1, $2, …)` with these arguments, one of which every row must have. If there are none, no row can.
    pub fn among<A: Into<Arg>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        let before = self.args.len();
        self = self.push(" IN (").list(args).push(")");
        self.is_void |= self.args.len() == before;
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

/// The columns by which rows are counted: an id and three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GroupKey {
    pub id: Uuid,
    pub numbers: [i64; 3],
}

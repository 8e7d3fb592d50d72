//! Which values of a type are data of users: what a flow, a model, a tool or a person puts in, whose members this
//! program did not name. A field of such data says so by `serialize_with`, and is serialised as always.
//!
//! A serializer that needs the difference finds it at newtype structs with the name [`NAME`]. All others ignore the name
//! of a newtype struct.

use serde::{Serialize, Serializer};

/// The name of the newtype struct around data of users.
pub const NAME: &str = "countersign::user_data";

/// A value of users, with everything in it.
#[derive(Debug, Clone, Copy)]
pub struct UserData<T>(pub T);

impl<T: Serialize> Serialize for UserData<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NAME, &self.0)
    }
}

/// Serialises a field that is a value of users.
pub fn value<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    UserData(value).serialize(serializer)
}

/// Serialises a field whose members are values of users, while the map of them is this program's: it grows and changes
/// from step to step.
pub fn members<'m, M, K, V, S>(map: &'m M, serializer: S) -> Result<S::Ok, S::Error>
where
    &'m M: IntoIterator<Item = (&'m K, &'m V)>,
    K: Serialize + 'm,
    V: Serialize + 'm,
    S: Serializer,
{
    serializer.collect_map(map.into_iter().map(|(key, value)| (key, UserData(value))))
}

/// Serialises a field that lists values of users, each with its number.
pub fn numbered<V: Serialize, S: Serializer>(values: &[(u32, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|(number, value)| (number, UserData(value))))
}

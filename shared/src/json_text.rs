//! A macro for types that JSON represents as strings, in the format of `Display` and `FromStr`.

/// Implements `Serialize` by `Display`, and `Deserialize` by `FromStr`. The optional literal names the expected format,
/// for types whose `FromStr` error does not.
macro_rules! json_text {
    ($name:ident $(, $what:literal)?) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(|error| {
                    $(let error = format!(concat!("`{}` is not ", $what, ": {}"), text, error);)?
                    serde::de::Error::custom(error)
                })
            }
        }
    };
}

pub(crate) use json_text;

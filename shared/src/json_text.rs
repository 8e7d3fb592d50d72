//! Macros for types that JSON represents as strings, in the format of `Display` and `FromStr`.

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

/// Implements `JsonSchema` under the name of the type.
macro_rules! text_schema {
    ($name:ident, $schema:tt) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub(crate) use {json_text, text_schema};

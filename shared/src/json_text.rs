//! Types that stand in JSON as the text that they display and are parsed from. Imports nothing.

/// Implements `Serialize` and `Deserialize` by `Display` and `FromStr`; with what the text is not, where the error of
/// `FromStr` does not say so.
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

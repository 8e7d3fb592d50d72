//! A person in the filter of a list: the caller, or somebody by name.

use std::fmt;
use std::str::FromStr;

use crate::id::{InvalidName, Username};
use crate::json_text::{json_text, text_schema};

/// The word for the caller.
const ME: &str = "me";

/// A person in a filter: `me`, or a username. A person whose username is `me` cannot be named by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonFilter {
    /// The caller.
    Me,
    /// The person with this username.
    Named(Username),
}

impl PersonFilter {
    /// Returns the username, where `me` is the caller's.
    pub fn username<'a>(&'a self, me: &'a Username) -> &'a Username {
        match self {
            Self::Me => me,
            Self::Named(name) => name,
        }
    }
}

impl fmt::Display for PersonFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Me => ME,
            Self::Named(name) => name,
        })
    }
}

impl FromStr for PersonFilter {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if text == ME { Ok(Self::Me) } else { text.parse().map(Self::Named) }
    }
}

json_text!(PersonFilter);
text_schema!(PersonFilter, { "type": "string" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_the_caller_or_somebody_else() {
        let tom: Username = "tom".parse().unwrap();
        for (text, name) in [("me", "tom"), ("ana", "ana")] {
            let filter: PersonFilter = text.parse().unwrap();
            assert_eq!((filter.to_string().as_str(), filter.username(&tom).as_str()), (text, name));
        }
        assert!("No Name".parse::<PersonFilter>().is_err());
    }
}

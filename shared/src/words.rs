//! The words of the API for the values of enums, as serde writes them, without a serializer.

use crate::api::DecisionEffect;
use crate::decision::Via;
use crate::definition::{
    ActionKind, Builtin, ChoiceKind, ContentType, Effect, GuardrailScope, OnError, Severity, TeamStrategy,
};
use crate::error::{Code, FlowCode};
use crate::feedback::{FeedbackAspect, FeedbackType};
use crate::grant::GrantScope;
use crate::graph::GraphEdgeKind;
use crate::inbox::{AgeGroup, Assigned, Nearness, ReviewOrder};
use crate::log::{EntryKind, ReviewAct};
use crate::notification::{Channel, DeliveryStatus, Occasion};
use crate::review::{ActionType, AskedBy, Outcome, ReviewKind, ReviewStatus};
use crate::run::{Activity, Ending, RunStatus, StepStatus};
use crate::seal::Tampering;
use crate::single_sign_on::Trouble;
use crate::statistics::{EscalationReason, GroupBy};

macro_rules! words {
    ($($name:ident),+ $(,)?) => {
        $(impl $name {
            /// Returns the value's word in the API.
            pub fn as_str(self) -> &'static str {
                self.into()
            }

            /// Every value, in the order in which it is declared and shown.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// Returns the value with this word in the API; `None` for any other text.
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        })+

        #[cfg(test)]
        mod tests {
            use std::fmt::Debug;

            use serde::Serialize;
            use serde::de::DeserializeOwned;
            use serde_json::json;

            fn is_spelled_as_serde_does<T>(all: &[T])
            where
                T: Copy + Into<&'static str> + Serialize + DeserializeOwned + PartialEq + Debug,
            {
                for word in all {
                    let text: &str = (*word).into();
                    assert_eq!(json!(word), json!(text));
                    assert_eq!(serde_json::from_value::<T>(json!(text)).expect(text), *word);
                }
                for wrong in [json!("never"), json!(1), json!({}), json!(null)] {
                    assert!(serde_json::from_value::<T>(wrong.clone()).is_err(), "{wrong}");
                }
            }

            #[test]
            fn each_word_is_spelled_as_serde_spells_it_and_no_other_is_taken() {
                $(is_spelled_as_serde_does(super::$name::ALL);)+
            }
        }
    };
}

words! {
    TeamStrategy,
    DecisionEffect,
    Via,
    ActionKind,
    Builtin,
    ChoiceKind,
    ContentType,
    Severity,
    Effect,
    OnError,
    GuardrailScope,
    Code,
    FlowCode,
    GrantScope,
    GraphEdgeKind,
    EntryKind,
    Channel,
    DeliveryStatus,
    Occasion,
    ActionType,
    Outcome,
    ReviewKind,
    ReviewStatus,
    Activity,
    RunStatus,
    Ending,
    StepStatus,
    Tampering,
    Assigned,
    Nearness,
    AgeGroup,
    AskedBy,
    ReviewOrder,
    ReviewAct,
    EscalationReason,
    FeedbackAspect,
    FeedbackType,
    GroupBy,
    Trouble,
}

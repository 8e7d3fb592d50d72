//! The answers of programs to guardrails: each answer is valid for exactly what was asked, by its digest.

use serde::{Deserialize, Serialize};

use super::digest;
use crate::flow::guardrail::{GuardrailAnswer, Inquiry};

/// What a program has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// The digest of what it was asked.
    pub digest: String,
    /// What it said.
    pub answer: GuardrailAnswer,
}

impl Looked {
    /// The answer to what was asked.
    pub fn new(inquiry: &Inquiry, answer: GuardrailAnswer) -> Self {
        Self { digest: digest::of_inquiry(inquiry), answer }
    }

    /// The answers to what was asked, in its order.
    pub fn all(inquiries: &[Inquiry], answers: Vec<GuardrailAnswer>) -> Vec<Self> {
        inquiries.iter().zip(answers).map(|(inquiry, answer)| Self::new(inquiry, answer)).collect()
    }
}

/// The answer to an inquiry, where it is known.
pub(super) fn answer_to(looked: &[Looked], inquiry: &Inquiry) -> Option<GuardrailAnswer> {
    if looked.is_empty() {
        return None;
    }
    let digest = digest::of_inquiry(inquiry);
    looked.iter().find(|looked| looked.digest == digest).map(|looked| looked.answer.clone())
}

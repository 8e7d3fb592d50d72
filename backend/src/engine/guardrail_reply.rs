//! The answers of programs to guardrails: each answer is valid for exactly what was asked, by its digest.

use serde::{Deserialize, Serialize};

use super::digest;
use crate::flow::guardrail::{GuardrailAnswer, Inquiry};

/// The answer of a program to an inquiry of a guardrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardrailReply {
    /// The digest of the inquiry.
    pub digest: String,
    /// The answer.
    pub answer: GuardrailAnswer,
}

impl GuardrailReply {
    /// Creates the answer to an inquiry.
    pub fn new(inquiry: &Inquiry, answer: GuardrailAnswer) -> Self {
        Self { digest: digest::of_inquiry(inquiry), answer }
    }

    /// Creates the answers to inquiries, in the same order.
    pub fn all(inquiries: &[Inquiry], answers: Vec<GuardrailAnswer>) -> Vec<Self> {
        inquiries.iter().zip(answers).map(|(inquiry, answer)| Self::new(inquiry, answer)).collect()
    }
}

/// Returns the answer to an inquiry, if it is known.
pub(super) fn answer_to(replies: &[GuardrailReply], inquiry: &Inquiry) -> Option<GuardrailAnswer> {
    if replies.is_empty() {
        return None;
    }
    let digest = digest::of_inquiry(inquiry);
    replies.iter().find(|reply| reply.digest == digest).map(|reply| reply.answer.clone())
}

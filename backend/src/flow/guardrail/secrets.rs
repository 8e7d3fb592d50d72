//! `secrets`: the values of the server's own secrets, private keys, and API keys of large providers by their format. In
//! results of tools and answers of models, the server's own secrets are masked anyway; people may type them.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::flow::work_limit;
use crate::mask::Mask;

/// The units of work per byte of a text, for the formats, and again for each form in which the server's secrets are
/// searched.
const PER_BYTE: usize = 8;

static KEY: LazyLock<Regex> = LazyLock::new(|| {
    let formats = [
        // OpenAI and Anthropic, AWS, GitHub, GitLab, Slack, Google, Stripe, npm, Hugging Face, SendGrid.
        r"\bsk-[A-Za-z0-9_-]{20,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{36,}",
        r"\bgithub_pat_[A-Za-z0-9_]{40,}",
        r"\bglpat-[A-Za-z0-9_-]{20,}",
        r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
        r"\bAIza[0-9A-Za-z_-]{35}",
        r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}",
        r"\bnpm_[A-Za-z0-9]{36}\b",
        r"\bhf_[A-Za-z0-9]{30,}",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ];
    Regex::new(&formats.join("|")).expect("sound patterns")
});
/// A private key, up to its end, or to the end of the text.
static PEM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|.*)",
    )
    .expect("a sound pattern")
});

/// Returns the ranges of such secrets in a text, with their kind.
pub fn find(text: &str, own: &Mask) -> Vec<(Range<usize>, &'static str)> {
    work_limit::count((text.len() * PER_BYTE * (1 + forms(text, own))) as u64);
    let own = own.spans(text).into_iter().map(|range| (range, "a secret of this server"));
    let of = |pattern: &'static Regex, what| pattern.find_iter(text).map(move |found| (found.range(), what));
    own.chain(of(&PEM, "a private key")).chain(of(&KEY, "a key of a provider")).collect()
}

/// Returns the number of forms of a text in which the server's secrets are searched: as it is, without escapes of each
/// kind that it may have, and without those of two kinds.
fn forms(text: &str, own: &Mask) -> usize {
    if own.is_empty() {
        return 0;
    }
    let kinds = ['\\', '%', '&'].iter().filter(|mark| text.contains(**mark)).count();
    1 + kinds + kinds * kinds
}

#[cfg(test)]
mod tests {
    use crate::mask::Mask;

    fn find(text: &str) -> Vec<(std::ops::Range<usize>, &'static str)> {
        super::find(text, &Mask::default())
    }

    #[test]
    fn keys_are_found_by_their_format() {
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        let formats = [
            ("sk-", 24),
            ("AKIA", 16),
            ("ghp_", 36),
            ("github_pat_", 60),
            ("glpat-", 20),
            ("xoxb-", 24),
            ("AIza", 35),
            ("sk_live_", 24),
            ("npm_", 36),
            ("hf_", 34),
        ];
        let keys =
            formats.map(|(prefix, length)| format!("{prefix}{}", "A1".repeat(length / 2 + 1).split_at(length).0));
        for key in keys.iter().map(String::as_str).chain([pem]) {
            let text = format!("use {key}, please");
            let found: Vec<_> = find(&text).into_iter().map(|(range, _)| &text[range]).collect();
            assert_eq!(found, [key]);
        }
        for text in [
            "sk-8",
            "a risk-assessment of twenty letters",
            "AKIA",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
        ] {
            assert_eq!(find(text), [], "{text}");
        }
    }
}

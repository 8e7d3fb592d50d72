//! Secrets in every form that masking promises to find.

use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Returns a secret in every form that masking promises to find.
fn forms(secret: &str, before: &str) -> Vec<String> {
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let json = json!(secret).to_string();
    let html = secret.chars().map(|one| format!("&#{};", u32::from(one))).collect::<Vec<_>>().concat();
    let html_hex = secret.chars().map(|one| format!("&#x{:X};", u32::from(one))).collect::<Vec<_>>().concat();
    let named = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let unicode = secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
    let lines: Vec<String> = secret.chars().collect::<Vec<_>>().chunks(5).map(|part| part.iter().collect()).collect();
    let basic = format!("{before}:{secret}");
    vec![
        secret.to_owned(),
        secret.to_ascii_uppercase(),
        secret.to_ascii_lowercase(),
        json[1..json.len() - 1].to_owned(),
        json!(json).to_string(),
        json!(json!({ "in": json }).to_string()).to_string(),
        unicode,
        percent.to_lowercase(),
        percent.clone(),
        utf8_percent_encode(&percent, NON_ALPHANUMERIC).to_string(),
        html,
        html_hex,
        named,
        hex::encode(secret),
        hex::encode_upper(secret),
        STANDARD.encode(secret),
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
        format!("Basic {}", STANDARD.encode(&basic)),
        URL_SAFE_NO_PAD.encode(format!("{basic}{before}")),
        utf8_percent_encode(&STANDARD.encode(&basic), NON_ALPHANUMERIC).to_string(),
        lines.join("\n"),
        lines.join("\r\n  "),
        json!(lines.join("\n")).to_string(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_secret_is_found_in_every_form_and_what_is_around_it_stays(
        secret in "[a-zA-Z0-9\"\\\\/&<>+%=é🦀 -]{10,40}".prop_filter("not only space", |s| without_space(s.as_bytes()).len() >= 9),
        before in "[a-z]{0,4}",
    ) {
        let secret = secret.trim();
        prop_assume!(secret.len() >= SHORTEST_SPLIT);
        let mask = Mask::new([secret]);
        for form in forms(secret, &before) {
            let text = format!("<p>{before}; {form} ;ü</p>");
            let masked = mask.text(&text);
            prop_assert!(masked.contains(MASK), "{form:?} in {text:?}");
            prop_assert!(!masked.contains(&form), "{masked:?}");
            prop_assert!(mask.spans(&masked).is_empty(), "{masked:?}");
            prop_assert!(masked.starts_with("<p>") && masked.ends_with(";ü</p>"), "{masked:?}");
        }
    }

    #[test]
    fn a_text_without_secrets_stays_as_it_is(text in ".{0,200}", secret in "[A-Z]{4}[0-9]{12}") {
        let mask = Mask::new([secret.as_str()]);
        prop_assert_eq!(mask.text(&text), text);
    }
}

#[test]
fn numbers_are_found_and_short_secrets_only_as_they_are() {
    let mask = Mask::new(["48151623", "ab", "12345678901234567890123"]);
    for number in [json!(48_151_623), json!(-48_151_623), json!(1.234_567_890_123_456_8e22)] {
        assert!(mask.is_secret(number.as_number().expect("a number")), "{number}");
    }
    assert!(!mask.is_secret(json!(4_815_162).as_number().expect("a number")));
    assert_eq!(mask.text("cab a b YWI= 6162"), "c*** a b YWI= 6162");
}

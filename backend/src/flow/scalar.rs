//! Plain scalars of YAML 1.2, by its core schema, as JSON values.

use serde_json::{Number, Value};

/// Converts a plain scalar. The error says why it is not a JSON value.
pub fn core(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("{text} is not a JSON number; write it as text in quotes"));
    }
    let number = match (text.strip_prefix("0o"), text.strip_prefix("0x")) {
        (Some(octal), _) if is_digits(octal, 8) => u64::from_str_radix(octal, 8).ok().map(Number::from),
        (_, Some(hex)) if is_digits(hex, 16) => u64::from_str_radix(hex, 16).ok().map(Number::from),
        _ if is_digits(unsigned, 10) => {
            let text = text.strip_prefix('+').unwrap_or(text);
            text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
        }
        _ if is_float(unsigned) => text.parse::<f64>().ok().and_then(Number::from_f64),
        _ => return Ok(Value::String(text.to_owned())),
    };
    number.map(Value::Number).ok_or_else(|| format!("the number {text} is too large; write it as text in quotes"))
}

fn is_digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix))
}

/// Whether this is `[0-9]+(\.[0-9]*)?` or `\.[0-9]+`, with an optional exponent.
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.chars().all(|digit| digit.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| is_digits(exponent, 10))
}

//! Numbers as they are typed.

use serde_json::{Number, Value};

/// The message for a number that JSON cannot hold, or only as another number.
const OUT_OF_RANGE: &str = "This number is out of range";

/// Parses a number. A whole number is never rounded.
pub fn parse_number(text: &str, integer: bool, min: Option<&Number>, max: Option<&Number>) -> Result<Value, String> {
    let expected = if integer { "A whole number, such as 12" } else { "A number, such as 12.5" };
    let number = serde_json::from_str::<Number>(text).ok();
    let is_infinite = |size: &f64| size.is_infinite() && text.contains(|letter: char| letter.is_ascii_digit());
    let size = number.as_ref().map_or_else(|| text.parse().ok().filter(is_infinite), Number::as_f64);
    let Some(size) = size else { return Err(expected.to_owned()) };
    if let Some(min) = min.filter(|min| Some(size) < min.as_f64()) {
        return Err(format!("At least {min}"));
    }
    if let Some(max) = max.filter(|max| Some(size) > max.as_f64()) {
        return Err(format!("At most {max}"));
    }
    let is_whole = !text.contains(['.', 'e', 'E']);
    match number {
        // Too many digits for a whole number, so it became a rounded one.
        Some(number) if number.is_f64() && is_whole && size != 0.0 => Err(OUT_OF_RANGE.to_owned()),
        Some(number) if number.is_f64() && integer => Err(expected.to_owned()),
        Some(number) => Ok(Value::Number(number)),
        None => Err(OUT_OF_RANGE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_taken_as_it_is_typed_or_refused() {
        let parse = |text, integer| parse_number(text, integer, None, None);
        assert_eq!(parse("18446744073709551615", true), Ok(json!(u64::MAX)));
        assert_eq!(parse("1.50", false), Ok(json!(1.5)));
        for (text, integer) in [("99999999999999999999", true), ("99999999999999999999", false), ("1e999", false)] {
            assert_eq!(parse(text, integer), Err(OUT_OF_RANGE.to_owned()), "{text}");
        }
        for text in ["5.", "1.5", "1e3", "inf", "-infinity", "NaN", "", "twelve"] {
            assert_eq!(parse(text, true), Err("A whole number, such as 12".to_owned()), "{text}");
        }
        let max = Number::from(100);
        assert_eq!(parse_number("1e999", false, None, Some(&max)), Err("At most 100".to_owned()));
    }
}

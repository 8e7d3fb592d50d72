//! Capital and small letters. In a browser the browser knows them: Rust would bring tables of its own.

/// A text in small letters.
pub fn lower(text: &str) -> String {
    #[cfg(target_family = "wasm")]
    return js_sys::JsString::from(text).to_lower_case().into();
    #[cfg(not(target_family = "wasm"))]
    return text.to_lowercase();
}

/// A text in capital letters.
pub fn upper(text: &str) -> String {
    #[cfg(target_family = "wasm")]
    return js_sys::JsString::from(text).to_upper_case().into();
    #[cfg(not(target_family = "wasm"))]
    return text.to_uppercase();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_scripts_have_cases() {
        assert_eq!((lower("ÄÑЖ A"), upper("straße é")), ("äñж a".to_owned(), "STRASSE É".to_owned()));
    }
}

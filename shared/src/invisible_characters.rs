//! Invisible characters that change what a text says or does: they are shown by name, never as they are, because text
//! of agents is untrusted.

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart<'a> {
    /// Text that is shown as it is.
    Plain(&'a str),
    /// A character that is shown by its name.
    Hidden {
        /// The character itself, which must not be shown as it is.
        c: char,
        /// Its abbreviation in Unicode, such as `RLO`, or its code point, such as `U+0000`.
        name: String,
    },
}

/// Splits a text at its hidden characters.
pub fn parts(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if let Some(name) = name(c) {
            if plain < at {
                parts.push(TextPart::Plain(&text[plain..at]));
            }
            parts.push(TextPart::Hidden { c, name });
            plain = at + c.len_utf8();
        }
    }
    if plain < text.len() {
        parts.push(TextPart::Plain(&text[plain..]));
    }
    parts
}

/// Counts the hidden characters of a text.
pub fn count(text: &str) -> usize {
    text.chars().filter(|c| name(*c).is_some()).count()
}

/// Returns the name of a character that must not be shown as it is.
fn name(c: char) -> Option<String> {
    let known = match c {
        // These come first because nearly every character is one of them. The zero-width joiner is part of many emoji,
        // and has no meaning of its own.
        ' '..='~' | '\n' | '\t' | '\u{200D}' => return None,
        '\u{202A}' => "LRE",
        '\u{202B}' => "RLE",
        '\u{202C}' => "PDF",
        '\u{202D}' => "LRO",
        '\u{202E}' => "RLO",
        '\u{2066}' => "LRI",
        '\u{2067}' => "RLI",
        '\u{2068}' => "FSI",
        '\u{2069}' => "PDI",
        '\u{200E}' => "LRM",
        '\u{200F}' => "RLM",
        '\u{061C}' => "ALM",
        '\u{200B}' => "ZWSP",
        '\u{200C}' => "ZWNJ",
        '\u{2060}' => "WJ",
        '\u{FEFF}' => "BOM",
        '\u{00AD}' => "SHY",
        '\u{180E}' => "MVS",
        '\u{2028}' => "LS",
        '\u{2029}' => "PS",
        // Tag characters can spell out instructions that only a model reads.
        '\u{E0000}'..='\u{E007F}' => "TAG",
        '\u{2061}'..='\u{2065}'
        | '\u{206A}'..='\u{206F}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{3164}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{FFA0}'
        // Variation selectors beyond those of emoji can carry text, too.
        | '\u{E0080}'..='\u{E0FFF}' => {
            return Some(format!("U+{:04X}", u32::from(c)));
        }
        c if c.is_control() => return Some(format!("U+{:04X}", u32::from(c))),
        _ => return None,
    };
    Some(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turned_around_name_is_seen() {
        let parts = parts("invoice\u{202E}fdp.exe");
        let hidden = TextPart::Hidden { c: '\u{202E}', name: "RLO".into() };
        assert_eq!(parts, [TextPart::Plain("invoice"), hidden, TextPart::Plain("fdp.exe")]);
    }

    #[test]
    fn lines_tabs_and_emoji_stay() {
        assert_eq!(count("a\n\tb 👩\u{200D}🔬"), 0);
        assert_eq!(count("a\u{0}\u{200B}\u{E0041}"), 3);
    }
}

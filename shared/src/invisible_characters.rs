//! Invisible characters: they can change what a text says or does, or carry another text that only a model reads. They
//! are shown by name, never as they are, because text of agents is untrusted. Some of them have a place in emoji and in
//! scripts whose letters join; there they are left as they are, one at a time.

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
    for (at, c) in hidden(text) {
        if plain < at {
            parts.push(TextPart::Plain(&text[plain..at]));
        }
        parts.push(TextPart::Hidden { c, name: name(c) });
        plain = at + c.len_utf8();
    }
    if plain < text.len() {
        parts.push(TextPart::Plain(&text[plain..]));
    }
    parts
}

/// Returns a text with each hidden character replaced by what `with` returns for it and its name.
pub fn replaced(text: &str, with: impl Fn(char, &str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            TextPart::Plain(plain) => out.push_str(plain),
            TextPart::Hidden { c, name } => out.push_str(&with(c, &name)),
        }
    }
    out
}

/// Counts the hidden characters of a text.
pub fn count(text: &str) -> usize {
    hidden(text).count()
}

/// Whether nothing is seen of a character itself: it is a control character, ignored when text is drawn
/// (`Default_Ignorable_Code_Point` of Unicode 16), a separator of lines or of annotations, or blank without being a
/// space. Line breaks and tabs are seen.
pub fn is_invisible(c: char) -> bool {
    match c {
        // These come first because nearly every character is one of them.
        ' '..='~' | '\n' | '\t' => false,
        '\u{00AD}'
        | '\u{034F}'
        | '\u{061C}'
        | '\u{115F}'..='\u{1160}'
        | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFF8}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}'
        // The separators of lines, paragraphs and annotations; the empty pattern of Braille, and the empty note.
        | '\u{2028}' | '\u{2029}' | '\u{FFF9}'..='\u{FFFB}' | '\u{2800}' | '\u{1D159}' => true,
        c => c.is_control(),
    }
}

/// Returns the invisible characters that have no place where they stand, with their positions.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = None;
    // Whether an emoji has just ended, with its skin tone and its variation selector.
    let mut emoji = false;
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, c) = characters.next()?;
            let after = characters.peek().map(|(_, c)| *c);
            let has_place = !is_invisible(c) || may_stand(c, before, emoji, after);
            emoji =
                is_pictograph(c) || (emoji && matches!(c, SKIN_TONE_FIRST..=SKIN_TONE_LAST | '\u{FE0F}') && has_place);
            before = Some(c);
            if !has_place {
                return Some((at, c));
            }
        }
    })
}

const SKIN_TONE_FIRST: char = '\u{1F3FB}';
const SKIN_TONE_LAST: char = '\u{1F3FF}';

/// Whether an invisible character has a place between these characters.
fn may_stand(c: char, before: Option<char>, emoji: bool, after: Option<char>) -> bool {
    let joins = || before.is_some_and(is_joining) && after.is_some_and(is_joining);
    match c {
        // The variation selectors for text and for emoji.
        '\u{FE0E}' | '\u{FE0F}' => {
            before.is_some_and(is_pictograph)
                || (matches!(before, Some('0'..='9' | '#' | '*')) && after == Some('\u{20E3}'))
        }
        '\u{200C}' => joins(),
        '\u{200D}' => joins() || (emoji && after.is_some_and(is_pictograph)),
        _ => false,
    }
}

/// Whether a character is a letter of Arabic, Syriac or an Indic script, or a sign after which Indic consonants join: in
/// words, joiners and non-joiners determine how such letters connect.
fn is_joining(c: char) -> bool {
    let virama = matches!(
        c,
        '\u{094D}'
            | '\u{09CD}'
            | '\u{0A4D}'
            | '\u{0ACD}'
            | '\u{0B4D}'
            | '\u{0BCD}'
            | '\u{0C4D}'
            | '\u{0CCD}'
            | '\u{0D4D}'
            | '\u{0DCA}'
    );
    virama || (matches!(c, '\u{0620}'..='\u{077F}' | '\u{0860}'..='\u{0DFF}') && c.is_alphabetic())
}

/// Whether an emoji may consist of this character, or begin with it (`Extended_Pictographic` of Unicode 16).
fn is_pictograph(c: char) -> bool {
    matches!(
        c,
        '\u{00A9}' | '\u{00AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{2199}'
        | '\u{21A9}'..='\u{21AA}' | '\u{231A}'..='\u{231B}' | '\u{2328}' | '\u{2388}' | '\u{23CF}'
        | '\u{23E9}'..='\u{23F3}' | '\u{23F8}'..='\u{23FA}' | '\u{24C2}' | '\u{25AA}'..='\u{25AB}' | '\u{25B6}'
        | '\u{25C0}' | '\u{25FB}'..='\u{25FE}' | '\u{2600}'..='\u{2605}' | '\u{2607}'..='\u{2612}'
        | '\u{2614}'..='\u{2685}' | '\u{2690}'..='\u{2705}' | '\u{2708}'..='\u{2712}' | '\u{2714}' | '\u{2716}'
        | '\u{271D}' | '\u{2721}' | '\u{2728}' | '\u{2733}'..='\u{2734}' | '\u{2744}' | '\u{2747}' | '\u{274C}'
        | '\u{274E}' | '\u{2753}'..='\u{2755}' | '\u{2757}' | '\u{2763}'..='\u{2767}' | '\u{2795}'..='\u{2797}'
        | '\u{27A1}' | '\u{27B0}' | '\u{27BF}' | '\u{2934}'..='\u{2935}' | '\u{2B05}'..='\u{2B07}'
        | '\u{2B1B}'..='\u{2B1C}' | '\u{2B50}' | '\u{2B55}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}'
        | '\u{1F000}'..='\u{1F0FF}' | '\u{1F10D}'..='\u{1F10F}' | '\u{1F12F}' | '\u{1F16C}'..='\u{1F171}'
        | '\u{1F17E}'..='\u{1F17F}' | '\u{1F18E}' | '\u{1F191}'..='\u{1F19A}' | '\u{1F1AD}'..='\u{1F1E5}'
        | '\u{1F201}'..='\u{1F20F}' | '\u{1F21A}' | '\u{1F22F}' | '\u{1F232}'..='\u{1F23A}'
        | '\u{1F23C}'..='\u{1F23F}' | '\u{1F249}'..='\u{1F3FA}' | '\u{1F400}'..='\u{1F53D}'
        | '\u{1F546}'..='\u{1F64F}' | '\u{1F680}'..='\u{1F6FF}' | '\u{1F774}'..='\u{1F77F}'
        | '\u{1F7D5}'..='\u{1F7FF}' | '\u{1F80C}'..='\u{1F80F}' | '\u{1F848}'..='\u{1F84F}'
        | '\u{1F85A}'..='\u{1F85F}' | '\u{1F888}'..='\u{1F88F}' | '\u{1F8AE}'..='\u{1F8FF}'
        | '\u{1F90C}'..='\u{1F93A}' | '\u{1F93C}'..='\u{1F945}' | '\u{1F947}'..='\u{1FAFF}'
        | '\u{1FC00}'..='\u{1FFFD}'
    )
}

/// Returns the name of an invisible character.
fn name(c: char) -> String {
    let known = match c {
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
        '\u{200D}' => "ZWJ",
        '\u{034F}' => "CGJ",
        '\u{2060}' => "WJ",
        '\u{FEFF}' => "BOM",
        '\u{00AD}' => "SHY",
        '\u{180E}' => "MVS",
        '\u{2028}' => "LS",
        '\u{2029}' => "PS",
        // Tag characters can spell out instructions that only a model reads.
        '\u{E0000}'..='\u{E007F}' => "TAG",
        c => return format!("U+{:04X}", u32::from(c)),
    };
    known.to_owned()
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

    #[test]
    fn nothing_is_hidden_between_what_is_seen() {
        let hidden = [
            '\u{034F}',
            '\u{17B4}',
            '\u{17B5}',
            '\u{2800}',
            '\u{200D}',
            '\u{FE00}',
            '\u{FE0D}',
            '\u{FE0E}',
            '\u{FE0F}',
            '\u{180F}',
            '\u{FFF0}',
            '\u{E0100}',
            '\u{E01EF}',
            '\u{1BCA0}',
            '\u{1BCA3}',
            '\u{1D159}',
            '\u{1D173}',
            '\u{1D17A}',
        ];
        for c in hidden {
            assert_eq!(count(&format!("pay{c}pal")), 1, "{c:?}");
        }
        let smuggled: String =
            "ok".bytes().map(|byte| char::from_u32(0xFE00 + u32::from(byte % 16)).unwrap()).collect();
        assert_eq!(count(&format!("👍{smuggled}")), 1, "only one selector counts, and only one of emoji");
        assert_eq!(count("❤\u{FE0F}\u{FE0F} 👍\u{FE00} 👩\u{200D}\u{200D}🔬 👩\u{200D} \u{200D}🔬"), 6);
        assert_eq!(count("1\u{FE0F}2\u{FE0E}3"), 2, "a digit looks the same with and without");
    }

    #[test]
    fn what_scripts_and_emoji_need_is_not_hidden() {
        for text in [
            "❤\u{FE0F} ☎\u{FE0E} 1\u{FE0F}\u{20E3} 👩🏽\u{200D}⚕\u{FE0F} 👁\u{FE0F}\u{200D}🗨\u{FE0F}",
            "می\u{200C}خواهم",
            "क्\u{200D}ष",
            "শ্রী র\u{200D}্যাব",
            "ශ්\u{200D}රී",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
        assert_eq!(count("می\u{200C}\u{200C}خواهم"), 2);
        assert_eq!(count("no\u{200C}ne"), 1);
    }
}

//! What stands at the start of a piece of Markdown: escapes, entities, tags, addresses and titles, and how long they are.

/// A text whose escapes and entities are read, and nothing else.
pub fn plain(text: &str) -> String {
    let (mut out, mut at) = (String::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let (read, length) =
            escape(&text[at..]).or_else(|| entity(&text[at..])).unwrap_or((c.to_string(), c.len_utf8()));
        out.push_str(&read);
        at += length;
    }
    out
}

/// A label as it is compared.
pub fn label(text: &str) -> String {
    crate::state::case::lower(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A character behind a `\`, and how long both are.
pub fn escape(text: &str) -> Option<(String, usize)> {
    let next = text.strip_prefix('\\')?.chars().next().filter(char::is_ascii_punctuation)?;
    Some((next.to_string(), 2))
}

/// A character by its number, or by one of the names that people write.
pub fn entity(text: &str) -> Option<(String, usize)> {
    let name = text.strip_prefix('&')?.split_once(';')?.0;
    let read = if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}')
    } else {
        match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => '\u{a0}',
            "copy" => '©',
            "reg" => '®',
            "trade" => '™',
            "hellip" => '…',
            "ndash" => '–',
            "mdash" => '—',
            "lsquo" => '‘',
            "rsquo" => '’',
            "ldquo" => '“',
            "rdquo" => '”',
            "laquo" => '«',
            "raquo" => '»',
            "bull" => '•',
            "middot" => '·',
            "times" => '×',
            "deg" => '°',
            "euro" => '€',
            "pound" => '£',
            "sect" => '§',
            "larr" => '←',
            "rarr" => '→',
            "auml" => 'ä',
            "ouml" => 'ö',
            "uuml" => 'ü',
            "szlig" => 'ß',
            _ => return None,
        }
    };
    Some((read.to_string(), name.len() + 2))
}

/// How long the tag, comment or instruction of HTML is that begins here.
pub fn tag(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('<')?;
    for (start, end) in [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")] {
        if let Some(inside) = rest.strip_prefix(start) {
            return inside.find(end).map(|at| 1 + start.len() + at + end.len());
        }
    }
    let name = rest.strip_prefix(['/', '!']).unwrap_or(rest);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let named = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    if !(named.starts_with(|c: char| c.is_whitespace() || c == '>') || named.starts_with("/>")) {
        return None;
    }
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '>') => return Some(at + 1),
            (None, '<') if at > 0 => return None,
            _ => {}
        }
    }
    None
}

/// An address between `<` and `>`: what is shown, where it leads, and how long it is.
pub fn autolink(text: &str) -> Option<(&str, String, usize)> {
    let inside = text.strip_prefix('<')?.split_once('>')?.0;
    if inside.contains(|c: char| c.is_whitespace() || c == '<') {
        return None;
    }
    let scheme = inside.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        (2..=32).contains(&scheme.len())
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    });
    let mail = inside.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !inside.contains(['\\', ':', '/']) && !host.contains('@')
    });
    match (scheme, mail) {
        (Some(_), _) => Some((inside, inside.to_owned(), inside.len() + 2)),
        (None, true) => Some((inside, format!("mailto:{inside}"), inside.len() + 2)),
        (None, false) => None,
    }
}

/// An address at the start of a text, and how long it is: between `<` and `>`, or up to the next space.
pub fn address(text: &str) -> Option<(String, usize)> {
    if let Some(rest) = text.strip_prefix('<') {
        let end = rest.find(['>', '\n', '<']).filter(|at| rest[*at..].starts_with('>'))?;
        return Some((plain(&rest[..end]), end + 2));
    }
    let (mut depth, mut escaped) = (0_usize, false);
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        match c {
            _ if c.is_whitespace() || c.is_control() => {
                end = at;
                break;
            }
            '(' if !escaped => depth += 1,
            ')' if !escaped && depth == 0 => {
                end = at;
                break;
            }
            ')' if !escaped => depth -= 1,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    (depth == 0).then(|| (plain(&text[..end]), end))
}

/// How long a title is that begins here; 0 where there is none.
pub fn title(text: &str) -> Option<usize> {
    let close = match text.chars().next() {
        Some('"') => '"',
        Some('\'') => '\'',
        Some('(') => ')',
        _ => return Some(0),
    };
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == close && !escaped {
            return Some(at + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

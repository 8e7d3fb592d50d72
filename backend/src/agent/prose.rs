//! The prose of the demo model without a script: an article about the topic of a prompt, and its revision after a
//! correction. Equal prompts get equal text.

/// The article consists of a title and three paragraphs. Its sentences work for singular and plural topics.
const TITLE: &str = "A short guide to";
const PARAGRAPHS: [&str; 3] = [
    "Most people think that they know a good deal about {topic}. A closer look shows how much of that knowledge is \
     habit. What seems obvious from a distance turns out to have a history, a cost, and a handful of open questions. \
     Specialists still argue about most of them.",
    "The useful questions about {topic} are rarely the loud ones. Who depends on it every day? What would be missed \
     first if it were gone? Asking in this order moves the discussion away from opinion and towards things that can be \
     counted, visited, or tried out on a quiet afternoon.",
    "None of this makes the subject simple, but it does make it approachable. Start with one question that matters to \
     you. Look for an answer that could prove you wrong, and write down what you find. That is how most of what we know \
     about {topic} was learned in the first place.",
];

/// Writes an article about the topic of a prompt, in Markdown.
pub(super) fn article(prompt: &str) -> String {
    let topic = topic(prompt);
    let paragraphs = PARAGRAPHS.map(|paragraph| paragraph.replace("{topic}", &topic));
    format!("# {TITLE} {topic}\n\n{}", paragraphs.join("\n\n"))
}

/// Revises a text without understanding the correction: keeps half of each paragraph if a shorter text is wanted.
/// Otherwise, appends the correction, so that a reader sees what changed.
pub(super) fn revise(text: &str, correction: &str) -> String {
    let wish = correction.to_lowercase();
    if ["concise", "shorter", "too long", "brief", "condense"].iter().any(|word| wish.contains(word)) {
        text.split("\n\n").map(first_half).collect::<Vec<_>>().join("\n\n")
    } else {
        format!("{text}\n\nAs asked: {}", correction.trim())
    }
}

fn first_half(paragraph: &str) -> String {
    let sentences: Vec<_> = paragraph.split_inclusive(['.', '?', '!']).collect();
    let kept = sentences.len().div_ceil(2);
    sentences.into_iter().take(kept).collect::<String>().trim().to_owned()
}

/// Extracts the topic of a prompt, in a form that fits into a sentence.
pub(super) fn topic(prompt: &str) -> String {
    let first = prompt.split(['\n', '.', '?', '!']).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let after = [" about ", " on ", " of "]
        .into_iter()
        .find_map(|word| first.split_once(word))
        .map_or(first, |(_, after)| after);
    let words: Vec<_> = after.split_whitespace().take(8).collect();
    if words.is_empty() { "this subject".to_owned() } else { words.join(" ") }
}

//! What the demo model makes of a correction: it changes the text that it wrote in a way that a reader can see.

use super::prose;

/// The text with the instruction followed as well as can be done without understanding it.
pub(super) fn revise(text: &str, instruction: &str) -> String {
    let wish = instruction.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| wish.contains(word));
    let mut draft = Draft::read(text);
    let mut followed = false;

    if says(&["title", "heading", "headline"]) {
        draft.title = Some(quoted(instruction).unwrap_or_else(|| prose::other_title(text, &draft.topic())));
        followed = true;
    }
    let too_short = says(&["too short", "too brief"]);
    if !too_short && says(&["concise", "short", "brief", "tighten", "condense", "too long", "cut "]) {
        draft.halve();
        followed = true;
    } else if (too_short || says(&["longer", "detail", "expand", "elaborate", "more about"]))
        && let Some(paragraph) = prose::further_paragraph(text, &draft.topic())
    {
        draft.paragraphs.push(paragraph);
        followed = true;
    }
    if says(&["bullet", "list"]) {
        draft.list();
        followed = true;
    }
    if !followed {
        draft.address(instruction);
    }
    draft.write()
}

/// A text in markdown, taken apart.
struct Draft {
    title: Option<String>,
    paragraphs: Vec<String>,
}

impl Draft {
    fn read(text: &str) -> Self {
        let mut paragraphs: Vec<String> =
            text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()).map(str::to_owned).collect();
        let title = paragraphs.first().and_then(|first| first.strip_prefix("# ")).map(str::to_owned);
        if title.is_some() {
            paragraphs.remove(0);
        }
        Self { title, paragraphs }
    }

    fn write(self) -> String {
        let title = self.title.map(|title| format!("# {title}"));
        title.into_iter().chain(self.paragraphs).collect::<Vec<_>>().join("\n\n")
    }

    fn topic(&self) -> String {
        self.title.as_deref().and_then(prose::topic_of_title).unwrap_or_else(|| "the subject".to_owned())
    }

    /// Drops sentences until about half of the words are left; a paragraph's first sentence goes last.
    fn halve(&mut self) {
        let mut sentences: Vec<Vec<&str>> = self.paragraphs.iter().map(|paragraph| sentences(paragraph)).collect();
        let words = |text: &str| text.split_whitespace().count();
        let mut left: usize = self.paragraphs.iter().map(|paragraph| words(paragraph)).sum();
        let goal = left.div_ceil(2);
        while left > goal {
            let Some(longest) = sentences.iter_mut().filter(|s| s.len() > 1).max_by_key(|s| s.len()) else { break };
            left -= longest.pop().map_or(0, words);
        }
        while left > goal && sentences.len() > 1 {
            left -= sentences.pop().map_or(0, |dropped| dropped.into_iter().map(words).sum());
        }
        self.paragraphs = sentences.into_iter().map(|kept| kept.join(" ")).collect();
    }

    /// Makes the sentences of the last paragraph items of a list.
    fn list(&mut self) {
        if let Some(last) = self.paragraphs.last_mut() {
            let items: Vec<String> = sentences(last).into_iter().map(|sentence| format!("- {sentence}")).collect();
            *last = items.join("\n");
        }
    }

    /// Adds a sentence that takes up the words of the instruction.
    fn address(&mut self, instruction: &str) {
        let sentence = match wanted(instruction) {
            Some(subject) => {
                format!("No account would be complete without {subject}, which changes how the rest is read.")
            }
            None => match tone(instruction) {
                Some(tone) => format!("Put in a {tone} way: it is worth knowing, and it is worth talking about."),
                None => format!(
                    "One point needs particular care here, and has been looked at again: {}.",
                    keywords(instruction)
                ),
            },
        };
        match self.paragraphs.first_mut() {
            Some(first) => {
                first.push(' ');
                first.push_str(&sentence);
            }
            None => self.paragraphs.push(sentence),
        }
    }
}

/// Sentences with their marks; a mark ends one only before white space.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = paragraph.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = matches!(c, '.' | '?' | '!') && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends {
            found.push(paragraph[start..=at].trim());
            start = at + 1;
        }
    }
    let rest = paragraph[start..].trim();
    if !rest.is_empty() {
        found.push(rest);
    }
    found
}

/// What stands in quotation marks.
fn quoted(instruction: &str) -> Option<String> {
    let (_, after) = instruction.split_once(['"', '“'])?;
    let (inside, _) = after.split_once(['"', '”'])?;
    (!inside.trim().is_empty()).then(|| inside.trim().to_owned())
}

/// What is to be mentioned, added or included.
fn wanted(instruction: &str) -> Option<String> {
    // ASCII lower case keeps every byte where it was.
    let lower = instruction.to_ascii_lowercase();
    let verbs = ["mention ", "include ", "add ", "cover ", "discuss ", "talk about ", "bring in "];
    let at = verbs.iter().filter_map(|verb| lower.find(verb).map(|at| at + verb.len())).min()?;
    let subject = instruction[at..].split(['.', ',', ';', '!', '?', '\n']).next()?.trim();
    let subject = ["something about ", "a sentence about ", "a paragraph about ", "a word on ", "that "]
        .iter()
        .fold(subject, |subject, filler| subject.strip_prefix(filler).unwrap_or(subject));
    (!subject.is_empty()).then(|| subject.to_owned())
}

/// How it is to sound: the word after "more", or a comparative after "make it".
fn tone(instruction: &str) -> Option<String> {
    let words: Vec<String> = instruction
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    words.windows(2).find_map(|pair| match (pair[0].as_str(), pair[1].as_str()) {
        ("more" | "less" | "sound" | "sounds", word) if word.len() > 3 => {
            let degree = if pair[0] == "less" { "less" } else { "more" };
            Some(format!("{degree} {word}"))
        }
        ("it", word) if word.len() > 4 && word.ends_with("er") => Some(word.to_owned()),
        _ => None,
    })
}

/// The words of an instruction that carry its meaning.
fn keywords(instruction: &str) -> String {
    const EMPTY: [&str; 18] = [
        "please", "this", "that", "with", "should", "could", "would", "make", "have", "text", "draft", "there",
        "about", "from", "your", "very", "does", "needs",
    ];
    let words = instruction.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let telling: Vec<&str> =
        words.filter(|word| word.len() > 3 && !EMPTY.contains(&word.to_lowercase().as_str())).take(4).collect();
    match telling.as_slice() {
        [] => instruction.trim().trim_end_matches('.').to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

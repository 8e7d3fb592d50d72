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
    if let Some(what) = after_verb(instruction, &LEAVE_OUT) {
        followed |= draft.leave_out(&what);
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

    /// Drops a paragraph by its number, or every sentence that speaks of a word; the last sentence stays.
    fn leave_out(&mut self, what: &str) -> bool {
        const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];
        let what = what.to_lowercase();
        if what.contains("paragraph") && self.paragraphs.len() > 1 {
            let named = ORDINALS.iter().position(|ordinal| what.contains(ordinal));
            let last = what.contains("last").then(|| self.paragraphs.len() - 1);
            if let Some(index) = named.or(last).filter(|index| *index < self.paragraphs.len()) {
                self.paragraphs.remove(index);
                return true;
            }
        }
        let words = telling(&what);
        let kept: Vec<String> = self
            .paragraphs
            .iter()
            .map(|paragraph| {
                let speaks = |sentence: &&str| words.iter().any(|word| sentence.to_lowercase().contains(word));
                sentences(paragraph).into_iter().filter(|sentence| !speaks(sentence)).collect::<Vec<_>>().join(" ")
            })
            .filter(|paragraph| !paragraph.is_empty())
            .collect();
        let changed = !kept.is_empty() && kept != self.paragraphs;
        if changed {
            self.paragraphs = kept;
        }
        changed
    }

    /// Adds a sentence that takes up the words of the instruction.
    fn address(&mut self, instruction: &str) {
        let sentence = if let Some(subject) = after_verb(instruction, &ADD) {
            format!("No account of {} would be complete without {subject}.", self.topic())
        } else if let Some(tone) = tone(instruction) {
            format!("Put in a {tone} way: it is worth knowing, and it is worth talking about.")
        } else {
            format!("One point needs particular care here: {}.", point(instruction))
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

const ADD: [&str; 7] = ["mention ", "include ", "add ", "cover ", "discuss ", "talk about ", "bring in "];
const LEAVE_OUT: [&str; 5] = ["remove ", "drop ", "delete ", "leave out ", "without "];

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

/// What stands behind the first of these verbs, up to the end of its clause.
fn after_verb(instruction: &str, verbs: &[&str]) -> Option<String> {
    const FILLERS: [&str; 5] = ["something about ", "a sentence about ", "a paragraph about ", "a word on ", "that "];
    // ASCII lower case keeps every byte where it was.
    let lower = instruction.to_ascii_lowercase();
    let at = verbs.iter().filter_map(|verb| lower.find(verb).map(|at| at + verb.len())).min()?;
    let subject = instruction[at..].split(['.', ',', ';', '!', '?', '\n']).next()?.trim();
    let subject = FILLERS.iter().fold(subject, |subject, filler| subject.strip_prefix(filler).unwrap_or(subject));
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

/// A statement as it is, from its second letter on; of a command, the words that carry its meaning.
fn point(instruction: &str) -> String {
    const COMMANDS: [&str; 14] = [
        "please", "make", "use", "write", "rewrite", "change", "fix", "try", "be", "do", "don't", "give", "keep", "let",
    ];
    let instruction = instruction.split(['\n', '.', '!']).next().unwrap_or_default().trim();
    let first = instruction.split_whitespace().next().unwrap_or_default();
    if !COMMANDS.contains(&first.to_lowercase().as_str()) {
        let rest = &instruction[first.len()..];
        // A name keeps its capital; the small words that begin most sentences do not.
        let first = if first.len() <= 5 { first.to_lowercase() } else { first.to_owned() };
        return format!("{first}{rest}");
    }
    match telling(instruction).as_slice() {
        [] => instruction.to_owned(),
        [one] => (*one).to_owned(),
        [words @ .., last] => format!("{} and {last}", words.join(", ")),
    }
}

/// The words that carry the meaning, at most four.
fn telling(text: &str) -> Vec<&str> {
    const EMPTY: [&str; 19] = [
        "please",
        "this",
        "that",
        "with",
        "should",
        "could",
        "would",
        "make",
        "have",
        "text",
        "draft",
        "there",
        "about",
        "from",
        "your",
        "very",
        "does",
        "needs",
        "everything",
    ];
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| word.len() > 3 && !EMPTY.contains(&word.to_lowercase().as_str())).take(4).collect()
}

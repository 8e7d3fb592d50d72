//! Believable prose about a topic, for the demo model. Everything is chosen by a hash, so the same prompt always reads
//! the same, and different topics read differently.

use sha2::{Digest, Sha256};

/// One way to write about anything: a title, and three paragraphs. `{t}` is the topic inside a sentence, `{T}` at its
/// beginning or in a title. The sentences never need to know whether the topic is one thing or many.
struct Template {
    title: &'static str,
    paragraphs: [&'static str; 3],
}

const TEMPLATES: [Template; 5] = [
    Template {
        title: "A Closer Look at {T}",
        paragraphs: [
            "Most people think that they know a good deal about {t}. A closer look shows how much of that knowledge is \
             habit. What seems obvious from a distance turns out to have a history, a cost, and a handful of open \
             questions that specialists still argue about.",
            "The useful questions about {t} are rarely the loud ones. Who depends on it every day? What would be missed \
             first if it were gone? Asking in this order moves the discussion away from opinion and towards things that \
             can be counted, visited, or tried out on a quiet afternoon.",
            "None of this makes the subject simple, but it does make it approachable. Start with one question that \
             matters to you, look for an answer that could prove you wrong, and write down what you find. That is how \
             most of what we know about {t} was learned in the first place.",
        ],
    },
    Template {
        title: "Why {T} Matters More Than It Seems",
        paragraphs: [
            "There are subjects that stay in the background until something goes wrong. For many readers, {t} belongs \
             among them. It is easy to overlook what works, and easier still to forget the people who keep it working.",
            "Over the last few decades the picture has changed. Better measurements have replaced old guesses, and the \
             costs of neglect have become visible in places where nobody used to look. At the same time, small and \
             patient improvements have done more good than the large plans that once filled the headlines.",
            "The lesson is a modest one. Paying attention to {t} does not require new tools or large budgets. It asks \
             for regular care, honest records, and the willingness to change course early, while changing course is \
             still cheap.",
        ],
    },
    Template {
        title: "{T}: What We Know, and What We Do Not",
        paragraphs: [
            "Few subjects reward patience as well as {t}. The basic facts can be told in an hour. The exceptions take \
             years, and it is in the exceptions that the interesting work is done.",
            "Three things are well established. The conditions at the beginning matter more than later corrections. \
             Local differences are larger than averages suggest. And simple explanations of {t} tend to survive long \
             after the evidence has moved on, because they are pleasant to repeat.",
            "Much else is still open. Researchers disagree about how quickly things are changing, and about which of \
             the changes can be undone. Until that is settled, the sensible course is to prefer steps that keep several \
             futures possible, and to say plainly how sure we are of each claim.",
        ],
    },
    Template {
        title: "A Short Guide to {T}",
        paragraphs: [
            "Anyone who comes to {t} for the first time meets the same difficulty: there is too much to read, and most \
             of it was written for people who know the subject already. This short guide takes the opposite path. It \
             begins with what can be seen, and explains terms only when they are needed.",
            "Begin by looking at one example closely instead of at many in passing. Notice what stays the same from day \
             to day and what does not. Then compare your notes with somebody who has worked with {t} for a long time; \
             the differences are where you will learn the most.",
            "After a few weeks the larger pattern becomes clear. The details still matter, but they now have a place. \
             From there it is a small step to asking better questions, and good questions are the part of the work that \
             nobody else can do for you.",
        ],
    },
    Template {
        title: "Notes on {T}",
        paragraphs: [
            "Every generation seems to discover {t} anew. The words change, the pictures get sharper, and yet the first \
             reaction is always a mixture of surprise and recognition: this was here all along, and we walked past it.",
            "Part of the appeal lies in scale. Seen from nearby, the subject dissolves into particulars, each with its \
             own story. Seen from far away, the particulars line up into something that looks almost planned. Neither \
             view is wrong, and good accounts of {t} move between the two without losing the reader on the way.",
            "The practical thing to do is to share what we see. Descriptions by careful amateurs \
             have more than once corrected the textbooks, and there is no reason to think that the list of corrections \
             is complete.",
        ],
    },
];

/// Paragraphs that fit behind any of the templates, for whoever wants more.
const MORE: [&str; 4] = [
    "A concrete case helps. In one town, a group of neighbours spent a year keeping careful notes about {t}. Their first \
     results contradicted what everybody had taken for granted; their second results explained why. The notes are still \
     used today, mainly because they say not only what was seen but also what was expected.",
    "There is a practical side as well. Time and money are limited, so it pays to ask which effort makes a difference. \
     Experience suggests starting with what is repeated every day, since small gains add up there, and leaving the rare \
     and spectacular cases for later.",
    "It would be unfair to leave out the doubts. Some observers hold that {t} has been given too much importance, and \
     that other concerns deserve the attention more. The objection is worth taking seriously, and answering it well \
     has made the arguments on both sides better.",
    "Looking ahead, two developments are worth watching. The first is that good information is becoming easier to get. \
     The second is that more people are willing to share what they know. Together they may change how we think about \
     {t} within a few years.",
];

/// An article of about 150 words on the topic of a prompt, in markdown.
pub(super) fn article(prompt: &str) -> String {
    let topic = topic(prompt);
    let template = &TEMPLATES[pick(prompt, TEMPLATES.len())];
    let paragraphs = template.paragraphs.map(|paragraph| fill(paragraph, &topic));
    format!("# {}\n\n{}", fill_title(template.title, &topic), paragraphs.join("\n\n"))
}

/// A paragraph that is not in the text yet; none when all are.
pub(super) fn further_paragraph(text: &str, topic: &str) -> Option<String> {
    let start = pick(topic, MORE.len());
    let rotated = MORE.iter().cycle().skip(start).take(MORE.len());
    rotated.map(|paragraph| fill(paragraph, topic)).find(|paragraph| !text.contains(paragraph.as_str()))
}

/// A title in other words than the text's.
pub(super) fn other_title(text: &str, topic: &str) -> String {
    let start = pick(text, TEMPLATES.len());
    let rotated = TEMPLATES.iter().cycle().skip(start).take(TEMPLATES.len());
    let titles = rotated.map(|template| fill_title(template.title, topic));
    titles.into_iter().find(|title| !text.contains(title.as_str())).unwrap_or_else(|| capitalised(&title_case(topic)))
}

/// The topic that a title of [`article`] was made of.
pub(super) fn topic_of_title(title: &str) -> Option<String> {
    TEMPLATES.iter().find_map(|template| {
        let (before, after) = template.title.split_once("{T}")?;
        let topic = title.strip_prefix(before)?.strip_suffix(after)?;
        let (first, rest) = topic.split_once(' ').unwrap_or((topic, ""));
        // Only small words are surely lower case inside a sentence; a name keeps its capitals.
        let first =
            if SMALL.contains(&first.to_lowercase().as_str()) { first.to_lowercase() } else { first.to_owned() };
        Some(if rest.is_empty() { first } else { format!("{first} {rest}") })
    })
}

/// One sentence about a topic.
pub(super) fn sentence(topic: &str) -> String {
    fill("A short and careful answer about {t}.", topic)
}

/// What a prompt asks about, as it can stand inside a sentence.
pub(super) fn topic(prompt: &str) -> String {
    const BEFORE: [&str; 6] = [" about ", " regarding ", " concerning ", " on the subject of ", " on ", " of "];
    const VERBS: [&str; 12] = [
        "please",
        "write",
        "draft",
        "describe",
        "explain",
        "summarise",
        "summarize",
        "rate",
        "discuss",
        "introduce",
        "prepare",
        "present",
    ];
    let first = prompt.split(['\n', '?', '!']).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let first = first.split(". ").next().unwrap_or_default().trim_end_matches(['.', ':', ',']);
    // ASCII lower case keeps every byte where it was.
    let lower = first.to_ascii_lowercase();
    let after = BEFORE.into_iter().find_map(|word| lower.find(word).map(|at| at + word.len())).unwrap_or(0);
    let words = first[after..].trim_matches(['"', '\'', '`', ' ']).split_whitespace();
    let words = words.skip_while(|word| VERBS.contains(&word.to_ascii_lowercase().as_str()));
    let topic: Vec<&str> = words.take(8).collect();
    if topic.is_empty() { "this subject".to_owned() } else { topic.join(" ") }
}

fn fill(template: &str, topic: &str) -> String {
    template.replace("{t}", topic)
}

fn fill_title(template: &str, topic: &str) -> String {
    let title = title_case(topic);
    let title = if template.starts_with("{T}") { capitalised(&title) } else { title };
    template.replace("{T}", &title)
}

const SMALL: [&str; 16] =
    ["a", "an", "the", "and", "or", "of", "on", "in", "for", "to", "at", "by", "with", "from", "our", "my"];

fn title_case(topic: &str) -> String {
    let words = topic.split(' ').map(|word| if SMALL.contains(&word) { word.to_owned() } else { capitalised(word) });
    words.collect::<Vec<_>>().join(" ")
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn pick(seed: &str, count: usize) -> usize {
    usize::from(Sha256::digest(seed.as_bytes())[0]) % count
}

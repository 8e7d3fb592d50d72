//! Titles of reviews, for scanning an inbox: first the question, then what distinguishes it from the next one. A
//! decision is bound to them too, so they depend only on the flow, its input and its calls. This module knows nothing
//! of runs.

use shared::review::Action;
use shared::topic::{LONGEST_TOPIC, cut, plain, topic};

/// The maximum number of things that are named; the others are counted.
const NAMED: usize = 2;
/// The longest title, in characters.
const MAX_TITLE: usize = 120;
/// A line up to this many characters is a title as it is; of a longer one, only the first sentence is.
const SHORT: usize = 80;

/// Returns a rendered title as one line that is not too long; `None` if it is blank.
pub(in crate::engine) fn of_template(rendered: &str) -> Option<String> {
    let line = rendered.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cut(&line, MAX_TITLE))
}

/// Returns the question itself: the first line of the prompt, or its first sentence, without its markup, followed by
/// the topic if there is one.
pub(in crate::engine) fn of_prompt(prompt: &str, topic: Option<&str>) -> String {
    let text = prompt.lines().map(plain).find(|line| !line.is_empty()).unwrap_or_default();
    let question = if text.chars().count() <= SHORT { text.trim_end_matches('.') } else { first_sentence(&text) };
    match topic {
        Some(topic) if !question.contains(topic) => {
            format!("{} · {topic}", cut(question, MAX_TITLE - LONGEST_TOPIC))
        }
        _ => cut(question, MAX_TITLE),
    }
}

/// Returns what is to be called, and about what: `publish: The ocean`, `delete_file ×3: a.txt, b.txt and 1 more`.
pub(in crate::engine) fn of_calls(actions: &[Action]) -> String {
    let mut tools: Vec<(&str, u32)> = Vec::new();
    let mut topics: Vec<String> = Vec::new();
    for action in actions {
        match tools.iter_mut().find(|(name, _)| *name == action.name) {
            Some((_, times)) => *times += 1,
            None => tools.push((&action.name, 1)),
        }
        topics.extend(topic(&action.arguments).filter(|topic| !topics.contains(topic)));
    }
    let several = tools.len() > 1;
    let tools =
        tools.into_iter().map(|(name, times)| if times > 1 { format!("{name} ×{times}") } else { name.to_owned() });
    let tools = listed(&tools.collect::<Vec<_>>());
    // With several tools, nobody could tell whose topic is which.
    let title = if topics.is_empty() || several { tools } else { format!("{tools}: {}", listed(&topics)) };
    cut(&title, MAX_TITLE)
}

fn listed(names: &[String]) -> String {
    match names {
        [one, other] => format!("{one} and {other}"),
        names if names.len() > NAMED => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
        names => names.concat(),
    }
}

/// Returns the text up to the first full stop, question mark or exclamation mark that ends it or precedes a space. A
/// final full stop is left out.
fn first_sentence(text: &str) -> &str {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = matches!(c, '.' | '?' | '!') && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends {
            return text[..at + c.len_utf8()].trim_end_matches('.');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn calls(calls: &[(&str, Value)]) -> Vec<Action> {
        let action = |(tool, arguments): &(&str, Value)| json!({ "id": "c", "type": "tool", "name": tool, "arguments": arguments, "allowed_decisions": [] });
        calls.iter().map(|call| serde_json::from_value(action(call)).unwrap()).collect()
    }

    #[test]
    fn a_question_is_its_first_sentence() {
        for (prompt, topic, title) in [
            ("Acme was without service. Give **a credit**?", None, "Acme was without service. Give a credit?"),
            (
                "Please review the draft about the ocean. Is it correct, clear, and fit to be read by anyone?",
                None,
                "Please review the draft about the ocean",
            ),
            ("# Release 4.2\n\nIs it ready?", None, "Release 4.2"),
            ("Please review the draft.", None, "Please review the draft"),
            ("Shall we sign?", Some("Lease of 12 March"), "Shall we sign? · Lease of 12 March"),
            ("Is v1.2 of `acme` fine", Some("acme"), "Is v1.2 of acme fine"),
            ("", None, ""),
        ] {
            assert_eq!(of_prompt(prompt, topic), title);
        }
        let long = of_prompt(&"word ".repeat(100), Some("topic"));
        assert!(long.ends_with("word… · topic") && long.chars().count() < MAX_TITLE, "{long}");
    }

    #[test]
    fn a_given_title_is_one_line() {
        assert_eq!(of_template(" Publish\n  it ").as_deref(), Some("Publish it"));
        assert_eq!(of_template(" \n "), None);
        assert_eq!(of_template(&"x".repeat(500)).map(|title| title.chars().count()), Some(MAX_TITLE + 1));
    }

    #[test]
    fn calls_are_told_apart_by_what_they_are_about() {
        let file = |name: &str| ("delete_file", json!({ "force": true, "path": name }));
        for (asked, title) in [
            (vec![("publish", json!({ "text": "# Salt", "title": "The ocean" }))], "publish: The ocean"),
            (vec![("publish", json!({ "text": "# Salt\n\nMuch of it." }))], "publish: Salt"),
            (vec![file("a"), file("b"), file("c")], "delete_file ×3: a, b and 1 more"),
            (vec![file("a"), file("a")], "delete_file ×2: a"),
            (vec![("publish", json!({ "title": "4.2" })), ("mail", json!({ "to": "all" }))], "publish and mail"),
            (vec![("pay", json!({ "urgent": true, "amount": 10 }))], "pay: amount 10"),
            (vec![("restart", json!({}))], "restart"),
        ] {
            assert_eq!(of_calls(&calls(&asked)), title);
        }
        let long = "x".repeat(500);
        for asked in [vec![(&*long, json!({}))], vec![(&*long, json!({ "to": "all" })), ("mail", json!({}))]] {
            assert_eq!(of_calls(&calls(&asked)).chars().count(), MAX_TITLE + 1);
        }
    }
}

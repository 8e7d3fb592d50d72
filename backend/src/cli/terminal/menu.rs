//! The numbered menu of a review with options, and the prompt of a question without options.

use std::fmt::Write as _;

use serde_json::Value;
use shared::JsonMap;
use shared::decision::Verdict;
use shared::definition::{Alternative, ChoiceKind, Escalate, OnTimeout, Stakes};
use shared::review::{Item, Review, ReviewKind, ReviewOption};
use shared::time::Span;

use super::{Prompter, fields, text};
use crate::embed::{Choice, Declined};

pub(super) const RULE: &str = "══════════════════════════════════════════════════";

/// Shows the review, and asks until the person chooses an entry or answers.
pub(super) async fn ask(asking: &mut Prompter<'_>, review: &Review) -> Result<Choice, Declined> {
    let menu = Menu::of(review);
    asking.screen.say(menu.text().trim_end_matches('\n'));
    let mut edits = JsonMap::new();
    loop {
        let said = asking.line(&menu.prompt()).await?;
        // The answer to a question may begin with this word too.
        let is_pair = |pair: &&str| pair.split_once('=').is_some_and(|(key, _)| !key.contains(char::is_whitespace));
        let pair = said.strip_prefix("metadata ");
        if let Some(pair) = pair.filter(|pair| !menu.is_question() || is_pair(pair)) {
            asking.metadata(pair)?;
            continue;
        }
        if menu.is_question() {
            return Ok(Choice::text(said));
        }
        if let Some(rest) = said.strip_prefix("edit ") {
            let (key, file) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
            let Some(item) = menu.editable.iter().find(|item| item.key == key) else {
                asking.wrong(format!("`{}` cannot be edited here{}", text::line(key), menu.editable()))?;
                continue;
            };
            if let Some(value) = asking.value(&item.value, takes_text(item), file.trim()).await? {
                asking.screen.say(&format!(" {key} is changed if you choose an option that accepts"));
                edits.insert(key.to_owned(), value);
            }
            continue;
        }
        let Some(entry) = menu.entry(&said) else {
            asking.wrong(format!("`{}` is not a choice of {}: {}", text::line(&said), menu.name, menu.range()))?;
            continue;
        };
        let choice = match entry {
            MenuEntry::Option(option) => chosen(asking, option).await?,
            MenuEntry::FreeText => Choice::text(asking.line(" your message: ").await?),
        };
        return Ok(edits.into_iter().fold(choice, |choice, (key, value)| choice.edit(key, value)));
    }
}

/// Returns the menu of a review as it is shown.
pub(super) fn render(review: &Review) -> String {
    Menu::of(review).text()
}

/// Builds the choice of an option. Asks for the values of its fields, and for the message of a correction if the flow
/// gives none.
async fn chosen(asking: &mut Prompter<'_>, option: &ReviewOption) -> Result<Choice, Declined> {
    let fields = match &option.fields {
        Some(schema) => fields::ask(asking, schema).await?,
        None => JsonMap::new(),
    };
    let choice = Choice::verdict(Verdict::Choose { option: option.id.clone(), fields });
    if option.kind == ChoiceKind::Correct && option.message.as_ref().is_none_or(|message| message.trim().is_empty()) {
        return Ok(choice.comment(asking.line(" your message: ").await?));
    }
    Ok(choice)
}

/// An entry of the menu, which has a number.
enum MenuEntry<'a> {
    Option(&'a ReviewOption),
    FreeText,
}

struct Menu<'a> {
    review: &'a Review,
    /// The id of the node that asks, or else the title of the review.
    name: String,
    editable: Vec<&'a Item>,
}

impl<'a> Menu<'a> {
    fn of(review: &'a Review) -> Self {
        let name = review.node.as_ref().map_or_else(|| text::line(&review.title), ToString::to_string);
        Self { review, name, editable: review.items.iter().filter(|item| item.editable).collect() }
    }

    /// Whether there is nothing to choose or edit, so that the next line is the answer.
    fn is_question(&self) -> bool {
        self.review.options.is_empty() && self.editable.is_empty()
    }

    /// Returns the number of entries: the options, and free text if it is allowed.
    fn count(&self) -> usize {
        self.review.options.len() + usize::from(self.review.free_text)
    }

    fn prompt(&self) -> String {
        if self.is_question() { " your answer: ".to_owned() } else { format!(" your choice [1-{}]: ", self.count()) }
    }

    fn range(&self) -> String {
        format!("1 to {}{}", self.count(), self.editable())
    }

    fn editable(&self) -> String {
        self.editable.iter().fold(String::new(), |all, item| all + ", edit " + &item.key)
    }

    /// Returns the entry with this number, or the option with this id; `None` if there is none.
    fn entry(&self, said: &str) -> Option<MenuEntry<'a>> {
        let options = &self.review.options;
        match said.parse::<usize>() {
            Ok(number) if (1..=options.len()).contains(&number) => options.get(number - 1).map(MenuEntry::Option),
            Ok(number) if self.review.free_text && number == self.count() => Some(MenuEntry::FreeText),
            Ok(_) => None,
            Err(_) => options.iter().find(|option| option.id == said).map(MenuEntry::Option),
        }
    }

    fn text(&self) -> String {
        let review = self.review;
        let what = match review.kind {
            ReviewKind::Approval => "human validation".to_owned(),
            ReviewKind::Handoff => "hand-off".to_owned(),
            other => other.as_str().replace('_', " "),
        };
        let mut all = took(review) + &head(&format!("{what}: {}", self.name), &review.prompt);
        all.push_str(&about(review, &review.stakes));
        for item in &review.items {
            let label = item.label.as_deref().unwrap_or(&item.key);
            let _ = write!(all, "\n {}:\n{}", text::line(label), text::barred(&text::value(&item.value)));
        }
        if !self.is_question() {
            all.push('\n');
            for (index, option) in review.options.iter().enumerate() {
                let description = option.description.as_ref().map(|more| format!(" ({})", text::line(more)));
                let label = text::line(&option.label);
                let _ = writeln!(all, "  [{}] {label}{}", index + 1, description.unwrap_or_default());
            }
            if review.free_text {
                let _ = writeln!(all, "  [{}] provide custom message", self.count());
            }
            for (index, option) in review.options.iter().enumerate() {
                if let Some(message) = option.message.as_deref().filter(|message| !message.trim().is_empty()) {
                    let _ = writeln!(all, "  {} says: “{}”", index + 1, text::line(message));
                }
            }
            for item in &self.editable {
                let _ = writeln!(all, "  edit {} [FILE] changes it first", item.key);
            }
        }
        all + RULE + "\n"
    }
}

/// Returns the title between two rules, with the question below.
pub(super) fn head(title: &str, prompt: &str) -> String {
    // The lines of a long question could be mistaken for the menu.
    let prompt = match text::lines(prompt).as_slice() {
        [line] => format!(" {line}\n"),
        _ => text::barred(prompt),
    };
    format!("{RULE}\n {title}\n{RULE}\n{prompt}")
}

/// Returns the stakes, the time limit, the advice of handlers, and the alternatives that are not in the menu.
pub(super) fn about(review: &Review, stakes: &Stakes) -> String {
    let mut words = Vec::new();
    if stakes.severity != shared::definition::Severity::default() {
        words.push(format!("severity {}", stakes.severity.as_str()));
    }
    words.extend(stakes.category.as_deref().map(text::line));
    words.extend(stakes.reversible.map(|can| if can { "can be undone" } else { "cannot be undone" }.to_owned()));
    words.extend(
        stakes
            .estimated_cost
            .as_ref()
            .map(|cost| format!("costs about {} {}", cost.amount, text::line(&cost.currency))),
    );
    words.extend(
        review
            .source
            .as_ref()
            .filter(|source| source.visits > 1)
            .map(|source| format!("`{}` has run {} of {} times", source.node, source.visits, source.max_visits)),
    );
    if let Some(expires_at) = review.expires_at {
        let then = review.on_timeout.as_ref().map_or_else(|| "reject".to_owned(), after);
        let within = Span(expires_at.since(review.created_at));
        words.push(format!("within {within}, else {}", text::line(&then)));
    }
    let mut all = if words.is_empty() { String::new() } else { format!(" ({})\n", words.join("; ")) };
    for consequence in &stakes.consequences {
        let _ = writeln!(all, " - {}", text::line(consequence));
    }
    for advice in &review.advice {
        let _ = writeln!(all, " - {}", text::line(&advice.to_string()));
    }
    if let Some(asked) = &review.asked {
        let until = asked.until.map(|until| format!(" until {until}")).unwrap_or_default();
        let _ = writeln!(all, " - {} may answer{until}", text::line(&asked.by));
    }
    // Alternatives that are also options are in the menu.
    let is_option = |alternative: &&Alternative| alternative.choice().is_some() && review.actions.is_empty();
    for alternative in stakes.alternatives.iter().filter(|alternative| !is_option(alternative)) {
        let chosen = alternative.choice().map(|choice| format!("choose {}: ", text::line(&choice.id)));
        let _ = writeln!(all, " - or: {}{}", chosen.unwrap_or_default(), text::line(&alternative.to_string()));
    }
    all
}

/// Returns the usage so far, as a line above the menu; empty if the run has called no model.
pub(super) fn took(review: &Review) -> String {
    let Some(summary) = review.usage.summary() else { return String::new() };
    let seconds = review.usage.elapsed_ms / 1000;
    let since = if seconds > 0 { format!(", {}", Span::secs(seconds)) } else { String::new() };
    format!(" Usage so far: {summary}{since}\n")
}

/// Describes what happens when the timer expires.
fn after(then: &OnTimeout) -> String {
    match then {
        OnTimeout::Reject => "reject".to_owned(),
        OnTimeout::Approve => "approve".to_owned(),
        OnTimeout::Error => "error".to_owned(),
        OnTimeout::Follow => "go on without an answer".to_owned(),
        OnTimeout::Goto { goto } => format!("go to `{goto}`"),
        OnTimeout::Escalate(escalate) => {
            let Escalate { escalate, extend, then } = escalate;
            format!("ask {escalate} too; within {extend} more, else {}", after(then))
        }
    }
}

/// Whether a typed value for this item is taken as text and not parsed as JSON.
pub fn takes_text(item: &Item) -> bool {
    let named = item.schema.as_ref().and_then(|schema| schema.get("type")).and_then(Value::as_str);
    named.map_or(item.value.is_string(), |named| named == "string")
}

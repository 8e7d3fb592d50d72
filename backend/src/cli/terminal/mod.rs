//! A reviewer at a terminal, or at the end of a pipe: shows the question and reads the answer.
//!
//! The format of the menu is a contract with scripts: options are numbered from 1, free text is the last number, and an
//! answer is one line. Text of agents is made harmless and cannot be mistaken for a menu: each of its lines has a bar
//! before it.

mod calls;
mod fields;
mod input;
mod menu;
mod screen;
#[cfg(test)]
mod tests;
pub(super) mod text;

use std::io::Write;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use shared::JsonMap;
use shared::error::Mistake;
use shared::id::Username;
use shared::review::Review;
use tokio::io::AsyncBufRead;
use tokio::sync::Mutex;

pub use input::InputLines;
pub(super) use menu::takes_text;
pub use screen::Screen;

use crate::embed::{Choice, Declined, Reviewer};

/// A reviewer that shows questions on a screen and reads the answers as lines: a person at a terminal, or a script.
pub struct Terminal {
    screen: Screen,
    /// The lines of answers. The lock lets one question at a time read them.
    answers: Arc<Mutex<InputLines>>,
    /// The lock for [`Reviewer::turn`], which is held from a question until its answer is committed.
    turn: Arc<Mutex<()>>,
    interactive: bool,
    /// The person who is asked; `None` if the terminal serves only one.
    person: Option<Username>,
}

impl Terminal {
    /// Creates a terminal that reads answers from `input`, and shows questions and answers on `output`. All questions
    /// share the one input, which counts as a script.
    pub fn new(input: impl AsyncBufRead + Send + Unpin + 'static, output: impl Write + Send + 'static) -> Self {
        Self::on(Screen::on(Box::new(output)), InputLines::lines_of(input))
    }

    /// Creates a terminal that shows questions on `screen` and reads answers from `answers`.
    pub fn on(screen: Screen, answers: InputLines) -> Self {
        let interactive = answers.is_interactive();
        Self { screen, answers: Arc::new(Mutex::new(answers)), turn: Arc::default(), interactive, person: None }
    }

    /// Returns the same terminal for one of several people. Each of its questions begins with the person's name.
    pub fn of(&self, person: Username) -> Self {
        let (screen, answers, turn) = (self.screen.clone(), Arc::clone(&self.answers), Arc::clone(&self.turn));
        Self { screen, answers, turn, interactive: self.interactive, person: Some(person) }
    }

    /// Asks for the values of the fields of an option that was already chosen. `schema` is their JSON Schema.
    pub async fn fields(&self, schema: &Value) -> Result<JsonMap, Declined> {
        let mut answers = self.answers.lock().await;
        answers.forget_early();
        fields::ask(&mut self.asking(&mut answers), schema).await
    }

    fn asking<'a>(&'a self, answers: &'a mut InputLines) -> Prompter<'a> {
        Prompter { screen: &self.screen, answers, metadata: JsonMap::new() }
    }
}

#[async_trait]
impl Reviewer for Terminal {
    async fn review(&self, review: &Review) -> Result<Choice, Declined> {
        let mut answers = self.answers.lock().await;
        // Lines that were typed before the question appeared do not answer it.
        answers.forget_early();
        // The future is dropped if the review is resolved before the person answers.
        let _closed = Closing(&self.screen);
        if let Some(person) = &self.person {
            self.screen.say(&format!("{person} is asked:"));
        }
        let mut asking = self.asking(&mut answers);
        let choice = if review.actions.is_empty() {
            menu::ask(&mut asking, review).await?
        } else {
            calls::ask(&mut asking, review).await?
        };
        Ok(asking.metadata.into_iter().fold(choice, |choice, (key, value)| choice.metadata(key, value)))
    }

    async fn refused(&self, _: &Review, mistakes: &[Mistake]) -> Result<(), Declined> {
        let words = mistakes.iter().map(|mistake| text::line(&mistake.to_string())).collect::<Vec<_>>().join("; ");
        if !self.interactive {
            return Err(format!("the answer is not valid: {words}").into());
        }
        self.screen.say(&format!(" {words}"));
        Ok(())
    }

    fn turn(&self) -> Option<Arc<Mutex<()>>> {
        Some(Arc::clone(&self.turn))
    }
}

/// Returns the text of a review as it is shown above the prompt.
pub fn render(review: &Review) -> String {
    if review.actions.is_empty() {
        return menu::render(review);
    }
    review.actions.iter().enumerate().map(|(index, action)| calls::render(review, index, action)).collect()
}

/// Parses `KEY=VALUE`. The value is JSON, or text if it is not valid JSON. `None` if there is no key.
pub(super) fn key_value(pair: &str) -> Option<(String, Value)> {
    let (key, value) = pair.split_once('=')?;
    let key = key.trim();
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    (!key.is_empty()).then(|| (key.to_owned(), value))
}

/// A guard that closes the open question when it is dropped.
struct Closing<'a>(&'a Screen);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The input and output of one question while it is asked.
struct Prompter<'a> {
    screen: &'a Screen,
    answers: &'a mut InputLines,
    /// The metadata for the context of later steps, whatever is decided.
    metadata: JsonMap,
}

impl Prompter<'_> {
    /// Shows a prompt, and returns the next line without surrounding spaces.
    async fn line(&mut self, prompt: &str) -> Result<String, Declined> {
        Ok(self.whole_line(prompt).await?.trim().to_owned())
    }

    async fn whole_line(&mut self, prompt: &str) -> Result<String, Declined> {
        self.screen.ask(prompt);
        let line = self.answers.next().await;
        let echo = line.as_ref().ok().filter(|_| self.is_scripted());
        self.screen.answered(echo.map_or("", |line| line.as_str()), !self.is_scripted() && line.is_ok());
        line
    }

    /// Records the pair of an answer `metadata KEY=VALUE`.
    fn metadata(&mut self, pair: &str) -> Result<(), Declined> {
        match key_value(pair) {
            Some((key, value)) => {
                self.screen.say(&format!(" {} is added to your decision", text::line(&key)));
                self.metadata.insert(key, value);
                Ok(())
            }
            None => self.wrong("expected: metadata KEY=VALUE".to_owned()),
        }
    }

    /// Whether answers come from a file or a pipe, so that invalid ones are not asked again.
    fn is_scripted(&self) -> bool {
        !self.answers.is_interactive()
    }

    /// Handles an invalid answer: shows the reason to a person, who is asked again; for a script, returns the error.
    fn wrong(&self, why: String) -> Result<(), Declined> {
        if self.is_scripted() {
            return Err(why.into());
        }
        self.screen.say(&format!(" {why}"));
        Ok(())
    }

    /// Reads a new value to replace `old`, from `file`, or as lines until a lone `.` if `file` is empty. `None` if the
    /// value is invalid and a person can try again.
    async fn value(&mut self, old: &Value, is_text: bool, file: &str) -> Result<Option<Value>, Declined> {
        let new = if file.is_empty() {
            self.screen.say(" enter the new value; end it with a line that is only a dot:");
            let mut lines = Vec::new();
            loop {
                let line = self.whole_line(" | ").await?;
                if line == "." {
                    break lines.join("\n");
                }
                lines.push(line);
                if lines.iter().map(String::len).sum::<usize>() > input::MAX_LINE {
                    return Err("the new value is too long".into());
                }
            }
        } else {
            match std::fs::read_to_string(file) {
                Ok(new) => new.strip_suffix('\n').map(str::to_owned).unwrap_or(new),
                Err(error) => {
                    self.wrong(format!("{} cannot be read: {error}", text::line(file)))?;
                    return Ok(None);
                }
            }
        };
        if is_text && (old.is_string() || old.is_null()) {
            return Ok(Some(Value::String(new)));
        }
        match serde_json::from_str(&new) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                self.wrong(format!("the new value must be JSON: {error}"))?;
                Ok(None)
            }
        }
    }
}

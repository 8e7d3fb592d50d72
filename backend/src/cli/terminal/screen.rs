//! The screen for everything but the result: questions, and what happens while one is open.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;

/// The screen. Cheap to clone.
#[derive(Clone)]
pub struct Screen(Arc<Mutex<ScreenState>>);

struct ScreenState {
    out: Box<dyn Write + Send>,
    /// The open prompt, with the cursor after it.
    open: Option<String>,
}

impl Screen {
    /// Creates a screen on standard error: standard output is for the result.
    pub fn stderr() -> Self {
        Self::on(Box::new(std::io::stderr()))
    }

    /// Creates a screen on any output.
    pub fn on(out: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(ScreenState { out, open: None })))
    }

    /// Shows lines. An open question is shown again after them.
    pub fn say(&self, lines: &str) {
        let mut shown = self.0.lock();
        match shown.open.clone() {
            Some(prompt) => shown.write(&format!("\n{lines}\n{prompt}")),
            None => shown.write(&format!("{lines}\n")),
        }
    }

    /// Opens a question.
    pub fn ask(&self, prompt: &str) {
        let mut shown = self.0.lock();
        if shown.open.is_some() {
            shown.write("\n");
        }
        shown.write(prompt);
        shown.open = Some(prompt.to_owned());
    }

    /// Closes the question. At a terminal, the person has ended the line; otherwise, the answer is shown, so that the
    /// transcript is complete.
    pub fn answered(&self, echo: &str, ended: bool) {
        let mut shown = self.0.lock();
        shown.open = None;
        if !ended {
            shown.write(&format!("{}\n", super::text::line(echo)));
        }
    }

    /// Closes a question that no longer needs an answer.
    pub fn close(&self) {
        let mut shown = self.0.lock();
        if shown.open.take().is_some() {
            shown.write("\n");
        }
    }
}

impl ScreenState {
    fn write(&mut self, text: &str) {
        // A reader that has gone away is not an error.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

//! The screen for questions and progress, but not for the result. It keeps an open question below lines that are
//! printed meanwhile.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;

/// A handle to the screen. Cheap to clone.
#[derive(Clone)]
pub struct Screen(Arc<Mutex<ScreenState>>);

struct ScreenState {
    out: Box<dyn Write + Send>,
    /// The prompt of the open question, behind which the cursor stands; `None` if no question is open.
    open: Option<String>,
}

impl Screen {
    /// Creates a screen on standard error, because standard output is for the result.
    pub fn stderr() -> Self {
        Self::on(Box::new(std::io::stderr()))
    }

    /// Creates a screen on any output.
    pub fn on(out: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(ScreenState { out, open: None })))
    }

    /// Shows lines. The prompt of an open question is shown again below them.
    pub fn say(&self, lines: &str) {
        let mut shown = self.0.lock();
        match shown.open.clone() {
            Some(prompt) => shown.write(&format!("\n{lines}\n{prompt}")),
            None => shown.write(&format!("{lines}\n")),
        }
    }

    /// Shows a prompt and opens the question.
    pub fn ask(&self, prompt: &str) {
        let mut shown = self.0.lock();
        if shown.open.is_some() {
            shown.write("\n");
        }
        shown.write(prompt);
        shown.open = Some(prompt.to_owned());
    }

    /// Closes the question after an answer. If `ended`, the person has typed the line break at the terminal; otherwise
    /// the answer `echo` is shown, so that the transcript is complete.
    pub fn answered(&self, echo: &str, ended: bool) {
        let mut shown = self.0.lock();
        shown.open = None;
        if !ended {
            shown.write(&format!("{}\n", super::text::line(echo)));
        }
    }

    /// Closes the open question, if there is one, because it no longer needs an answer.
    pub fn close(&self) {
        let mut shown = self.0.lock();
        if shown.open.take().is_some() {
            shown.write("\n");
        }
    }
}

impl ScreenState {
    fn write(&mut self, text: &str) {
        // A closed pipe is not an error.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

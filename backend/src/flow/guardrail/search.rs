//! The search of guardrails in texts, with a limit of work for all guardrails together.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use super::{Check, code_safety, pii, secrets};
use crate::flow::pattern::{Scratch, Work, WorkExhausted};
use crate::flow::work_limit;
use crate::mask::Mask;

/// The work that all patterns may take for one matter, in steps: enough to read 128 MiB once.
pub(super) const SEARCHING: u64 = 16 * 1024 * 1024;

/// The search of one guardrail in several texts.
pub(super) struct Search<'r> {
    check: &'r Check,
    mask: &'r Mask,
    scratch: RefCell<Option<Scratch>>,
    work: &'r RefCell<Work>,
    is_spent: Cell<bool>,
    /// Whether texts were left out since nothing is left of the work of the transition.
    has_left_out: Cell<bool>,
}

impl<'r> Search<'r> {
    /// Creates a search that takes from this work.
    pub fn new(check: &'r Check, mask: &'r Mask, work: &'r RefCell<Work>) -> Self {
        Self {
            check,
            mask,
            scratch: RefCell::default(),
            work,
            is_spent: Cell::default(),
            has_left_out: Cell::default(),
        }
    }

    /// Returns a reason if the search ran out of work, so that findings may be missing.
    pub fn is_cut_short(&self) -> Option<String> {
        if self.has_left_out.get() {
            return Some(work_limit::SPENT.to_owned());
        }
        self.is_spent.get().then(|| {
            format!(
                "searching for its pattern takes more than {SEARCHING} steps: shorten the text, or the way that the \
                 pattern looks ahead in it"
            )
        })
    }

    /// Returns what a text contains, in words.
    pub fn found(&self, text: &str) -> Option<String> {
        if self.leaves_out() {
            return None;
        }
        let first = |found: Vec<(Range<usize>, &str)>| found.first().map(|(_, what)| format!("it holds {what}"));
        match self.check {
            Check::Code => code_safety::find(text).map(str::to_owned),
            Check::Personal => first(pii::find(text)),
            Check::Secrets => first(secrets::find(text, self.mask)),
            Check::Pattern(pattern) => {
                let is_match = self.within_work(|scratch, work| {
                    pattern.is_match(scratch.get_or_insert_with(|| pattern.scratch()), text, work)
                });
                is_match.then(|| "it matches the pattern".to_owned())
            }
            Check::When(_) | Check::Program(_) => None,
        }
    }

    /// Returns the ranges of what is found in a text. Findings of `code-safety` have no ranges.
    pub fn places(&self, text: &str) -> Vec<Range<usize>> {
        if self.leaves_out() {
            return Vec::new();
        }
        let places = |found: Vec<(Range<usize>, &str)>| found.into_iter().map(|(range, _)| range).collect();
        match self.check {
            Check::Personal => places(pii::find(text)),
            Check::Secrets => places(secrets::find(text, self.mask)),
            Check::Pattern(pattern) => self.within_work(|scratch, work| {
                pattern.find_all(scratch.get_or_insert_with(|| pattern.scratch()), text, work)
            }),
            Check::Code | Check::When(_) | Check::Program(_) => Vec::new(),
        }
    }

    /// Whether nothing is left of the work of the transition, so that no text is searched any more. The built-in checks
    /// count what they read.
    fn leaves_out(&self) -> bool {
        let is_spent = work_limit::is_spent();
        self.has_left_out.set(self.has_left_out.get() || is_spent);
        is_spent
    }

    fn within_work<T: Default>(
        &self,
        search: impl FnOnce(&mut Option<Scratch>, &mut Work) -> Result<T, WorkExhausted>,
    ) -> T {
        if self.is_spent.get() {
            return T::default();
        }
        let found = search(&mut self.scratch.borrow_mut(), &mut self.work.borrow_mut());
        found.unwrap_or_else(|WorkExhausted| {
            self.is_spent.set(true);
            T::default()
        })
    }
}

//! Programs that are asked before people: webhooks, and functions of the program that runs the flow. A worker asks
//! them; their answers are checked like those of people, and have no actor. A webhook may say that it answers later:
//! then the review is pending, and the first answer decides. If a webhook cannot be reached or gives no valid answer,
//! the review is rejected, unless the flow says that it passes on; a function passes on.

use shared::decision::{ProgramAnswer, Via};
use shared::definition::{Handler, OnHandlerError};
use shared::error::{FlowError, Mistake};
use shared::id::{ReviewId, TaskId};
use shared::review::{Advice, AskedHandler, Changes, Review};
use shared::time::{Span, Timestamp};

use super::outcome::{AfterHandler, HandlerOutcome};
use crate::clock::Moment;
use crate::engine::ask::content::handlers;
use crate::engine::builder::{Builder, failure};
use crate::engine::input::{HandlerAnswer, TaskFailure};
use crate::engine::invoke::listed;
use crate::engine::next::QuestionAnswer;
use crate::engine::question::{Approval, Asked, Question, Timer};
use crate::engine::state::RunState;
use crate::engine::transition::{Refusal, Snapshot, TaskKind};
use crate::flow::{Compiled, host_of};

/// The time limit of a function, the same as the default of a judge. Whatever takes longer is for a reviewer.
const FUNCTION_TIMEOUT: Span = Span::secs(300);

impl Builder<'_> {
    pub(in crate::engine::ask) fn ask_program(&mut self, asking: Question) -> Result<(), FlowError> {
        self.review_to_show(&asking)?;
        let Some(step) = self.state.step_of(&asking.subject).cloned() else { return Ok(()) };
        let handler = handlers(self.flow, &self.state, &asking.subject).get(asking.handler);
        let until = self.now.after(timeout(handler).0);
        let review = asking.review;
        let task = self.add_task(&step, TaskKind::Ask { review }, self.now, true);
        let deadline = self.add_task(&step, TaskKind::Deadline { review }, until, true);
        let (by, via) = name(handler);
        self.show_asked_handler(&asking, AskedHandler::program(by, via, until));
        let asked = Asked::Program { since: self.now, until, task, tries: 1, answers_later: false };
        let timer = Some(Timer { task: deadline, warn_at: None });
        self.state.questions.push(Question { asked, timer, ..asking });
        Ok(())
    }

    /// Reads the response of a program to the request that asked it.
    pub(in crate::engine::ask) fn read_program(
        &mut self,
        task: TaskId,
        digest: &str,
        answer: HandlerAnswer,
    ) -> Result<AfterHandler, Refusal> {
        let review = self.handler_asked_by(task).ok_or(Refusal::TaskOver)?;
        let (question, _) = self.take_question(review).ok_or(Refusal::TaskOver)?;
        let outcome = match answer {
            HandlerAnswer::Later => {
                self.answers_later(question);
                return Ok(None);
            }
            HandlerAnswer::Passes { reason } => HandlerOutcome::Passes(self.said(&question, &reason)),
            HandlerAnswer::Decides { answer } => self.weigh_program(&question, digest, *answer),
        };
        Ok(Some((question, outcome)))
    }

    /// Checks the decision of a program on the content with this digest.
    pub(in crate::engine::ask) fn weigh_program(
        &self,
        question: &Question,
        digest: &str,
        answer: ProgramAnswer,
    ) -> HandlerOutcome {
        let review = match self.review_to_show(question) {
            Ok(review) => review,
            Err(error) => return self.unable_program(question, &error.message),
        };
        if review.digest != digest || answer.digest.as_ref().is_some_and(|answered| *answered != review.digest) {
            return HandlerOutcome::Passes(self.said(question, "The content changed while it was asked."));
        }
        let (_, via) = name(self.program_at(question));
        match self.fit_program(&review, &question.subject, &answer, via) {
            Ok(decided) => HandlerOutcome::Decides(self.decided(question, answer), Box::new(decided)),
            Err(Refusal::Unasked { inquiries, .. }) => {
                HandlerOutcome::Asks(Approval::Program { said: Box::new(answer), digest: digest.to_owned() }, inquiries)
            }
            Err(Refusal::Invalid(mistakes)) => {
                self.unable_program(question, &format!("Its answer is not valid: {}.", listed(&mistakes)))
            }
            Err(refusal) => self.unable_program(question, &format!("Its answer is not valid: {refusal}.")),
        }
    }

    /// Opens the review, so that people may decide until the program answers.
    fn answers_later(&mut self, mut question: Question) {
        let (by, via) = name(self.program_at(&question));
        let Asked::Program { since, until, task, tries, .. } = question.asked else { return };
        if !question.pending
            && let Err(error) = self.open_pending(&mut question, AskedHandler::program(by, via, until))
        {
            let Question { subject, .. } = self.end_asking(question);
            return self.answer(subject, QuestionAnswer::Failed(error));
        }
        self.end_task(task);
        question.asked = Asked::Program { since, until, task, tries, answers_later: true };
        self.state.questions.push(question);
    }

    /// Reads the callback of a program: it names the revision and digest that it saw, and decides as a person does.
    pub(in crate::engine::ask) fn read_callback(
        &mut self,
        id: ReviewId,
        task: TaskId,
        answer: Box<ProgramAnswer>,
    ) -> Result<AfterHandler, Refusal> {
        let is_asked = |question: &&Question| matches!(question.asked, Asked::Program { task: its, .. } if its == task);
        let Some(question) = self.state.question(id).filter(is_asked) else {
            return Err(match self.reviews.get(&id) {
                Some(review) if review.is_pending() => Refusal::NoLongerAsked(Box::new(review.clone())),
                Some(review) => Refusal::ReviewResolved(Box::new(review.clone())),
                None if self.state.outcome.is_some() => Refusal::RunOver,
                None => Refusal::NotFound,
            });
        };
        let review = self.review_to_show(question).map_err(|_| Refusal::NotFound)?;
        let required = |place: &str| Mistake::new(place, "required", "name the `revision` and `digest` that you saw");
        let (Some(revision), Some(digest)) = (answer.revision, &answer.digest) else {
            let missing = [("/revision", answer.revision.is_none()), ("/digest", answer.digest.is_none())];
            let missing = missing.into_iter().filter(|(_, is_missing)| *is_missing);
            return Err(Refusal::Invalid(missing.map(|(place, _)| required(place)).collect()));
        };
        if revision != review.revision || *digest != review.digest {
            return Err(Refusal::RevisionChanged(Box::new(review)));
        }
        let (_, via) = name(self.program_at(question));
        let outcome = match self.fit_program(&review, &question.subject, &answer, via) {
            Ok(decided) => HandlerOutcome::Decides(self.decided(question, *answer), Box::new(decided)),
            Err(refusal) => return Err(refusal.in_time(self.until(question))),
        };
        let (question, _) = self.take_question(id).ok_or(Refusal::NotFound)?;
        Ok(Some((question, outcome)))
    }

    /// Retries a failed request to a program until its deadline, and then goes on without an answer.
    pub(in crate::engine::ask) fn retry_program(&mut self, review: ReviewId, why: &TaskFailure) -> AfterHandler {
        let (mut question, mut step) = self.take_question(review)?;
        let Asked::Program { task, until, tries, .. } = &mut question.asked else { return None };
        let Some(due_at) = self.next_try_until(*until, *tries, why) else {
            let outcome = self.unable_program(&question, &why.message);
            return Some((question, outcome));
        };
        *tries += 1;
        let error = failure(why.code, &step.node, &why.message);
        self.retry(*task, &mut step, TaskKind::Ask { review }, true, due_at, &error);
        self.put_back(question, step);
        None
    }

    /// Goes on after the deadline of a program. If it had said that it answers later, it passes on.
    pub(in crate::engine::ask) fn program_timed_out(&self, question: &Question, answers_later: bool) -> HandlerOutcome {
        let why = "It did not answer in time.";
        if answers_later {
            HandlerOutcome::Passes(self.said(question, why))
        } else {
            self.unable_program(question, why)
        }
    }

    /// Goes on from a program that cannot decide, for this reason: a webhook rejects if its `on_error` says so,
    /// otherwise it passes on.
    fn unable_program(&self, question: &Question, why: &str) -> HandlerOutcome {
        let advice = self.said(question, why);
        let rejects = match self.program_at(question) {
            Some(Handler::Webhook(webhook)) => webhook.on_error.unwrap_or_default() == OnHandlerError::Reject,
            _ => false,
        };
        if !rejects {
            return HandlerOutcome::Passes(advice);
        }
        let comment = Some(advice.reason.clone());
        let decided = self.review_to_show(question).ok().and_then(|review| {
            let nothing = Changes::default();
            self.fit_yes_or_no(&review, &question.subject, false, comment, &nothing, advice.via).ok()
        });
        match decided {
            Some(decided) => HandlerOutcome::Decides(advice, Box::new(decided)),
            None => HandlerOutcome::Passes(advice),
        }
    }

    fn decided(&self, question: &Question, answer: ProgramAnswer) -> Advice {
        let reason = answer.words().unwrap_or_default().to_owned();
        Advice { answer: Some(Box::new(answer)), ..self.said(question, &reason) }
    }

    fn said(&self, question: &Question, reason: &str) -> Advice {
        let (by, via) = name(self.program_at(question));
        self.advice(by, via, reason)
    }

    fn program_at(&self, question: &Question) -> Option<&Handler> {
        handlers(self.flow, &self.state, &question.subject).get(question.handler)
    }
}

/// Returns the handler that a question asks; `None` if it is no program.
pub(in crate::engine) fn program_of(flow: &Compiled, state: &RunState, question: &Question) -> Option<Handler> {
    let handler = handlers(flow, state, &question.subject).get(question.handler)?;
    matches!(handler, Handler::Webhook(_) | Handler::Function(_)).then(|| handler.clone())
}

/// Returns the review of a question, as people would have seen it when the handler was asked.
pub(in crate::engine) fn composed(
    flow: &Compiled,
    state: &RunState,
    question: &Question,
    since: Timestamp,
) -> Result<Review, FlowError> {
    let snapshot = Snapshot::new(state.clone(), []);
    let builder = Builder::resume(flow, snapshot, Moment { now: since, seed: [0; 16] });
    let review = builder.composed(question)?;
    Ok(Review { expires_at: None, on_timeout: None, ..review })
}

fn timeout(handler: Option<&Handler>) -> Span {
    match handler {
        Some(Handler::Webhook(webhook)) => webhook.timeout(),
        _ => FUNCTION_TIMEOUT,
    }
}

/// Returns the name of a program in its advice, and the kind of handler.
fn name(handler: Option<&Handler>) -> (String, Via) {
    match handler {
        Some(Handler::Webhook(webhook)) => {
            (host_of(&webhook.url).unwrap_or_else(|| "webhook".to_owned()), Via::Webhook)
        }
        Some(Handler::Function(name)) => (name.clone(), Via::Auto),
        _ => ("a program".to_owned(), Via::Auto),
    }
}

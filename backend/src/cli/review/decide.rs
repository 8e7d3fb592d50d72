//! `countersign review decide`: shows a review, and decides exactly the revision that it showed.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write as _};

use clap::Args;
use serde_json::Value;
use shared::JsonMap;
use shared::api::DecisionEffect;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::id::ReviewId;
use shared::review::Review;

use super::super::exit::{Exit, Quit};
use super::super::print;
use super::super::remote::ServerArgs;
use super::super::table::print_json;
use super::super::terminal::{self, InputLines, Screen, Terminal};
use super::{render, state};
use crate::embed::Reviewer as _;

/// The arguments of `countersign review decide`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("verdict").multiple(false).args(["option", "text", "approve", "reject", "actions"]))]
pub struct DecideArgs {
    /// Id of the review
    id: ReviewId,
    /// Id of the option to choose
    #[arg(long, value_name = "ID")]
    option: Option<String>,
    /// Values of the option's fields, as one JSON object or @FILE; without it, a terminal asks for them
    #[arg(long, value_name = "JSON", requires = "option")]
    fields: Option<String>,
    /// Free text, or @FILE: a correction if the review has options, otherwise the answer
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Approve every call as it is
    #[arg(long)]
    approve: bool,
    /// Reject every call, for this reason
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    reject: Option<String>,
    /// Answer to one call; repeat it for each: ACTION=approve, ACTION=reject[:why], ACTION=respond:text,
    /// ACTION=edit:{all arguments as JSON} or ACTION=choose:ALTERNATIVE
    #[arg(long = "action", value_name = "ACTION=ANSWER")]
    actions: Vec<String>,
    /// Instructions for the agent, in addition to the answers to its calls
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// New value for an editable key, with an option that accepts or an answer; may be repeated. VALUE, or @FILE, is
    /// text if the value is text, otherwise JSON
    #[arg(long = "edit", value_name = "KEY=VALUE")]
    edits: Vec<String>,
    /// Comment for the audit log, and for the step that a correction runs again
    #[arg(long)]
    comment: Option<String>,
    /// Value for the context of all later steps; may be repeated. JSON, or text if it is not valid JSON
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Revision that you saw; the decision is refused if the review has another one now
    #[arg(long)]
    revision: Option<u32>,
    /// Digest that you saw; the decision is refused if the content has changed since
    #[arg(long)]
    digest: Option<String>,
    /// Key that makes the command safe to repeat: a repetition returns the first result
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(args: DecideArgs) -> anyhow::Result<()> {
    let api = args.server.client()?;
    let review = api.review(args.id).await.map_err(Quit::from)?;
    pinned(&args, &review)?;
    let request = match verdict(&args, &review).await? {
        Some(verdict) => {
            // Standard output is for the result. A closed pipe is not an error.
            let _ = write!(std::io::stderr(), "{}", render(&review));
            DecisionRequest {
                revision: review.revision,
                digest: review.digest.clone(),
                verdict,
                edits: edits(&args.edits, &review)?,
                comment: args.comment,
                metadata: metadata(&args.metadata)?,
            }
        }
        None => ask_at_terminal(&args, &review).await?,
    };
    let decided = api.decide(args.id, &request, args.idempotency_key.as_deref()).await.map_err(Quit::from)?;
    if args.server.json {
        print_json(&decided);
    } else if decided.outcome == DecisionEffect::Resolved {
        print(&state(&decided.review));
    } else if decided.review.paused.is_some() {
        print("paused; the review stays pending, without a time limit");
    } else {
        print("recorded; the review is waiting for other reviewers");
    }
    Ok(())
}

/// Fails if the review is pending and its content is not what `--revision` and `--digest` name.
fn pinned(args: &DecideArgs, review: &Review) -> Result<(), Quit> {
    let same = args.revision.is_none_or(|seen| seen == review.revision)
        && args.digest.as_ref().is_none_or(|seen| *seen == review.digest);
    if same || !review.is_pending() {
        return Ok(());
    }
    let message = format!(
        "the content has changed since you saw it: this is revision {}. Nothing was decided.\n{}",
        review.revision,
        render(review).trim_end()
    );
    Err(Quit::new(Exit::Conflict, message))
}

/// Asks in the terminal, with the same menu as `flow run`.
async fn ask_at_terminal(args: &DecideArgs, review: &Review) -> Result<DecisionRequest, Quit> {
    if !args.edits.is_empty() || args.comment.is_some() || args.instructions.is_some() {
        let message = "--edit, --comment and --instructions need --option, --text, --approve, --reject or --action";
        return Err(Quit::new(Exit::Invalid, message));
    }
    if !review.is_pending() {
        return Err(Quit::new(Exit::Conflict, state(review)));
    }
    if !std::io::stdin().is_terminal() {
        let message = "standard input is not a terminal; give the decision with --option, --text, --approve, --reject \
                       or --action";
        return Err(Quit::new(Exit::Unanswered, message));
    }
    let terminal = Terminal::on(Screen::stderr(), InputLines::stdin());
    let choice = terminal.review(review).await.map_err(|why| Quit::new(Exit::Unanswered, why.to_string()))?;
    let mut request = choice.on(review).map_err(|mistake| Quit::new(Exit::Invalid, mistake.to_string()))?;
    request.metadata.extend(metadata(&args.metadata)?);
    Ok(request)
}

async fn verdict(args: &DecideArgs, review: &Review) -> Result<Option<Verdict>, Quit> {
    if args.instructions.is_some() && (args.option.is_some() || args.text.is_some()) {
        let message =
            "--instructions needs --approve, --reject or --action: it is for the agent whose calls are decided";
        return Err(Quit::new(Exit::Invalid, message));
    }
    let all = |decision: &ActionDecision| Verdict::Actions {
        decisions: review.actions.iter().map(|action| (action.id.clone(), decision.clone())).collect(),
        instructions: args.instructions.clone(),
    };
    Ok(Some(if let Some(option) = &args.option {
        Verdict::Choose { option: option.clone(), fields: fields(args, review, option).await? }
    } else if let Some(said) = &args.text {
        Verdict::Text { text: given(said)? }
    } else if args.approve && review.is_one_by_one() {
        let message = format!(
            "{} critical calls must be answered one by one: use --action ID=approve for each",
            review.actions.len()
        );
        return Err(Quit::new(Exit::Invalid, message));
    } else if args.approve {
        all(&ActionDecision::APPROVE)
    } else if let Some(why) = &args.reject {
        all(&ActionDecision::Reject { message: Some(why.clone()).filter(|why| !why.is_empty()) })
    } else if args.actions.is_empty() {
        return Ok(None);
    } else {
        let decisions = args.actions.iter().map(|said| action(said)).collect::<Result<BTreeMap<_, _>, Quit>>()?;
        Verdict::Actions { decisions, instructions: args.instructions.clone() }
    }))
}

/// Returns the values of an option's fields, from `--fields`, or by asking in the terminal if there is one.
async fn fields(args: &DecideArgs, review: &Review, option: &str) -> Result<JsonMap, Quit> {
    if let Some(said) = &args.fields {
        return serde_json::from_str(&given(said)?)
            .map_err(|error| Quit::new(Exit::Invalid, format!("--fields is not a JSON object: {error}")));
    }
    let schema = review.options.iter().find(|offered| offered.id == option).and_then(|offered| offered.fields.as_ref());
    match schema {
        Some(schema) if std::io::stdin().is_terminal() => {
            let terminal = Terminal::on(Screen::stderr(), InputLines::stdin());
            terminal.fields(schema).await.map_err(|why| Quit::new(Exit::Unanswered, why.to_string()))
        }
        _ => Ok(JsonMap::new()),
    }
}

/// Parses `--action ACTION=ANSWER` to the action's id and the decision on it.
fn action(said: &str) -> Result<(String, ActionDecision), Quit> {
    let wrong = |why: &str| Quit::new(Exit::Invalid, format!("--action {said}: {why}"));
    let (id, answer) = said.split_once('=').ok_or_else(|| wrong("expected ACTION=ANSWER"))?;
    let (word, rest) = answer.split_once(':').map_or((answer, None), |(word, rest)| (word, Some(rest)));
    let decision = match (word, rest) {
        ("approve", None) => ActionDecision::APPROVE,
        ("reject", message) => ActionDecision::Reject { message: message.map(str::to_owned) },
        ("choose", Some(alternative)) => ActionDecision::Choose { alternative: alternative.to_owned(), message: None },
        ("respond", Some(message)) => ActionDecision::Respond { message: given(message)? },
        ("edit", Some(arguments)) => {
            let arguments = serde_json::from_str(&given(arguments)?)
                .map_err(|error| wrong(&format!("the arguments are not a JSON object: {error}")))?;
            ActionDecision::Edit { arguments }
        }
        _ => return Err(wrong("expected approve, reject, reject:why, respond:text, edit:{…} or choose:ALTERNATIVE")),
    };
    Ok((id.to_owned(), decision))
}

fn edits(said: &[String], review: &Review) -> Result<JsonMap, Quit> {
    let mut edits = JsonMap::new();
    for said in said {
        let wrong = |why: String| Quit::new(Exit::Invalid, format!("--edit {said}: {why}"));
        let (key, value) = said.split_once('=').ok_or_else(|| wrong("expected KEY=VALUE".to_owned()))?;
        let value = given(value)?;
        let item = review.items.iter().find(|item| item.key == key);
        let value = if item.is_none_or(terminal::takes_text) {
            Value::String(value)
        } else {
            serde_json::from_str(&value).map_err(|error| wrong(format!("the value is not valid JSON: {error}")))?
        };
        edits.insert(key.to_owned(), value);
    }
    Ok(edits)
}

fn metadata(said: &[String]) -> Result<JsonMap, Quit> {
    let wrong = |said: &str| Quit::new(Exit::Invalid, format!("--metadata {said}: expected KEY=VALUE"));
    let pairs = said.iter().map(|said| terminal::key_value(said).ok_or_else(|| wrong(said)));
    pairs.collect()
}

/// Returns the value of a flag: the text itself, or the content of the file for `@FILE`, without the last line break.
fn given(said: &str) -> Result<String, Quit> {
    let Some(file) = said.strip_prefix('@') else { return Ok(said.to_owned()) };
    let text = std::fs::read_to_string(file).map_err(|error| Quit::unread(file, &error))?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

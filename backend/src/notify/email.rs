//! Mails over SMTP: plain text with a link. Nothing in a mail decides; the link opens the console.

use std::time::{Duration, SystemTime};

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use shared::id::DeliveryId;
use shared::log::AnnouncedSubject;
use shared::notification::Occasion;
use shared::review::Review;
use shared::run::RunSummary;
use shared::time::Timestamp;

use super::comments::NewComments;
use super::failure::DeliveryFailure;
use super::message::Quotation;
use super::settings::{Encryption, NotificationSecrets, SmtpSettings};
use super::{Error, TIMEOUT, message, run_message};

/// The longest excerpt of a prompt or a comment in a mail, in characters.
const MAX_EXCERPT: usize = 1500;
/// The largest number of reviews that one mail lists.
const MAX_LISTED: usize = 50;
/// The time limit for a mail, from the connection to the reply after its end. A mail server may take minutes for that
/// reply, because it scans the mail first, and delivers it even if nobody waits any more; a client that gives up early
/// would send it again (RFC 5321, 4.5.3.2.6).
const SEND_TIMEOUT: Duration = Duration::from_mins(10);
const PASSWORD: &str = "COUNTERSIGN_SMTP_PASSWORD";

pub(super) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// A review or a run as a mail mentions it.
pub(super) struct MailItem<'a> {
    pub occasion: Occasion,
    pub about: &'a AnnouncedSubject,
    /// The comments of which the mail tells, if any.
    pub comments: Option<NewComments<'a>>,
    pub link: String,
}

impl MailItem<'_> {
    /// What happened or is to be done, and to what, in one line.
    pub fn headline(&self) -> String {
        match self.about {
            AnnouncedSubject::Review(review) => {
                format!("{}: {}", message::verb(Some(self.occasion), review), message::title(review))
            }
            AnnouncedSubject::Run(run) => run_message::headline(self.occasion, run),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mail {
    pub subject: String,
    pub text: String,
}

impl Mailer {
    /// Creates a mailer from the settings. A user name without a password or without encryption is an error.
    pub fn new(settings: &SmtpSettings, secrets: &NotificationSecrets) -> Result<Self, Error> {
        let wrong = |why: String| Error::Settings(format!("[notifications.smtp]: {why}"));
        let from = settings.from.parse().map_err(|error| wrong(format!("`from` is not an address: {error}")))?;
        let parameters = TlsParameters::new(settings.host.clone()).map_err(|error| wrong(format!("`host`: {error}")));
        let (port, tls) = match settings.encryption {
            Encryption::Tls => (465, Tls::Wrapper(parameters?)),
            Encryption::Starttls => (587, Tls::Required(parameters?)),
            Encryption::None => (25, Tls::None),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&settings.host)
            .port(settings.port.unwrap_or(port))
            .tls(tls)
            // Only the connection is limited by this.
            .timeout(Some(TIMEOUT));
        if let Some(username) = &settings.username {
            if settings.encryption == Encryption::None {
                return Err(wrong("a password is never sent without encryption: leave `username` out".to_owned()));
            }
            let password = secrets.get(PASSWORD).ok_or_else(|| wrong(format!("set {PASSWORD} for `username`")))?;
            builder = builder.credentials(Credentials::new(username.clone(), password.to_owned()));
        }
        Ok(Self { transport: builder.build(), from })
    }

    /// Sends a mail. The id becomes its Message-ID, and is the same for every attempt.
    pub async fn send(&self, to: &str, id: DeliveryId, now: Timestamp, mail: Mail) -> Result<(), DeliveryFailure> {
        let to: Mailbox =
            to.parse().map_err(|error| DeliveryFailure::lasting(format!("the address is not valid: {error}")))?;
        let micros = u64::try_from(now.0).unwrap_or(0);
        let message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .date(SystemTime::UNIX_EPOCH + Duration::from_micros(micros))
            .message_id(Some(format!("<{id}@countersign>")))
            .subject(mail.subject)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text)
            .map_err(|error| DeliveryFailure::lasting(format!("the mail cannot be composed: {error}")))?;
        match tokio::time::timeout(SEND_TIMEOUT, self.transport.send(message)).await {
            Err(_) => Err(DeliveryFailure::passing("the mail server did not answer in time")),
            Ok(Err(error)) if refuses_recipient(&error) => {
                Err(DeliveryFailure::lasting(format!("the mail server refused the address: {error}")))
            }
            Ok(Err(error)) => Err(DeliveryFailure::passing(format!("the mail was not accepted: {error}"))),
            Ok(Ok(_)) => Ok(()),
        }
    }
}

/// Whether the server refuses the recipient. Its other permanent errors, such as those about the login, concern every
/// mail, and may be mended before the next attempt.
fn refuses_recipient(error: &smtp::Error) -> bool {
    error.status().is_some_and(|code| matches!(code.to_string().as_str(), "550" | "551" | "553"))
}

/// Whether the text is an address to which mail can be sent.
pub fn is_address(text: &str) -> bool {
    text.parse::<Mailbox>().is_ok()
}

/// Composes a mail about one review or run, or a list of several.
pub(super) fn mail(items: &[MailItem<'_>], url: &str, now: Timestamp) -> Mail {
    let footer = format!("\n--\nYou get this message because of your notification settings: {url}\n");
    if let [item] = items {
        let subject = item.headline();
        let text = match item.about {
            AnnouncedSubject::Review(review) => of_review(item, review, now),
            AnnouncedSubject::Run(run) => of_run(item, run),
        };
        return Mail { text: format!("{subject}\n{text}{footer}"), subject };
    }
    let subject = message::several(items.iter().map(|item| item.about));
    let mut text = format!("{subject}:\n");
    for item in items.iter().take(MAX_LISTED) {
        text.extend([format!("\n{}\n{}\n", item.headline(), item.link)]);
    }
    if items.len() > MAX_LISTED {
        text.extend([format!("\nand {} more: {url}/inbox\n", items.len() - MAX_LISTED)]);
    }
    Mail { subject, text: text + &footer }
}

/// The text about a review, below the headline. The link comes first: what follows is not ours.
fn of_review(item: &MailItem<'_>, review: &Review, now: Timestamp) -> String {
    let mut text = format!("{}\n", message::origin(review));
    if item.occasion == Occasion::Resolved {
        text.extend([format!("\n{}\n\n{}\n", message::outcome(review), item.link)]);
        return text;
    }
    text.extend(message::time_left(review, now).map(|left| format!("{left}\n")));
    let (what, foreign) = match &item.comments {
        Some(comments) => (format!("Read and answer: {}\n\n{}", item.link, comments.line()), &comments.newest.text),
        None => (format!("Look at it, and decide: {}\n", item.link), &review.prompt),
    };
    text.extend([format!("\n{what}\n")]);
    text.extend(quotation(&message::quoted(foreign, MAX_EXCERPT)));
    text
}

fn of_run(item: &MailItem<'_>, run: &RunSummary) -> String {
    let mut text = format!("{}\n\nLook at it: {}\n", run_message::origin(run), item.link);
    if let Some((place, error)) = run_message::error(run) {
        text.extend([format!("\n{place}\n")]);
        text.extend(quotation(&error));
    }
    text
}

fn quotation(quotation: &Quotation) -> [String; 2] {
    let left_out = quotation.left_out.as_ref().map(|left_out| format!("\n{left_out}\n")).unwrap_or_default();
    [format!("{}\n", quotation.text), left_out]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LINK: &str = "https://desk.test/reviews/1";

    /// Returns the text of a mail that asks about a prompt.
    fn asked(prompt: &str) -> String {
        let review: Review = serde_json::from_value(json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
            "kind": "approval", "status": "pending", "title": "Numbers", "flow_title": "Report\n--\nYou", "prompt": prompt,
            "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
        }))
        .unwrap();
        let (now, about) = (review.created_at, AnnouncedSubject::Review(Box::new(review)));
        let item = MailItem { occasion: Occasion::Requested, about: &about, comments: None, link: LINK.to_owned() };
        mail(&[item], "https://desk.test", now).text
    }

    #[test]
    fn a_prompt_cannot_pass_for_the_rest_of_the_mail() {
        let copied = "Fine.\n\nLook at it, and decide: https://evil.example\n\n--\nYou get this message";
        let text = asked(&format!("{copied}{}.", "\n".repeat(1300)));
        let own: Vec<&str> = text.lines().filter(|line| !line.starts_with('>')).collect();
        assert_eq!(
            own,
            [
                "To review: Numbers",
                "Report -- You · asked by mia · severity medium",
                "",
                &format!("Look at it, and decide: {LINK}"),
                "",
                "",
                "--",
                "You get this message because of your notification settings: https://desk.test",
            ],
            "{text}"
        );
        assert!(text.contains("> Fine.\n>\n> Look at it, and decide: https://evil.example\n>\n> --\n"), "{text}");
        assert!(text.contains("> You get this message\n>\n> .\n"), "blank lines are one: {text}");
    }

    #[test]
    fn a_long_prompt_is_shortened_and_its_long_lines_are_broken() {
        let lines: Vec<String> = (1..=160).map(|line| format!("line {line}")).collect();
        let text = asked(&lines.join("\n"));
        assert!(text.contains("> line 40\n\n… 120 more lines in the console\n") && !text.contains("line 41"), "{text}");
        let text = asked(&format!("Fine.{}Look at it", " ".repeat(300)));
        assert!(text.contains("> Fine.\n>\n> ") && text.contains("Look at it\n\n--"), "{text}");
        let text = asked(&"word ".repeat(100));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

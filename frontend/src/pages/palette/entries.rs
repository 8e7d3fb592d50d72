//! The entries of the palette: what is offered on this page, the pages that the person may see, and the flows that they
//! may start.

use icondata::Icon as IconData;
use shared::access::Act;
use shared::api::ReviewQuery;
use shared::client::query_string;

use crate::client::{FlowVersion, Session};
use crate::components::commands::Offered;
use crate::components::inert::named;
use crate::state::filter;
use crate::state::palette::{Addressed, Section, Words, addressed};
use crate::state::words;

/// What choosing an entry does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Does what was offered, by its index.
    Command(usize),
    /// Opens an address of the console.
    Page(String),
}

#[derive(Clone, PartialEq)]
pub struct Entry {
    /// The id of its option in the page.
    pub id: String,
    pub section: Section,
    pub says: String,
    /// What follows from it, or further words.
    pub more: String,
    pub key: Option<String>,
    pub icon: IconData,
    pub target: Target,
    pub words: Words,
}

impl Entry {
    fn new(id: String, section: Section, says: String, more: String, icon: IconData, target: Target) -> Self {
        let words = Words::new(section, &says, &more);
        Self { id, section, says, more, key: None, icon, target, words }
    }
}

/// A page: its name, its address, further words to find it by, and its icon.
type Page = (&'static str, &'static str, &'static str, IconData);

const PAGES: [Page; 5] = [
    ("Inbox", "/inbox", "reviews", icondata::LuInbox),
    ("Decided by me", "/decided", "history, my decisions", icondata::LuHistory),
    ("Runs", "/runs", "", icondata::LuRoute),
    ("Flows", "/flows", "", icondata::LuWorkflow),
    ("Insights", "/insights", "statistics", icondata::LuChartColumn),
];
const AUDIT: Page = ("Audit", "/audit", "log, history, export, seals", icondata::LuShieldCheck);
const PEOPLE: Page = ("People", "/people", "users, roles", icondata::LuUsers);
const OWN_PAGES: [Page; 5] = [
    ("Your tokens", "/people?tab=tokens", "programs", icondata::LuKeyRound),
    ("Out of office", "/people?tab=you", "deputies", icondata::LuUserRound),
    ("Remembered approvals", "/people?tab=approvals", "grants", icondata::LuCheckCheck),
    ("Notifications", "/people?tab=notifications", "browser, e-mail, Slack", icondata::LuBell),
    ("Security", "/people?tab=security", "password, sessions, second factor", icondata::LuShield),
];

/// What is offered, and the pages that the person may see.
pub fn fixed(offered: &[Offered], session: Session) -> Vec<Entry> {
    let commands = offered.iter().enumerate().map(|(at, Offered { section, command, .. })| {
        let (says, then) = (named(&command.says), named(&command.then));
        let icon = if *section == Section::Review { icondata::LuArrowRight } else { icondata::LuChevronRight };
        let entry = Entry::new(format!("command-{at}"), *section, says, then, icon, Target::Command(at));
        Entry { key: command.key.clone(), words: Words::new(*section, &command.says, ""), ..entry }
    });
    let audit = session.may(Act::ReadAudit).then_some(AUDIT);
    let people = session.may(Act::ManagePeople).then_some(PEOPLE);
    let pages = PAGES.into_iter().chain(audit).chain(people).chain(OWN_PAGES);
    let pages = pages.enumerate().map(|(at, (name, path, also, icon))| {
        let target = Target::Page(path.to_owned());
        let entry = Entry::new(format!("page-{at}"), Section::Pages, name.to_owned(), String::new(), icon, target);
        Entry { words: Words::new(Section::Pages, name, also), ..entry }
    });
    commands.chain(pages).collect()
}

/// The flows, each to be launched.
pub fn flows(flows: &[FlowVersion]) -> Vec<Entry> {
    let entry = |flow: &FlowVersion| {
        let says = format!("Launch {}", named(&flow.title));
        let target = Target::Page(format!("/flows/{}", flow.id));
        // Not by its place in the list, which changes when the list is read again.
        Entry::new(format!("flow-{}", flow.id), Section::Flows, says, flow.id.to_string(), icondata::LuPlay, target)
    };
    flows.iter().map(entry).collect()
}

/// The review or run whose id was typed, and a search of the inbox for what was typed.
pub fn typed(text: &str) -> (Vec<Entry>, Option<Entry>) {
    let opens = addressed(text).into_iter().map(|what| {
        let (says, path) = match what {
            Addressed::Review(id) => (format!("Open the review {}", words::tail(id)), format!("/reviews/{id}")),
            Addressed::Run(id) => (format!("Open the run {}", words::tail(id)), format!("/runs/{id}")),
        };
        let id = path.replace('/', "-");
        Entry::new(id, Section::Address, says, String::new(), icondata::LuArrowRight, Target::Page(path))
    });
    let search = (!text.trim().is_empty()).then(|| {
        let query = filter::with(&ReviewQuery::default(), "q", Some(text.trim()));
        let target = Target::Page(format!("/inbox{}", query_string(&query)));
        let says = format!("Search reviews for “{}”", named(text.trim()));
        Entry::new("search".to_owned(), Section::Search, says, String::new(), icondata::LuSearch, target)
    });
    (opens.collect(), search)
}

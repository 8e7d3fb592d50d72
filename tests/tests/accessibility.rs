//! Accessibility of every page, on a phone, a small and a large screen, with light and dark colours: axe-core finds
//! nothing, and nothing is wider than the screen. On no screen is a part of a review cut off, or read in a box that
//! scrolls.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use shared::api::{NewToken, ReviewQuery, RunQuery};
use shared::decision::Verdict;
use shared::review::{Review, ReviewStatus};
use tests::device::Rules;
use tests::locator::locate;
use tests::pages::{Login, wait_for_text, wait_until_drawn};
use tests::reviewing::{choose, decide, launch_as, launch_of, wait_for_review};
use tests::{Api, Browser, BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

/// A phone, a small and a large screen.
const SCREENS: [(u32, u32); 3] = [(390, 844), (1024, 768), (1440, 900)];

/// The launched example flows and their inputs, which lead to reviews of every kind: drafts, options, forms, calls,
/// votes, a timer, questions of agents.
const LAUNCHED: [(&str, &str); 13] = [
    ("article", r#"{"topic": "the ocean"}"#),
    ("release-notes", "{}"),
    ("permission", "{}"),
    ("committee", r#"{"occasion": "the outage of last night"}"#),
    ("question", r#"{"event": "the summer party"}"#),
    ("survey", r#"{"customer": "Northwind"}"#),
    ("onboarding", r#"{"name": "Rosa"}"#),
    ("triage", r#"{"complaint": "My parcel came open, and half of it was missing."}"#),
    ("escalation", r#"{"customer": "Acme", "credit": 120}"#),
    ("answer", "{}"),
    ("team", "{}"),
    ("research", "{}"),
    ("helpdesk", "{}"),
];

/// A flow that asks about a text and code.
const CODE: &str = "id: code
input: { type: object, properties: { text: { type: string }, code: { type: string } } }
nodes:
  ask:
    human:
      prompt: Shall it be merged?
      review_keys: [{ key: text, type: markdown }, { key: code, type: code }]
      options: [{ id: merge, label: Merge it }]
";

async fn launched(server: &Server) -> Api {
    let admin = server.admin().await;
    for (flow, input) in LAUNCHED {
        let input = serde_json::from_str(input).expect("JSON");
        let launch = launch_of(flow, input);
        admin.launch(&launch, None).await.unwrap_or_else(|problem| panic!("{flow}: {problem}: {:?}", problem.errors));
    }
    pending(&admin, LAUNCHED.len()).await;
    admin
}

/// Waits until at least so many reviews are pending, and returns them.
async fn pending(admin: &Api, at_least: usize) -> Vec<Review> {
    let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
    eventually("everything that was launched asks somebody", async || {
        let reviews = admin.reviews(&query).await.ok()?.items;
        (reviews.len() >= at_least).then_some(reviews)
    })
    .await
}

/// Returns every page of the console: a name, the path, and a text that appears once the page is loaded.
async fn pages(server: &Server, admin: &Api) -> Vec<(String, String, String)> {
    let mut pages = Vec::new();
    let mut add = |name: &str, path: String, text: &str| pages.push((name.to_owned(), path, text.to_owned()));
    let reviews = pending(admin, LAUNCHED.len()).await;
    for review in &reviews {
        let flow = review.flow.as_ref().map(ToString::to_string).unwrap_or_default();
        add(&format!("review-{flow}"), format!("/reviews/{}", review.id), &review.title);
    }
    // One review is decided, so that a finished run can be shown too.
    let sent = reviews.iter().find(|review| review.flow.as_ref().is_some_and(|flow| flow.as_str() == "question"));
    let sent = sent.expect("the question is asked");
    let verdict = match sent.options.first() {
        Some(option) => choose(&option.id),
        None => Verdict::Text { text: "In November.".to_owned() },
    };
    decide(admin, sent, verdict, serde_json::Value::Null).await;
    let runs = admin.runs(&RunQuery::default()).await.expect("runs").items;
    let of = |flow: &str| runs.iter().find(|run| run.flow.as_str() == flow).map(|run| run.id).expect("its run");
    server.person("ana", &["reviewer", "editor"]).await;
    let token = NewToken { name: "ci".to_owned(), roles: vec!["reviewer".to_owned()], expires_at: None };
    admin.create_token(&token).await.expect("a token");
    add("inbox", "/inbox".to_owned(), "pending");
    add("run-waiting", format!("/runs/{}", of("release-notes")), "Publish release notes");
    add("run-over", format!("/runs/{}", of("question")), "Ask before writing");
    for (name, path, text) in [
        ("decided-by-me", "/decided", "Decided by me"),
        ("runs", "/runs", "Publish release notes"),
        ("flows", "/flows", "Publish release notes"),
        ("launch", "/flows/article", "Launch the run"),
        ("flow-definition", "/flows/article?tab=definition", "Graph"),
        ("no-flow", "/flows/no-such-flow", "Flow not found"),
        ("insights", "/insights", "Outcomes"),
        ("audit", "/audit", "Verify"),
        ("people", "/people", "ana"),
        ("tokens", "/people?tab=tokens", "ci"),
        ("you", "/people?tab=you", "Deputy"),
        ("approvals", "/people?tab=approvals", "No approvals are remembered"),
        ("notifications", "/people?tab=notifications", "Notifications"),
        ("security", "/people?tab=security", "Second factor"),
        ("not-found", "/nowhere", "not found"),
        ("no-review", "/reviews/01a203c6-7302-7001-9ea2-d474c4316ec3", "Review not found"),
        ("no-run", "/runs/01a203c6-7302-7001-9ea2-d474c4316ec3", "Run not found"),
    ] {
        add(name, path.to_owned(), text);
    }
    pages
}

/// A script that returns the parts of the open review that are cut off, or scroll in a box of their own. The column
/// beside the content may, and on a low screen the buttons.
const CUT: &str = "
    const apart = [innerWidth > 1180 && '.side', innerHeight < 560 && '.acts'].filter(Boolean);
    const whole = [...apart, '.sr', '.metadata:not([open]) .words', '.trail', '.cut', '.what', 'input', 'textarea', 'svg', '[hidden]'];
    const review = document.querySelector('article.read');
    const scroller = [review, ...review.querySelectorAll('.body, .main')].find((e) => e.scrollHeight > e.clientHeight + 1);
    return [...review.querySelectorAll('*')].filter((e) => {
        const style = getComputedStyle(e);
        if (e === scroller || !e.clientHeight || !e.textContent.trim()) return false;
        if (e.closest(whole.join())) return false;
        const high = style.overflowY !== 'visible' && e.scrollHeight > e.clientHeight + 1;
        const wide = style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1;
        return high || wide;
    }).map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 60)}`);";

/// A script that scrolls to the review's body, and returns how many pixels of the screen's height show it.
const ROOM: &str = "
    document.querySelector('article.read > .body').scrollIntoView();
    const body = document.querySelector('article.read > .body').getBoundingClientRect();
    return Math.min(body.bottom, innerHeight) - Math.max(body.top, 0);";

/// The breaches found so far, each with the pages on which it was found.
#[derive(Default)]
struct Findings(BTreeMap<String, Vec<String>>);

impl Findings {
    async fn look(&mut self, browser: &Browser, page: &str, width: u32) -> BrowserResult<()> {
        let pictures = std::env::var_os("COUNTERSIGN_TEST_PICTURES").map(PathBuf::from);
        for (dark, colours, rules) in [(false, "light", Rules::All), (true, "dark", Rules::Colours)] {
            browser.dark(dark).await;
            let place = format!("{page}-{width}-{colours}");
            browser.picture_in(pictures.as_deref(), &place).await;
            self.check(browser, &place, rules).await;
        }
        let script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let over = browser.driver.execute(script, Vec::new()).await?.convert::<i64>()?;
        if over > 0 {
            self.0.entry(format!("{over} px wider than the screen")).or_default().push(format!("{page}-{width}"));
        }
        Ok(())
    }

    /// Checks the page as it is.
    async fn check(&mut self, browser: &Browser, place: &str, rules: Rules) {
        for breach in browser.breaches(rules).await {
            for (element, why) in breach.places {
                let words = format!("{} ({}) at {element}: {why}", breach.id, breach.help);
                self.0.entry(words).or_default().push(place.to_owned());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_on_any_page_at_any_width_in_any_colours() -> BrowserResult<()> {
    let mut options = Options::on(Database::Sqlite);
    options.flows = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../flows").into());
    let server = Server::start(options).await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    browser.with_axe().await;
    let mut found = Findings::default();
    for (width, height) in SCREENS {
        browser.screen(width, height).await;
        driver.goto(format!("{}/login", server.base)).await?;
        wait_for_text(driver, "Log in").await;
        found.look(&browser, "login", width).await?;
    }
    Login(driver).log_in(&server.base, "admin").await?;
    wait_for_text(driver, "Inbox").await;
    for (width, height) in SCREENS {
        browser.screen(width, height).await;
        driver.goto(format!("{}/inbox", server.base)).await?;
        driver.query(By::Css("#content h1")).first().await?;
        found.look(&browser, "inbox-empty", width).await?;
    }
    let admin = launched(&server).await;
    let pages = pages(&server, &admin).await;
    for (width, height) in SCREENS {
        browser.screen(width, height).await;
        for (name, path, text) in &pages {
            driver.goto(format!("{}{path}", server.base)).await?;
            eventually(&format!("{path} shows `{text}`"), async || {
                let text = serde_json::to_string(text).ok()?;
                let there = format!("return document.body.textContent.toLowerCase().includes({text}.toLowerCase()) && !!document.querySelector('main:not(#stopped)') && !document.querySelector('.loading')");
                driver.execute(there, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
            })
            .await;
            found.look(&browser, name, width).await?;
        }
        // Layers above a page.
        driver.goto(format!("{}/inbox", server.base)).await?;
        locate(driver, By::Css(".who")).click().await?;
        driver.query(By::Css("#account")).first().await?;
        found.look(&browser, "account", width).await?;
        driver.goto(format!("{}/runs", server.base)).await?;
        driver.query(By::Css("#content h1")).first().await?;
        locate(driver, By::Tag("body")).send_keys("?").await?;
        driver.query(By::Css("dialog[open]")).first().await?;
        found.look(&browser, "keys", width).await?;
    }
    // What opens on a page, on the large screen and in the dark colours of the last look.
    let path_of =
        |wanted: &str| pages.iter().find(|(name, ..)| name == wanted).map(|(_, path, _)| path).expect("a page");
    let (review, run) = (path_of("review-article").as_str(), path_of("run-waiting").as_str());
    for (name, path, opens) in [
        ("delegate", review, ".asides > button:first-of-type"),
        ("withdraw", review, ".asides > button:last-of-type"),
        ("cancel", run, ".run-head > .b.stop"),
        ("new-token", "/people?tab=tokens", ".page > header .b.primary"),
        ("new-person", "/people", ".page > header .b.primary"),
        ("entry", "/audit?act=decision", ".audit-row"),
    ] {
        driver.goto(format!("{}{path}", server.base)).await?;
        locate(driver, By::Css(opens)).usable().click().await?;
        locate(driver, By::Css("dialog[open], .audit-detail")).await?;
        found.check(&browser, name, Rules::All).await;
    }
    let mut told = String::new();
    for (words, places) in &found.0 {
        let _ = writeln!(told, "\n{words}\n  on {}", places.join(", "));
    }
    assert!(told.is_empty(), "{told}");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_review_is_cut_off_or_scrolls_in_a_box_on_any_screen() -> BrowserResult<()> {
    let mut options = Options::on(Database::Sqlite);
    options.flows = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../flows").into());
    let server = Server::start(options).await;
    let admin = launched(&server).await;
    server.save(CODE).await;
    let line = "x".repeat(300);
    let code = json!({ "text": format!("As follows:\n\n```sh\n{line}\n```\n"), "code": format!("begin\n{line}\n") });
    let run = launch_as(&admin, "code", code).await;
    eventually("the code is asked about", async || admin.run_reviews(run).await.ok()?.items.pop()).await;
    let reviews = pending(&admin, LAUNCHED.len() + 1).await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "admin").await?;
    wait_for_text(driver, "Inbox").await;
    for review in &reviews {
        driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
        wait_for_review(driver, review).await;
        for unfold in driver.find_all(By::Css("button.unfold")).await? {
            unfold.click().await?;
        }
        // A phone, upright and sideways, and a screen of 1440 by 900 at a zoom of 200 % and without.
        for (width, height) in [(390, 844), (844, 390), (720, 450), (1440, 900)] {
            browser.screen(width, height).await;
            wait_until_drawn(driver).await?;
            let place = format!("{} at {width}x{height}", review.title);
            let cut = driver.execute(CUT, Vec::new()).await?.convert::<Vec<String>>()?;
            assert!(cut.is_empty(), "{place}: {cut:#?}");
            let room = driver.execute(ROOM, Vec::new()).await?.convert::<f64>()?;
            assert!(room >= f64::from(height) * 0.3, "{place}: {room} px are left to read in");
            let facts = locate(driver, By::Css("article.read .head")).text().await?;
            if !review.stakes.reversible.unwrap_or(true) {
                assert!(facts.contains("cannot be undone"), "{place}: {facts}");
            }
            let page = locate(driver, By::Css("article.read")).text().await?;
            for consequence in &review.stakes.consequences {
                assert!(page.contains(consequence.as_str()), "{place}: {consequence}");
            }
        }
    }
    browser.quit().await;
    Ok(())
}

//! What a reviewer sees when something interferes: the server fails or is down, another person decides first, the
//! review changes, the session ends. The console says so accessibly, and nothing that was typed is lost.

use serde_json::json;
use shared::api::UserPatch;
use shared::error::{Code, Problem};
use tests::device::Screen;
use tests::locator::locate;
use tests::pages::{
    Inbox, Login, button, button_starting, field, hold_the_next_decision, send_now, stored, wait_for_path,
    wait_for_text,
};
use tests::reviewing::{
    NOTE, ReviewSetup, choose, decide, edit_text, launch, pending, press_key, text_of, wait_for_review,
};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

/// A phone in both colours, a small screen, and a large one.
const SCREENS: [Screen; 4] = [(390, 844, true), (390, 844, false), (1024, 768, false), (1440, 900, true)];

/// The text that Ana appends.
const TYPED: &str = " With more by Ana.";

/// Opens a [`ReviewSetup`] whose browser can check the page with axe-core.
async fn ana_reads(source: &str, flow: &str) -> BrowserResult<ReviewSetup> {
    let setup = ReviewSetup::open(&[source], flow).await?;
    setup.browser.with_axe().await;
    setup.browser.driver.refresh().await?;
    wait_for_review(&setup.browser.driver, &setup.review).await;
    Ok(setup)
}

/// A script that holds back 401 responses to requests for the list's counts, until the functions in `held` are called.
const HOLD_REFUSED_FACETS: &str = "
    window.held = [];
    const fetched = window.fetch;
    window.fetch = async request => {
        const answer = await fetched(request);
        if (answer.status === 401 && request.url.includes('/facets')) {
            await new Promise(release => window.held.push(release));
        }
        return answer;
    };
";

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_says_why_and_is_tried_again() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    let problem = Problem::new(Code::Unavailable).detail("The database does not answer.");
    let problem = json!(serde_json::to_string(&problem).expect("JSON"));
    let fail = format!(
        "const real = fetch.bind(window); window.fetch = async (request, ...more) => {{ \
            const path = String(request.url ?? request); \
            if (window.fail && path.includes('/api/v1/reviews')) return new Response({problem}, {{ status: 503 }}); \
            return real(request, ...more) }};"
    );
    browser.before_each_page(&format!("{fail} window.fail = sessionStorage.getItem('fail');")).await?;
    driver.execute("sessionStorage.setItem('fail', 1)", Vec::new()).await?;
    driver.refresh().await?;
    wait_for_text(driver, "The inbox could not be loaded").await;
    wait_for_text(driver, "The review could not be loaded").await;
    wait_for_text(driver, "The database does not answer.").await;
    browser.is_readable("unreadable", &SCREENS).await;
    // On a phone, where the list is not beside the review, a button leads back to it.
    browser.screen(390, 844).await;
    button(driver, "Back to the list").click().await?;
    wait_for_text(driver, "The inbox could not be loaded").await;
    driver.back().await?;
    wait_for_text(driver, "The review could not be loaded").await;
    browser.screen(1440, 900).await;
    driver.execute("window.fail = null; sessionStorage.clear()", Vec::new()).await?;
    locate(driver, By::Css(".read .failed button")).click().await?;
    wait_for_text(driver, "The original.").await;
    // The list is loaded without a click once the browser reports that it is online again.
    driver.execute("dispatchEvent(new Event('online'))", Vec::new()).await?;
    driver.query(By::Id(format!("row-{}", review.id))).first().await?;
    edit_text(driver, TYPED).await?;

    // A list that cannot be refreshed stays, with a note that it may be out of date.
    driver.execute("window.fail = 1", Vec::new()).await?;
    let roles = ["reviewer", "legal", "editor"].map(ToOwned::to_owned).to_vec();
    let patch = UserPatch { roles: Some(roles), ..UserPatch::default() };
    server.admin().await.update_user("ana", &patch).await.expect("she gets a role");
    wait_for_text(driver, "The list may be out of date: The database does not answer.").await;
    browser.is_readable("out-of-date", &SCREENS).await;
    browser.screen(1440, 900).await;
    assert!(text_of(driver, ".acts").await.contains("with your edit"), "what was typed is kept");
    driver.execute("window.fail = null", Vec::new()).await?;
    locate(driver, By::Css(".partly button")).click().await?;
    eventually("it is up to date", async || driver.find_all(By::Css(".partly")).await.ok()?.is_empty().then_some(()))
        .await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_while_the_server_was_away_is_sent_again_and_counts_once() -> BrowserResult<()> {
    let ReviewSetup { mut server, tom, review, browser, .. } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    edit_text(driver, TYPED).await?;
    server.kill();
    wait_for_text(driver, "Reconnecting…").await;
    browser.is_readable("offline", &SCREENS).await;
    browser.screen(1440, 900).await;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it, with your edit").await?;
    browser.is_readable("offline-held", &SCREENS).await;
    browser.screen(1440, 900).await;
    send_now(driver).await;
    wait_for_text(driver, "Your decision is kept here").await;
    browser.is_readable("offline-unsent", &SCREENS).await;
    browser.screen(1440, 900).await;
    assert!(text_of(driver, ".row").await.contains("not sent"), "the list says it, too");
    server.restart().await;
    // By now the page waits long before it tries again, unless the browser reports that it is online.
    driver.execute("dispatchEvent(new Event('online'))", Vec::new()).await?;
    wait_for_text(driver, "You are connected again. Send your decision now?").await;
    browser.is_readable("connected-unsent", &SCREENS).await;
    browser.screen(1440, 900).await;
    button(driver, "Send").click().await?;
    wait_for_text(driver, "Decided.").await;
    assert!(!text_of(driver, ".head").await.contains("Claim"), "there is nothing left to work on");
    browser.is_readable("decided", &SCREENS).await;
    let over = tom.review(review.id).await.expect("the review");
    let [decision] = over.decisions.as_slice() else { panic!("one decision: {:?}", over.decisions) };
    assert_eq!(decision.edits["text"], json!(format!("The original.{TYPED}")));
    browser.quit().await;
    Ok(())
}

/// A script that fails requests with decisions while `drop` is in the session storage.
const DROP_DECISIONS: &str = "
    const fetched = window.fetch;
    window.fetch = async (request, ...more) => {
        const drops = sessionStorage.getItem('drop') && request.url?.includes('/decisions');
        if (drops) throw new TypeError('no network');
        return fetched(request, ...more);
    };
";

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_was_not_sent_waits_for_who_made_it() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    browser.before_each_page(DROP_DECISIONS).await?;
    driver.execute("sessionStorage.setItem('drop', 1)", Vec::new()).await?;
    driver.refresh().await?;
    Inbox(driver).press("Send it").await?;
    send_now(driver).await;
    wait_for_text(driver, "Your decision is kept here").await;
    driver.refresh().await?;
    wait_for_text(driver, "Your decision may not have arrived. Send it now?").await;
    browser.is_readable("kept-unsent", &SCREENS).await;
    browser.screen(1440, 900).await;
    assert!(ana.review(review.id).await.expect("the review").is_pending(), "nothing is sent by itself");

    // Another person at this browser does not see it.
    driver.delete_all_cookies().await?;
    Login(driver).log_in(&server.base, "tom").await?;
    wait_for_text(driver, "1 pending").await;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_review(driver, &review).await;
    let page = text_of(driver, "body").await;
    assert!(!page.contains("not sent"), "{page}");

    // The person who made it is reminded on every page.
    driver.delete_all_cookies().await?;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "1 pending").await;
    driver.goto(format!("{}/runs", server.base)).await?;
    wait_for_text(driver, "1 decision not sent").await;
    browser.is_readable("unsent-elsewhere", &SCREENS).await;
    browser.screen(1440, 900).await;
    driver.execute("sessionStorage.clear()", Vec::new()).await?;
    locate(driver, By::Css(".status-strip a")).click().await?;
    button(driver, "Send").click().await?;
    wait_for_text(driver, "Decided.").await;
    assert_eq!(ana.review(review.id).await.expect("the review").decisions.len(), 1);
    assert_eq!(stored(driver, "decision.ana/").await?, 0, "it is settled");
    driver.goto(format!("{}/runs", server.base)).await?;
    driver.query(By::Css(".runs-table")).first().await?;
    assert!(!text_of(driver, "body").await.contains("not sent"), "nobody is reminded of it");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_second_is_told_who_was_first_and_keeps_what_they_wrote() -> BrowserResult<()> {
    let ReviewSetup { server, tom, review, browser, .. } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    edit_text(driver, TYPED).await?;
    tom.claim(review.id).await.expect("tom claims it");
    wait_for_text(driver, "tom has claimed this until").await;
    browser.is_readable("claimed", &SCREENS).await;
    browser.screen(1440, 900).await;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it, with your edit").await?;
    wait_for_text(driver, "Undo").await;
    decide(&tom, &review, choose("stop"), json!({})).await;
    wait_for_text(driver, "What you wrote was not sent").await;
    locate(driver, By::Css("details.unsent > summary")).click().await?;
    wait_for_text(driver, TYPED.trim()).await;
    browser.is_readable("second", &SCREENS).await;
    browser.screen(1440, 900).await;

    // Without the live socket, only the response to the decision tells that the review is over.
    browser
        .before_each_page("window.WebSocket = class { constructor() { throw new Error('no connection') } };")
        .await?;
    let run = launch(&server, "note", json!({})).await;
    let review = pending(&tom).await;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    edit_text(driver, TYPED).await?;
    decide(&tom, &review, choose("stop"), json!({})).await;
    eventually("it is pressed", async || Inbox(driver).press("Send it, with your edit").await.ok()).await;
    send_now(driver).await;
    wait_for_text(driver, "Your decision was not accepted.").await;
    wait_for_text(driver, "tom chose “Stop”").await;
    browser.is_readable("not-accepted", &SCREENS).await;
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    wait_for_text(driver, "launched by").await;
    browser.quit().await;
    Ok(())
}

/// Letters that are meant for a field do not act as shortcuts after another person's decision has closed the field.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_on_when_a_field_closes_decides_nothing() -> BrowserResult<()> {
    let ReviewSetup { server, ana, tom, review, browser } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    let mut review = review;
    for open in ["e", "c"] {
        launch(&server, "note", json!({})).await;
        driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
        eventually("both are listed", async || (driver.find_all(By::Css(".row")).await.ok()?.len() == 2).then_some(()))
            .await;
        wait_for_review(driver, &review).await;
        press_key(driver, open).await?;
        let field = driver.query(By::Css("textarea:focus")).first().await?;
        field.send_keys("I think ").await?;
        decide(&tom, &review, choose("send"), json!({})).await;
        wait_for_text(driver, "tom chose “Send it”").await;
        press_key(driver, "jam and jelly, just as 1 read it").await?;
        wait_for_text(driver, "The field you were typing in has closed.").await;
        browser.is_readable(&format!("field-closed-{open}"), &SCREENS).await;
        browser.screen(1440, 900).await;
        assert!(driver.current_url().await?.path().ends_with(&review.id.to_string()), "nothing else is open");

        press_key(driver, Key::Escape).await?;
        press_key(driver, "j").await?;
        let next = pending(&ana).await;
        wait_for_path(driver, &format!("/reviews/{}", next.id)).await;
        assert!(!text_of(driver, ".decide").await.contains("Undo"), "nothing is decided");
        review = next;
    }
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_revision_is_shown_beside_what_one_is_writing() -> BrowserResult<()> {
    let both = NOTE.replace("id: note", "id: both").replace(
        "      edit_keys: [text]\n",
        "      edit_keys: [text]\n      policy: { groups: { editor: 1, legal: 1 } }\n",
    );
    let ReviewSetup { server: _server, tom, review, browser, .. } = ana_reads(&both, "both").await?;
    let driver = &browser.driver;
    edit_text(driver, TYPED).await?;
    wait_for_text(driver, "with your edit").await;
    decide(&tom, &review, choose("send"), json!({ "text": "The original, corrected by Tom." })).await;
    wait_for_text(driver, "This has changed since revision 1, which you were reading.").await;
    browser.is_readable("changed", &SCREENS).await;
    browser.screen(1440, 900).await;
    button(driver, "I have seen it").click().await?;
    button(driver, "Your changes").click().await?;
    wait_for_text(driver, "With more").await;
    browser.is_readable("changed-seen", &SCREENS).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_while_one_types_takes_nothing_away() -> BrowserResult<()> {
    let ReviewSetup { server: _server, tom, review, browser, .. } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    edit_text(driver, TYPED).await?;
    wait_for_text(driver, "with your edit").await;
    field(driver, "Comment on this review").send_keys("Who has read it?").await?;
    locate(driver, By::Css(".say textarea")).send_keys("Better so.").await?;
    let here = driver.current_url().await?;

    // The next request is the first that gets 401. The page receives another 401 only after the new login.
    driver.execute(HOLD_REFUSED_FACETS, vec![]).await?;
    driver.delete_all_cookies().await?;
    button_starting(driver, "Critical").click().await?;
    wait_for_text(driver, "Your session has ended.").await;
    browser.is_readable("session-ended", &SCREENS).await;
    browser.screen(1440, 900).await;
    assert_eq!(field(driver, "username").await?.value().await?.as_deref(), Some("ana"));
    Login(driver).log_in_again().await?;
    wait_for_text(driver, "with your edit").await;
    // The counts of the list before may have been requested as well, if they were due just then.
    assert!(driver.execute("return held.map(release => release()).length", vec![]).await?.convert::<u32>()? > 0);
    assert_eq!(driver.current_url().await?.path(), here.path());
    let comment = field(driver, "Comment on this review");
    assert_eq!(comment.value().await?.as_deref(), Some("Who has read it?"));
    browser.is_readable("session-again", &SCREENS).await;
    browser.screen(1440, 900).await;

    // The session ends again before the decision is sent; the decision waits for the login.
    driver.delete_all_cookies().await?;
    Inbox(driver).press("Send it, with your edit").await?;
    send_now(driver).await;
    Login(driver).log_in_again().await?;
    wait_for_text(driver, "Your session ended before this was sent.").await;
    browser.is_readable("session-unsent", &SCREENS).await;
    browser.screen(1440, 900).await;
    button(driver, "Send again").click().await?;
    wait_for_text(driver, "Decided.").await;
    let over = tom.review(review.id).await.expect("the review");
    let [decision] = over.decisions.as_slice() else { panic!("one decision: {:?}", over.decisions) };
    assert_eq!(decision.edits["text"], json!(format!("The original.{TYPED}")));
    assert_eq!(decision.comment.as_deref(), Some("Better so."));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_takes_no_form_away() -> BrowserResult<()> {
    let ReviewSetup { server, tom, review, browser, .. } = ana_reads(NOTE, "note").await?;
    let driver = &browser.driver;
    let roles = ["reviewer", "legal", "developer"].map(ToOwned::to_owned).to_vec();
    let patch = UserPatch { roles: Some(roles), ..UserPatch::default() };
    server.admin().await.update_user("ana", &patch).await.expect("she may start runs");
    let run = launch(&server, "release-notes", json!({})).await;
    let again = async |press: &str| {
        driver.delete_all_cookies().await?;
        button(driver, press).click().await?;
        Login(driver).log_in_again().await
    };

    driver.goto(format!("{}/flows/note", server.base)).await?;
    let text = field(driver, "text");
    text.clear().await?;
    text.send_keys("A text for Monday.").await?;
    again("Launch the run").await?;
    let kept = async |name: &str, expected: &str| {
        eventually(&format!("`{name}` holds {expected:?}"), async || {
            let value = field(driver, name).await.ok()?.value().await.ok()?;
            (value.as_deref() == Some(expected)).then_some(())
        })
        .await;
    };
    kept("text", "A text for Monday.").await;
    button(driver, "Clear the form").click().await?;
    kept("text", "The original.").await;
    field(driver, "text").send_keys(" Shorter.").await?;
    button(driver, "Launch the run").click().await?;
    wait_for_text(driver, "launched by").await;
    driver.goto(format!("{}/flows/note", server.base)).await?;
    kept("text", "The original.").await;

    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    button(driver, "Feedback").click().await?;
    field(driver, "your feedback").send_keys("Too long.").await?;
    again("Give feedback").await?;
    button(driver, "Feedback").click().await?;
    kept("your feedback", "Too long.").await;
    button(driver, "Give feedback").click().await?;
    wait_for_text(driver, "The feedback was recorded.").await;

    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    button(driver, "Delegate").click().await?;
    let choose_tom = async || {
        let tom = "//select[@aria-label='Who decides instead']/option[@value='tom']";
        locate(driver, By::XPath(tom)).click().await
    };
    choose_tom().await?;
    driver.delete_all_cookies().await?;
    locate(driver, By::Css("dialog[open] .actions button")).click().await?;
    Login(driver).log_in_again().await?;
    button(driver, "Delegate").click().await?;
    kept("Who decides instead", "tom").await;
    locate(driver, By::Css("dialog[open] .actions button")).click().await?;
    eventually("tom has it", async || {
        let now = tom.review(review.id).await.ok()?;
        (now.delegations.len() == 1).then_some(())
    })
    .await;
    browser.quit().await;
    Ok(())
}

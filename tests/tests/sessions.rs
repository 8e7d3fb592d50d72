//! Open pages whose session ends, or now belongs to another person: they keep working, send nothing in another person's
//! name, and tell people who are still logged in.

use reqwest::Method;
use serde_json::json;
use shared::api::ReviewQuery;
use shared::client::USER_HEADER;
use tests::locator::locate;
use tests::pages::{
    Inbox, Login, button, end_the_time_to_undo, field, hold_the_next_decision, stored, wait_for_path, wait_for_text,
};
use tests::reviewing::{NOTE, ReviewSetup, edit_text, launch, pending, reading, text_of, wait_for_review};
use tests::server::PASSWORD;
use tests::{BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

/// A script that clicks a filter of the list, which sends a request, without moving the focus.
const ASK: &str = "document.querySelector('.list header > .chips button:nth-of-type(4)').click()";

/// A script that logs in another person in this browser, unnoticed by the page.
const LOG_IN: &str = "
    const [username, password, done] = arguments;
    const headers = { 'Content-Type': 'application/json' };
    fetch('/api/v1/session', { method: 'POST', headers, body: JSON.stringify({ username, password }) })
        .then(response => done(response.status));
";

/// A field gets a `blur` event while the page removes it, which must not crash the program.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_is_taken_away_while_one_types_ends_no_page() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    launch(&server, "note", json!({})).await;
    let other = eventually("both are asked", async || {
        let page = ana.reviews(&ReviewQuery::default()).await.ok()?;
        page.items.into_iter().find(|other| other.id != review.id)
    })
    .await;
    let row = driver.query(By::Id(format!("row-{}", other.id))).first().await?;
    row.click().await?;
    wait_for_path(driver, &format!("/reviews/{}", other.id)).await;
    edit_text(driver, " Of the other one.").await?;
    driver.back().await?;
    wait_for_path(driver, &format!("/reviews/{}", review.id)).await;
    eventually("the field of the other one is gone", async || {
        driver.find_all(By::Css("[aria-label='Edit Text']")).await.ok()?.is_empty().then_some(())
    })
    .await;

    edit_text(driver, " More.").await?;
    wait_for_text(driver, "with your edit").await;
    driver.delete_all_cookies().await?;
    driver.execute(ASK, Vec::new()).await?;
    wait_for_text(driver, "Your session has ended.").await;
    Login(driver).log_in_again().await?;
    wait_for_text(driver, "with your edit").await;

    // A field that reads its value when it loses the focus.
    let admin = reading(&server, "admin", &review).await?;
    admin.driver.goto(format!("{}/people", server.base)).await?;
    button(&admin.driver, "Add a person").click().await?;
    field(&admin.driver, "your organisation's roles").send_keys("editor").await?;
    admin.driver.back().await?;
    wait_for_review(&admin.driver, &review).await;
    admin.quit().await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_outlives_its_session_waits_for_who_made_it() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Undo").await;
    driver.delete_all_cookies().await?;
    driver.execute(ASK, Vec::new()).await?;
    wait_for_text(driver, "Your session has ended.").await;
    // Before the decision is sent, Tom logs in, as in another tab of this browser.
    let status = driver.execute_async(LOG_IN, vec![json!("tom"), json!(PASSWORD)]).await?;
    assert_eq!(status.convert::<u16>()?, 200);
    end_the_time_to_undo(driver).await?;
    let is_kept = async || (stored(driver, "decision.ana/").await.ok()? == 1).then_some(());
    eventually("the decision is kept", is_kept).await;
    let pending = ana.review(review.id).await.expect("her review");
    assert!(pending.is_pending() && pending.decisions.is_empty(), "{pending:?}");

    Login(driver).log_in_again().await?;
    wait_for_text(driver, "Your session ended before this was sent.").await;
    button(driver, "Send again").click().await?;
    wait_for_text(driver, "Decided.").await;
    let over = ana.review(review.id).await.expect("her review");
    assert_eq!(over.decisions.iter().map(|decision| decision.by.to_string()).collect::<Vec<_>>(), ["ana"]);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_kept_when_its_page_is_closed_unless_it_has_arrived() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let kept = async || stored(driver, "decision.ana/").await.ok();
    // The session has ended, but the page does not know that yet.
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Undo").await;
    driver.delete_all_cookies().await?;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "1 decision not sent").await;
    assert!(ana.review(review.id).await.expect("her review").is_pending(), "nothing is sent by itself");
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(driver, "Your decision may not have arrived. Send it now?").await;
    button(driver, "Send").click().await?;
    wait_for_text(driver, "Decided.").await;
    assert_eq!(kept().await, Some(0));

    launch(&server, "note", json!({})).await;
    let review = pending(&ana).await;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    edit_text(driver, " More.").await?;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it, with your edit").await?;
    wait_for_text(driver, "Undo").await;
    driver.goto(format!("{}/runs", server.base)).await?;
    eventually("it is settled", async || (kept().await? == 0).then_some(())).await;
    assert_eq!(ana.review(review.id).await.expect("her review").decisions.len(), 1);
    assert!(!text_of(driver, "body").await.contains("not sent"));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_logs_in_stays_who_is_logged_in_when_an_older_answer_arrives() -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    // The login page asks who is logged in. The answer, Ana, is held back until Tom has logged in.
    browser.hold(Some("GET /api/v1/me")).await?;
    driver.goto(format!("{}/login", server.base)).await?;
    browser.held().await;
    Login(driver).fill_in("tom").await?;
    wait_for_text(driver, "Inbox").await;
    browser.hold(None).await?;
    browser.release(true).await?;
    let drawn = "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => done(true)), 200)";
    driver.execute_async(drawn, Vec::new()).await?;
    assert_eq!(text_of(driver, ".who").await, "TO");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_out_that_does_not_arrive_says_that_one_is_still_logged_in() -> BrowserResult<()> {
    let ReviewSetup { server: _server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let fail = "window.fail = true; const fetched = window.fetch; window.fetch = async (request, ...more) => { \
        if (window.fail && request.method === 'DELETE') throw new TypeError('no network'); \
        return fetched(request, ...more) }";
    driver.execute(fail, Vec::new()).await?;
    edit_text(driver, " Of Ana.").await?;
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "1 draft. Log out again").await;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "You are still logged in.").await;
    browser
        .picture_in(
            std::env::var_os("COUNTERSIGN_TEST_PICTURES").map(std::path::PathBuf::from).as_deref(),
            "log-out-failed",
        )
        .await;
    assert!(text_of(driver, ".acts").await.contains("with your edit"), "what was typed is kept");

    driver.execute("window.fail = false", Vec::new()).await?;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "Log in").await;
    assert_eq!(
        driver
            .execute("return Object.keys(localStorage).filter(key => key.includes('.ana/')).length", vec![])
            .await?
            .convert::<u32>()?,
        0
    );
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_logs_out_is_told_of_drafts_and_other_tabs_are_told_of_it() -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    edit_text(driver, " Of Ana.").await?;
    wait_for_text(driver, "with your edit").await;
    let typing = driver.window().await?;
    let other = driver.new_tab().await?;
    driver.switch_to_window(other).await?;
    driver.goto(format!("{}/inbox", server.base)).await?;
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "1 draft. Log out again to discard what was not sent.").await;
    button(driver, "Log out").click().await?;
    field(driver, "password").await?;
    driver.switch_to_window(typing).await?;
    wait_for_text(driver, "You logged out in another tab.").await;
    assert!(!text_of(driver, "main").await.contains("Your drafts are kept"));
    browser.quit().await;
    Ok(())
}

/// A script that shows the page as a window beside others, which is never hidden.
const STAYS_IN_SIGHT: &str = "Object.defineProperty(document, 'hidden', { get: () => false })";

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_held_in_one_window_is_sent_before_the_person_logs_out_in_another() -> BrowserResult<()> {
    let ReviewSetup { server, tom, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let deciding = driver.window().await?;
    let other = driver.new_window().await?;
    driver.switch_to_window(other.clone()).await?;
    driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_text(driver, "1 pending").await;
    driver.switch_to_window(deciding.clone()).await?;
    driver.execute(STAYS_IN_SIGHT, Vec::new()).await?;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Undo").await;

    driver.switch_to_window(other).await?;
    assert!(tom.review(review.id).await.expect("the review").is_pending(), "it is held");
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").click().await?;
    field(driver, "password").await?;
    assert!(!tom.review(review.id).await.expect("the review").is_pending(), "it was sent before");
    driver.switch_to_window(deciding).await?;
    wait_for_text(driver, "You logged out in another tab.").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_its_user_has_no_effect_with_the_session_of_another() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let admin = server.admin().await;
    let me = async |named: &str| {
        let request = admin.transport.raw(Method::GET, "/api/v1/me").header(USER_HEADER, named);
        request.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!((me("admin").await, me("ana").await, me("").await), (200, 401, 401));
}

/// A script that lets the first two requests for some addresses fail, as while a server restarts.
const RESTARTS: &str = "
    const fetched = window.fetch;
    window.asked = {};
    window.fetch = async (request, ...more) => {
        const { pathname } = new URL(request.url ?? request, location);
        window.asked[pathname] = (window.asked[pathname] ?? 0) + 1;
        const answers = !['/api/v1/me', '/api/v1/session/link'].includes(pathname) || window.asked[pathname] > 2;
        if (!answers) throw new TypeError('no network');
        return fetched.call(window, request, ...more);
    };
";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_opened_while_the_server_restarts_needs_no_reload() -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    browser.before_each_page(RESTARTS).await?;
    driver.goto(format!("{}/login#token=none", server.base)).await?;
    wait_for_text(driver, "This link was used before").await;
    let asked = driver.execute("return asked['/api/v1/session/link']", Vec::new()).await?;
    assert_eq!(asked.json(), 3, "the link is not blamed for a server that does not answer");
    driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_text(driver, "1 pending").await;
    browser.quit().await;
    Ok(())
}

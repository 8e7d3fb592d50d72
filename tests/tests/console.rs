//! Navigation between the console's pages, and what the console does if its program cannot be loaded or crashes.

use serde_json::Value;
use shared::api::ReviewQuery;
use shared::review::Review;
use tests::locator::locate;
use tests::pages::{
    Inbox, Login, button, field, follow_link, hold_the_next_decision, link, stored, wait_for_path, wait_for_text,
    wait_for_title, wait_until_drawn,
};
use tests::reviewing::{self, NOTE, reading, text_of};
use tests::{Api, Browser, BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

/// Starts a server with `count` pending reviews, and returns these, the newest first.
async fn with_reviews(count: usize) -> (Server, Vec<Review>) {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save("id: ask\nnodes:\n  ask: { human: { prompt: Well?, options: [{ id: ok, label: Fine }] } }\n").await;
    let admin = server.admin().await;
    for _ in 0..count {
        launch(&admin).await;
    }
    let reviews = eventually("all reviews are pending", async || {
        let page = admin.reviews(&ReviewQuery::default()).await.ok()?;
        (page.items.len() == count).then_some(page.items)
    })
    .await;
    (server, reviews)
}

async fn launch(api: &Api) {
    reviewing::launch_as(api, "ask", Value::Null).await;
}

async fn logged_in(server: &Server) -> BrowserResult<Browser> {
    let browser = logged_in_as(server, "admin").await?;
    wait_for_text(&browser.driver, "pending").await;
    Ok(browser)
}

async fn logged_in_as(server: &Server, username: &str) -> BrowserResult<Browser> {
    let browser = Browser::start(1440, 900).await;
    Login(&browser.driver).log_in(&server.base, username).await?;
    wait_for_text(&browser.driver, "Inbox").await;
    Ok(browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn walking_through_the_list_faster_than_it_loads_breaks_nothing() -> BrowserResult<()> {
    let (server, reviews) = with_reviews(12).await;
    let browser = logged_in(&server).await?;
    let there_and_back = format!("{}{}", "j".repeat(40), "k".repeat(40)).repeat(2);
    browser.driver.action_chain().send_keys(there_and_back).perform().await?;
    // The oldest is the first of the list, where the walk ends.
    wait_for_path(&browser.driver, &format!("/reviews/{}", reviews[reviews.len() - 1].id)).await;
    // Answers that come when their reviews have been left are no answers about the one that is read.
    browser.hold(Some("GET /api/v1/reviews/[0-9a-f-]{36}")).await?;
    for review in reviews.iter().rev().skip(1) {
        browser.driver.action_chain().send_keys("j").perform().await?;
        wait_for_path(&browser.driver, &format!("/reviews/{}", review.id)).await;
    }
    for _ in 1..reviews.len() {
        browser.release(true).await?;
    }
    hold_the_next_decision(&browser.driver).await?;
    Inbox(&browser.driver).press("Fine").await?;
    wait_for_text(&browser.driver, "Undo").await;
    wait_for_path(&browser.driver, &format!("/reviews/{}", reviews[0].id)).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_has_a_name_and_gives_the_focus_to_its_heading() -> BrowserResult<()> {
    let (server, reviews) = with_reviews(2).await;
    let browser = logged_in(&server).await?;
    let driver = &browser.driver;
    wait_for_title(driver, "(2) Inbox · Countersign").await;
    for name in ["Runs", "Flows", "Audit", "People"] {
        link(driver, name).click().await?;
        wait_for_title(driver, &format!("{name} · Countersign")).await;
        eventually("the heading has the focus", async || {
            let focused = driver.active_element().await.ok()?;
            let heading = (focused.tag_name().await.ok()?, focused.text().await.ok()?);
            (heading == ("h1".to_owned(), name.to_owned())).then_some(())
        })
        .await;
        let said = driver.find(By::Css("p.sr[role=status]")).await?;
        assert_eq!(said.prop("textContent").await?.as_deref(), Some(name), "it is read out");
    }
    driver.back().await?;
    wait_for_title(driver, "Audit · Countersign").await;
    // Where a link leads to nothing, the page says so in the same places.
    follow_link(driver, "/runs/01890000-0000-7000-8000-000000000000").await?;
    wait_for_title(driver, "Run not found · Countersign").await;
    eventually("the heading has the focus", async || {
        (driver.active_element().await.ok()?.text().await.ok()? == "Run not found").then_some(())
    })
    .await;
    driver.goto(format!("{}/reviews/{}", server.base, reviews[0].id)).await?;
    wait_for_title(driver, &format!("Review: {} · Countersign", reviews[0].title)).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_through_the_login_to_where_it_points() -> BrowserResult<()> {
    let (server, reviews) = with_reviews(1).await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    let page = format!("/reviews/{}", reviews[0].id);
    driver.goto(format!("{}{page}", server.base)).await?;
    wait_for_title(driver, "Log in · Countersign").await;
    Login(driver).fill_in("admin").await?;
    wait_for_title(driver, &format!("Review: {} · Countersign", reviews[0].title)).await;
    assert_eq!(driver.current_url().await?.path(), page);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_says_so_and_has_kept_what_was_typed() -> BrowserResult<()> {
    let (server, reviews) = with_reviews(1).await;
    let browser = logged_in(&server).await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/reviews/{}", server.base, reviews[0].id)).await?;
    let say = driver.query(By::Css(".say textarea")).first().await?;
    say.send_keys("half a thought").await?;
    eventually("it is kept", async || (stored(driver, "draft.admin/").await.ok()? > 0).then_some(())).await;
    // An element that the page does not make is a panic of the program.
    let panic = "document.createElement = () => { delete document.createElement; throw new Error() }; \
        document.querySelector('.who').click()";
    driver.execute(panic, Vec::new()).await?;
    wait_for_text(driver, "Countersign stopped working in this tab").await;
    wait_for_text(driver, "panicked at").await;
    assert!(!driver.find(By::Css(".shell")).await?.is_displayed().await?, "nothing that is dead is shown");
    locate(driver, By::Css("#stopped button")).click().await?;
    let kept = eventually("what was typed is there", async || {
        let say = driver.find(By::Css(".say textarea")).await.ok()?;
        say.prop("value").await.ok()?.filter(|text| !text.is_empty())
    })
    .await;
    assert_eq!(kept, "half a thought");
    assert!(!browser.errors().await.is_empty(), "the browser says why");
    // To the page, a trap of WebAssembly is an uncaught error, also where nothing has panicked.
    let trap = "dispatchEvent(new ErrorEvent('error', { error: new WebAssembly.RuntimeError('unreachable') }))";
    driver.execute(trap, Vec::new()).await?;
    wait_for_text(driver, "Countersign stopped working in this tab").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_be_loaded_says_so_in_the_chosen_colours() -> BrowserResult<()> {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let browser = Browser::start(1024, 768).await;
    let driver = &browser.driver;
    driver.goto(format!("{}/login", server.base)).await?;
    driver.execute("localStorage.setItem('countersign.theme', '\"dark\"')", Vec::new()).await?;
    driver.cdp().send_raw("Network.enable", serde_json::json!({})).await?;
    driver.cdp().send_raw("Network.setBlockedURLs", serde_json::json!({ "urls": ["*.wasm"] })).await?;
    driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_text(driver, "Countersign could not be loaded").await;
    let root = driver.find(By::Tag("html")).await?;
    assert_eq!(root.attr("data-theme").await?.as_deref(), Some("dark"), "set before the program runs");
    assert!(!browser.errors().await.is_empty(), "the browser says why");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_and_the_account_are_used_by_keys_and_the_skip_link_works() -> BrowserResult<()> {
    let server = reviewing::server(&[NOTE]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    reviewing::launch(&server, "note", serde_json::json!({})).await;
    let review = reviewing::pending(&ana).await;
    let browser = reading(&server, "ana", &review).await?;
    let driver = &browser.driver;
    let focused = async || driver.active_element().await?.text().await;
    // The tabs of an item are one stop of the Tab key; arrow keys move among them.
    let script = "document.querySelector('[role=tab][aria-selected=true]').focus()";
    driver.execute(script, Vec::new()).await?;
    driver.active_element().await?.send_keys(Key::Right).await?;
    assert_eq!(focused().await?, "Edit");
    driver.active_element().await?.send_keys(Key::Right).await?;
    assert_eq!(focused().await?, "Read", "the first follows the last");
    driver.active_element().await?.send_keys(Key::End).await?;
    driver.active_element().await?.send_keys(Key::Enter).await?;
    field(driver, "Edit Text").await?;
    let selected = driver.find(By::Css("[role=tab][aria-selected=true]")).await?;
    assert_eq!((selected.text().await?, selected.attr("tabindex").await?), ("Edit".into(), Some("0".into())));

    locate(driver, By::Css(".who")).send_keys(Key::Enter).await?;
    eventually("the focus is in what was opened", async || (focused().await.ok()? == "System").then_some(())).await;
    driver.active_element().await?.send_keys(Key::Escape).await?;
    eventually("the focus is back", async || {
        driver.active_element().await.ok()?.attr("aria-expanded").await.ok()?.filter(|open| open == "false")
    })
    .await;

    let here = driver.current_url().await?;
    driver.execute("document.querySelector('.skip').focus()", Vec::new()).await?;
    driver.active_element().await?.send_keys(Key::Enter).await?;
    eventually("the content has the focus", async || {
        (driver.active_element().await.ok()?.id().await.ok()?? == "content").then_some(())
    })
    .await;
    assert_eq!(driver.current_url().await?.path(), here.path(), "the page is the same");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_needs_a_second_factor_is_led_to_it_and_logs_in_with_it() -> BrowserResult<()> {
    let mut options = Options::on(Database::Sqlite);
    options.settings = "[logins]\nsecond_factor = \"all\"\n".to_owned();
    let server = Server::start(options).await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "admin").await?;
    wait_for_text(driver, "This server requires a second factor").await;
    assert_eq!(driver.current_url().await?.query(), Some("tab=security"));
    let password = driver.find(By::XPath("//label[contains(., 'Your password')]//input")).await?;
    password.send_keys(tests::PASSWORD).await?;
    button(driver, "Set up").click().await?;
    let secret = text_of(driver, ".secret code").await;
    let code = driver.find(By::Css("input[autocomplete=one-time-code]")).await?;
    code.send_keys(tests::totp::code(&secret)).await?;
    button(driver, "Turn on").click().await?;
    wait_for_text(driver, "Each of these codes works once").await;
    let codes = text_of(driver, ".secret pre").await;
    button(driver, "I have stored them").click().await?;
    link(driver, "Inbox").click().await?;
    wait_for_text(driver, "Nothing is waiting for you").await;

    driver.delete_all_cookies().await?;
    Login(driver).log_in(&server.base, "admin").await?;
    let asked =
        driver.query(By::Css("#code")).wait(tests::DEADLINE, std::time::Duration::from_millis(50)).first().await?;
    asked.send_keys(codes.lines().next().expect("a recovery code")).await?;
    asked.send_keys(Key::Enter).await?;
    wait_for_text(driver, "Nothing is waiting for you").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_finds_the_list_where_it_was_left() -> BrowserResult<()> {
    let (server, _) = with_reviews(45).await;
    let browser = logged_in(&server).await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/runs", server.base)).await?;
    let scroller = "const s = [...document.querySelectorAll('*')].find((e) => e.scrollHeight > e.clientHeight + 200 && \
                    ['auto', 'scroll'].includes(getComputedStyle(e).overflowY));";
    eventually("the runs are listed", async || {
        let rows = driver.execute("return document.querySelectorAll('tbody tr').length", Vec::new()).await.ok()?;
        (rows.convert::<u64>().ok()? >= 40).then_some(())
    })
    .await;
    driver.execute(format!("{scroller} s.scrollTop = 300;"), Vec::new()).await?;
    // The browser sends the scroll event with the next frame; no person clicks sooner.
    wait_until_drawn(driver).await?;
    let link = "document.querySelectorAll('tbody a')[20].click()";
    driver.execute(link, Vec::new()).await?;
    eventually("the run is shown", async || {
        driver.current_url().await.ok()?.path().starts_with("/runs/").then_some(())
    })
    .await;
    driver.back().await?;
    eventually("the list is where it was", async || {
        let at = driver.execute(format!("{scroller} return s ? s.scrollTop : 0"), Vec::new()).await.ok()?;
        (at.convert::<f64>().ok()? > 250.0).then_some(())
    })
    .await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_cannot_be_loaded_says_so_and_is_tried_again() -> BrowserResult<()> {
    let (server, _) = with_reviews(1).await;
    let browser = logged_in(&server).await?;
    let driver = &browser.driver;
    let block = async |urls: &[&str]| {
        driver.cdp().send_raw("Network.setBlockedURLs", serde_json::json!({ "urls": urls })).await
    };
    driver.cdp().send_raw("Network.enable", serde_json::json!({})).await?;
    block(&["*/split_pages.wasm"]).await?;
    link(driver, "Runs").click().await?;
    wait_for_text(driver, "This page could not be loaded").await;
    assert!(!browser.errors().await.is_empty(), "the browser says why");
    assert!(link(driver, "Inbox").await?.is_displayed().await?, "the rest of the console goes on");
    block(&[]).await?;
    button(driver, "Try again").click().await?;
    wait_for_title(driver, "Runs · Countersign").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_list_is_asked_for_before_the_program_is_there() -> BrowserResult<()> {
    let (server, _) = with_reviews(25).await;
    let browser = logged_in(&server).await?;
    let driver = &browser.driver;
    let watch = "
        window.waited = false;
        const instantiate = WebAssembly.instantiate;
        WebAssembly.instantiate = async (...all) => {
            const program = await instantiate.apply(WebAssembly, all);
            window.there ??= performance.now();
            return program;
        };
        new MutationObserver(() => { waited ||= !!document.querySelector('.waiting') })
            .observe(document, { childList: true, subtree: true });";
    driver.cdp().send_raw("Page.enable", serde_json::json!({})).await?;
    let watch = serde_json::json!({ "source": watch });
    driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", watch).await?;
    driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_text(driver, "25 pending").await;
    let waited = driver.execute("return waited", Vec::new()).await?.convert::<bool>()?;
    assert!(!waited, "the frame is made once, with the name of who it is for");
    let asked = "
        const all = performance.getEntriesByType('resource');
        const early = all.filter((one) => one.name.includes('/api/') && one.startTime < there);
        return early.map((one) => one.name.slice(location.origin.length));";
    let early = driver.execute(asked, Vec::new()).await?.convert::<Vec<String>>()?;
    assert_eq!(early, ["/api/v1/me", "/api/v1/reviews?order=urgency&limit=20"]);
    let all = "return performance.getEntriesByType('resource').map((one) => one.name.slice(location.origin.length))";
    let all = driver.execute(all, Vec::new()).await?.convert::<Vec<String>>()?;
    for path in early {
        assert_eq!(all.iter().filter(|one| **one == path).count(), 1, "{path} was taken: {all:#?}");
    }
    // The rest of the list is read once the live socket follows.
    eventually("the list has all rows", async || {
        let style = driver.find(By::Css(".rows > ul")).await.ok()?.attr("style").await.ok()??;
        style.contains("* 25)").then_some(())
    })
    .await;
    // Without a session, the login page is shown.
    driver.delete_all_cookies().await?;
    driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_text(driver, "Log in").await;
    Login(driver).fill_in("admin").await?;
    wait_for_text(driver, "25 pending").await;
    browser.quit().await;
    Ok(())
}

/// A rejection is a regular end of a flow, and must not look like a failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_person_stopped_is_said_to_be_rejected() -> BrowserResult<()> {
    let server = reviewing::server(&[NOTE]).await;
    let tom = server.person("tom", &["reviewer", "developer"]).await;
    let run = reviewing::launch(&server, "note", serde_json::json!({})).await;
    let review = reviewing::pending(&tom).await;
    reviewing::decide(&tom, &review, reviewing::choose("stop"), serde_json::json!({})).await;
    let browser = logged_in_as(&server, "tom").await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/runs", server.base)).await?;
    let tag = driver.query(By::Css(".runs-table .run-status .tag")).first().await?;
    assert_eq!(tag.text().await?, "Rejected");
    assert!(driver.find_all(By::Css(".runs-table .stop")).await?.is_empty(), "nothing is red");
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    wait_for_text(driver, "The run ended: rejected").await;
    wait_for_text(driver, "Rejected. You chose “Stop”").await;
    assert!(
        driver.find_all(By::Css(".banner.stop, .run-head .tag.stop, .graph .failed")).await?.is_empty(),
        "nothing is red"
    );
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn copying_says_whether_it_worked() -> BrowserResult<()> {
    let server = reviewing::server(&[NOTE]).await;
    let run = reviewing::launch(&server, "note", serde_json::json!({})).await;
    let browser = logged_in_as(&server, "admin").await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/runs/{run}", server.base)).await?;
    let copy = driver.query(By::Css("[aria-label='Copy text']")).first().await?;
    copy.click().await?;
    driver.query(By::Css("[aria-label='Copied text']")).first().await?;
    // A page over plain HTTP from another machine has no access to the clipboard.
    driver.execute("Object.defineProperty(navigator, 'clipboard', { value: undefined })", Vec::new()).await?;
    locate(driver, By::Css("[aria-label='Copy text']")).click().await?;
    wait_for_text(driver, "This browser does not allow copying here.").await;
    let selected = driver.execute("return String(getSelection()).trim()", Vec::new()).await?.convert::<String>()?;
    assert_eq!(selected, "The original.");
    assert!(driver.find_all(By::Css("[aria-label='Copied text']")).await?.is_empty());
    browser.quit().await;
    Ok(())
}

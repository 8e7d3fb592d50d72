//! Things stay in place: the list does not move while a decision is held or after a visit to another page, and the
//! focus is not lost when the element that has it disappears.

use serde_json::{Value, json};
use shared::api::ReviewQuery;
use shared::inbox::ReviewOrder;
use shared::review::{Review, ReviewStatus};
use tests::locator::locate;
use tests::pages::{Inbox, button, button_starting, hold_the_next_decision, wait_for_path, wait_for_text};
use tests::reviewing::{NOTE, ReviewSetup, launch, launch_many, press_key, reading, server, text_of, wait_for_review};
use tests::{Api, BrowserResult, eventually};
use thirtyfour::prelude::*;

/// More reviews than the list keeps in memory.
const MANY: usize = 320;
/// The height of a row, in CSS pixels.
const ROW: usize = 77;

async fn value(driver: &WebDriver, script: &str) -> Value {
    driver.execute(script, Vec::new()).await.map(|value| value.json().clone()).expect("the page answers")
}

/// Returns at least `many` pending reviews, if there are as many, the most urgent first.
async fn queue(api: &Api, many: usize) -> Vec<Review> {
    let mut query = ReviewQuery {
        status: Some(ReviewStatus::Pending),
        order: Some(ReviewOrder::Urgency),
        limit: Some(100),
        ..ReviewQuery::default()
    };
    let mut all = Vec::new();
    while all.len() < many {
        let page = api.reviews(&query).await.expect("the queue");
        all.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_where_it_was_for_who_comes_back() -> BrowserResult<()> {
    let server = server(&[NOTE]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    launch_many(&server, "note", MANY).await;
    let all = eventually("all are asked", async || Some(queue(&ana, MANY).await).filter(|all| all.len() == MANY)).await;
    let browser = reading(&server, "ana", &all[0]).await?;
    let driver = &browser.driver;
    wait_for_text(driver, "320 pending").await;

    // So far down that the first pages of the list are no longer in memory.
    let far = ROW * 285;
    let row = format!("row-{}", all[288].id);
    eventually("it is scrolled there", async || {
        let scroll =
            format!("const rows = document.querySelector('.rows'); rows.scrollTop = {far}; return rows.scrollTop");
        let there = value(driver, &scroll).await == far;
        (there && driver.find(By::Id(&row)).await.is_ok()).then_some(())
    })
    .await;
    locate(driver, By::Id(&row)).click().await?;
    wait_for_path(driver, &format!("/reviews/{}", all[288].id)).await;
    let place = format!("return document.getElementById('{row}')?.getBoundingClientRect().top ?? null");
    let before = value(driver, &place).await;
    assert!(before.is_number(), "it is in sight");

    locate(driver, By::Css("a[href='/runs']")).click().await?;
    wait_for_text(driver, "Load older runs").await;
    driver.back().await?;
    eventually("the row stands where it stood", async || (value(driver, &place).await == before).then_some(())).await;
    let open = format!("return document.getElementById('{row}').ariaCurrent");
    assert_eq!(value(driver, &open).await, "true");

    // A link to the inbox leads to the top of the list.
    locate(driver, By::Css("a[href='/runs']")).click().await?;
    wait_for_text(driver, "Load older runs").await;
    locate(driver, By::Css("a[href='/inbox']")).click().await?;
    driver.query(By::Id(format!("row-{}", all[0].id))).first().await?;
    assert_eq!(value(driver, "return document.querySelector('.rows').scrollTop").await, 0);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_decision_moves_and_covers_nothing() -> BrowserResult<()> {
    let ReviewSetup { server, ana, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    launch_many(&server, "note", 14).await;
    let all = eventually("all are asked", async || Some(queue(&ana, 15).await).filter(|all| all.len() == 15)).await;
    let driver = &browser.driver;
    for (width, height, phone) in [(1440, 900, false), (390, 844, true)] {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone });
        driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", size).await?;
        let [first, second] = if phone { [&all[2], &all[3]] } else { [&all[0], &all[1]] };
        driver.goto(format!("{}/reviews/{}", server.base, first.id)).await?;
        wait_for_review(driver, first).await;
        driver.query(By::Id(format!("row-{}", first.id))).first().await?;
        let places = "return ['.head h1', '.main', '.acts button', '.rows', '.row'].map(css => { \
                const box = document.querySelector(css)?.getBoundingClientRect(); return box && [box.left, box.top] })";
        let before = value(driver, places).await;
        locate(driver, By::Css(".say textarea")).send_keys("Booked as agreed.").await?;
        hold_the_next_decision(driver).await?;
        Inbox(driver).press("Send it").await?;
        wait_for_text(driver, "Undo").await;
        press_key(driver, "j").await?;
        wait_for_path(driver, &format!("/reviews/{}", second.id)).await;
        let bar = driver.query(By::Css(".held-bar")).and_displayed().first().await?;
        eventually("nothing has moved", async || (value(driver, places).await == before).then_some(())).await;
        // No button or row overlaps the bar.
        let over = "const bar = [...document.querySelectorAll('.held-bar')].find(bar => bar.offsetHeight).getBoundingClientRect(); \
            return [...document.querySelectorAll('.row, .b, .say, .rail a')].filter(other => { \
                const clip = other.closest('.rows, .main')?.getBoundingClientRect(), box = other.getBoundingClientRect(); \
                const bottom = Math.min(box.bottom, clip?.bottom ?? Infinity), top = Math.max(box.top, clip?.top ?? 0); \
                return box.width && !other.closest('.held-bar') && box.left < bar.right && box.right > bar.left \
                    && top < bar.bottom - 1 && bottom > bar.top + 1 }).map(other => other.outerHTML.slice(0, 80))";
        assert_eq!(value(driver, over).await, json!([]), "it covers nothing at {width} px");
        let says = bar.text().await?;
        let decided = format!("Send it: {}", first.title);
        assert!(says.contains(&decided) && says.contains("“Booked as agreed.”"), "{says}");
        bar.find(By::Css("button")).await?.click().await?;
        wait_for_text(driver, &format!("Undone: “{}”. Nothing was sent.", first.title)).await;
        assert_eq!(value(driver, places).await, before);
    }
    assert_eq!(queue(&ana, 15).await.len(), 15, "nothing was sent");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_at_the_keys_is_never_left_nowhere() -> BrowserResult<()> {
    let ReviewSetup { server: _server, browser, .. } = ReviewSetup::open(&[], "release-notes").await?;
    let driver = &browser.driver;
    let has_focus = async |css: &'static str| {
        eventually(&format!("{css} has the focus"), async || {
            let script = format!("return document.activeElement.matches({})", json!(css));
            (value(driver, &script).await == true).then_some(())
        })
        .await;
    };
    let unfold = driver.query(By::Css(".unfold")).first().await?;
    unfold.focus().await?;
    unfold.send_keys(Key::Enter).await?;
    has_focus(".card.action footer .yes").await;

    driver.execute("document.activeElement.blur()", Vec::new()).await?;
    press_key(driver, "d").await?;
    locate(driver, By::Css("dialog[open] select")).usable().send_keys(Key::Escape).await?;
    has_focus(".read").await;
    driver.execute("document.activeElement.blur()", Vec::new()).await?;
    press_key(driver, "d").await?;
    driver.query(By::Css("dialog[open] select:focus")).first().await?;
    locate(driver, By::Css("dialog[open] [aria-label=Close]")).click().await?;
    has_focus(".read").await;
    press_key(driver, "c").await?;
    locate(driver, By::Css(".say textarea:focus")).send_keys(Key::Escape).await?;
    has_focus(".read").await;

    // A button that disappears when it is pressed.
    let press = async |css: &'static str| {
        let button = driver.query(By::Css(css)).and_displayed().first().await?;
        button.focus().await?;
        button.send_keys(Key::Enter).await
    };
    press(".claim button").await?;
    wait_for_text(driver, "Claimed by you").await;
    has_focus(".read").await;

    // A button that cannot be pressed again before the answer is there.
    locate(driver, By::Css(".comments input")).send_keys("Noted.").await?;
    browser.hold(Some("POST .*/comments")).await?;
    press(".comments button").await?;
    browser.held().await;
    has_focus(".comments button[aria-disabled=true]").await;
    browser.release(true).await?;
    wait_for_text(driver, "Noted.").await;
    has_focus(".comments button").await;

    let filters = driver.find(By::Css("[aria-controls=filters]")).await?;
    filters.click().await?;
    driver.query(By::Css("#filters select")).and_displayed().first().await?;
    filters.send_keys(Key::Escape).await?;
    has_focus("[aria-controls=filters][aria-expanded=false]").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_moved_in_the_page_keeps_the_focus() -> BrowserResult<()> {
    let steps = "
id: steps
input:
  type: object
  properties: { steps: { type: array, items: { type: string }, default: [one, two, three] } }
nodes: { done: { set: { done: true } } }
";
    let server = server(&[NOTE, steps]).await;
    let admin = server.admin().await;
    launch_many(&server, "note", 90).await;
    let all = eventually("all are asked", async || Some(queue(&admin, 90).await).filter(|all| all.len() == 90)).await;
    let browser = reading(&server, "admin", &all[45]).await?;
    let driver = &browser.driver;
    wait_for_text(driver, "90 pending").await;

    // The row of the open review stays in the page, before or after the rows in sight.
    let row = format!("row-{}", all[45].id);
    let scroll = async |to: usize| {
        let script = format!("document.querySelector('.rows').scrollTop = {to}");
        driver.execute(script, Vec::new()).await
    };
    let shows = async |at: usize| driver.query(By::Id(format!("row-{}", all[at].id))).first().await;
    // Without the window's focus, the browser sends no event for what is focused, as it does for a person.
    driver.cdp().send_raw("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await?;
    scroll(ROW * 45).await?;
    shows(45).await?.focus().await?;
    for (place, at) in [(ROW * 80, 82), (0, 1), (ROW * 80, 82)] {
        scroll(place).await?;
        shows(at).await?;
        let focus = "return [document.activeElement.id, document.querySelector('.rows').scrollTop > 0]";
        let found = "return [document.activeElement.outerHTML.slice(0, 200), document.hasFocus()]";
        let found = value(driver, found).await;
        assert_eq!(value(driver, focus).await, json!([row, place > 0]), "at row {at}: {found}");
    }

    // A row that is moved as far as it goes.
    driver.goto(format!("{}/flows/steps", server.base)).await?;
    driver.query(By::Css("[aria-label='Move row 3 up']")).first().await?.focus().await?;
    for rows in ["one, three, two", "three, one, two", "three, one, two"] {
        driver.active_element().await?.send_keys(Key::Enter).await?;
        let texts = "return [...document.querySelectorAll('.list-row input')].map(row => row.value).join(', ')";
        eventually(rows, async || (value(driver, texts).await == rows).then_some(())).await;
    }
    let label = driver.active_element().await?.attr("aria-label").await?;
    assert_eq!(label.as_deref(), Some("Move row 1 up"));
    browser.quit().await;
    Ok(())
}

/// When a list is loaded anew, the rows loaded so far stay, and so does the focus.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_runs_stays_where_it_is_when_a_lost_connection_is_back() -> BrowserResult<()> {
    let ReviewSetup { mut server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    launch_many(&server, "note", 60).await;
    driver.goto(format!("{}/runs", server.base)).await?;
    let rows = async || driver.find_all(By::Css(".runs-table tbody tr")).await.map_or(0, |rows| rows.len());
    locate(driver, By::XPath("//button[.='Load older runs']")).click().await?;
    eventually("all are loaded", async || (rows().await == 61).then_some(())).await;
    let focus = "const rows = [...document.querySelectorAll('.runs-table a')]; rows[57].focus(); \
        window.focused = rows[57]; return document.querySelector('.runs .in').scrollTop";
    let before = value(driver, focus).await;
    server.kill();
    wait_for_text(driver, "Reconnecting…").await;
    server.restart().await;
    eventually("it is connected", async || {
        let page = driver.find(By::Tag("body")).await.ok()?.text().await.ok()?;
        (!page.contains("Reconnecting…")).then_some(())
    })
    .await;
    launch(&server, "note", json!({})).await;
    eventually("a new one is listed", async || (rows().await == 62).then_some(())).await;
    let stays = "return document.activeElement === window.focused && window.focused.isConnected";
    assert_eq!(value(driver, stays).await, true);
    assert!(before.as_u64() > Some(0), "it is scrolled");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn shortcuts_that_are_switched_off_do_nothing() -> BrowserResult<()> {
    let ReviewSetup { server: _server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let switch = async || {
        locate(driver, By::Css(".who")).click().await?;
        button_starting(driver, "Single-key shortcuts").click().await?;
        press_key(driver, Key::Escape).await
    };
    switch().await?;
    for key in ["a", "r", "e", "d", "c", "j", "?", "1"] {
        press_key(driver, key).await?;
    }
    let page = text_of(driver, "body").await;
    assert!(!page.contains("Undo") && driver.find_all(By::Css("dialog[open]")).await?.is_empty(), "{page}");
    // The menu still lists them.
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Keyboard shortcuts").click().await?;
    wait_for_text(driver, "previous review").await;
    press_key(driver, Key::Escape).await?;
    switch().await?;
    // On a layout without Latin letters, a key is known by its place.
    hold_the_next_decision(driver).await?;
    let letter = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ф', code: 'KeyA', bubbles: true }))";
    driver.execute(letter, Vec::new()).await?;
    wait_for_text(driver, "Undo").await;
    browser.quit().await;
    Ok(())
}

/// A flow that asks about something grave, with a long name.
fn grave() -> String {
    NOTE.replace("id: note", "id: note\ntitle: Write, check and send a note to every customer of the year")
        .replace("prompt: Send this?", "prompt: Send this?\n      severity: high\n      reversible: false")
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_the_content_has_most_of_the_screen_and_no_notice_covers_what_is_read_or_pressed()
-> BrowserResult<()> {
    let ReviewSetup { server: _server, browser, review, .. } = ReviewSetup::open(&[&grave()], "note").await?;
    let driver = &browser.driver;
    browser.screen(390, 844).await;
    driver.refresh().await?;
    wait_for_review(driver, &review).await;
    let share = "return document.querySelector('.decide').offsetHeight / document.querySelector('.read').offsetHeight";
    let share = async || value(driver, share).await.as_f64().expect("a number");
    eventually("the bar takes at most a quarter", async || (share().await <= 0.25).then_some(())).await;
    let head = text_of(driver, ".head").await;
    assert!(head.contains("high") && head.contains("cannot be undone"), "{head}");
    let lines =
        "return new Set([...document.querySelectorAll('.acts .b')].map(b => b.getBoundingClientRect().top)).size";
    assert_eq!(value(driver, lines).await, 1, "the buttons share a line");
    locate(driver, By::Css(".metadata > summary")).click().await?;
    locate(driver, By::Css(".metadata[open] textarea")).usable().await?;
    locate(driver, By::Css(".metadata > summary")).click().await?;

    // The note grows while it is written, and then makes room again.
    let note = "return document.querySelector('.say textarea').offsetHeight";
    locate(driver, By::Css(".say textarea")).send_keys("Booked\nas\nagreed\nyesterday.").await?;
    eventually("the note is seen whole", async || (value(driver, note).await.as_f64()? >= 80.0).then_some(())).await;
    locate(driver, By::Css(".say textarea")).send_keys(Key::Escape).await?;
    eventually("the note makes room", async || (value(driver, note).await.as_f64()? <= 40.0).then_some(())).await;
    assert!(share().await <= 0.25);

    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Undo").await;
    press_key(driver, "u").await?;
    wait_for_text(driver, "Nothing was sent.").await;
    wait_for_text(driver, "Send it").await;
    let covered = "
        const notice = document.querySelector('.notice').getBoundingClientRect();
        return [...document.querySelectorAll('.head, .decide, .rail')].filter(other => {
            const box = other.getBoundingClientRect();
            return notice.top < box.bottom && notice.bottom > box.top;
        }).map(other => other.className)";
    assert_eq!(value(driver, covered).await, json!([]));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_small_screen_the_name_of_what_is_read_is_not_cut_by_a_claim() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, browser, review, .. } = ReviewSetup::open(&[&grave()], "note").await?;
    let driver = &browser.driver;
    ana.claim(review.id).await.expect("she claims it");
    browser.screen(1024, 768).await;
    wait_for_text(driver, "Claimed by you").await;
    let cut = "return [...document.querySelectorAll('.trail > :last-child, .claim > *')] \
        .filter(part => part.scrollWidth > part.clientWidth + 1).map(part => part.textContent)";
    assert_eq!(value(driver, cut).await, json!([]));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_the_run_of_a_review_is_named_beside_all_the_buttons_of_an_admin() -> BrowserResult<()> {
    let server = server(&[NOTE]).await;
    launch(&server, "note", json!({})).await;
    let admin = server.admin().await;
    let review = eventually("it is asked", async || queue(&admin, 1).await.pop()).await;
    let browser = reading(&server, "admin", &review).await?;
    let driver = &browser.driver;
    button(driver, "Reassign").await?;
    let hidden = "
        const run = document.querySelector('.trail > .nowrap');
        const box = run.getBoundingClientRect();
        const covers = [...document.querySelectorAll('.claim, .asides')].map(part => part.getBoundingClientRect())
            .some(part => part.left < box.right && part.right > box.left && part.top < box.bottom && part.bottom > box.top);
        return covers || run.scrollWidth > run.clientWidth + 1";
    for (width, height) in [(390, 844), (844, 390)] {
        browser.screen(width, height).await;
        assert_eq!(value(driver, hidden).await, json!(false), "at {width}x{height}");
    }
    browser.quit().await;
    Ok(())
}

//! Notifications of the browser: only for those who want them, only while nobody looks, few of them, and none decides.

use serde_json::{Value, json};
use shared::review::Review;
use tests::device::Screen;
use tests::locator::locate;
use tests::pages::{Inbox, button, hold_the_next_decision, wait_for_path, wait_for_text};
use tests::reviewing::{NOTE, ReviewSetup, choose, decide, launch};
use tests::{Api, Browser, BrowserResult, eventually};
use thirtyfour::prelude::*;

const SCREENS: [Screen; 6] =
    [(390, 844, false), (390, 844, true), (1024, 768, false), (1024, 768, true), (1440, 900, false), (1440, 900, true)];

/// A script with a browser's notifications, which are kept in `shown`: the person answers its question with `answer` of
/// the session storage. `looked` counts how often other tabs were looked for. `sight(false)` takes the tab out of sight.
const STUB: &str = "
    if (!window.shown) {
        window.shown = [];
        window.asked = 0;
        window.looked = 0;
        const locks = navigator.locks;
        const query = locks.query.bind(locks);
        locks.query = () => query().finally(() => (window.looked += 1));
        let hidden = sessionStorage.getItem('hidden') === 'true';
        Object.defineProperty(document, 'hidden', { get: () => hidden });
        window.sight = (is) => {
            hidden = !is;
            document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
        };
        window.Notification = class {
            static get permission() { return sessionStorage.getItem('permission') ?? 'default'; }
            static async requestPermission() {
                window.asked += 1;
                sessionStorage.setItem('permission', sessionStorage.getItem('answer') ?? 'granted');
                return Notification.permission;
            }
            constructor(title, { tag, body } = {}) {
                if (sessionStorage.getItem('android')) throw new TypeError('Illegal constructor');
                Object.assign(this, { title, tag, body });
                if (Notification.permission !== 'granted') return;
                window.shown = window.shown.filter((other) => other.tag !== tag).concat(this);
            }
            close() { window.shown = window.shown.filter((other) => other !== this); }
        };
    }";

async fn value(driver: &WebDriver, script: &str) -> Value {
    driver.execute(script, Vec::new()).await.map(|value| value.json().clone()).expect("the page answers")
}

/// The titles and bodies of what is shown.
async fn shown(driver: &WebDriver) -> Vec<(String, String)> {
    let script = "return window.shown.map(({ title, body }) => [title, body])";
    serde_json::from_value(value(driver, script).await).expect("titles and bodies")
}

/// Waits until what is shown has these titles.
async fn wait_for_titles(driver: &WebDriver, titles: &[&str]) {
    eventually(&format!("{titles:?} are shown"), async || {
        let shown = shown(driver).await;
        shown.iter().map(|(title, _)| title.as_str()).eq(titles.iter().copied()).then_some(())
    })
    .await;
}

/// Lets Ana read the settings of her browser, which has the notifications of [`STUB`].
async fn settings(setup: &ReviewSetup) -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = setup;
    browser.with_axe().await;
    browser.before_each_page(STUB).await?;
    browser.driver.goto(format!("{}/people?tab=notifications", server.base)).await?;
    wait_for_text(&browser.driver, "This browser").await;
    Ok(())
}

async fn flip(browser: &Browser, label: &str) -> BrowserResult<WebElement> {
    let path = format!("//label[contains(., '{label}')]/input[@role='switch']");
    let switch = browser.driver.query(By::XPath(path)).first().await?;
    switch.click().await?;
    Ok(switch)
}

async fn launch_several(setup: &ReviewSetup, count: usize) {
    for _ in 0..count {
        launch(&setup.server, "note", json!({})).await;
    }
}

async fn reviews(api: &Api) -> Vec<Review> {
    api.reviews(&shared::api::ReviewQuery::default()).await.expect("reviews").items
}

const ONE: &str = "A review waits for you · Medium";

#[tokio::test(flavor = "multi_thread")]
async fn who_is_out_of_sight_is_notified_a_few_times_and_opens_the_review_by_a_click() -> BrowserResult<()> {
    let setup = ReviewSetup::open(&[NOTE], "note").await?;
    settings(&setup).await?;
    let (browser, driver) = (&setup.browser, &setup.browser.driver);
    assert_eq!(value(driver, "return window.asked").await, 0, "nobody is asked unasked");
    let switch = flip(browser, "Notify me when").await?;
    eventually("it is on", async || switch.is_selected().await.ok()?.then_some(())).await;
    assert_eq!(value(driver, "return window.asked").await, 1);
    driver.query(By::XPath("//b[. = 'Show what is asked']")).first().await?;
    browser.is_readable("this-browser", &SCREENS).await;

    // In sight, a review is only in the list; and what was there before is no news either.
    launch_several(&setup, 1).await;
    eventually("the badge counts it", async || {
        (value(driver, "return document.querySelector('.rail .n')?.innerText").await == "2").then_some(())
    })
    .await;
    driver.execute("sight(false)", Vec::new()).await?;
    launch_several(&setup, 5).await;
    wait_for_titles(driver, &[ONE, ONE, ONE, "2 more reviews wait for you"]).await;

    // Somebody else decides one of them.
    let script = "return window.shown.map((one) => one.tag)";
    let tags: Vec<String> = serde_json::from_value(value(driver, script).await).expect("tags");
    let all = reviews(&setup.tom).await;
    let of = |tag: &str| all.iter().find(|review| review.id.to_string() == tag).expect("a review");
    decide(&setup.tom, of(&tags[0]), choose("send"), json!({})).await;
    wait_for_titles(driver, &[ONE, ONE, "2 more reviews wait for you"]).await;
    driver.execute("window.shown[0].onclick()", Vec::new()).await?;
    wait_for_path(driver, &format!("/reviews/{}", tags[1])).await;
    wait_for_titles(driver, &[ONE, "2 more reviews wait for you"]).await;
    assert!(setup.ana.review(of(&tags[1]).id).await.expect("it").is_pending(), "a click decides nothing");

    // Whoever takes the place of the person who leaves sees nothing of hers.
    driver.execute("sight(true)", Vec::new()).await?;
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "Password").await;
    wait_for_titles(driver, &[]).await;
    setup.browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_in_sight_is_enough_and_what_is_asked_is_said_only_on_request() -> BrowserResult<()> {
    let setup = ReviewSetup::open(&[NOTE], "note").await?;
    settings(&setup).await?;
    let (browser, driver) = (&setup.browser, &setup.browser.driver);
    flip(browser, "Notify me when").await?;
    flip(browser, "Show what is asked").await?;
    let first = driver.window().await?;
    driver.execute("sight(false)", Vec::new()).await?;
    let second = driver.new_tab().await?;
    driver.switch_to_window(second).await?;
    browser.before_each_page(STUB).await?;
    driver.goto(format!("{}/inbox", setup.server.base)).await?;
    wait_for_text(driver, "1 pending").await;
    launch_several(&setup, 1).await;
    wait_for_text(driver, "2 pending").await;
    // The first tab has heard of it too, and has looked whether another is in sight.
    driver.switch_to_window(first.clone()).await?;
    eventually("it has looked", async || (value(driver, "return looked").await == 1).then_some(())).await;
    driver.switch_to_window(driver.windows().await?.pop().expect("two")).await?;
    driver.close_window().await?;
    driver.switch_to_window(first).await?;
    launch(&setup.server, "note", json!({ "text": "Another one." })).await;
    let shown = eventually("it is shown", async || {
        let shown = shown(driver).await;
        (!shown.is_empty()).then_some(shown)
    })
    .await;
    assert_eq!(shown, [("Medium · Send this? · Another one.".to_owned(), "note".to_owned())], "the other one was seen");
    setup.browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_shows_none_says_why() -> BrowserResult<()> {
    let setup = ReviewSetup::open(&[NOTE], "note").await?;
    settings(&setup).await?;
    let (browser, driver) = (&setup.browser, &setup.browser.driver);
    driver.execute("sessionStorage.setItem('answer', 'denied')", Vec::new()).await?;
    flip(browser, "Notify me when").await?;
    wait_for_text(driver, "This browser blocks notifications of Countersign").await;
    assert!(driver.find_all(By::Css("[role=switch]")).await?.is_empty());
    browser.is_readable("this-browser-denied", &SCREENS[..2]).await;
    let android = "sessionStorage.setItem('android', 1); sessionStorage.removeItem('permission')";
    driver.execute(android, Vec::new()).await?;
    driver.refresh().await?;
    wait_for_text(driver, "This browser cannot show notifications").await;
    // Decisions work as ever.
    driver.goto(format!("{}/reviews/{}", setup.server.base, setup.review.id)).await?;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Undo").await;
    setup.browser.quit().await;
    Ok(())
}

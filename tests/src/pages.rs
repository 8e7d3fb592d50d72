//! The console's pages as a person uses them: elements are found by text and role, not by how the page is built.

use serde_json::json;
use thirtyfour::prelude::*;

use crate::locator::{Locator, locate};
use crate::server::PASSWORD;
use crate::wait::{DEADLINE, POLL, eventually};

/// The login page.
#[derive(Debug)]
pub struct Login<'a>(pub &'a WebDriver);

impl Login<'_> {
    /// Opens the console at `base`, and logs in.
    pub async fn log_in(&self, base: &str, username: &str) -> WebDriverResult<()> {
        self.0.goto(format!("{base}/login")).await?;
        self.fill_in(username).await
    }

    /// Logs in on a page that already knows the username, and asks for the password only.
    pub async fn log_in_again(&self) -> WebDriverResult<()> {
        field(self.0, "password").send_keys(PASSWORD).await?;
        button(self.0, "Log in").click().await
    }

    /// Logs in on the login page that the browser shows.
    pub async fn fill_in(&self, username: &str) -> WebDriverResult<()> {
        field(self.0, "username").send_keys(username).await?;
        field(self.0, "password").send_keys(PASSWORD).await?;
        button(self.0, "Log in").click().await
    }
}

/// The inbox: its list, and the open review.
#[derive(Debug)]
pub struct Inbox<'a>(pub &'a WebDriver);

impl Inbox<'_> {
    /// Waits for a card with this text, and opens it.
    pub async fn open_card(&self, text: &str) -> WebDriverResult<()> {
        let card = format!("//a[contains(@href, '/reviews/')][contains(., {})]", quoted(text));
        locate(self.0, By::XPath(card)).click().await
    }

    /// Waits until no card has this text.
    pub async fn wait_gone(&self, text: &str) -> WebDriverResult<()> {
        let card = format!("//a[contains(@href, '/reviews/')][contains(., {})]", quoted(text));
        self.0.query(By::XPath(card)).wait(DEADLINE, POLL).wait_until_gone().await
    }

    /// Presses a button of the open review.
    pub async fn press(&self, label: &str) -> WebDriverResult<()> {
        button(self.0, label).click().await
    }

    /// The number of waiting reviews in the page's title, such as `(3) Inbox`. `None` if the title has no number.
    pub async fn badge(&self) -> WebDriverResult<Option<u64>> {
        let title = self.0.title().await?;
        Ok(title.strip_prefix('(').and_then(|rest| rest.split_once(')')).and_then(|(count, _)| count.parse().ok()))
    }
}

/// Waits until the page shows `text`.
pub async fn wait_for_text(driver: &WebDriver, text: &str) {
    eventually(&format!("the page shows `{text}`"), async || {
        let body = driver.find(By::Tag("body")).await.ok()?.text().await.ok()?;
        body.contains(text).then_some(())
    })
    .await;
}

/// Waits until the tab has this title.
pub async fn wait_for_title(driver: &WebDriver, title: &str) {
    eventually(&format!("the tab is called `{title}`"), async || (driver.title().await.ok()? == title).then_some(()))
        .await;
}

/// Waits until the address of the page has this path and query.
pub async fn wait_for_path(driver: &WebDriver, wanted: &str) {
    eventually(&format!("the address is {wanted}"), async || {
        let url = driver.current_url().await.ok()?;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        (format!("{}{query}", url.path()) == wanted).then_some(())
    })
    .await;
}

/// Follows a link to a path of the console, which does not load the program anew as opening the address would.
pub async fn follow_link(driver: &WebDriver, path: &str) -> WebDriverResult<()> {
    let script = "const link = document.createElement('a'); link.href = arguments[0]; \
        document.querySelector('main').append(link); link.click()";
    driver.execute(script, vec![json!(path)]).await.map(|_| ())
}

/// The number of entries in the browser's storage whose keys start with `countersign.` and this, such as `draft.ana/`.
pub async fn stored(driver: &WebDriver, start: &str) -> WebDriverResult<usize> {
    let count = "return Object.keys(localStorage).filter(key => key.startsWith('countersign.' + arguments[0])).length";
    driver.execute(count, vec![json!(start)]).await?.convert()
}

/// A link of the main navigation with this title.
pub fn link<'a>(driver: &'a WebDriver, name: &str) -> Locator<'a> {
    let path = format!("//nav[@aria-label='Main']/a[@title={}]", quoted(name));
    locate(driver, By::XPath(path)).usable()
}

/// An input, text area or select with this name, label or `aria-label`.
pub fn field<'a>(driver: &'a WebDriver, name: &str) -> Locator<'a> {
    let quoted = quoted(name);
    let path = format!(
        "//*[self::input or self::textarea or self::select][@name={quoted} or @aria-label={quoted} or \
         @id=//label[contains(translate(., 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), {quoted})]/@for \
         or ancestor::label[contains(translate(., 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), {quoted})]]"
    );
    locate(driver, By::XPath(path)).usable()
}

/// The label of a button in XPath: its text without the key that it shows at its end.
const LABEL: &str = "normalize-space(substring(., 1, string-length(.) - string-length(kbd)))";

/// The button with this label, once it can be pressed.
pub fn button<'a>(driver: &'a WebDriver, label: &str) -> Locator<'a> {
    pressable(driver, &format!("{LABEL} = {}", quoted(label)))
}

/// A button whose label starts with `start`, such as a filter with its count, once it can be pressed.
pub fn button_starting<'a>(driver: &'a WebDriver, start: &str) -> Locator<'a> {
    pressable(driver, &format!("starts-with({LABEL}, {})", quoted(start)))
}

/// Waits until the browser has drawn the page, and sent the events that come with that, such as `scroll`.
pub async fn wait_until_drawn(driver: &WebDriver) -> WebDriverResult<()> {
    let drawn = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)))";
    driver.execute_async(drawn, Vec::new()).await.map(|_| ())
}

/// Presses "Send now" of a decision that is held. Does nothing if the time to undo it is over: then it is sent anyway.
pub async fn send_now(driver: &WebDriver) {
    let path = format!("//button[{LABEL} = 'Send now']");
    eventually("the decision is sent", async || {
        let held = driver.find_all(By::XPath(path.as_str())).await.ok()?;
        let Some(button) = held.first() else { return Some(()) };
        button.click().await.ok()
    })
    .await;
}

/// Makes the next decision on this page wait for [`send_now`] or [`end_the_time_to_undo`], however long a test looks at
/// it before. Call this directly before the decision is made: it holds whatever comes next that takes as long.
pub async fn hold_the_next_decision(driver: &WebDriver) -> WebDriverResult<()> {
    let script = "
        const { setTimeout } = window;
        window.setTimeout = (call, wait, ...rest) => {
            if (wait !== 5000) return setTimeout(call, wait, ...rest);
            window.setTimeout = setTimeout;
            window.endTimeToUndo = () => call(...rest);
            return 0;
        };";
    driver.execute(script, Vec::new()).await.map(|_| ())
}

/// Ends the time to undo the decision that [`hold_the_next_decision`] makes wait, so that the page sends it by itself.
pub async fn end_the_time_to_undo(driver: &WebDriver) -> WebDriverResult<()> {
    driver.execute("endTimeToUndo()", Vec::new()).await.map(|_| ())
}

fn pressable<'a>(driver: &'a WebDriver, condition: &str) -> Locator<'a> {
    let path = format!("//*[self::button or @role='button'][not(@aria-disabled='true')][{condition}]");
    locate(driver, By::XPath(path)).usable()
}

/// A text as an XPath string literal. A text with both kinds of quotes is not supported.
fn quoted(text: &str) -> String {
    if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") }
}

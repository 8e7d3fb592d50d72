//! The page of a review never mixes what a person has typed with what is recorded, and nothing is decided unseen.

use serde_json::json;
use shared::decision::{ActionDecision, Verdict, Via};
use tests::locator::locate;
use tests::pages::{
    Inbox, Login, button, end_the_time_to_undo, follow_link, hold_the_next_decision, send_now, stored, wait_for_text,
};
use tests::reviewing::{
    NOTE, ReviewSetup, choose, decide, edit_text, launch, pending, press_key, reading, server, text_of, wait_for_review,
};
use tests::server::PASSWORD;
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_sent_is_never_shown_as_what_was_decided() -> BrowserResult<()> {
    let ReviewSetup { server: _server, tom, review, browser: ana, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    edit_text(&ana.driver, " Ana never sent this.").await?;
    decide(&tom, &review, choose("send"), json!({})).await;

    for _ in 0..2 {
        wait_for_text(&ana.driver, "What you wrote was not sent").await;
        let card = text_of(&ana.driver, "section.item").await;
        assert!(card.contains("The original.") && !card.contains("Ana never sent this"), "{card}");
        assert!(!card.contains("accepted") && !card.contains("edited"), "tom accepted it as it was: {card}");
        // The same after a reload.
        ana.driver.refresh().await?;
    }
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_shown_with_what_it_says_and_what_was_decided_for_it() -> BrowserResult<()> {
    let ReviewSetup { server: _server, tom, review, browser: ana, .. } =
        ReviewSetup::open(&[], "release-notes").await?;
    // Critical calls must be opened one by one; there is no button for all of them.
    for name in ["publish_page", "send_newsletter"] {
        let card = ana.driver.find(By::Css(format!("section.action[aria-label='{name}']"))).await?;
        assert!(!card.text().await?.contains("Approve"), "it is not opened yet");
        card.find(By::Css("button.unfold")).await?.click().await?;
        card.find(By::Css("button.no")).await?.click().await?;
    }
    let bar = text_of(&ana.driver, ".decide").await;
    assert!(!bar.contains("all 2") && bar.contains("Reject 2"), "{bar}");

    // A text among the arguments is laid out as Markdown, and its edit is compared by words.
    let page = "section.action[aria-label='publish_page']";
    assert_eq!(text_of(&ana.driver, &format!("{page} .json .prose strong")).await, "Faster search.");
    locate(&ana.driver, By::Css(format!("{page} footer .change"))).click().await?;
    let text = locate(&ana.driver, By::Css(format!("{page} .fields textarea")));
    text.send_keys(Key::Control + Key::End).await?;
    text.send_keys("Dark colours.").await?;
    wait_for_text(&ana.driver, "Dark colours.").await;
    let inserted = text_of(&ana.driver, &format!("{page} .diff-words ins")).await;
    assert!(inserted.contains("Dark colours."), "{inserted}");

    let approved = review.actions.iter().map(|action| (action.id.clone(), ActionDecision::APPROVE)).collect();
    decide(&tom, &review, Verdict::Actions { decisions: approved, instructions: None }, json!({})).await;
    wait_for_text(&ana.driver, "tom approved").await;
    let cards = ana.driver.find_all(By::Css("section.action")).await?;
    assert_eq!(cards.len(), 2);
    for card in cards {
        let text = card.text().await?;
        assert!(text.contains("approved") && !text.contains("does not run"), "{text}");
    }
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_belongs_to_who_wrote_it() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    edit_text(&browser.driver, " Of Ana.").await?;
    let is_kept = async || (stored(&browser.driver, "draft.ana/").await.ok()? > 0).then_some(());
    eventually("the draft is kept", is_kept).await;
    // Her session ends without a logout, and another person uses this browser.
    browser.driver.delete_all_cookies().await?;
    Login(&browser.driver).log_in(&server.base, "tom").await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_review(&browser.driver, &review).await;
    let page = text_of(&browser.driver, "article.read").await;
    assert!(!page.contains("Of Ana") && !page.contains("with your edit"), "{page}");

    // Ana finds her draft again.
    browser.driver.delete_all_cookies().await?;
    Login(&browser.driver).log_in(&server.base, "ana").await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&browser.driver, "with your edit").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_decided_in_the_name_of_whoever_has_logged_in_in_another_tab() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    // The tabs of a browser share one session. This page does not notice that the session is Tom's now, since Ana's
    // does not end with his login.
    driver.delete_all_cookies().await?;
    let log_in = "const [username, password, done] = arguments; fetch('/api/v1/session', { method: 'POST', \
        headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ username, password }) }) \
        .then(response => done(response.status))";
    let status = driver.execute_async(log_in, vec![json!("tom"), json!(PASSWORD)]).await?;
    assert_eq!(status.convert::<u16>()?, 200);
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Log in").await;
    let pending = ana.review(review.id).await.expect("her review");
    assert!(pending.is_pending() && pending.decisions.is_empty(), "{pending:?}");

    // Ana is asked for her password, and then for her decision, unless it is still held.
    Login(driver).log_in_again().await?;
    let send = async || locate(driver, By::XPath("//button[.='Send now' or .='Send again']")).click().await;
    let over = eventually("it is over", async || {
        drop(send().await);
        ana.review(review.id).await.ok().filter(|review| !review.is_pending())
    })
    .await;
    assert_eq!(over.decisions.iter().map(|decision| decision.by.to_string()).collect::<Vec<_>>(), ["ana"]);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_on_an_older_revision_is_not_sent_before_the_new_one_was_read() -> BrowserResult<()> {
    let flow = NOTE.replace("id: note", "id: both").replace(
        "      edit_keys: [text]\n",
        "      edit_keys: [text]\n      policy: { groups: { editor: 1, legal: 1 } }\n",
    );
    let server = server(&[&flow]).await;
    let eli = server.person("eli", &["reviewer", "editor"]).await;
    server.person("tom", &["reviewer", "legal"]).await;
    launch(&server, "both", json!({})).await;
    let review = pending(&eli).await;
    let tom = reading(&server, "tom", &review).await?;
    edit_text(&tom.driver, " Of Tom.").await?;
    wait_for_text(&tom.driver, "with your edit").await;
    tom.driver.goto(format!("{}/runs", server.base)).await?;
    wait_for_text(&tom.driver, "Runs").await;
    decide(&eli, &review, choose("send"), json!({ "text": "The original, corrected by Eli." })).await;

    tom.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&tom.driver, "changed since revision 1").await;
    wait_for_text(&tom.driver, "corrected by Eli").await;
    // A shortcut does not send the draft.
    press_key(&tom.driver, "a").await?;
    wait_for_text(&tom.driver, "Look at the change before you decide").await;
    let now = pending(&eli).await;
    assert_eq!((now.revision, now.decisions.len()), (2, 1), "only Eli has voted");
    button(&tom.driver, "I have seen it").click().await?;
    button(&tom.driver, "Your changes").click().await?;
    wait_for_text(&tom.driver, "corrected by Eli").await;
    Inbox(&tom.driver).press("Send it, with your edit").await?;
    eventually("both have voted", async || (eli.review(review.id).await.ok()?.revision == 3).then_some(())).await;
    tom.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_decides_behind_a_menu_or_a_dialog_and_a_deadline_does_not_take_a_decision() -> BrowserResult<()> {
    let soon = NOTE.replace("id: note", "id: soon").replace("options:", "timeout: 6s\n      options:");
    let ReviewSetup { server, ana, browser, .. } = ReviewSetup::open(&[NOTE, &soon], "note").await?;
    let driver = &browser.driver;
    let is_undecided = async || {
        let bar = text_of(driver, ".decide").await;
        assert!(!bar.contains("Undo"), "{bar}");
    };
    locate(driver, By::Css(".who")).click().await?;
    driver.query(By::Css("#account")).first().await?;
    press_key(driver, "a").await?;
    press_key(driver, Key::Escape).await?;
    is_undecided().await;
    for opens in ["d", "?"] {
        press_key(driver, opens).await?;
        locate(driver, By::Css("dialog[open]")).await?;
        driver.action_chain().send_keys("a").perform().await?;
        // A click beside the fields of a dialog leaves the focus to the page.
        let outside = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }))";
        driver.execute(outside, Vec::new()).await?;
        is_undecided().await;
        driver.action_chain().send_keys(Key::Escape).perform().await?;
        eventually("it is closed", async || driver.find(By::Css("dialog[open]")).await.err().map(|_| ())).await;
    }
    hold_the_next_decision(driver).await?;
    press_key(driver, "a").await?;
    wait_for_text(driver, "Undo").await;
    end_the_time_to_undo(driver).await?;
    wait_for_text(driver, "You chose “Send it”").await;

    // The time for undoing would outlast the deadline, so it is cut short, and the decision counts. Loading the whole
    // page could outlast the deadline too.
    launch(&server, "soon", json!({})).await;
    let review = pending(&ana).await;
    follow_link(driver, &format!("/reviews/{}", review.id)).await?;
    Inbox(driver).press("Send it").await?;
    let over = eventually("it is over", async || {
        let review = ana.review(review.id).await.ok()?;
        (!review.is_pending()).then_some(review)
    })
    .await;
    assert_eq!(over.resolution.map(|resolution| resolution.via), Some(Via::Human));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_agree_on_a_draft() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let first = driver.window().await?;
    driver.switch_to_window(driver.new_tab().await?).await?;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_review(driver, &review).await;
    edit_text(driver, " From the second tab.").await?;
    wait_for_text(driver, "with your edit").await;
    let second = driver.window().await?;
    driver.switch_to_window(first).await?;
    wait_for_text(driver, "with your edit").await;
    // The draft that would be sent is shown, here and when this tab comes back to the page.
    wait_for_text(driver, "From the second tab.").await;
    driver.goto(format!("{}/runs", server.base)).await?;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(driver, "From the second tab.").await;
    // A draft discarded in one tab is gone in the other.
    button(driver, "Discard changes").click().await?;
    driver.switch_to_window(second).await?;
    eventually("the draft is gone", async || {
        (!text_of(driver, ".decide").await.contains("with your edit")).then_some(())
    })
    .await;
    browser.quit().await;
    Ok(())
}

/// Forms show what would be sent, even if another tab changes it while they are open.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_form_shows_what_another_tab_has_typed() -> BrowserResult<()> {
    let two = NOTE
        .replace("{ default: The original. } }", "{ default: The original. }, price: { default: 20 } }")
        .replace("label: Text }]", "label: Text }, { key: price, label: Price }]")
        .replace("edit_keys: [text]", "edit_keys: [text, { key: price, schema: { type: integer } }]");
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[&two], "note").await?;
    let driver = &browser.driver;
    let open = async || {
        for card in ["Text", "Price"] {
            let edit = format!("//section[@aria-label='{card}']//button[@role='tab'][normalize-space()='Edit']");
            locate(driver, By::XPath(edit)).click().await?;
        }
        WebDriverResult::Ok(())
    };
    let (text, price) = ("[aria-label='Edit Text']", "section[aria-label=Price] .field input");
    let first = driver.window().await?;
    open().await?;
    locate(driver, By::Css(text)).send_keys(" First.").await?;
    wait_for_text(driver, "with your edit").await;
    let second = driver.new_tab().await?;
    driver.switch_to_window(second).await?;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(driver, "with your edit").await;
    open().await?;
    locate(driver, By::Css(text)).send_keys(" Second.").await?;
    locate(driver, By::Css(price)).send_keys("5").await?;
    driver.switch_to_window(first).await?;
    for (css, expected) in [(text, "The original. First. Second."), (price, "205")] {
        eventually(&format!("{css} holds {expected}"), async || {
            (driver.find(By::Css(css)).await.ok()?.value().await.ok()??.as_str() == expected).then_some(())
        })
        .await;
    }
    // The form's JSON tab follows too.
    button(driver, "JSON").click().await?;
    driver.switch_to_window(driver.windows().await?.remove(1)).await?;
    locate(driver, By::Css(price)).send_keys("0").await?;
    driver.switch_to_window(driver.windows().await?.remove(0)).await?;
    eventually("the JSON follows", async || {
        (driver.find(By::Css("section[aria-label=Price] textarea")).await.ok()?.value().await.ok()?? == "2050")
            .then_some(())
    })
    .await;
    Inbox(driver).press("Send it, with your 2 edits").await?;
    send_now(driver).await;
    let over =
        eventually("it is over", async || ana.review(review.id).await.ok().filter(|review| !review.is_pending()));
    let edits = over.await.decisions.remove(0).edits;
    assert_eq!(json!(edits), json!({ "text": "The original. First. Second.", "price": 2050 }));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_is_near_for_who_comes_by_keys() -> BrowserResult<()> {
    let ReviewSetup { server: _server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    driver.query(By::Css(".acts button")).first().await?;
    driver.query(By::Css(".side .comments input")).first().await?;
    let has_focus = async |css: &str| {
        let script = "return document.activeElement.matches(arguments[0])";
        driver.execute(script, vec![json!(css)]).await?.convert::<bool>()
    };
    let from_row =
        async || driver.execute(format!("document.getElementById('row-{}').focus()", review.id), Vec::new()).await;
    let tab = async || driver.action_chain().send_keys(Key::Tab).perform().await;

    // The first stop of the Tab key after the row is a link to the decision.
    from_row().await?;
    tab().await?;
    assert!(has_focus(".to-decision").await?, "{}", driver.active_element().await?.outer_html().await?);
    driver.active_element().await?.send_keys(Key::Enter).await?;
    eventually("the first button has the focus", async || has_focus(".acts button").await.ok()?.then_some(())).await;
    assert!(driver.active_element().await?.text().await?.contains("Send it"), "what accepts comes first");

    // The second stop of the page is one too.
    driver.refresh().await?;
    driver.query(By::Css(".to-decision")).first().await?;
    tab().await?;
    assert_eq!(driver.active_element().await?.text().await?, "Skip to content");
    tab().await?;
    assert_eq!(driver.active_element().await?.text().await?, "Skip to the decision");
    driver.active_element().await?.send_keys(Key::Enter).await?;
    eventually("the first button has the focus", async || has_focus(".acts button").await.ok()?.then_some(())).await;

    // Pressing Tab repeatedly also gets there, within twelve stops.
    from_row().await?;
    let mut stops = Vec::new();
    while !has_focus(".acts button").await? {
        tab().await?;
        stops.push(driver.active_element().await?.outer_html().await?.chars().take(60).collect::<String>());
        assert!(stops.len() <= 12, "{stops:#?}");
    }
    browser.quit().await;
    Ok(())
}

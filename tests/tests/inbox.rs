//! The inbox is correct at any size: the server orders, searches and counts it, and the list is a window over that.

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use shared::api::{ReviewQuery, UserPatch};
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::inbox::ReviewOrder;
use shared::review::Review;
use tests::locator::locate;
use tests::pages::{Inbox, Login, button, button_starting, field, wait_for_path, wait_for_text, wait_for_title};
use tests::reviewing::launch_of;
use tests::{Api, Browser, BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

const ASK: &str = "
id: ask
nodes:
  ask:
    human:
      prompt: \"About {{ subject }}?\"
      review_keys: [{ key: text, label: Text }]
      edit_keys: [text]
      options: [{ id: ok, label: Fine }]
";

/// Starts a server with the flow `ask` and variants of it, each with another timeout, severity or role.
async fn server() -> Server {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    for (id, more) in [
        ("ask", ""),
        ("urgent", "      timeout: 20m\n"),
        ("grave", "      severity: critical\n"),
        ("legal", "      reviewers: { roles: [legal] }\n"),
    ] {
        server.save(&format!("{}{more}", ASK.trim_start().replace("id: ask", &format!("id: {id}")))).await;
    }
    server
}

/// Launches a run of a flow for each subject, and waits until each has asked.
async fn ask(api: &Api, flow: &str, subjects: impl IntoIterator<Item = String>) {
    let before = api.facets(&ReviewQuery::default()).await.expect("they are counted").total;
    let launches = subjects.into_iter().map(|subject| {
        let input = json!({ "subject": subject, "text": format!("A text about {subject}.") });
        let launch = launch_of(flow, input);
        async move { api.launch(&launch, None).await }
    });
    let runs: Vec<_> = stream::iter(launches).buffered(8).try_collect().await.expect("they start");
    eventually("each run has asked", async || {
        let total = api.facets(&ReviewQuery::default()).await.ok()?.total;
        (total >= before + runs.len() as u64).then_some(())
    })
    .await;
}

fn many(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("matter {number}"))
}

/// Returns all reviews that match a query, the most urgent first.
async fn queue(api: &Api, query: &ReviewQuery) -> Vec<Review> {
    let mut query = ReviewQuery { order: Some(ReviewOrder::Urgency), limit: Some(200), ..query.clone() };
    let mut all = Vec::new();
    loop {
        let page = api.reviews(&query).await.expect("a page");
        all.extend(page.items);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return all;
        }
    }
}

async fn logged_in(server: &Server, username: &str, width: u32) -> BrowserResult<Browser> {
    let browser = Browser::start(width, 900).await;
    Login(&browser.driver).log_in(&server.base, username).await?;
    wait_for_text(&browser.driver, "pending").await;
    Ok(browser)
}

async fn value(driver: &WebDriver, script: &str) -> Value {
    driver.execute(script, Vec::new()).await.map(|value| value.json().clone()).expect("the page answers")
}

/// The ids of the reviews whose rows are in the page, from top to bottom.
async fn rows(driver: &WebDriver) -> Vec<String> {
    let script = "return [...document.querySelectorAll('.rows .row')].map(row => row.id.slice(4))";
    serde_json::from_value(value(driver, script).await).expect("ids")
}

async fn wait_for_rows(driver: &WebDriver, reviews: &[Review]) {
    let wanted: Vec<String> = reviews.iter().map(|review| review.id.to_string()).collect();
    eventually("the list shows what fits", async || (rows(driver).await == wanted).then_some(())).await;
}

/// Presses a key until the row of this review has the focus. Each time the focus must move on.
async fn walk(driver: &WebDriver, key: &str, to: ReviewId) {
    let (wanted, mut at) = (json!(format!("row-{to}")), Value::Null);
    while at != wanted {
        at = eventually(&format!("`{key}` leads on from {at}"), async || {
            driver.action_chain().send_keys(key.repeat(20)).perform().await.ok()?;
            assert!(rows(driver).await.len() < 60, "only what is in sight is in the page");
            let now = value(driver, "return document.activeElement.id").await;
            (now != at).then_some(now)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_urgent_is_first_and_one_walks_to_the_last() -> BrowserResult<()> {
    let server = server().await;
    let ana = server.person("ana", &["reviewer"]).await;
    let admin = server.admin().await;
    ask(&admin, "urgent", ["the fire".to_owned()]).await;
    ask(&admin, "ask", many(310)).await;
    let all = queue(&ana, &ReviewQuery::default()).await;
    let browser = logged_in(&server, "ana", 1440).await?;
    let driver = &browser.driver;

    wait_for_text(driver, "311 pending").await;
    wait_for_title(driver, "(311) Inbox · Countersign").await;
    assert!(all[0].title.contains("the fire"));
    eventually("rows are there", async || (!rows(driver).await.is_empty()).then_some(())).await;
    assert_eq!(rows(driver).await[0], all[0].id.to_string(), "though it was asked first of all");

    let (first, last) = (all[0].id, all[all.len() - 1].id);
    walk(driver, "j", last).await;
    wait_for_path(driver, &format!("/reviews/{last}")).await;
    let place = "const row = document.activeElement.parentElement; \
                 return [row.ariaPosInSet, row.ariaSetSize]";
    assert_eq!(value(driver, place).await, json!(["311", "311"]));
    walk(driver, "k", first).await;
    wait_for_path(driver, &format!("/reviews/{first}")).await;
    assert_eq!(value(driver, place).await, json!(["1", "311"]));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_and_counts_are_the_servers_and_stand_in_the_address() -> BrowserResult<()> {
    let server = server().await;
    let ana = server.person("ana", &["reviewer", "legal"]).await;
    let admin = server.admin().await;
    ask(&admin, "ask", many(120)).await;
    ask(&admin, "ask", ["a needle".to_owned()]).await;
    ask(&admin, "grave", ["the vault".to_owned(), "the archive".to_owned()]).await;
    ask(&admin, "legal", many(3)).await;
    let browser = logged_in(&server, "ana", 1440).await?;
    let driver = &browser.driver;

    // The search finds reviews that were never loaded, by words of their content.
    field(driver, "Search the inbox").send_keys("text needle").await?;
    wait_for_path(driver, "/inbox?q=text%20needle").await;
    let needle = queue(&ana, &ReviewQuery { q: Some("needle".to_owned()), ..ReviewQuery::default() }).await;
    assert_eq!(needle.len(), 1);
    wait_for_rows(driver, &needle).await;
    wait_for_text(driver, "1 of 126 pending").await;
    // An open review keeps the filtered list beside it, also after the address is loaded anew.
    Inbox(driver).open_card("needle").await?;
    let address = format!("/reviews/{}?q=text%20needle", needle[0].id);
    wait_for_path(driver, &address).await;
    driver.goto(format!("{}{address}", server.base)).await?;
    wait_for_rows(driver, &needle).await;
    assert_eq!(field(driver, "Search the inbox").await?.prop("value").await?.as_deref(), Some("text needle"));

    // Each filter shows how many reviews it would match.
    driver.goto(format!("{}/inbox", server.base)).await?;
    for chip in ["Mine 126", "Due soon 0", "Critical 2", "Tool calls 0"] {
        eventually(&format!("a chip says {chip:?}"), async || {
            let said =
                value(driver, "return [...document.querySelectorAll('.chip')].map(chip => chip.textContent.trim())")
                    .await;
            said.as_array()?.contains(&json!(chip)).then_some(())
        })
        .await;
    }
    button_starting(driver, "Critical").click().await?;
    wait_for_path(driver, "/inbox?severity=critical").await;
    let grave = ReviewQuery { flow: Some("grave".to_owned()), ..ReviewQuery::default() };
    wait_for_rows(driver, &queue(&ana, &grave).await).await;
    locate(driver, By::Css("[aria-controls=filters]")).click().await?;
    let flow = driver.query(By::XPath("//label[contains(., 'Flow')]/select")).first().await?;
    assert!(flow.text().await?.contains("grave (2)") && !flow.text().await?.contains("ask"), "{}", flow.text().await?);
    button_starting(driver, "Critical").click().await?;
    wait_for_path(driver, "/inbox").await;
    eventually("flows are counted", async || flow.text().await.ok()?.contains("legal (3)").then_some(())).await;
    let ages = locate(driver, By::XPath("//label[contains(., 'Any age')]/select")).text().await?;
    assert!(["Over an hour old (0)", "Over a week old (0)"].iter().all(|age| ages.contains(age)), "{ages}");
    flow.send_keys("legal").await?;
    wait_for_path(driver, "/inbox?flow=legal").await;
    wait_for_text(driver, "3 of 126 pending").await;
    driver.back().await?;
    wait_for_path(driver, "/inbox").await;
    let is_part = "return document.querySelector('.list h1').innerText.includes(' of ')";
    eventually("all are counted", async || (value(driver, is_part).await == false).then_some(())).await;
    driver.back().await?;
    wait_for_rows(driver, &queue(&ana, &grave).await).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_does_not_move_when_more_urgent_reviews_come() -> BrowserResult<()> {
    let server = server().await;
    let admin = server.admin().await;
    ask(&admin, "ask", many(3)).await;
    let few = queue(&admin, &ReviewQuery::default()).await;
    let browser = logged_in(&server, "admin", 1440).await?;
    let driver = &browser.driver;
    wait_for_rows(driver, &few).await;
    // In a list that is shorter than its column.
    let first = format!("return document.getElementById('row-{}').getBoundingClientRect().top", few[0].id);
    let before = value(driver, &first).await;
    ask(&admin, "urgent", ["a spark".to_owned()]).await;
    wait_for_text(driver, "1 more urgent").await;
    assert_eq!(value(driver, &first).await, before);
    button(driver, "1 more urgent").click().await?;
    let room = "const rows = document.querySelector('.rows'); return rows.scrollHeight - rows.clientHeight";
    eventually("nothing is left to scroll", async || (value(driver, room).await == 0).then_some(())).await;
    let spark = queue(&admin, &ReviewQuery::default()).await[0].run_id.expect("a run");
    admin.cancel(spark, &shared::api::Reason::default(), None).await.expect("it ends");
    wait_for_text(driver, "3 pending").await;

    // A review that is over stays visible for a while, but not after the page is loaded anew.
    driver.refresh().await?;
    wait_for_rows(driver, &few).await;
    ask(&admin, "ask", many(77)).await;
    let all = queue(&admin, &ReviewQuery::default()).await;
    wait_for_text(driver, "80 pending").await;
    // At the top of a long list, where nothing is open yet.
    let before = value(driver, &first).await;
    ask(&admin, "urgent", ["the first fire".to_owned()]).await;
    wait_for_text(driver, "1 more urgent").await;
    assert_eq!(value(driver, &first).await, before);
    // From here on, a review in the middle of the list is open.
    walk(driver, "j", all[18].id).await;
    wait_for_path(driver, &format!("/reviews/{}", all[18].id)).await;
    let place = format!("return document.getElementById('row-{}').getBoundingClientRect().top", all[18].id);
    let before = value(driver, &place).await;

    ask(&admin, "urgent", many(5)).await;
    wait_for_text(driver, "5 more urgent").await;
    wait_for_text(driver, "86 pending").await;
    let mine = "return [...document.querySelectorAll('.chip')].map(chip => chip.textContent.trim())[1]";
    assert_eq!(value(driver, mine).await, "Mine 86", "as soon as the heading says it");
    assert_eq!(value(driver, &place).await, before);
    assert_eq!(value(driver, "return document.activeElement.id").await, json!(format!("row-{}", all[18].id)));
    button(driver, "5 more urgent").click().await?;
    let now = queue(&admin, &ReviewQuery::default()).await;
    eventually("the most urgent is in sight, and a row has the focus", async || {
        let row = driver.find(By::Id(format!("row-{}", now[0].id))).await.ok()?;
        let there = "return document.querySelector('.rows').scrollTop === 0 && document.activeElement.matches('.row')";
        (row.is_displayed().await.ok()? && value(driver, there).await == true).then_some(())
    })
    .await;

    // The focused row does not move either when a row above it disappears, a while after its review is over.
    let held = now[12].id;
    driver.execute(format!("document.querySelector('.rows').scrollTop = 77 * 10; document.getElementById('row-{held}').focus({{ preventScroll: true }})"), Vec::new()).await?;
    let place = format!("return document.getElementById('row-{held}').getBoundingClientRect().top");
    eventually("it is in sight", async || value(driver, &place).await.as_f64().filter(|top| *top > 100.0)).await;
    let before = value(driver, &place).await;
    let index = format!("return Number(document.getElementById('row-{held}').parentElement.ariaPosInSet)");
    let was = value(driver, &index).await.as_u64().expect("its place in the list");
    admin.cancel(now[0].run_id.expect("a run"), &shared::api::Reason::default(), None).await.expect("it ends");
    wait_for_text(driver, "85 pending").await;
    // The page sets its clock by the server's, so a clock that is only ahead could be set back. This one runs fast.
    let fast = "const now = Date.now; let ahead = 0; Date.now = () => now() + (ahead += 61000)";
    driver.execute(fast, Vec::new()).await?;
    eventually("the row above is gone", async || (value(driver, &index).await == was - 1).then_some(())).await;
    assert_eq!(value(driver, &place).await, before);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_felt_at_once_and_take_no_draft_away() -> BrowserResult<()> {
    let server = server().await;
    let ana = server.person("ana", &["reviewer"]).await;
    let admin = server.admin().await;
    ask(&admin, "ask", many(2)).await;
    ask(&admin, "legal", many(3)).await;
    let review = queue(&ana, &ReviewQuery::default()).await.remove(0);
    let browser = logged_in(&server, "ana", 1440).await?;
    let driver = &browser.driver;
    wait_for_text(driver, "2 pending").await;
    Inbox(driver).open_card(&review.title).await?;
    button(driver, "Edit").click().await?;
    let text = field(driver, "Edit Text").await?;
    text.send_keys(" Of Ana.").await?;

    // After a change of rights, the console loads everything anew, except the open review and its draft.
    let roles = |roles: &[&str]| UserPatch {
        roles: Some(roles.iter().map(|role| (*role).to_owned()).collect()),
        ..UserPatch::default()
    };
    admin.update_user("ana", &roles(&["reviewer", "legal"])).await.expect("she gets a role");
    wait_for_text(driver, "5 pending").await;
    eventually("the list is longer", async || (rows(driver).await.len() == 5).then_some(())).await;
    assert!(text.prop("value").await?.is_some_and(|text| text.ends_with(" Of Ana.")), "the very field is still there");
    button(driver, "Fine, with your edit").await?;

    admin.update_user("ana", &roles(&["legal"])).await.expect("she loses one");
    wait_for_text(driver, "3 pending").await;
    eventually("she may not decide it", async || {
        let decides = driver.find_all(By::XPath("//button[contains(., 'Fine')]")).await.ok()?;
        decides.is_empty().then_some(())
    })
    .await;
    // The message is on the review itself, since its row may have left the list already.
    wait_for_text(driver, "no longer have access to this review. You can read it.").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_answer_never_replaces_a_newer_one_and_a_failure_is_told() -> BrowserResult<()> {
    let server = server().await;
    let admin = server.admin().await;
    ask(&admin, "ask", ["the slow one".to_owned(), "the quick one".to_owned()]).await;
    let browser = logged_in(&server, "admin", 1440).await?;
    let driver = &browser.driver;
    eventually("rows are there", async || (rows(driver).await.len() == 2).then_some(())).await;
    let refused =
        serde_json::to_string(&Problem::new(Code::TooManyRequests).detail("Come back in 2 s.")).expect("JSON");
    let patch = format!(
        "const real = fetch.bind(window), refused = {}; window.fetch = async request => {{ \
            const list = request.url.includes('/reviews?'); \
            if (list && window.fail) return new Response(refused, {{ status: 429 }}); \
            const answer = await real(request); \
            if (list && request.url.includes('slow')) {{ \
                await new Promise(done => {{ window.answer = done }}); window.answered = true }} \
            return answer }}",
        json!(refused)
    );
    driver.execute(patch, Vec::new()).await?;
    let search = field(driver, "Search the inbox");
    search.send_keys("slow").await?;
    eventually("the slow answer is on its way", async || {
        value(driver, "return !!window.answer").await.as_bool().filter(|is| *is)
    })
    .await;
    search.send_keys(Key::Control + "a").await?;
    search.send_keys("quick").await?;
    let quick = queue(&admin, &ReviewQuery { q: Some("quick".to_owned()), ..ReviewQuery::default() }).await;
    wait_for_rows(driver, &quick).await;
    driver.execute("window.answer()", Vec::new()).await?;
    eventually("the slow answer has come", async || {
        (value(driver, "return window.answered").await == true).then_some(())
    })
    .await;
    wait_for_text(driver, "1 of 2 pending").await;
    wait_for_rows(driver, &quick).await;

    driver.execute("window.fail = 1", Vec::new()).await?;
    button_starting(driver, "Critical").click().await?;
    wait_for_text(driver, "The inbox could not be loaded").await;
    wait_for_text(driver, "Come back in 2 s.").await;
    driver.execute("window.fail = 0", Vec::new()).await?;
    button(driver, "Try again").click().await?;
    wait_for_text(driver, "No matches").await;
    button(driver, "Show all").click().await?;
    wait_for_path(driver, "/inbox").await;
    eventually("all rows are there", async || (rows(driver).await.len() == 2).then_some(())).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_a_linked_filter_is_shown_and_one_comes_back_to_it() -> BrowserResult<()> {
    let server = server().await;
    let admin = server.admin().await;
    ask(&admin, "ask", many(60)).await;
    ask(&admin, "grave", many(2)).await;
    let browser = logged_in(&server, "admin", 500).await?;
    let driver = &browser.driver;
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true });
    driver.cdp().send_raw("Emulation.setDeviceMetricsOverride", phone).await?;
    driver.goto(format!("{}/inbox?severity=critical", server.base)).await?;
    let grave = queue(&admin, &ReviewQuery { flow: Some("grave".to_owned()), ..ReviewQuery::default() }).await;
    wait_for_rows(driver, &grave).await;
    locate(driver, By::Css("[aria-controls=filters]")).click().await?;
    driver.query(By::Css("#filters select")).and_displayed().first().await?;
    let wide = "return document.documentElement.scrollWidth > innerWidth || \
                document.querySelector('.list').scrollWidth > innerWidth";
    assert_eq!(value(driver, wide).await, json!(false), "nothing is wider than the phone");
    Inbox(driver).open_card(&grave[1].title).await?;
    wait_for_path(driver, &format!("/reviews/{}?severity=critical", grave[1].id)).await;
    locate(driver, By::Css(".read .back")).usable().click().await?;
    wait_for_path(driver, "/inbox?severity=critical").await;
    wait_for_rows(driver, &grave).await;
    browser.quit().await;
    Ok(())
}

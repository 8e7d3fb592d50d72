//! How people find again what they decided, runs by what they know of them, and where archived reviews are.

use serde_json::json;
use shared::api::{ReviewQuery, RunQuery};
use shared::id::{ReviewId, RunId};
use shared::person_filter::PersonFilter;
use shared::run::ArchivedRun;
use tests::locator::locate;
use tests::pages::{button, field, wait_for_path, wait_for_text, wait_for_title};
use tests::reviewing::{choose, decide, launch, launch_as, open, pending, server, text_of, wait_for_review};
use tests::{Api, BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

const ASK: &str = "
id: ask
input: { type: object, properties: { topic: { type: string } } }
nodes:
  ask:
    human:
      prompt: \"Publish {{ topic }}?\"
      options: [{ id: ok, label: Approve }, { id: no, kind: stop, label: Reject }]
";

/// Waits until these decisions are listed: of each, the title of the review, what the person said, and the outcome.
async fn wait_for_decisions(driver: &WebDriver, wanted: &[[&str; 3]]) {
    let script = "return [...document.querySelectorAll('.decided-list > li')].map(row => \
        ['.decided-what > a', '.decided-said', '.decided-outcome'].map(css => row.querySelector(css).textContent))";
    eventually(&format!("the decisions are {wanted:?}"), async || {
        let listed = driver.execute(script, Vec::new()).await.ok()?.convert::<Vec<[String; 3]>>().ok()?;
        (listed == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_decided_is_listed_newest_first_with_what_came_of_it() -> BrowserResult<()> {
    let server = server(&[ASK]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let mut reviews = Vec::new();
    for (topic, option) in [("the ocean", "ok"), ("a lake", "no")] {
        launch(&server, "ask", json!({ "topic": topic })).await;
        let review = pending(&ana).await;
        decide(&ana, &review, choose(option), json!({})).await;
        reviews.push(review);
    }
    let [ocean, lake] = &reviews[..] else { panic!("two reviews: {reviews:?}") };
    let by_words =
        ReviewQuery { decided_by: Some(PersonFilter::Me), q: Some("lake".to_owned()), ..ReviewQuery::default() };
    eventually("the words are known", async || (ana.reviews(&by_words).await.ok()?.items.len() == 1).then_some(()))
        .await;

    let browser = open(&server, "ana", "/inbox").await?;
    let driver = &browser.driver;
    locate(driver, By::Css("a[aria-label='Decided by me']")).usable().click().await?;
    wait_for_path(driver, "/decided").await;
    let rejected = [lake.title.as_str(), "Chose “Reject”", "rejected"];
    let approved = [ocean.title.as_str(), "Chose “Approve”", "approved"];
    wait_for_decisions(driver, &[rejected, approved]).await;

    // A review that is opened from the list is over, and the way back leads to the same list.
    field(driver, "words").send_keys("lake" + Key::Enter).await?;
    wait_for_path(driver, "/decided?q=lake").await;
    wait_for_decisions(driver, &[rejected]).await;
    locate(driver, By::Css(".decided-list a")).click().await?;
    wait_for_review(driver, lake).await;
    wait_for_text(driver, "You chose “Reject”").await;
    assert!(driver.find_all(By::Css(".read .acts button")).await?.is_empty(), "there is nothing left to decide");
    driver.back().await?;
    wait_for_path(driver, "/decided?q=lake").await;
    wait_for_decisions(driver, &[rejected]).await;
    assert_eq!(field(driver, "words").value().await?.as_deref(), Some("lake"));
    browser.quit().await;
    Ok(())
}

/// Waits until the runs on these topics are listed.
async fn wait_for_runs(driver: &WebDriver, wanted: &[&str]) {
    let script = "return [...document.querySelectorAll('.runs-table tbody .run-name > a')]\
        .map(run => run.textContent.split(' · ')[1])";
    eventually(&format!("the runs are about {wanted:?}"), async || {
        let listed = driver.execute(script, Vec::new()).await.ok()?.convert::<Vec<String>>().ok()?;
        (listed == wanted).then_some(())
    })
    .await;
}

/// Waits until the search finds so many runs with the word `ocean`: a run can be found a moment after its start.
async fn wait_until_found(api: &Api, count: usize) {
    let query = RunQuery { q: Some("ocean".to_owned()), ..RunQuery::default() };
    eventually("the runs are found", async || (api.runs(&query).await.ok()?.items.len() == count).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_words_and_person_and_only_those_that_match_are_added() -> BrowserResult<()> {
    let server = server(&[ASK]).await;
    let dev = server.person("dev", &["developer"]).await;
    let admin = server.admin().await;
    let start = async |person: &Api, topic: &str| launch_as(person, "ask", json!({ "topic": topic })).await;
    start(&dev, "the ocean").await;
    start(&dev, "a lake").await;
    start(&admin, "the ocean floor").await;
    wait_until_found(&admin, 2).await;
    let browser = open(&server, "admin", "/runs").await?;
    let driver = &browser.driver;
    wait_for_runs(driver, &["the ocean floor", "a lake", "the ocean"]).await;

    // The address holds the filter.
    field(driver, "words").send_keys("ocean" + Key::Enter).await?;
    wait_for_path(driver, "/runs?q=ocean").await;
    wait_for_runs(driver, &["the ocean floor", "the ocean"]).await;
    field(driver, "launched by").send_keys("dev" + Key::Enter).await?;
    wait_for_path(driver, "/runs?q=ocean&requested_by=dev").await;
    wait_for_runs(driver, &["the ocean"]).await;
    driver.refresh().await?;
    wait_for_runs(driver, &["the ocean"]).await;
    wait_for_path(driver, "/runs?q=ocean&requested_by=dev").await;
    for (name, typed) in [("words", "ocean"), ("launched by", "dev")] {
        assert_eq!(field(driver, name).value().await?.as_deref(), Some(typed), "{name}");
    }

    // Only the server knows which runs have the words, so new ones are added on request, and no others.
    start(&dev, "a river").await;
    start(&dev, "the ocean tide").await;
    wait_until_found(&admin, 3).await;
    locate(driver, By::Css("button[title=Refresh]")).usable().click().await?;
    wait_for_runs(driver, &["the ocean tide", "the ocean"]).await;

    // Without words, they are added by themselves: of two that start now, the one that matches.
    let words = field(driver, "words");
    words.send_keys(Key::Control + "a").await?;
    words.send_keys(Key::Backspace + Key::Enter).await?;
    wait_for_path(driver, "/runs?requested_by=dev").await;
    wait_for_runs(driver, &["the ocean tide", "a river", "a lake", "the ocean"]).await;
    start(&admin, "a hill").await;
    start(&dev, "a valley").await;
    wait_for_runs(driver, &["a valley", "the ocean tide", "a river", "a lake", "the ocean"]).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_the_filters_of_a_list_are_behind_a_button_that_counts_them() -> BrowserResult<()> {
    let server = server(&[ASK]).await;
    let browser = open(&server, "admin", "/runs").await?;
    let driver = &browser.driver;
    let is_shown = async || {
        let script = "return document.querySelector('.filters input').checkVisibility()";
        driver.execute(script, Vec::new()).await?.convert::<bool>()
    };
    let share = "return document.querySelector('.page > header').offsetHeight / innerHeight";
    for (width, height) in [(390, 844), (844, 390)] {
        browser.screen(width, height).await;
        driver.goto(format!("{}/runs?status=failed&q=ocean", server.base)).await?;
        wait_for_text(driver, "No run has failed").await;
        assert!(!is_shown().await?, "at {width}x{height}");
        let share = driver.execute(share, Vec::new()).await?.convert::<f64>()?;
        assert!(share < 0.25, "at {width}x{height}, the header takes {share} of the screen");
        button(driver, "Filters 2 set").click().await?;
        assert!(is_shown().await?, "at {width}x{height}");
        // They stay open while one changes them.
        button(driver, "All").click().await?;
        wait_for_path(driver, "/runs?q=ocean").await;
        button(driver, "Filters 1 set").await?;
        assert!(is_shown().await?, "at {width}x{height}");
    }
    browser.quit().await;
    Ok(())
}

/// Waits until a run is over and sealed, and restarts the server, which archives such runs when it starts. Returns where
/// the run is once its review is gone.
async fn archived(server: &mut Server, run: RunId, review: ReviewId) -> ArchivedRun {
    let admin = server.admin().await;
    eventually("the run is over and sealed", async || {
        let is_over = admin.run(run).await.ok()?.summary.status.is_over();
        let check = admin.verify_audit().await.ok()?;
        (is_over && check.valid && check.sealed == check.entries).then_some(())
    })
    .await;
    server.restart().await;
    *eventually("the review is gone", async || admin.review(review).await.err()?.archived).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_an_archived_review_says_where_its_run_is_to_those_who_may_know_of_it() -> BrowserResult<()> {
    let settings = "[retention]\nruns = \"0s\"\n".to_owned();
    let mut server = Server::start(Options { settings, ..Options::on(Database::Sqlite) }).await;
    server.save(ASK.trim_start()).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let run = launch(&server, "ask", json!({ "topic": "the ocean" })).await;
    let review = pending(&ana).await;
    decide(&ana, &review, choose("ok"), json!({})).await;
    let archived = archived(&mut server, run, review.id).await;

    let link = format!("/reviews/{}", review.id);
    let browser = open(&server, "admin", &link).await?;
    let driver = &browser.driver;
    wait_for_title(driver, "This review is archived · Countersign").await;
    let day = "const at = new Date(arguments[0]); \
        return `${at.getDate()} ${at.toLocaleString('en-US', { month: 'short' })}`";
    let day = driver.execute(day, vec![json!(archived.archived_at.millis())]).await?.convert::<String>()?;
    let file = format!(" in {}. It belongs to a run of the flow ask, which admin launched", archived.file);
    for told in [format!("Archived on {day}, "), file, format!("countersign archive show {run}")] {
        wait_for_text(driver, &told).await;
    }

    // Whoever only decided it cannot tell it from a review that never was.
    let other = open(&server, "ana", &link).await?;
    wait_for_title(&other.driver, "Review not found · Countersign").await;
    wait_for_text(&other.driver, "It does not exist, or you do not have access.").await;
    assert!(!text_of(&other.driver, "body").await.contains("rchived"));
    tokio::join!(browser.quit(), other.quit());
    Ok(())
}

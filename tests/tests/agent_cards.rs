//! The cards of what agents ask and do: their content, what their buttons do, and that they are accessible.

use serde_json::json;
use shared::api::ReviewQuery;
use shared::id::RunId;
use shared::review::{Review, ReviewKind, ReviewStatus};
use tests::device::SCREENS;
use tests::locator::locate;
use tests::pages::{button, field, send_now, wait_for_text};
use tests::reviewing::{launch, reading, server, wait_for_review};
use tests::{Api, Browser, BrowserResult, Server, eventually};
use thirtyfour::prelude::*;

/// A flow whose agent lets another one act, hands something over, asks for approval, and then escalates.
const DESK: &str = "
id: desk
title: Settle a complaint
agents:
  clerk:
    model: demo/clerk
    tools: [expert, over, leave, stuck]
    demo:
      tool_calls:
        - { tool: expert, arguments: { task: Pay the 20 EUR back. } }
        - { tool: over, arguments: { to: reviewer, reason: Check whether A-17 was paid twice, summary: 'Two chairs were sent, one was ordered.' } }
        - tool: leave
          arguments:
            description: Have the second chair fetched by courier
            action: { name: order_courier, arguments: { order: A-17, when: Monday } }
            severity: high
            reversible: false
            consequences: [The courier is paid whether the chair is there or not.]
            estimated_cost: { amount: 35, currency: EUR }
            alternatives: [{ id: shop, description: Ask them to bring it to the shop, tradeoffs: It may take weeks }]
        - tool: stuck
          arguments:
            reason: conflicting_instructions
            explanation: They want to keep both chairs. Our rules allow one.
            attempted: [Offered to have it fetched]
  expert:
    model: demo/expert
    tools: [refund]
    demo: { tool_calls: [{ tool: refund, arguments: { title: Refund of A-17, text: 20 EUR } }], replies: [Paid.] }
tools:
  expert: { agent: expert }
  refund: { builtin: demo_publish, description: Pays money back }
  over: { builtin: handoff }
  leave: { builtin: request_approval }
  stuck: { builtin: escalate }
gates: { before_tool: { refund: { severity: high, reversible: false, consequences: [The money is gone.] } } }
nodes: { settle: { agent: clerk, prompt: The chair came twice. } }
";

/// The label of the field beside an approval that can also be given for later calls.
const FOR_LATER: &str = "Also approve later calls, whatever their arguments";

/// A person at the console: the browser, the server's address, and the person's client of the API.
struct Reader {
    browser: Browser,
    base: String,
    api: Api,
}

impl Reader {
    /// Waits for a pending review of this kind in a run, and opens it.
    async fn opens(&self, run: RunId, kind: ReviewKind) -> BrowserResult<Review> {
        let asked = format!("{kind:?} is asked");
        let review = eventually(&asked, async || {
            let pending = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
            let all = self.api.reviews(&pending).await.ok()?.items;
            all.into_iter().find(|review| review.kind == kind && review.run_id == Some(run))
        });
        let review = review.await;
        self.browser.driver.goto(format!("{}/reviews/{}", self.base, review.id)).await?;
        wait_for_review(&self.browser.driver, &review).await;
        Ok(review)
    }

    async fn goes(&self, path: &str, text: &str) -> BrowserResult<()> {
        self.browser.driver.goto(format!("{}{path}", self.base)).await?;
        wait_for_text(&self.browser.driver, text).await;
        Ok(())
    }

    /// Checks that the part of the page that a CSS selector names shows each text, and that the page is accessible on a
    /// phone and on a large screen.
    async fn reads(&self, name: &str, part: &str, said: &[&str]) -> BrowserResult<()> {
        let driver = &self.browser.driver;
        for words in said {
            eventually(&format!("{part} of {name} says `{words}`"), async || {
                driver.find(By::Css(part)).await.ok()?.text().await.ok()?.contains(words).then_some(())
            })
            .await;
        }
        self.browser.is_readable(name, &SCREENS).await;
        Ok(())
    }

    /// Presses a button, sends the decision at once, and waits for the text `then`.
    async fn decides(&self, label: &str, then: &str) -> BrowserResult<()> {
        button(&self.browser.driver, label).click().await?;
        send_now(&self.browser.driver).await;
        wait_for_text(&self.browser.driver, then).await;
        Ok(())
    }
}

async fn reader(server: &Server) -> BrowserResult<Reader> {
    let api = server.person("ana", &["reviewer", "developer"]).await;
    let asked = launch(server, "permission", json!({})).await;
    let review = eventually("somebody is asked", async || api.run_reviews(asked).await.ok()?.items.pop()).await;
    let browser = reading(server, "ana", &review).await?;
    browser.with_axe().await;
    Ok(Reader { browser, base: server.base.clone(), api })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_specialist_joins_and_a_team_works_otherwise_once_a_card_was_approved() -> BrowserResult<()> {
    let server = server(&[]).await;
    let ana = reader(&server).await?;
    let run = launch(&server, "team", json!({})).await;
    ana.opens(run, ReviewKind::Emergent).await?;
    let card = ["operator", "new specialist of critic", "You are on call at the weekend.", "is created if you approve"];
    ana.reads("specialist", "section.action", &card).await?;
    ana.reads("specialist", ".acts", &["Approve the specialist operator", "Reject the specialist operator"]).await?;
    let card = locate(&ana.browser.driver, By::Css("section.action")).text().await?;
    assert!(!card.contains(FOR_LATER), "another specialist could be anything: {card}");
    ana.decides("Approve the specialist operator", "approved the specialist operator").await?;

    ana.opens(run, ReviewKind::StrategyOverride).await?;
    let card = ["change of strategy", "debate", "parallel", "We repeat each other. Let", "takes effect if you approve"];
    ana.reads("strategy", "section.action", &card).await?;
    ana.decides("Approve the change to parallel", "approved the change to parallel").await?;
    ana.goes(&format!("/runs/{run}"), "Completed").await?;
    ana.reads("team-run", "body", &["specialists: operator; changed to parallel", "approved the change to parallel"])
        .await?;
    ana.browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_asks_hands_over_and_gives_up_has_a_card_and_is_counted() -> BrowserResult<()> {
    let server = server(&[DESK]).await;
    let ana = reader(&server).await?;
    let driver = &ana.browser.driver;
    let run = launch(&server, "desk", json!({})).await;

    let review = ana.opens(run, ReviewKind::ToolCalls).await?;
    assert!(review.title.ends_with("(for clerk)"), "{}", review.title);
    let card = ["refund", "expert", "Pays money back", "20 EUR", "runs if you approve", FOR_LATER];
    ana.reads("sub-agent", "section.action", &card).await?;
    ana.reads("sub-agent", "article.read", &["for agent clerk", "The money is gone.", "cannot be undone"]).await?;
    // Only the bar decides a single call; the choice of later calls belongs to its approval.
    field(driver, "also approve later calls").send_keys("for this run").await?;
    assert!(driver.find_all(By::Css(".card.action :is(.yes, .no)")).await?.is_empty());
    let page = ["by this agent. You can revoke it under Remembered approvals.", "Approve refund, and later ones"];
    ana.reads("sub-agent-later", "body", &page).await?;
    ana.decides("Approve refund, and later ones", "approved refund").await?;

    ana.opens(run, ReviewKind::Handoff).await?;
    let page = [
        "hands this off to reviewer",
        "Two chairs were sent, one was ordered.",
        "Records that you are taking care of it.",
    ];
    ana.reads("handoff", "article.read", &page).await?;
    ana.decides("Take it", "You chose “Take it”").await?;

    ana.opens(run, ReviewKind::Approval).await?;
    let page = ["requests approval for order_courier", "The courier is paid", "35", "Monday", "It may take weeks"];
    ana.reads("leave", "article.read", &page).await?;
    ana.reads("leave", ".acts", &["Approve", "Ask them to bring it to the shop", "Reject"]).await?;
    ana.decides("Ask them to bring it to the shop", "chose “Ask them to bring it to the shop”").await?;

    ana.opens(run, ReviewKind::Escalation).await?;
    ana.reads("escalation", "article.read", &["conflicting instructions", "Offered to have it fetched"]).await?;
    button(driver, "Take over…").click().await?;
    ana.reads("takeover-form", ".option-form", &["Answer in place of the agent", "What you do about it"]).await?;
    ana.decides("Take over", "You chose “Take over”").await?;

    ana.opens(run, ReviewKind::Edit).await?;
    ana.reads("takeover", "article.read", &["You have taken over the step settle.", "Use this text"]).await?;
    field(driver, "Edit settle").send_keys("You may keep both.").await?;
    ana.decides("Use this text, with your edit", "You may keep both.").await?;

    ana.goes(&format!("/runs/{run}"), "You may keep both.").await?;
    wait_for_text(driver, "Completed").await;
    button(driver, "Feedback").click().await?;
    wait_for_text(driver, "It is recorded.").await;
    ana.reads("feedback-form", "dialog[open]", &["Importance", "What it is based on (optional)"]).await?;
    field(driver, "your feedback").send_keys("Ask before you send couriers.").await?;
    locate(driver, By::Css("dialog[open] .b.primary")).click().await?;
    wait_for_text(driver, "The feedback was recorded.").await;
    ana.reads("desk-run", "body", &["Ask before you send couriers.", "importance 3"]).await?;

    ana.goes("/insights", "Outcomes").await?;
    ana.reads("insights", "body", &["Hand-offs", "Escalations", "conflicting instructions"]).await?;
    ana.browser.is_readable("insights", &[(390, 844, false), (1440, 900, true)]).await;
    ana.browser.quit().await;
    Ok(())
}

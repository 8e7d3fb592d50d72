//! Tests of who may do what, and on whose behalf people decide.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    ADMIN, Absent, Access, Act, Involvement, Principal, REVIEWER, access, has_vote, may_be_handed, voice,
    votes_to_hand_over,
};
use crate::review::Review;
use crate::run::RunSummary;

fn review(more: &Value) -> Review {
    let mut review = json!({
        "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 1, "kind": "approval", "status": "pending",
        "title": "", "prompt": "", "requested_by": "dev", "created_at": "2026-01-01T00:00:00Z",
    });
    for (name, value) in more.as_object().expect("an object") {
        review[name] = value.clone();
    }
    serde_json::from_value(review).expect("a review")
}

fn person(name: &str, roles: &[&str]) -> Principal {
    Principal::new(name.parse().expect("a name"), roles.iter().map(|role| (*role).to_owned()).collect())
}

fn standing_for(name: &str, roles: &[&str], absent: &[Principal]) -> Principal {
    let stands_for = absent.iter().map(|them| Absent { username: them.username.clone(), roles: them.roles.clone() });
    Principal { stands_for: stands_for.collect(), ..person(name, roles) }
}

fn handed(from: &str, to: &str) -> Value {
    json!({ "from": from, "to": to, "at": "2026-01-01T00:00:00Z" })
}

fn said(by: &str, on_behalf_of: Option<&str>) -> Value {
    json!({ "by": by, "on_behalf_of": on_behalf_of, "at": "2026-01-01T00:00:00Z", "via": "human", "revision": 1,
        "digest": "", "verdict": { "type": "choose", "option": "yes" } })
}

/// Returns on whose behalf the principal decides: `own`, or a name; `-` if they may not decide, `?` if the review is
/// hidden from them.
fn name(principal: &Principal, review: &Review) -> String {
    match (access(principal, Act::Decide(review)), voice(principal, review)) {
        (Access::Allowed, Ok(None)) => "own".to_owned(),
        (Access::Allowed, Ok(Some(owner))) => owner.to_string(),
        (Access::Denied(_), Err(_)) => "-".to_owned(),
        (Access::Hidden, Err(_)) => "?".to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_review_that_was_handed_over_is_decided_by_the_delegate_in_the_name_of_who_had_it() {
    let review = review(&json!({ "reviewers": { "roles": ["legal"] }, "delegations": [handed("lea", "tom")] }));
    assert_eq!(name(&person("lea", &["legal"]), &review), "-");
    assert_eq!(name(&person("tom", &["reviewer"]), &review), "lea");
    assert_eq!(name(&person("max", &["legal"]), &review), "own", "the others keep what they had");
    assert_eq!(name(&person("ana", &["reviewer"]), &review), "?");
    assert_eq!(name(&person("tom", &[]), &review), "?", "who is no reviewer any more has lost it");
}

#[test]
fn a_vote_that_is_handed_on_or_back_has_one_holder() {
    let on = json!([handed("lea", "tom"), { "from": "tom", "to": "ana", "on_behalf_of": "lea", "at": "2026-01-01T00:00:00Z" }]);
    let on = review(&json!({ "reviewers": { "roles": ["legal"] }, "delegations": on }));
    assert_eq!(name(&person("tom", &["reviewer"]), &on), "-");
    assert_eq!(name(&person("ana", &["reviewer"]), &on), "lea");
    let back = json!([handed("lea", "tom"), { "from": "tom", "to": "lea", "on_behalf_of": "lea", "at": "2026-01-01T00:00:00Z" }]);
    let back = review(&json!({ "reviewers": { "roles": ["legal"] }, "delegations": back }));
    assert_eq!(name(&person("lea", &["legal", "reviewer"]), &back), "own");
    assert_eq!(name(&person("tom", &["reviewer"]), &back), "-");
}

#[test]
fn who_may_not_decide_is_handed_nothing() {
    let own = review(&json!({ "reviewers": { "not_requester": true } }));
    assert!(may_be_handed(&person("tom", &["reviewer"]), &own).is_ok());
    assert!(may_be_handed(&person("tom", &["editor"]), &own).is_err());
    assert!(may_be_handed(&person("dev", &["reviewer"]), &own).is_err());
    let all = review(&json!({ "policy": "majority" }));
    assert!(may_be_handed(&person("tom", &["reviewer"]), &all).is_err(), "a vote is never doubled");
}

#[test]
fn a_deputy_may_what_the_person_may_and_not_what_either_is_barred_from() {
    let lea = person("lea", &["legal", "admin"]);
    let tom = standing_for("tom", &["reviewer"], std::slice::from_ref(&lea));
    let legal = review(&json!({ "reviewers": { "roles": ["legal"] } }));
    assert_eq!(name(&tom, &legal), "lea");
    assert_eq!(name(&tom, &review(&json!({}))), "own", "what one may oneself, one does in one's own name");
    assert_eq!(name(&tom, &review(&json!({ "reviewers": { "roles": ["editor"] } }))), "?");
    for requester in ["lea", "tom"] {
        let barred = json!({ "reviewers": { "roles": ["legal"], "not_requester": true }, "requested_by": requester });
        assert_eq!(name(&tom, &review(&barred)), "-", "{requester}");
    }
    assert!(!access(&tom, Act::ManagePeople).is_allowed(), "reviews only, and nothing else of what they may");
    assert!(votes_to_hand_over(&tom, &legal).is_empty());
}

#[test]
fn deputies_of_deputies_have_no_rights() {
    let lea = person("lea", &["legal"]);
    let tom = standing_for("tom", &["reviewer"], &[lea]);
    let ana = standing_for("ana", &["reviewer"], &[tom]);
    assert_eq!(name(&ana, &review(&json!({ "reviewers": { "roles": ["legal"] } }))), "?");
}

#[test]
fn nobody_speaks_twice_on_one_review() {
    let (lea, max) = (person("lea", &["legal"]), person("max", &["legal"]));
    let tom = standing_for("tom", &["reviewer"], &[lea, max]);
    let reviewers = json!({ "roles": ["legal"] });
    let voting = json!({ "voters": ["lea", "max"], "votes": 1, "standing": "" });
    let votes = |cast: Value| {
        review(&json!({ "reviewers": reviewers, "policy": "unanimous", "voting": voting, "decisions": [cast] }))
    };
    let once = votes(said("tom", Some("max")));
    assert_eq!(name(&tom, &once), "max", "who has spoken for one may change that, and speaks for nobody else");
    let herself = votes(said("lea", None));
    assert_eq!(name(&tom, &herself), "max", "who is here after all speaks for herself");
}

#[test]
fn who_is_barred_is_told_so_also_where_votes_are_counted_without_them() {
    let asked = json!({ "barred": ["tom"], "reviewers": { "not_same_as": "first" }, "policy": "majority",
        "voting": { "voters": ["ana"], "votes": 0, "standing": "" } });
    let why = voice(&person("tom", &["reviewer"]), &review(&asked)).unwrap_err();
    assert!(why.contains("four eyes"), "{why}");
    let late = voice(&person("max", &["reviewer"]), &review(&asked)).unwrap_err();
    assert!(late.contains("fixed when the review was requested"), "{late}");
}

#[test]
fn a_pause_takes_nobodys_right_to_decide() {
    let (pia, max) = (person("pia", &["reviewer"]), person("max", &["reviewer"]));
    let deputy = standing_for("dan", &["reviewer"], std::slice::from_ref(&pia));
    let mut asked = json!({ "reviewers": { "users": ["pia"] }, "decisions": [said("pia", None)] });
    assert_eq!(name(&deputy, &review(&asked)), "pia");
    asked["voting"] = json!({ "voters": ["pia"], "votes": 1, "standing": "" });
    assert_eq!(name(&deputy, &review(&asked)), "-", "a vote that was cast is not doubled");
    let handed_over = json!({ "reviewers": { "users": ["max"] }, "decisions": [said("pia", None)],
        "delegations": [handed("max", "pia")] });
    assert_eq!(name(&pia, &review(&handed_over)), "max", "they have lost their own right since");
    assert_eq!(name(&max, &review(&handed_over)), "-");
}

#[test]
fn who_counts_for_a_quorum_is_who_may_decide() {
    let roles: [&[&str]; 7] =
        [&[], &["reviewer"], &["admin"], &["developer"], &["legal"], &["admin", "legal"], &["reviewer", "legal"]];
    let reviewers = [
        json!({}),
        json!({ "roles": ["reviewer"] }),
        json!({ "roles": ["legal"] }),
        json!({ "roles": ["admin"] }),
        json!({ "users": ["tom"] }),
        json!({ "roles": ["legal"], "users": ["tom"], "not_requester": true }),
        json!({ "not_requester": true }),
    ];
    for (reviewers, requester, barred) in reviewers.iter().flat_map(|reviewers| {
        [("dev", json!([])), ("tom", json!([])), ("dev", json!(["tom"]))].map(|(by, barred)| (reviewers, by, barred))
    }) {
        let asked = json!({ "reviewers": reviewers, "requested_by": requester, "barred": barred });
        let one = review(&asked);
        for roles in roles {
            let tom = person("tom", roles);
            let counts = has_vote(&tom, &one);
            assert_eq!(counts, voice(&tom, &one).is_ok(), "the first decides: {asked} {roles:?}");
            // If votes are counted, the voters are those who have a vote.
            let voters = if counts { json!(["tom"]) } else { json!([]) };
            let mut votes = asked.clone();
            votes["policy"] = json!("majority");
            votes["voting"] = json!({ "voters": voters, "votes": 0, "standing": "" });
            assert_eq!(counts, voice(&tom, &review(&votes)).is_ok(), "votes are counted: {asked} {roles:?}");
        }
    }
}

#[test]
fn people_name_their_own_deputies_and_admins_those_of_others_but_never_themselves() {
    let lea = person("lea", &["legal"]);
    let boss = person("boss", &["admin"]);
    let names = |by: &Principal, deputy: &str| {
        access(by, Act::NameDeputy(&lea.username, &deputy.parse().expect("a name"))).is_allowed()
    };
    assert!(names(&lea, "tom") && names(&boss, "tom") && names(&lea, "boss"));
    assert!(!names(&boss, "boss"), "an admin would have a role that nobody gave them");
    assert!(!names(&Principal { token: true, ..boss.clone() }, "boss"));
    assert!(!names(&person("tom", &["developer"]), "max"));
    assert!(!names(&Principal { token: true, ..lea.clone() }, "tom"), "a program names nobody");
    assert!(access(&boss, Act::RemoveDeputy(&lea.username)).is_allowed());
}

/// Returns what `principal` may do with objects of the user `dev`, one letter for each act: `y` allowed, `n` denied,
/// `-` hidden.
fn row(principal: &Principal) -> String {
    let run: RunSummary = serde_json::from_value(json!({
        "id": uuid::Uuid::nil(), "flow": "f", "version": 1, "title": "", "status": "running", "requested_by": "dev",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "revision": 0,
    }))
    .expect("a run");
    let asked = review(&json!({ "flow": "f", "reviewers": { "users": ["dev"] } }));
    let question = review(&json!({ "reviewers": { "users": ["eve"] } }));
    let decided = review(&json!({ "requested_by": "eve", "reviewers": { "users": ["eve"] }, "status": "resolved",
        "decisions": [said("dev", None)] }));
    let handed_over = review(&json!({ "requested_by": "eve", "reviewers": { "users": ["eve"] },
        "delegations": [handed("dev", "tom")] }));
    let (dev, tom) = ("dev".parse().expect("a name"), "tom".parse().expect("a name"));
    let span = serde_json::from_value(json!({
        "id": uuid::Uuid::nil(), "person": "dev", "deputy": "tom", "from": "2026-01-01T00:00:00Z",
        "until": "2026-01-02T00:00:00Z", "made_by": "dev", "created_at": "2026-01-01T00:00:00Z",
    }));
    let span = span.expect("a span");
    let acts = [
        Act::SaveFlow,
        Act::SeeFlows,
        Act::SeeSource,
        Act::Launch,
        Act::Ask,
        Act::SeeRun(&run.requested_by, Involvement::None),
        Act::CancelRun(&run),
        Act::SeeReview(&asked),
        Act::SeeReview(&decided),
        Act::SeeReview(&handed_over),
        Act::Decide(&asked),
        Act::Handle(&asked),
        Act::Withdraw(&asked),
        Act::SeeReviewers,
        Act::NameDeputy(&dev, &tom),
        Act::RemoveDeputy(&dev),
        Act::SeeDeputyship(&span),
        Act::ManageNotifications(&dev),
        Act::RevokeGrant(&dev),
        Act::ManagePeople,
        Act::ReadAudit,
        Act::ManageDeliveries,
        Act::ManageTokens(&dev),
        Act::SeeEntryBy(Some(&dev)),
        Act::SeeReview(&question),
        Act::Comment(&question),
        Act::Withdraw(&question),
        Act::Decide(&question),
    ];
    let letters = acts.map(|act| match access(principal, act) {
        Access::Allowed => 'y',
        Access::Denied(_) => 'n',
        Access::Hidden => '-',
    });
    letters.chunks(4).map(|four| four.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

#[test]
fn who_sees_a_review_may_comment_on_it_and_need_not_be_able_to_decide() {
    let asked = review(&json!({ "requested_by": "dev", "reviewers": { "users": ["ana"], "not_requester": true } }));
    assert!(!access(&person("dev", &[]), Act::Decide(&asked)).is_allowed());
    assert_eq!(access(&person("dev", &[]), Act::Comment(&asked)), Access::Allowed);
    assert_eq!(access(&person("max", &["reviewer"]), Act::Comment(&asked)), Access::Hidden);
}

#[test]
fn a_token_lets_nobody_in_and_nobody_resets_their_own_access_as_an_admin() {
    let (boss, dev) = (person("boss", &["admin"]), person("dev", &["developer"]));
    let token = Principal { token: true, ..boss.clone() };
    let (admin, reviewer) = (vec![ADMIN.to_owned()], vec![REVIEWER.to_owned()]);
    let rights = |principal: &Principal| {
        let acts = [
            Act::GiveRoles(&admin),
            Act::GiveRoles(&reviewer),
            Act::ResetAccess(&dev.username),
            Act::ResetAccess(&boss.username),
            Act::CreateToken(&boss.username),
            Act::CreateToken(&dev.username),
        ];
        acts.map(|act| access(principal, act).is_allowed())
    };
    assert_eq!(rights(&boss), [true, true, true, false, true, false]);
    assert_eq!(rights(&token), [false, true, false, false, false, false]);
    assert_eq!(rights(&dev), [false, false, false, false, false, true]);
}

#[test]
fn a_token_has_a_right_only_through_a_role_that_it_names() {
    let mut table = String::new();
    for roles in ["", "legal", "reviewer", "asker", "developer", "admin"] {
        let all: Vec<&str> = roles.split_whitespace().collect();
        let own = person("dev", &all);
        let token = Principal { token: true, ..own.clone() };
        for (who, principal) in [("dev", &own), ("a token of dev", &token), ("somebody else", &person("max", &all))] {
            writeln!(table, "{roles:<10}{who:<15}{}", row(principal)).expect("a line");
        }
    }
    let expected = "
          dev            nynn nyyy yyyy ynyy yyyn nnyy yyyn
          a token of dev nnnn n-n- ---- -nnn -n-n nnn- ----
          somebody else  nynn n-n- ---- -nnn -n-n nnn- ----
legal     dev            nynn nyyy yyyy ynyy yyyn nnyy yyyn
legal     a token of dev nynn n-n- ---- -nnn -n-n nnn- ----
legal     somebody else  nynn n-n- ---- -nnn -n-n nnn- ----
reviewer  dev            nynn nyyy yyyy yyyy yyyn nnyy yyyn
reviewer  a token of dev nynn n-ny yyyy nynn ynyn nnn- ----
reviewer  somebody else  nynn n-n- ---- -ynn -n-n nnn- ----
asker     dev            nynn yyyy yyyy ynyy yyyn nnyy yyyn
asker     a token of dev nnnn y-n- ---- -nnn -n-n nnn- yyyn
asker     somebody else  nynn y-n- ---- -nnn -n-n nnn- ----
developer dev            yyyy yyyy yyyy yyyy yyyn nnyy yyyn
developer a token of dev yyyy yyyy yynn yynn -n-n nnn- yyyn
developer somebody else  yyyy yyyy yynn nynn -n-n nnn- yynn
admin     dev            yyyy yyyy yyyy yyyy yyyy yyyy yyyn
admin     a token of dev yyyy yyyy yyyy yynn ynyy yyyy yyyn
admin     somebody else  yyyy yyyy yynn yyyy yyyy yyyy yyyn
";
    assert_eq!(table, expected[1..], "{table}");
}

#[test]
fn people_list_what_they_decided_and_admins_what_others_did() {
    let ana = "ana".parse().expect("a name");
    let may = |principal: &Principal| access(principal, Act::SeeDecisionsBy(&ana)).is_allowed();
    assert!(may(&person("ana", &[])) && may(&person("boss", &["admin"])));
    assert!(!may(&person("dev", &["developer"])), "those who see all reviews do not list them by people");
    let token = |roles: &[&str]| Principal { token: true, ..person("ana", roles) };
    assert!(may(&token(&["reviewer"])) && !may(&token(&["asker"])));
}

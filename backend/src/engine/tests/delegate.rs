//! Delegated reviews, and claims that run out.

use shared::author::Author;
use shared::id::TokenId;

use super::*;

const ASK: &str = r"
id: d
nodes:
  ask:
    human:
      prompt: Well?
      options: [{ id: yes, label: Fine }]
      reviewers: { roles: [legal], not_requester: true }
";

/// Starts a run whose inputs come without the users who exist.
fn start() -> Play {
    let mut play = Play::start(ASK, json!({}));
    play.people = None;
    play
}

fn lea() -> Principal {
    person("lea", &["legal", "reviewer"])
}

fn tom() -> Principal {
    person("tom", &["reviewer"])
}

fn hand(play: &mut Play, by: &Principal, to: &str, person: Option<Principal>) -> Result<Option<Refusal>, Refusal> {
    let review = play.review().id;
    play.try_apply(Input::Delegate { review, by: by.clone(), via: Via::Human, to: to.parse().unwrap(), person })
}

#[test]
fn a_review_changes_hands_once_and_is_decided_in_the_name_of_who_had_it() {
    let mut play = start();
    let before = play.review();
    play.apply(Input::Claim { review: before.id, by: lea(), via: Via::Human });
    hand(&mut play, &lea(), "tom", Some(tom())).unwrap();
    let review = play.review();
    assert_eq!((review.digest.as_str(), review.claimed_by.as_ref()), (before.digest.as_str(), None));
    assert_eq!((&*review.delegations[0].from, &*review.delegations[0].to), ("lea", "tom"));
    assert_eq!((play.kinds(), &play.events[0].data["change"]), (vec!["review.updated"], &json!("delegated")));
    let said = request(&review, choose("yes"));
    let refused = play.try_decide(review.id, &lea(), said.clone()).unwrap_err();
    assert_eq!(refused, Refusal::Forbidden("you delegated this review".to_owned()));
    play.try_decide(review.id, &tom(), said).unwrap();
    let decision = play.past(review.id).decisions[0].clone();
    assert_eq!((&*decision.by, decision.on_behalf_of.as_deref()), ("tom", Some("lea")));
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn what_was_delegated_to_somebody_who_is_gone_goes_back() {
    let mut play = start();
    let ida = person("ida", &["reviewer"]);
    hand(&mut play, &lea(), "tom", Some(tom())).unwrap();
    hand(&mut play, &tom(), "ida", Some(ida.clone())).unwrap();
    let holder = |play: &Play| play.review().holders().into_values().next().map(ToString::to_string);
    for (people, expected, given_back) in [
        (vec![lea(), tom(), ida], Some("ida"), None),
        (vec![lea(), tom()], Some("tom"), Some("tom")),
        (vec![lea(), person("tom", &["editor"])], None, Some("lea")),
    ] {
        play.people = Some(people.into());
        play.events.clear();
        // The first recount may change nothing, and is refused then.
        let _ = play.try_apply(Input::Recount);
        assert_eq!(holder(&play).as_deref(), expected);
        let told = play.events.iter().find_map(|event| event.data.get("given_back"));
        assert_eq!(told, given_back.map(|name| json!([name])).as_ref());
    }
    let review = play.review();
    play.try_decide(review.id, &lea(), request(&review, choose("yes"))).unwrap();
    assert_eq!(play.past(review.id).decisions[0].on_behalf_of, None);
}

#[test]
fn who_gave_a_review_back_does_not_get_it_again() {
    let mut play = start();
    hand(&mut play, &lea(), "tom", Some(tom())).unwrap();
    hand(&mut play, &tom(), "lea", Some(lea())).unwrap();
    play.people = Some([tom(), person("lea", &["legal"])].into());
    let _ = play.try_apply(Input::Recount);
    let review = play.review();
    let refused = play.try_decide(review.id, &tom(), request(&review, choose("yes"))).unwrap_err();
    assert!(matches!(refused, Refusal::NotFound | Refusal::Forbidden(_)), "{refused:?}");
}

#[test]
fn what_was_delegated_by_somebody_who_may_no_longer_decide_it_is_not_for_the_delegate() {
    for people in [vec![tom()], vec![tom(), person("lea", &["reviewer"])]] {
        let mut play = start();
        hand(&mut play, &lea(), "tom", Some(tom())).unwrap();
        let review = play.review();
        play.apply(Input::Claim { review: review.id, by: tom(), via: Via::Human });
        play.people = Some(people.into());
        let refused = play.try_decide(review.id, &tom(), request(&review, choose("yes"))).unwrap_err();
        assert_eq!(refused, Refusal::NotFound);
        let review = play.review();
        assert_eq!((review.delegations.len(), review.claimed_by.as_ref()), (0, None));
        assert!(review.problem.is_some(), "nobody is left");
    }
}

#[test]
fn the_vote_and_the_claim_of_who_is_gone_go_with_what_they_were_handed() {
    let two = ASK.replace("      prompt: Well?", "      prompt: Well?\n      policy: { quorum: 2 }");
    let max = person("max", &["legal", "reviewer"]);
    let everyone = [lea(), tom(), max.clone()];
    let mut play = Play::try_start_among(compile(&two), json!({}), &everyone).unwrap();
    hand(&mut play, &lea(), "tom", Some(tom())).unwrap();
    let review = play.review();
    play.try_decide(review.id, &tom(), request(&review, choose("yes"))).unwrap();
    play.apply(Input::Claim { review: review.id, by: tom(), via: Via::Human });
    play.people = Some([lea(), max].into());
    let _ = play.try_apply(Input::Recount);
    let review = play.review();
    assert_eq!((review.delegations.len(), review.decisions.len(), review.claimed_by.as_ref()), (0, 0, None));
    play.try_decide(review.id, &lea(), request(&review, choose("yes"))).unwrap();
    assert!(play.review().is_pending(), "two votes are needed");
}

#[test]
fn a_delegate_who_may_not_decide_is_refused_with_the_reason() {
    let mut play = start();
    let why = |refused: Result<_, Refusal>| match refused {
        Err(Refusal::Invalid(mistakes)) => (mistakes[0].path.clone(), mistakes[0].message.clone()),
        other => panic!("{other:?}"),
    };
    for (to, person, expected) in [
        ("eve", None, "there is no active user `eve`"),
        ("lea", Some(lea()), "you cannot delegate to yourself"),
        (
            "max",
            Some(person("max", &["editor"])),
            "`max` may not decide this review: they do not have the role reviewer",
        ),
        (
            "dev",
            Some(person("dev", &["reviewer"])),
            "`dev` may not decide this review: this review is not for the person who launched the run",
        ),
    ] {
        assert_eq!(why(hand(&mut play, &lea(), to, person)), ("/to".to_owned(), expected.to_owned()));
    }
    let refused = hand(&mut play, &tom(), "lea", Some(lea()));
    assert_eq!(refused, Err(Refusal::NotFound), "only who has a vote hands it over");
}

#[test]
fn a_review_does_not_change_hands_for_ever() {
    let mut play = start();
    let pair = [lea(), tom()];
    let mut turns = 0;
    let refused = loop {
        let (by, to) = (&pair[turns % 2], &pair[(turns + 1) % 2]);
        match hand(&mut play, by, &to.username, Some(to.clone())) {
            Ok(_) => turns += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((turns, mistakes(refused)[0].1.as_str()), (20, "too_many"));
}

#[test]
fn a_claim_that_has_run_out_is_gone_with_the_next_change() {
    let mut play = start();
    let review = play.review().id;
    play.apply(Input::Claim { review, by: lea(), via: Via::Human });
    play.now = play.now.after(Duration::from_mins(14));
    play.apply(Input::Comment { review, by: lea(), via: Via::Human, text: "Hm.".to_owned() });
    assert!(play.review().claimed_by.is_some());
    play.now = play.now.after(Duration::from_mins(1));
    play.apply(Input::Comment { review, by: lea(), via: Via::Human, text: "Well.".to_owned() });
    assert_eq!(play.review().claimed_by, None);
}

#[test]
fn a_claim_and_a_delegation_name_the_token_that_made_them() {
    let mut play = start();
    let token = TokenId(uuid::Uuid::from_u128(7));
    let by = Principal { token: true, token_id: Some(token), ..lea() };
    let review = play.review().id;
    play.apply(Input::Claim { review, by: by.clone(), via: Via::Human });
    let claim = play.review().claimed_by.unwrap();
    assert_eq!((claim.token, Author::from(&claim).to_string().as_str()), (Some(token), "a token of lea"));
    hand(&mut play, &by, "tom", Some(tom())).unwrap();
    let delegation = play.review().delegations[0].clone();
    assert_eq!(Author::from(&delegation).to_string(), "a token of lea");
    assert_eq!(shared::inbox::outline(&play.review()).delegations[0].token, None, "it makes no other class");
}

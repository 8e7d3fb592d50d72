//! Tests of the paths of requests, and of reading whole lists.

use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::api::UserPatch;

/// A transport that fails every request, and records its path.
#[derive(Default)]
struct Asked(RefCell<Vec<String>>);

impl Transport for &Asked {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, String> {
        self.0.borrow_mut().push(request.path);
        Err("nobody is there".to_owned())
    }
}

fn now<T>(answer: impl Future<Output = ApiResult<T>>) -> Option<Code> {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.err().map(|problem| problem.code),
        Poll::Pending => None,
    }
}

#[test]
fn an_id_never_leads_to_another_place_of_the_api() {
    let asked = Asked::default();
    let client = Client::new(&asked);
    assert_eq!(now(client.flow("../users?x=#/é", Some(2))), Some(Code::Unavailable));
    now(client.save_flow("a b", ""));
    now(client.update_user("../me", &UserPatch::default()));
    now(client.reset_second_factor("ana/x"));
    assert_eq!(
        *asked.0.borrow(),
        [
            "/api/v1/flows/..%2Fusers%3Fx%3D%23%2F%C3%A9?version=2",
            "/api/v1/flows/a%20b",
            "/api/v1/users/..%2Fme",
            "/api/v1/users/ana%2Fx/totp",
        ]
    );
    for id in ["", ".", ".."] {
        assert_eq!(now(client.flow(id, None)), Some(Code::NotFound));
        assert_eq!(now(client.save_flow(id, "")), Some(Code::NotFound));
        assert_eq!(now(client.update_user(id, &UserPatch::default())), Some(Code::NotFound));
        assert_eq!(now(client.reset_second_factor(id)), Some(Code::NotFound));
    }
    assert_eq!(asked.0.borrow().len(), 4, "nothing was sent");
}

#[test]
fn a_failed_response_that_is_none_of_this_api_is_understood_by_its_status() {
    let of = |status, body| {
        let problem = Problem::of_response(status, body);
        (problem.code, problem.status, problem.to_string())
    };
    let of_proxy = of(502, "<html><h1>502 Bad Gateway</h1>");
    assert_eq!(of_proxy, (Code::Unavailable, 502, "Not available right now (a response with status 502)".into()));
    let newer = of(429, r#"{ "code": "new_code", "status": 429, "title": "Slow down", "detail": "wait for 42 s" }"#);
    assert_eq!(newer, (Code::TooManyRequests, 429, "wait for 42 s".into()));
    let page = format!(r#"{{ "title": "{}" }}"#, "wait ".repeat(100));
    let long = Problem::of_response(504, &page).to_string();
    assert_eq!((long.chars().count(), long.chars().last()), (300, Some('…')));
    assert_eq!(of(418, "").0, Code::Internal);
    let own = Problem::invalid("/input", "is missing");
    assert_eq!(Problem::of_response(422, &serde_json::to_string(&own).unwrap()), own);
}

/// A transport that answers with pages of 200 out of 450 users.
struct ManyPeople;

impl Transport for &ManyPeople {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, String> {
        let begin: usize = request.path.split_once("&cursor=").map_or(0, |(_, place)| place.parse().unwrap());
        let end = (begin + 200).min(450);
        let person = |n| serde_json::json!({ "username": format!("person{n}"), "roles": [], "created_at": "2026-11-26T00:00:00Z" });
        let items: Vec<_> = (begin..end).map(person).collect();
        let next = (end < 450).then(|| end.to_string());
        Ok(ApiResponse { status: 200, body: serde_json::json!({ "items": items, "next_cursor": next }).to_string() })
    }
}

#[test]
fn a_list_that_is_shown_as_a_whole_is_read_to_its_end() {
    let client = Client::new(&ManyPeople);
    let Poll::Ready(read) = pin!(client.users()).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it waits")
    };
    let people = read.expect("it is read");
    assert_eq!((people.items.len(), people.next_cursor), (450, None));
    assert_eq!(people.items[449].username.as_str(), "person449");
}

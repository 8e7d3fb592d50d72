//! Where requests go, whatever ids they name.

use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// Answers nothing, and keeps the path that was asked for.
#[derive(Default)]
struct Asked(RefCell<Vec<String>>);

impl Transport for &Asked {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, String> {
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

//! Limits of the number of sockets.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shared::error::{Code, Problem};

use crate::client_address::{ClientAddress, Network};
use crate::rate_limit::{LimitHolder, give_back};

/// The limits of the number of sockets.
#[derive(Debug, Clone, Copy)]
pub struct MaxSockets {
    /// Per person, and for all tokens of a person.
    pub each: usize,
    /// Per client address, or /64 network of IPv6.
    pub per_address: usize,
    /// On this server in total.
    pub all: usize,
}

impl Default for MaxSockets {
    fn default() -> Self {
        Self { each: 50, per_address: 1000, all: 20_000 }
    }
}

/// Counts the open sockets, by holder and by network.
#[derive(Debug, Clone)]
pub(super) struct SocketLimits(Arc<LimitState>);

#[derive(Debug)]
struct LimitState {
    taken: Mutex<SocketCounts>,
    limits: MaxSockets,
}

#[derive(Debug, Default)]
struct SocketCounts {
    by_holder: HashMap<LimitHolder, usize>,
    by_network: HashMap<Network, usize>,
}

/// An open socket. It is no longer counted once this is dropped.
#[derive(Debug)]
pub(super) struct OpenSocket {
    shared: Arc<LimitState>,
    holder: LimitHolder,
    network: Option<Network>,
}

impl SocketLimits {
    pub fn new(limits: MaxSockets) -> Self {
        Self(Arc::new(LimitState { taken: Mutex::default(), limits }))
    }

    /// Counts a new socket. Fails if a limit is reached. Clients on this machine are not limited by address.
    pub fn take(&self, holder: LimitHolder, client: ClientAddress) -> Result<OpenSocket, Problem> {
        let MaxSockets { each, per_address, all } = self.0.limits;
        let mut taken = self.0.taken.lock();
        let SocketCounts { by_holder, by_network } = &mut *taken;
        if by_holder.values().sum::<usize>() >= all {
            let detail = "this server has reached its limit of live sockets; try another server, or try later";
            return Err(Problem { retry_after: Some(5), ..Problem::new(Code::Unavailable).detail(detail) });
        }
        let too_many = |of: usize, whose: &str| {
            let detail = format!("at most {of} live sockets {whose}; close some first");
            Problem { retry_after: Some(5), ..Problem::new(Code::TooManyRequests).detail(detail) }
        };
        if by_holder.get(&holder).is_some_and(|own| *own >= each) {
            let whose = match holder {
                LimitHolder::Person(_) => "per person",
                LimitHolder::TokensOf(_) => "for all tokens of a person",
            };
            return Err(too_many(each, whose));
        }
        let network = (!client.is_loopback()).then(|| client.network());
        if let Some(network) = network {
            let own = by_network.entry(network).or_default();
            if *own >= per_address {
                return Err(too_many(per_address, "per address"));
            }
            *own += 1;
        }
        *by_holder.entry(holder.clone()).or_default() += 1;
        Ok(OpenSocket { shared: Arc::clone(&self.0), holder, network })
    }
}

impl Drop for OpenSocket {
    fn drop(&mut self) {
        let mut taken = self.shared.taken.lock();
        give_back(&mut taken.by_holder, &self.holder);
        if let Some(network) = &self.network {
            give_back(&mut taken.by_network, network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    use shared::access::Principal;

    use super::*;

    fn person(name: &str) -> LimitHolder {
        LimitHolder::Person(name.parse().expect("a name"))
    }

    #[test]
    fn a_seat_is_given_back() {
        let seats = SocketLimits::new(MaxSockets { each: 1, per_address: 9, all: 2 });
        let take = |name| seats.take(person(name), ClientAddress::UNKNOWN);
        let first = take("ana").expect("free");
        assert_eq!(take("ana").expect_err("one each").code, Code::TooManyRequests);
        let _second = take("tom").expect("free");
        assert_eq!(take("eve").expect_err("two in all").code, Code::Unavailable);
        drop(first);
        assert!(take("ana").is_ok());
    }

    #[test]
    fn tokens_take_no_seat_of_their_creator() {
        let seats = SocketLimits::new(MaxSockets { each: 1, per_address: 9, all: 9 });
        let ana = Principal::new("ana".parse().expect("a name"), BTreeSet::new());
        let token = Principal { token: true, ..ana.clone() };
        let take = |who| seats.take(LimitHolder::of(who), ClientAddress::UNKNOWN);
        let _first = take(&token).expect("free");
        assert_eq!(take(&token).expect_err("one for all tokens").code, Code::TooManyRequests);
        assert!(take(&ana).is_ok());
    }

    #[test]
    fn an_address_has_its_share_of_the_seats() {
        let seats = SocketLimits::new(MaxSockets { each: 9, per_address: 1, all: 9 });
        let take = |client| seats.take(person("ana"), client);
        let [here, there] = [[203, 0, 113, 7], [198, 51, 100, 1]].map(|at| ClientAddress::from(IpAddr::from(at)));
        let first = take(here).expect("free");
        assert_eq!(take(here).expect_err("one each").code, Code::TooManyRequests);
        let _second = take(there).expect("another address");
        drop(first);
        assert!(take(here).is_ok());
    }
}

//! Limits: how fast one client may speak, and how many sockets there may be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shared::error::{Code, Problem};
use shared::id::Username;
use tokio::time::Instant;

/// A token bucket: `per_second` messages sustained, three seconds' worth at once.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: u32,
    /// Until when the messages so far have used up the rate.
    used_until: Instant,
}

impl Bucket {
    pub fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, used_until: now }
    }

    /// Counts a message; false: it is one too many.
    pub fn take(&mut self, now: Instant) -> bool {
        self.used_until = self.used_until.max(now) + Duration::from_secs(1) / self.per_second;
        self.used_until <= now + Duration::from_secs(3)
    }
}

/// The sockets that are open, by person.
#[derive(Debug, Clone)]
pub(super) struct Seats(Arc<Room>);

#[derive(Debug)]
struct Room {
    taken: Mutex<HashMap<Username, usize>>,
    each: usize,
    all: usize,
}

/// One open socket; given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    room: Arc<Room>,
    username: Username,
}

impl Seats {
    /// At most `each` sockets of one person, and `all` of everybody.
    pub fn new(each: usize, all: usize) -> Self {
        Self(Arc::new(Room { taken: Mutex::default(), each, all }))
    }

    /// Takes one.
    pub fn take(&self, username: &Username) -> Result<Seat, Problem> {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.values().sum::<usize>() >= self.0.all {
            let detail = "this server has as many live sockets as its settings allow; try another, or later";
            return Err(Problem { retry_after: Some(5), ..Problem::new(Code::Unavailable).detail(detail) });
        }
        let own = taken.entry(username.clone()).or_default();
        if *own >= self.0.each {
            let detail = format!("at most {} live sockets for one person; close some first", self.0.each);
            return Err(Problem { retry_after: Some(5), ..Problem::new(Code::TooManyRequests).detail(detail) });
        }
        *own += 1;
        Ok(Seat { room: Arc::clone(&self.0), username: username.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.username) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.username);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn twenty_a_second_are_let_through_and_more_are_not() {
        let mut bucket = Bucket::new(20, Instant::now());
        for _ in 0..200 {
            assert!(bucket.take(Instant::now()));
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        let flood = (0..200).filter(|_| bucket.take(Instant::now())).count();
        assert_eq!(flood, 60);
    }

    #[test]
    fn a_seat_is_given_back() {
        let seats = Seats::new(1, 2);
        let [ana, tom, eve] = ["ana", "tom", "eve"].map(|name| name.parse::<Username>().expect("a name"));
        let first = seats.take(&ana).expect("free");
        assert_eq!(seats.take(&ana).expect_err("one each").code, Code::TooManyRequests);
        let _second = seats.take(&tom).expect("free");
        assert_eq!(seats.take(&eve).expect_err("two in all").code, Code::Unavailable);
        drop(first);
        assert!(seats.take(&ana).is_ok());
    }
}

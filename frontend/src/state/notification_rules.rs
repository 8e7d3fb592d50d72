//! The notification rules of a person: which events are on, the delay of a rule, and the default rule.

use shared::notification::{Channel, Notifications, Occasion, Rule};
use shared::time::Span;

/// The selectable delays of a rule, in seconds; 0 means none.
const AFTER: [u64; 7] = [0, 300, 600, 1800, 3600, 14_400, 86_400];

/// Whether `one` is selected. An empty selection stands for all.
pub fn is_on<T: PartialEq>(chosen: &[T], one: &T) -> bool {
    chosen.is_empty() || chosen.contains(one)
}

/// Turns one of `all` on or off. The last one stays on, since an empty selection would stand for all.
pub fn flip<T: PartialEq + Copy>(all: &[T], chosen: &mut Vec<T>, one: T) {
    let now: Vec<T> = all.iter().copied().filter(|other| is_on(chosen, other) != (*other == one)).collect();
    if !now.is_empty() {
        *chosen = now;
    }
}

/// The delays to select from, in seconds, and the index of the rule's delay among them; another delay of the rule is
/// added to them.
pub fn waits(rule: &Rule) -> (Vec<u64>, usize) {
    let own = rule.after.map_or(0, |after| after.0.as_secs());
    let mut all = AFTER.to_vec();
    let at = all.binary_search(&own).unwrap_or_else(|at| {
        all.insert(at, own);
        at
    });
    (all, at)
}

/// The delay of a rule; `None` for 0 seconds.
pub fn after(seconds: u64) -> Option<Span> {
    (seconds > 0).then(|| Span::secs(seconds))
}

/// A new rule, for a channel without rules if there is one: by mail with a delay of 10 minutes, otherwise without
/// delay. `None` if no channel is available.
pub fn next_rule(chosen: &Notifications) -> Option<Rule> {
    let unused = |channel: &&Channel| chosen.applied().iter().all(|rule| rule.channel != **channel);
    let channel = *chosen.available.iter().find(unused).or(chosen.available.first())?;
    let after = after(if channel == Channel::Email { 600 } else { 0 });
    Some(Rule { channel, events: vec![Occasion::Requested, Occasion::Expiring], after, severities: Vec::new() })
}

#[cfg(test)]
mod tests {
    use shared::definition::Severity;

    use super::*;

    #[test]
    fn none_chosen_is_all_and_the_last_one_stays() {
        let mut chosen = Vec::new();
        assert!(is_on(&chosen, &Severity::Low));
        flip(Severity::ALL, &mut chosen, Severity::Low);
        assert_eq!(chosen, [Severity::Medium, Severity::High, Severity::Critical]);
        let mut last = vec![Severity::High];
        flip(Severity::ALL, &mut last, Severity::High);
        assert_eq!(last, [Severity::High]);
        flip(Severity::ALL, &mut last, Severity::Low);
        assert_eq!(last, [Severity::Low, Severity::High]);
    }

    #[test]
    fn a_wait_that_was_set_elsewhere_can_be_kept() {
        let rule = |seconds| Rule { after: after(seconds), ..first(&[Channel::Slack]) };
        assert_eq!(waits(&rule(0)), (AFTER.to_vec(), 0));
        let (all, at) = waits(&rule(420));
        assert_eq!((all.len(), all[at]), (AFTER.len() + 1, 420));
    }

    #[test]
    fn chat_is_offered_first_and_then_a_mail_if_it_is_still_pending() {
        let chat = first(&[Channel::Slack, Channel::Email]);
        assert_eq!((chat.channel, chat.after), (Channel::Slack, None));
        let both = Notifications {
            rules: Some(vec![chat]),
            available: vec![Channel::Slack, Channel::Email],
            ..Notifications::default()
        };
        let mail = next_rule(&both).unwrap();
        assert_eq!((mail.channel, mail.after), (Channel::Email, Some(Span::secs(600))));
        assert_eq!(next_rule(&Notifications::default()), None);
    }

    fn first(available: &[Channel]) -> Rule {
        next_rule(&Notifications { available: available.to_vec(), ..Notifications::default() }).unwrap()
    }
}

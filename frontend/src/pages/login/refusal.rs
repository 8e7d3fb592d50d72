//! Why a login failed, in words.

use shared::error::{Code, Problem};
use shared::single_sign_on::Trouble;

/// The message for a login link that is not valid any more.
pub const LINK_USED: &str = "This link was used before, or is too old. Ask for a new one.";

/// The message for a refused login: with a code of the second factor, with a link, or with a password.
pub fn why_not(problem: &Problem, with_code: bool, with_link: bool) -> String {
    match problem.code {
        Code::Unauthenticated if with_code => "This code is incorrect or was already used. Wait for the next one.",
        Code::Unauthenticated if with_link => LINK_USED,
        Code::Unauthenticated => "Incorrect username or password.",
        _ => return problem.to_string(),
    }
    .to_owned()
}

/// The message for a person whom the identity provider sent back without a login.
pub fn why_refused(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Attempt => "The login was begun in another browser, or took too long. Please try again.",
        Trouble::Denied => "The identity provider did not log you in. Please try again, or log in with a password.",
        Trouble::Provider => "The identity provider cannot be reached. Try again soon, or log in with a password.",
        Trouble::Token => "The response of the identity provider could not be verified. Please tell an admin.",
        Trouble::Claims => "The identity provider did not send enough information about you. Please tell an admin.",
        Trouble::Groups => "None of your groups may use this server. Please ask an admin.",
        Trouble::Unknown => "You have no account here. Please ask an admin for one.",
        Trouble::Taken => "Another account here has your username. Please tell an admin.",
        Trouble::Inactive => "Your account here is deactivated. Please ask an admin.",
        Trouble::Off => "Single sign-on is no longer set up. Log in with a password.",
        Trouble::Busy => "That is not possible right now. Please try again in a moment.",
    }
}

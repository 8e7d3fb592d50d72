//! `code-safety`: commands and statements that destroy data irrecoverably. It is a seat belt, not a sandbox: it
//! recognises them if no one hides them, beyond quotes, escapes and unusual blanks.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::flow::work_limit;

/// The arguments of a command, up to its end.
const WORDS: &str = r"([^;|&\n]*)";
/// What may precede the name of a command, so that it is not part of another word.
const BEFORE: &str = r"(?:^|[^\w.-])";

static RM: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{BEFORE}rm\s{WORDS}")));
static CHMOD: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{BEFORE}chmod\s{WORDS}")));
static KILL: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{BEFORE}(?:kill|pkill|killall)\s{WORDS}")));
static DD: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{BEFORE}dd\s{WORDS}")));
static MKFS: LazyLock<Regex> = LazyLock::new(|| regex(&format!(r"{BEFORE}mkfs(?:\.\w|\s+-|\s+/)")));
static TO_DISK: LazyLock<Regex> =
    LazyLock::new(|| regex(r">\s*/dev/(?:sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d)"));
static FORK_BOMB: LazyLock<Regex> =
    LazyLock::new(|| regex(r"([\w:.]+)\s*\(\s*\)\s*\{\s*([\w:.]+)\s*\|\s*([\w:.]+)\s*&\s*\}"));
static FORMAT: LazyLock<Regex> =
    LazyLock::new(|| regex(&format!(r"{BEFORE}format(?:\.com)?\s+(?:/\S+\s+)*[a-z]:/?\s*(?:$|[;&|\n)}}\]]|/[a-z])")));
/// `shutdown` or `reboot` as a command: only where a command can begin, and with arguments that it can have. In
/// sentences both are ordinary words.
static POWER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:^|[;&|({`\n\[]|/s?bin/|-c\s|\b(?:sudo|doas)\s(?:-\S+\s+)*|\b(?:systemctl|exec|nohup|command)\s|\bssh\s[^;|&\n]*\s)\s*(shutdown|reboot)(?:\.exe)?(?:\s+(?:-|/[a-z]\b|now\b|\+\d|\d{1,2}:\d\d)|\s*(?:$|[;&|)\n}`>\]]))",
    )
});
static DROP: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:drop\s+(table|database)|truncate\s+table)\b"));
/// A `DELETE` whose table name is followed by nothing, or by nothing that selects rows.
static DELETE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\bdelete\s+from\s+(?:only\s+)?[\w.$`-]+(?:\s+as\s+\w+)?\s*(?:$|[;)}\]]|(?:returning|limit|order\s+by)\b|\w+\s*;)",
    )
});

/// A quick first test: everything in the list contains one of these.
static WORD: LazyLock<Regex> =
    LazyLock::new(|| regex(r"rm\s|chmod|kill|dd\s|mkfs|/dev/|\(\s*\)|format|shutdown|reboot|drop|truncate|delete"));
/// The length in bytes of the shortest command in the list, `reboot`.
const SHORTEST: usize = 6;
/// The units of work per byte of a text: to make it plain, and to test it quickly.
const PER_BYTE: usize = 16;
/// The units of work per byte of a text that may contain something in the list.
const PER_SUSPECT_BYTE: usize = 32;
/// The same for a text beyond ASCII, in which the search for boundaries of words is slower.
const PER_OTHER_SUSPECT_BYTE: usize = 128;

/// Devices for which writing is harmless.
const HARMLESS: [&str; 7] = ["null", "zero", "stdout", "stderr", "tty", "fd/", "shm/"];

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this file are sound")
}

/// Returns what a text would destroy, in words. `None` if it contains nothing in the list.
pub fn find(text: &str) -> Option<&'static str> {
    if text.len() < SHORTEST {
        return None;
    }
    work_limit::count((text.len() * PER_BYTE) as u64);
    plain(text).iter().filter(|text| WORD.is_match(text)).find_map(|text| {
        let per_byte = if text.is_ascii() { PER_SUSPECT_BYTE } else { PER_OTHER_SUSPECT_BYTE };
        work_limit::count((text.len() * per_byte) as u64);
        command(text).or_else(|| statement(text))
    })
}

fn command(text: &str) -> Option<&'static str> {
    let any = |pattern: &Regex, test: fn(&[&str]) -> bool| {
        pattern.captures_iter(text).any(|found| test(&words(found.get(1).map_or("", |words| words.as_str()))))
    };
    if any(&RM, is_rm_of_everything) {
        Some("it deletes everything (`rm -rf`)")
    } else if any(&CHMOD, is_chmod_of_everything) {
        Some("it makes every file writable for everyone (`chmod -R 777 /`)")
    } else if any(&KILL, is_kill) {
        Some("it kills a process by force (`kill -9`)")
    } else if any(&DD, is_dd_to_device) {
        Some("it overwrites a device (`dd of=/dev/…`)")
    } else if MKFS.is_match(text) {
        Some("it creates a new file system (`mkfs`)")
    } else if TO_DISK.is_match(text) {
        Some("it overwrites a disk (`> /dev/…`)")
    } else if FORK_BOMB.captures_iter(text).any(|found| is_fork_bomb(&found)) {
        Some("it starts endless processes (a fork bomb)")
    } else if FORMAT.is_match(text) {
        Some("it formats a drive (`format C:`)")
    } else {
        let found = POWER.captures(text)?.get(1)?;
        Some(if found.as_str() == "reboot" {
            "it restarts the machine (`reboot`)"
        } else {
            "it shuts the machine down (`shutdown`)"
        })
    }
}

fn statement(text: &str) -> Option<&'static str> {
    let text = without_comments(text);
    if let Some(found) = DROP.captures(&text) {
        return Some(match found.get(1).map(|what| what.as_str()) {
            Some("table") => "it deletes a table (`DROP TABLE`)",
            Some(_) => "it deletes a database (`DROP DATABASE`)",
            None => "it empties a table (`TRUNCATE TABLE`)",
        });
    }
    DELETE.is_match(&text).then_some("it deletes every row of a table (`DELETE FROM` without `WHERE`)")
}

/// Returns a text with a blank for each comment. A comment that does not end is none.
fn without_comments(text: &str) -> String {
    // Without looking for it, each beginning of a comment would be followed to the end of the text.
    let last_end = text.rfind("*/");
    let (mut plain, mut done) = (String::with_capacity(text.len()), 0);
    while let Some(found) = text[done..].find(['/', '-']) {
        let start = done + found;
        let from = &text[start..];
        let length = if from.starts_with("--") {
            Some(from.find('\n').unwrap_or(from.len()))
        } else if from.starts_with("/*") && last_end.is_some_and(|end| end >= start + 2) {
            from[2..].find("*/").map(|end| end + 4)
        } else {
            None
        };
        plain.push_str(&text[done..start]);
        plain.push_str(if length.is_some() { " " } else { &from[..1] });
        done = start + length.unwrap_or(1);
    }
    plain.push_str(&text[done..]);
    plain
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().map(|word| word.trim_end_matches([')', '}', ']', ',', '`', '>'])).collect()
}

/// Whether flags make the command recursive.
fn is_recursive(words: &[&str]) -> bool {
    words.iter().any(|word| *word == "--recursive" || (is_short(word) && word.contains('r')))
}

fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

fn is_rm_of_everything(words: &[&str]) -> bool {
    let everything = |word: &&str| {
        let home = ["~", "$home", "${home}", "${home"].iter().find_map(|home| word.strip_prefix(home));
        let rest = home.unwrap_or(word);
        rest.chars().all(|c| "/.*".contains(c)) && (home.is_some() || !rest.is_empty())
    };
    is_recursive(words) && words.iter().any(|word| everything(word) || *word == "--no-preserve-root")
}

fn is_chmod_of_everything(words: &[&str]) -> bool {
    let open = ["777", "0777", "a+rwx", "a=rwx", "ugo+rwx", "ugo=rwx", "+rwx"];
    let root = |word: &&str| word.starts_with('/') && word.chars().all(|c| "/.*".contains(c));
    is_recursive(words) && words.iter().any(|word| open.contains(word)) && words.iter().any(root)
}

fn is_kill(words: &[&str]) -> bool {
    let signal = |word: &str| ["9", "kill", "sigkill"].contains(&word);
    let joined =
        |word: &&str| ["--signal=", "-s", "-n", "-"].iter().any(|flag| word.strip_prefix(flag).is_some_and(signal));
    let apart = |pair: &[&str]| ["-s", "-n", "--signal"].contains(&pair[0]) && signal(pair[1]);
    words.iter().any(joined) || words.windows(2).any(apart)
}

fn is_dd_to_device(words: &[&str]) -> bool {
    let device = |word: &&str| {
        let name = word.strip_prefix("of=/dev/")?;
        Some(!HARMLESS.iter().any(|harmless| name.starts_with(harmless)))
    };
    words.iter().filter_map(device).any(|harms| harms)
}

/// Whether the three names are the same, so that the function calls itself twice.
fn is_fork_bomb(found: &Captures<'_>) -> bool {
    let name = |group| found.get(group).map(|name| name.as_str());
    name(1) == name(2) && name(2) == name(3)
}

/// Returns a text as a shell would see it: in lower case, without quotes, and with one kind of blank and dash. A text
/// with backslashes is read in two ways, since `
/// ` may be a new line or an escaped letter.
fn plain(text: &str) -> Vec<String> {
    let folded: String = text.chars().filter_map(fold).flat_map(char::to_lowercase).collect();
    let spaced = ["${ifs}", "$ifs$9", "$ifs"].iter().fold(Cow::Owned(folded), |text: Cow<'_, str>, separator| {
        if text.contains(separator) { Cow::Owned(text.replace(separator, " ")) } else { text }
    });
    let unquoted = |text: &str| text.replace(['"', '\'', '\\'], "");
    let mut read = vec![unquoted(&spaced.replace("\\\n", ""))];
    if spaced.contains('\\') {
        read.push(unquoted(&spaced.replace("\\n", "\n").replace("\\r", "\n").replace("\\t", " ")));
    }
    read
}

/// Returns the plain form of a character. `None` if the character is invisible.
pub fn fold(c: char) -> Option<char> {
    match c {
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        c if c.is_whitespace() => Some(' '),
        '\u{ad}'
        | '\u{34f}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => Some('-'),
        '\u{2044}' | '\u{2215}' => Some('/'),
        '\u{2018}' | '\u{2019}' => Some('\''),
        '\u{201c}' | '\u{201d}' => Some('"'),
        // Full-width forms are in the order of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn what_destroys_is_found_however_it_is_written() {
        for text in [
            "rm -rf /",
            "rm -rf ~/",
            "rm -rf *",
            "rm -rf .",
            "rm -rf ./",
            "rm -fr /",
            "rm -r -f /",
            "rm -Rf /*",
            "rm --recursive --force /",
            "rm / -rf",
            "rm -rfv -- /",
            "sudo rm -rf --no-preserve-root /",
            "/bin/rm -rf $HOME",
            "rm -rf ${HOME}/",
            "rm -rf ~",
            "rm -rf ..",
            "cd x && rm -rf *",
            "sh -c 'rm -rf /'",
            "rm -rf \"/\"",
            "RM -RF /",
            "rm\u{a0}-rf\u{2003}/",
            "rm  -rf\t/",
            "r\u{200b}m -rf /",
            "rm \u{2013}rf /",
            "\\rm -rf /",
            "r\\m -rf /",
            "rm${IFS}-rf${IFS}/",
            "rm -rf \\\n/",
            "echo a\\nrm -rf /",
            "$(rm -rf /)",
            "`rm -rf /`",
            "ｒｍ －ｒｆ ／",
            "ls; rm -rf build /",
            "{\"cmd\": \"rm -rf /\"}",
            "mkfs.ext4 /dev/sda1",
            "mkfs -t xfs /dev/sdb",
            "dd if=/dev/zero of=/dev/sda bs=1M",
            "dd of=/dev/nvme0n1 if=x",
            ":(){ :|:& };:",
            ":() { : | : & } ; :",
            "bomb(){ bomb|bomb& };bomb",
            "DROP TABLE users",
            "drop   database prod;",
            "DROP/**/TABLE users",
            "TRUNCATE TABLE users",
            "drop\ntable users",
            "DELETE FROM users",
            "delete from users;",
            "DELETE FROM public.users RETURNING *",
            "DELETE FROM \"users\";",
            "DELETE FROM users -- WHERE id = 1",
            "DELETE FROM users u;",
            "DELETE FROM users /* WHERE id = 1 */",
            "format C:",
            "format c: /q",
            "format /q d:",
            "cmd /c \"format C:\"",
            "echo x > /dev/sda",
            "cat x >/dev/nvme0n1",
            "chmod -R 777 /",
            "chmod 777 -R /",
            "chmod --recursive a+rwx /*",
            "kill -9 1",
            "kill -KILL 1",
            "kill -s 9 1",
            "pkill -9 nginx",
            "kill -s SIGKILL 1",
            "killall -9 java",
            "shutdown",
            "shutdown -h now",
            "sudo shutdown now",
            "reboot",
            "sudo reboot",
            "systemctl reboot",
            "/sbin/reboot",
            "ls; reboot",
            "ssh root@host reboot",
            "shutdown /s /t 0",
            "sh -c 'shutdown +5'",
        ] {
            assert!(find(text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn comments_that_do_not_end_hide_nothing_and_are_read_once() {
        assert!(find("ls /* && mysql -e 'drop table users'").is_some());
        assert!(find("*/ drop /**//* x *//*/ y */ table users -").is_some());
        assert_eq!(find(&"delete /*--\n".repeat(100_000)), None);
    }

    #[test]
    fn what_destroys_nothing_of_that_kind_is_let_pass() {
        for text in [
            "rm -rf ./build",
            "rm -rf build/*",
            "rm -rf ~/.cache/x",
            "rm -f *",
            "rm a.txt",
            "rm -rf /tmp/build",
            "rm -rf .git",
            "docker run --rm -r . x",
            "the form -rf / is odd",
            "warm -rf /",
            "rm file; ls -r .",
            "dd if=/dev/sda of=/dev/null",
            "dd if=/dev/zero of=/dev/shm/x",
            "dd if=a of=b",
            "add of=/dev/sda",
            "the mkfs. command",
            "drop the table",
            "a drop-table widget",
            "DELETE FROM users WHERE id = 1",
            "delete from users\nwhere id = 1",
            "please delete from the list",
            "truncate the table",
            "DELETE FROM a USING b WHERE a.id = b.id",
            "the format A: PDF",
            "format the report",
            "information c:",
            "ls > /dev/null",
            "chmod -R 755 /",
            "chmod 777 /tmp/x",
            "chmod -R 777 ./public",
            "kill 1",
            "kill -15 1",
            "skill -9",
            "kill the -9000 line",
            "Shutdown of the old service",
            "the server needs a reboot",
            "after the reboot, log in",
            "shutdown the pumps",
            "https://example.com/reboots",
            "https://example.com/servers/1/reboot",
            "a:() is no function",
            "f(){ g|g& }",
        ] {
            assert_eq!(find(text), None, "{text:?}");
        }
    }
}

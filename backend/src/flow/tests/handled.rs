//! Timers, handlers and maps that could not work as written.

use super::*;

/// Returns the last place of a piece of a source, as `line:column`.
pub(super) fn place(source: &str, piece: &str) -> String {
    let before = &source[..source.rfind(piece).unwrap_or_else(|| panic!("{piece} in {source}"))];
    format!("{}:{} ", before.lines().count(), before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1)
}

/// Checks that a source has exactly these mistakes, each at the last place of a piece of it.
fn expect_at(source: &str, wanted: &[(&str, &str)]) {
    let places: Vec<_> = wanted.iter().map(|(piece, _)| place(source, piece)).collect();
    let wanted: Vec<_> = places.iter().map(String::as_str).zip(wanted.iter().map(|(_, words)| *words)).collect();
    expect(source, &wanted);
}

#[test]
fn a_timer_that_could_not_do_what_it_says_is_found_when_the_flow_is_saved() {
    let human = |rest: &str| format!("id: f\n\nnodes:\n  a: {{ human: {{ prompt: hi, timeout: 1h, {rest} }} }}\n");
    expect_at(&human("on_timeout: follow"), &[]);
    expect_at(&human("on_timeout: { goto: b }"), &[("b }", "no node `b`")]);
    let chain = "on_timeout: { escalate: lead, extend: 1h, then: { escalate: boss, extend: 1h, then: { goto: b } } }";
    expect_at(&human(chain), &[("b }", "no node `b`")]);
    expect_at(&human(&chain.replace("{ goto: b }", "approve")), &[("on_timeout", "none here")]);
    let chain = chain.replace("{ goto: b }", "error");
    expect_at(&human(&chain.replace("boss", "lead")), &[("lead", "circle")]);
    let asked = format!("reviewers: {{ roles: [boss] }}, {chain}");
    expect_at(&human(&asked), &[("boss", "`boss` is asked from the start")]);
    expect_at(&human(&chain.replace("lead", "reviewer")), &[("reviewer", "`reviewer` is asked from the start")]);
    expect_at(&human(&chain.replace("lead, extend: 1h", "lead, extend: 0s")), &[("0s", "longer than zero")]);
    expect_at(&human(&chain.replace("lead", "' '")), &[("' '", "name of a role")]);
    let defaults = format!("defaults: {{ {chain} }}\n{}", human("reviewers: { roles: [boss] }"));
    expect(&defaults, &[("?5:8 doubtful", "`boss` is asked from the start")]);
    let long = (0..11).fold("error".to_owned(), |then, at| format!("{{ escalate: r{at}, extend: 1h, then: {then} }}"));
    expect_at(&human(&format!("on_timeout: {long}")), &[("then: { escalate: r0,", "at most 10 times")]);
    let gate = |then: &str| {
        let gate = format!("{{ before_tool: {{ t: {{ timeout: 1h, on_timeout: {then} }} }} }}");
        format!("id: f\ntools: {{ t: {{ builtin: sleep }} }}\nnodes:\n  a: {{ tool: t }}\ngates: {gate}\n")
    };
    let escalates = |role: &str| gate(&format!("{{ escalate: {role}, extend: 1h, then: approve }}"));
    expect_at(&escalates("boss"), &[]);
    // Who is asked may be named by the defaults or a route.
    let legal = "reviewers: { roles: [legal] }";
    let route = format!("routing: [{{ tags: [x], {legal} }}]\n");
    let asked = |role: &str| human(&chain.replace("lead", role));
    expect_at(&format!("defaults: {{ {legal} }}\n{}", asked("reviewer")), &[]);
    expect_at(&format!("defaults: {{ {legal} }}\n{}", asked("legal")), &[("legal", "is asked from the start")]);
    expect_at(&format!("{route}{}", asked("reviewer").replace("a: { human", "a: { tags: [x], human")), &[]);
    expect_at(&format!("defaults: {{ {legal} }}\n{}", escalates("reviewer")), &[]);
    expect_at(&format!("defaults: {{ {legal} }}\n{}", escalates("legal")), &[("legal", "is asked from the start")]);
    expect_at(&escalates("reviewer"), &[("reviewer", "is asked from the start")]);
    expect_at(&format!("{route}{}", escalates("reviewer").replace("a: { tool", "a: { tags: [x], tool")), &[]);
    expect_at(&gate("follow"), &[("follow", "for human nodes")]);
    expect_at(&gate("{ goto: a }"), &[("on_timeout", "for human nodes")]);
    expect_at(&gate("{ escalate: x, extend: 1h, then: follow }"), &[("follow", "for human nodes")]);
}

#[test]
fn a_webhook_that_could_not_be_asked_is_found_when_the_flow_is_saved() {
    let human = |handlers: &str| {
        let options = "options: [{ id: yes, label: Yes }]";
        format!("id: f\n\nnodes:\n  a: {{ human: {{ prompt: hi, {options}, handlers: [{handlers}] }} }}\n")
    };
    let webhook = |rest: &str| human(&format!("{{ webhook: {{ url: 'https://ok.test/x'{rest} }} }}"));
    expect_at(&webhook(""), &[]);
    expect_at(&webhook(", timeout: 10m, on_error: pass"), &[]);
    expect_at(&webhook(", timeout: 0s"), &[("0s", "longer than zero")]);
    expect_at(&webhook(", on_error: allow"), &[("allow", "is not one of reject, pass")]);
    for url in ["ok.test/x", "ftp://ok.test", "https://{{ host }}/x"] {
        let source = human(&format!("{{ webhook: {{ url: '{url}' }} }}"));
        expect_at(&source, &[(&format!("'{url}"), "a literal URL")]);
    }
    for (slack, words) in [
        ("{ channel: 'two words' }", "'two words'|expected a channel"),
        ("{ channel: '#a', timeout: 0s }", "0s|longer than zero"),
    ] {
        let (place, why) = words.split_once('|').unwrap();
        expect_at(&human(&format!("{{ slack: {slack} }}")), &[(place, why)]);
    }
    expect_at(&human("{ slack: { channel: '#a' } }, human"), &[]);
    expect_at(&human("{ slack: { channel: '#a' } }, cli"), &[("slack: {", "without a `timeout`")]);
    expect_at(&human("{ slack: { channel: '#a', timeout: 1m } }, human"), &[]);
    expect_at(
        &human("cli, { webhook: { url: 'https://ok.test' } }"),
        &[("{ webhook", "no handler after `cli` is asked")],
    );
    assert!(
        check(&human("{ function: own }")).errors.iter().any(|error| error.message.contains("unknown key `function`"))
    );
}

#[test]
fn a_handler_that_cannot_be_asked_at_a_place_is_refused_there() {
    let source = "id: f\ntools: { t: { builtin: sleep } }\nnodes:\n  a: { human: { prompt: hi, handlers: [cli] }, next: b }\n  \
                  b: { tool: t }\ngates:\n  before_tool: { t: { handlers: [{ webhook: { url: 'https://ok.test' } }] } }\n\
                  agents: { x: { model: demo/m, tools: [t], gates: { before_tool: { t: { handlers: [{ slack: { channel: '#ok' } }] } } } } }\n";
    let found = |reach: Option<Reach>| {
        let errors = read(source).check(&Here { reach: Option::as_ref(&reach), ..Here::default() }).errors;
        errors.into_iter().map(|mistake| (mistake.line.unwrap(), mistake.message)).collect::<Vec<_>>()
    };
    assert_eq!(found(None), []);
    assert_eq!(found(Some(Reach { terminal: true, webhooks: true, chats: true, ..Reach::default() })), []);
    let server = found(Some(Reach::default()));
    assert_eq!(server.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 7, 8]);
    assert!(server[0].1.contains("`countersign flow run`") && server[1].1.contains("COUNTERSIGN_HANDLER_SECRET"));
    assert!(server[2].1.contains("`[notifications.slack]`"), "{}", server[2].1);
    let flow = check(source).flow.unwrap();
    let built: Vec<_> = unreachable(&flow, &Reach::default()).into_iter().map(|mistake| mistake.path).collect();
    assert_eq!(
        built,
        ["/nodes/a/human/handlers/0", "/gates/before_tool/t/handlers/0", "/agents/x/gates/before_tool/t/handlers/0"]
    );
}

#[test]
fn a_tool_of_an_mcp_server_that_the_settings_do_not_name_draws_a_warning() {
    let source = "id: f\ntools:\n  read: { mcp: { server: flies, tool: read } }\nnodes: { a: { tool: read } }\n";
    let found = |reach: Option<Reach>| {
        let checked = read(source).check(&Here { reach: reach.as_ref(), ..Here::default() });
        assert_eq!(checked.errors, [], "the settings may name it later");
        checked.warnings.into_iter().map(|warning| (warning.path, warning.message)).collect::<Vec<_>>()
    };
    let with = |server: &str| Some(Reach { mcp: [server.to_owned()].into(), ..Reach::default() });
    assert_eq!(found(None), []);
    assert_eq!(found(with("flies")), []);
    let [(path, message)] = found(with("files")).try_into().unwrap();
    assert_eq!(path, "/tools/read/mcp/server");
    assert!(message.contains("`[mcp.flies]`") && message.contains("did you mean `files`?"), "{message}");
}

#[test]
fn a_tool_that_would_send_a_secret_unencrypted_or_where_a_run_says_draws_a_warning() {
    let found = |url: &str| {
        let http = format!("{{ url: \"{url}\", headers: {{ key: '{{{{ secret.KEY }}}}' }} }}");
        let source =
            format!("id: f\ntools:\n  pay:\n    http: {http}\nnodes: {{ a: {{ tool: pay, arguments: {{}} }} }}\n");
        let checked = check(&source);
        assert_eq!(checked.errors, [], "{source}");
        let at_url = checked.warnings.into_iter().filter(|warning| warning.path == "/tools/pay/http/url");
        at_url.map(|warning| warning.message).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(found("https://pay.example/{{ arguments.id }}"), "");
    assert_eq!(found("http://localhost:8080/"), "");
    assert!(found("http://pay.example/").contains("use https"));
    assert!(found("https:/{{ arguments.host }}/").contains("depends on what is filled in"));
}

#[test]
fn a_handler_that_could_not_do_what_it_says_is_found_when_the_flow_is_saved() {
    let human = |rest: &str| format!("id: f\n\nnodes:\n  a: {{ human: {{ prompt: hi, {rest} }} }}\n");
    let yes = "handlers: [{ auto: approve }], options: [{ id: yes, label: Yes }]";
    expect_at(&human(yes), &[]);
    expect_at(&human("handlers: [{ auto: { reject: not today } }]"), &[]);
    expect_at(&human("handlers: [{ auto: approve }]"), &[("handlers", "none here")]);
    expect_at(&human("handlers: [{ auto: { reject: ' ' } }]"), &[("' '", "write the reason")]);
    let timed = human(&format!("{yes}, timeout: 1h, on_timeout: reject"));
    expect_at(&timed, &[("1h", "never happens"), ("reject", "never happens")]);
    let voted = human(&format!("{yes}, policy: unanimous"));
    expect_at(&voted, &[("unanimous", "no one votes")]);
    // In a channel, people vote until its time is over.
    expect_at(&voted.replace("[{ auto", "[{ slack: { channel: '#a', timeout: 1m } }, { auto"), &[]);
    let default = format!("defaults: {{ handlers: [{{ auto: approve }}] }}\n{}", human("severity: low"));
    expect_at(&default, &[("human:", "none here")]);
    expect_at(&default.replace("severity: low", "severity: low, handlers: [human]"), &[]);
    let gate = "id: f\ntools: { t: { builtin: sleep } }\nnodes:\n  a: { tool: t }\n\
                gates: { before_tool: { t: { allowed_decisions: [reject], handlers: [{ auto: approve }] } } }\n";
    expect_at(gate, &[("handlers", "`approve` is not among")]);
}

#[test]
fn a_judge_that_could_not_do_what_it_says_is_found_when_the_flow_is_saved() {
    let human = |handlers: &str| {
        let yes = "options: [{ id: yes, label: Yes }]";
        format!("id: f\n\nnodes:\n  a: {{ human: {{ prompt: hi, {yes}, handlers: [{handlers}] }} }}\n")
    };
    let judge = "{ judge: { model: demo/j, criteria: Be kind } }";
    expect_at(&human(judge), &[]);
    expect_at(&human(&format!("{judge}, {judge}, human")), &[]);
    expect_at(&human(&judge.replace("demo/j", "gemo/j")), &[("gemo/j", "did you mean `demo`")]);
    expect_at(&human(&judge.replace("Be kind", "' '")), &[("' '", "criteria for the judge")]);
    expect_at(&human(&judge.replace("Be kind", "x, threshold: 70")), &[("70", "from 0 to 1")]);
    expect_at(&human(&judge.replace("Be kind", "x, limit: 1")), &[("limit", "unknown")]);
    expect_at(&human(&format!("human, {judge}")), &[("{ judge", "put `human` last")]);
    expect_at(&human(&format!("{judge}, {{ auto: approve }}")), &[]);
    expect_at(&human(&format!("{judge}, {{ auto: reject }}")), &[]);
    expect_at(&human(&format!("{{ auto: approve }}, {judge}")), &[("{ judge", "put `auto` last")]);
    expect_at(&human(&judge.replace("Be kind", "x, timeout: 0s")), &[("0s", "longer than zero")]);
    let text = human(judge).replace("options: [{ id: yes, label: Yes }], ", "");
    expect_at(&text, &[("handlers", "none here")]);
    let voted = human(judge).replace("prompt: hi", "prompt: hi, policy: unanimous");
    expect(&voted, &[("?4:37 doubtful", "decides alone")]);
    let gate = "id: f\ntools: { t: { builtin: sleep } }\nnodes:\n  a: { tool: t }\n\
                gates: { before_tool: { t: { handlers: [JUDGE, human] } } }\n";
    expect_at(&gate.replace("JUDGE", judge), &[]);
    let closed = gate.replace("JUDGE", judge).replace("{ handlers", "{ allowed_decisions: [respond], handlers");
    expect_at(&closed, &[("handlers", "`approve` is not among")]);
}

#[test]
fn what_a_map_cannot_run_is_found_when_the_flow_is_saved() {
    let flow = |map: &str, rest: &str| {
        let agents = if rest.contains("agent: w") { "agents: { w: { model: demo/w, tools: [put] } }\n" } else { "" };
        format!(
            "id: f\ninput: {{ type: object, properties: {{ list: {{}} }} }}\n{agents}\
             tools: {{ put: {{ builtin: set_state }}, nap: {{ builtin: sleep }} }}\n\
             nodes:\n  a: {{ map: {{ {map} }} }}\n  {rest}\n"
        )
    };
    let map = "over: list, as: one, node: b";
    let says = |source: &str, words: &str| {
        let found = found(source);
        assert!(found.iter().any(|line| line.contains(words)), "{source}\nfound {found:#?}\nwanted {words}");
    };
    expect(&flow(map, "b: { tool: nap, arguments: { duration: '{{ one }}' } }"), &[]);
    expect(&flow(map, "b: { human: { prompt: '{{ one }}?', review_keys: [one], edit_keys: [one] } }"), &[]);
    let second = "b: { human: { prompt: x, review_keys: [one], edit_keys: [one] } }\n  \
                  c: { map: { over: list, as: one, node: d } }\n  d: { tool: nap, arguments: { duration: '{{ one }}' } }";
    expect(&flow(map, second).replace("node: b } }", "node: b }, next: c }"), &[]);
    for (rest, words) in [
        ("b: { router: {} }", "is a router node"),
        ("b: { agent: w }", "overwrite each other"),
        ("c: { tool: nap }", "no node `b`"),
        ("b: { tool: nap, next: end }", "ends there"),
        ("b: { tool: nap, join: all }", "ends there"),
        ("b: { tool: nap, max_visits: 2 }", "ends there"),
        ("b: { human: { prompt: x, edit_keys: [list] } }", "only `one` can be edited"),
        ("b: { human: { prompt: x, options: [{ id: x, label: X, kind: correct }] } }", "no step"),
        ("b: { tool: nap }\nstart: b", "the start must not lead to it"),
    ] {
        says(&flow(map, rest), words);
    }
    let entered = flow(map, "b: { tool: nap }").replace("node: b } }", "node: b }, next: b }");
    says(&entered, "`a` must not lead to it");
    says(&flow("over: list, as: list, node: b", "b: { tool: nap }"), "already a state key");
    says(&flow("over: list, as: input, node: b", "b: { tool: nap }"), "is reserved");
}

#[test]
fn stakes_of_gates_are_written_out_or_given_by_templates() {
    let gate = |stakes: &str| {
        format!(
            "id: f\ntools: {{ t: {{ builtin: sleep }} }}\nnodes: {{ a: {{ tool: t }} }}\ngates:\n  before_tool: {{ t: {{ {stakes} }} }}\n"
        )
    };
    for fine in [
        "severity: high, estimated_cost: { amount: 3, currency: EUR }",
        "severity: '{{ arguments.how }}', estimated_cost: { amount: '{{ arguments.amount }}', currency: EUR }",
    ] {
        expect_at(&gate(fine), &[]);
    }
    expect_at(&gate("severity: hihg"), &[("hihg", "is not one of low, medium, high, critical; did you mean `high`?")]);
    expect_at(&gate("severity: '{{ }'"), &[("'{{ }'", "")]);
    let cost = gate("estimated_cost: { amount: much, currency: EUR }");
    expect_at(&cost, &[("much", "neither the value nor a template")]);
}

#[test]
fn what_a_node_may_not_read_is_not_shown_and_saving_says_so() {
    let node = |human: &str| {
        format!("{HEAD}  a: {{ agent: w, next: b }}\n  b: {{ human: {{ prompt: hi, {human} }}, read_keys: [b] }}\n")
    };
    let doubts = found(&node("review_keys: [a]"));
    assert!(
        doubts.len() == 1 && doubts[0].contains("doubtful") && doubts[0].contains("`a` is not shown"),
        "{doubts:?}"
    );
    let mistakes = found(&node("options_key: a"));
    assert!(mistakes.iter().any(|mistake| mistake.contains("its options cannot be read")), "{mistakes:?}");
}

#[test]
fn a_handler_that_can_only_approve_is_not_asked_where_nothing_may_be_approved() {
    let asks = |allowed: &str| {
        format!(
            "id: f\ndefaults: {{ handlers: [{{ auto: approve }}] }}\ntools:\n  t: {{ builtin: sleep, ask_permission: {{ \
             allowed_decisions: [{allowed}] }} }}\nnodes:\n  a: {{ tool: t }}\n"
        )
    };
    expect(&asks("approve, reject"), &[]);
    let wrong = found(&asks("edit, reject"));
    assert!(wrong.len() == 1 && wrong[0].contains("`auto: approve` approves, but"), "{wrong:?}");
}

#[test]
fn guardrails_are_switched_off_at_a_gate_and_never_on() {
    for gate in ["before_return: G", "before_agent: { w: G }", "before_tool: { t: G }"] {
        let gate = gate.replace('G', "{ guardrails: true }");
        let source = format!(
            "id: f\nagents: {{ w: {{ model: demo/w, tools: [t] }} }}\ntools: {{ t: {{ builtin: sleep }} }}\n\
             gates: {{ {gate} }}\nnodes:\n  a: {{ agent: w, prompt: Go. }}\n"
        );
        expect_at(&source, &[("true }", "apply here anyway")]);
    }
}

#[test]
fn whoever_works_on_an_item_of_a_map_writes_no_state_keys() {
    let source = |agents: &str, node: &str| {
        format!(
            "id: f\ninput: {{ type: object, properties: {{ list: {{}} }} }}\nagents:\n  w: {{ model: demo/w, tools: [h] }}\n  \
             s: {{ model: demo/s, tools: [put] }}\n{agents}tools:\n  h: {{ agent: s, description: Helps }}\n  \
             put: {{ builtin: set_state }}\nnodes:\n  all: {{ map: {{ over: list, as: one, node: each }} }}\n  each: {node}\n"
        )
    };
    for node in ["{ agent: w, prompt: Go. }", "{ team: { agents: [w, x], lead: x, strategy: parallel } }"] {
        let found = found(&source("  x: { model: demo/x }\n", node));
        assert!(found.iter().any(|found| found.contains("`each` may call `put`")), "{found:?}");
    }
}

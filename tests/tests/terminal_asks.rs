//! Questions of agents and changes of teams at a terminal, each answered by a script.

use std::io::Write;
use std::process::{Command, Stdio};

use tests::binary;

/// A flow, the answers on standard input, the expected exit code, and texts that the output must contain.
struct Script {
    flow: &'static str,
    answers: &'static str,
    code: i32,
    seen: &'static [&'static str],
}

const COMPLETED: i32 = 0;
const STOPPED: i32 = 5;

const TEAM: &str = "
id: pair
agents:
  one:
    model: demo/one
    tools: [steer]
    demo: { tool_calls: [{ tool: steer, arguments: { strategy: debate, rounds: 2, reason: We disagree. } }], replies: [Yes.] }
  two: { model: demo/two, demo: { replies: [No.] } }
tools: { steer: { builtin: set_strategy } }
gates: { before_strategy_override: true }
nodes: { talk: { team: { agents: [one, two], strategy: sequential, prompt: Well? } } }
";

const STUCK: &str = "
id: stuck
agents:
  clerk:
    model: demo/clerk
    tools: [stuck]
    demo: { tool_calls: [{ tool: stuck, arguments: { reason: out_of_scope, explanation: Not mine. } }] }
tools: { stuck: { builtin: escalate } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

const PROGRESS: &str = "
id: progress
agents:
  clerk:
    model: demo/clerk
    tools: [progress]
    demo: { tool_calls: [{ tool: progress, arguments: { phase: Import, progress: 0.4 } }] }
tools: { progress: { builtin: checkpoint } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

const SIZES: &str = "
id: sizes
agents:
  clerk:
    model: demo/clerk
    tools: [ask]
    demo:
      tool_calls:
        - tool: ask
          arguments:
            question: Which sizes?
            options: [{ id: s, label: Small }, { id: m, label: Medium }, { id: l, label: Large }]
            multiple: true
tools: { ask: { builtin: ask_human } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

/// A flow with a handoff, which does not wait, and a human node, which keeps the program running until both are
/// answered.
const OVER: &str = "
id: over
agents:
  clerk:
    model: demo/clerk
    tools: [over]
    demo: { tool_calls: [{ tool: over, arguments: { to: reviewer, reason: Book the refund. } }], replies: [Done.] }
tools: { over: { builtin: handoff } }
nodes:
  serve: { agent: clerk, prompt: Serve., next: ask }
  ask: { human: { prompt: Are they told?, options: [{ id: yes, label: They are }] } }
";

const GATED: &str = "
id: gated
agents: { clerk: { model: demo/clerk, instructions: You are brief. } }
gates: { before_agent: { clerk: true } }
nodes: { serve: { agent: clerk, prompt: Serve. } }
";

const SCRIPTS: &[Script] = &[
    Script {
        flow: TEAM,
        answers: "edit to\nparallel\n.\nyes\nno\n",
        code: COMPLETED,
        seen: &[
            " strategy permission: debate\n",
            " | We disagree.\n",
            " to is changed; `yes` approves the call with it\n",
            "talk: one changed the strategy to parallel",
        ],
    },
    Script { flow: TEAM, answers: "no not now\n", code: COMPLETED, seen: &["\"talk\": \"No.\""] },
    Script {
        flow: STUCK,
        answers: "human_takeover\n{}\nedit serve\nSettled by phone.\n.\n1\n",
        code: COMPLETED,
        seen: &[" escalation: serve\n", " edit: serve\n", "\"serve\": \"Settled by phone.\""],
    },
    Script {
        flow: PROGRESS,
        answers: "pause\nresume\n",
        code: COMPLETED,
        seen: &[" checkpoint: serve\n", "  [2] Pause", "  [1] Resume", "\\\"decision\\\":\\\"continue\\\""],
    },
    Script { flow: PROGRESS, answers: "2\nabort\n{\"reason\":\"Enough.\"}\n", code: STOPPED, seen: &["Enough."] },
    Script {
        flow: SIZES,
        answers: "answer\n{\"options\":[\"s\",\"l\"]}\n",
        code: COMPLETED,
        seen: &[" clarification: serve\n", "\\\"options\\\":[\\\"s\\\",\\\"l\\\"]"],
    },
    Script {
        flow: OVER,
        answers: "taken\nyes\n",
        code: COMPLETED,
        seen: &[" hand-off: serve\n", "  [1] Take it", "ask: approved by ana", "\"serve\": \"Done.\""],
    },
    Script {
        flow: GATED,
        answers: "instructions: Be kind.\nyes\n",
        code: COMPLETED,
        seen: &[" agent permission: clerk\n", " the agent is told this together with the decision\n"],
    },
];

#[test]
fn each_of_them_is_asked_and_answered_by_a_script() {
    for Script { flow, answers, code, seen } in SCRIPTS {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("flow.yaml");
        std::fs::write(&path, flow).expect("written");
        let mut command = Command::new(binary());
        command.args(["flow", "run", "--as", "ana"]).arg(&path).env("COUNTERSIGN_DEMO_PAUSE", "0");
        command.env_remove("COUNTERSIGN_LOG").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // Fails if the program ends before it has read all answers.
        let _ = child.stdin.take().expect("a pipe").write_all(answers.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        let shown = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        assert_eq!(output.status.code(), Some(*code), "{answers:?}:\n{shown}");
        for seen in *seen {
            assert!(shown.contains(seen), "{answers:?}: {seen:?} is missing in\n{shown}");
        }
    }
}

//! Checks the alternatives that people can choose.

use std::collections::BTreeSet;

use shared::definition::{Alternative, HumanOption, TemplateText, as_read};

use super::Checker;

/// Checks the alternatives of a human node or a gate, together with the options there: ids must not be empty or occur
/// twice, and no two texts may read the same. Texts that are templates are checked when they are rendered.
pub fn alternatives(checker: &mut Checker<'_>, base: &str, alternatives: &[Alternative], options: &[HumanOption]) {
    let mut ids: BTreeSet<&str> = options.iter().map(|option| option.id.as_str()).collect();
    let mut texts: BTreeSet<String> = options.iter().map(|option| as_read(&option.text())).collect();
    for (index, choice) in alternatives.iter().map(Alternative::choice).enumerate() {
        let Some(choice) = choice else { continue };
        let path = format!("{base}/alternatives/{index}");
        if choice.id.trim().is_empty() {
            checker.invalid(&format!("{path}/id"), "an alternative needs an id; without one, write it as a sentence");
        } else if !ids.insert(&choice.id) {
            let message = format!("`{}` can already be chosen here; ids must differ", choice.id);
            checker.invalid(&format!("{path}/id"), message);
        }
        if choice.description.trim().is_empty() {
            checker.invalid(&format!("{path}/description"), "an alternative needs a description: people read it");
        } else if !TemplateText::is_one(&choice.description) && !texts.insert(as_read(&choice.description)) {
            let message =
                format!("another choice already reads `{}`: people could not tell them apart", choice.description);
            checker.invalid(&format!("{path}/description"), message);
        }
    }
}

/// Refuses alternatives that can be chosen, where nothing can be chosen because of `why`.
pub fn only_sentences(checker: &mut Checker<'_>, base: &str, alternatives: &[Alternative], why: &str) {
    if let Some(first) = alternatives.iter().position(|alternative| alternative.choice().is_some()) {
        checker.invalid(&format!("{base}/alternatives/{first}"), format!("{why}; write this as a sentence"));
    }
}

#[cfg(test)]
mod tests {
    use crate::flow::check;

    #[test]
    fn what_can_be_chosen_has_an_id_of_its_own_and_somebody_who_hears_of_it() {
        let found = |source: &str| -> Vec<String> {
            let mistakes = check(source).errors.into_iter();
            mistakes.map(|mistake| format!("{} {}", mistake.path, mistake.message)).collect()
        };
        let expect = |source: &str, wanted: &[(&str, &str)]| {
            let found = found(source);
            let fits = |(found, (path, words)): (&String, &(&str, &str))| {
                found.starts_with(&format!("{path} ")) && found.contains(words)
            };
            assert!(found.len() == wanted.len() && found.iter().zip(wanted).all(fits), "{source}: {found:#?}");
        };
        let node = |human: &str| format!("id: f\nnodes: {{ ask: {{ human: {{ prompt: Well?, {human} }} }} }}\n");
        let choice = "{ id: ok, description: Wait. }";
        expect(
            &node(&format!(
                "options: [{{ id: ok, label: Yes }}], alternatives: [Or not., {choice}, {{ id: ' ', description: '' }}]"
            )),
            &[
                ("/nodes/ask/human/alternatives/1/id", "ids must differ"),
                ("/nodes/ask/human/alternatives/2/id", "needs an id"),
                ("/nodes/ask/human/alternatives/2/description", "needs a description"),
            ],
        );
        expect(
            &node(&format!(
                "options: [{{ id: a, label: 'Do it' }}, {{ id: b, label: do  it }}, {{ id: c, label: No }}], alternatives: [{choice}, \
                 {{ id: x, description: 'no' }}, {{ id: y, description: '{{{{ input.a }}}}' }}, {{ id: z, description: '{{{{ input.a }}}}' }}]"
            )),
            &[
                ("/nodes/ask/human/options/1/label", "two options read `do  it`"),
                ("/nodes/ask/human/alternatives/1/description", "another choice already reads `no`"),
            ],
        );
        expect(
            &node(&format!("alternatives: [{choice}]")),
            &[("/nodes/ask/human/alternatives/0", "without `options`")],
        );
        let options = "options: [{ id: yes, label: Yes }]";
        expect(
            &node(&format!("{options}, policy: unanimous, alternatives: [{choice}]")),
            &[("/nodes/ask/human/alternatives/0", "a vote for it would count as an approval")],
        );
        let warned = |next: &str| {
            let source = node(&format!("{options}, alternatives: [{choice}]")) + next;
            check(&source).warnings.iter().any(|warning| warning.message.contains("as after an approval"))
        };
        assert!(warned(""), "nothing asks what was chosen");
        assert!(!warned("  then: { set: { how: '{{ decisions.ask.alternative }}' } }\n"));
        let gates = |gates: &str| {
            format!(
                "id: f\nagents: {{ w: {{ model: demo/w }} }}\ntools: {{ t: {{ builtin: demo_publish }} }}\n\
                 gates: {{ {gates} }}\nnodes: {{ a: {{ agent: w, prompt: x, next: b }}, b: {{ tool: t }} }}\n"
            )
        };
        let only_calls = "only calls can have alternatives";
        expect(
            &gates(&format!(
                "before_return: {{ alternatives: [{choice}] }}, before_agent: {{ w: {{ alternatives: [{choice}] }} }}"
            )),
            &[
                ("/gates/before_return/alternatives/0", only_calls),
                ("/gates/before_agent/w/alternatives/0", only_calls),
            ],
        );
        assert_eq!(found(&gates(&format!("before_tool: {{ t: {{ alternatives: [{choice}, Or not.] }} }}"))), [""; 0]);
    }
}

//! The files in `scenarios/` and the page `docs/scenario.md` say what is true.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use congestlab_core::law::queue::Discipline;
use congestlab_core::law::{Protocol, xcp};
use congestlab_scenario::result::Meta;
use congestlab_scenario::sim::{self, Engine};
use congestlab_scenario::sweep::{self, Options, PointResult};
use congestlab_scenario::{Measure, Scenario, schema, store};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Sweeps a scenario and holds its claims.
fn hold(scenario: &Scenario) {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let options = Options::new(folder.path(), "test", 2, &stop);
    let simulate = |_: &Scenario, model: &sim::model::Model| {
        let engine = Engine::Window { threads: 1, divisor: 1 };
        (sim::run(model, engine, &stop, &mut |_| ()), Meta::default())
    };
    let results = sweep::run(scenario, &options, &simulate, &|_| ()).and_then(|results| results.all());
    let results = results.unwrap_or_else(|error| panic!("{error}"));
    let observations: Vec<_> = results.iter().map(PointResult::observation).collect();
    for claim in scenario.claims() {
        let verdict = claim.verdict(&observations);
        assert!(verdict.holds(), "{}: {}: {}", scenario.name(), verdict.that, verdict.text);
    }
}

#[test]
fn the_claims_of_the_examples_hold() {
    let mut names = Vec::new();
    let folders = ["", "beyond", "live", "pxcp", "recipes", "thesis", "xcp-r"]
        .map(|part| format!("scenarios/{part}"))
        .map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    for entry in folders.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let scenario = Scenario::load(&path, &[], None).unwrap_or_else(|error| panic!("{error}"));
            assert!(scenario.warnings().is_empty(), "{}", scenario.warnings());
            hold(&scenario);
            names.push(scenario.name().to_owned());
        }
    }
    names.sort();
    for name in
        ["crowd", "demo", "lossy", "parking-lot", "allowance", "shares", "thesis-shares", "thesis-tcp"]
    {
        assert!(names.iter().any(|other| other == name), "{name} is not among {names:?}");
    }
}

/// Editors check the examples by the schema beside them, which is what `congestlab export schema` prints.
#[test]
fn every_example_names_the_schema_in_its_first_line() {
    let path = root().join("scenarios/schema.json");
    let (kept, today) = (std::fs::read_to_string(&path).unwrap(), store::pretty(&schema::schema()));
    assert!(
        kept == today,
        "scenarios/schema.json is not what `congestlab export schema` prints: write it anew"
    );
    let validator = jsonschema::validator_for(&schema::schema()).unwrap();
    let mut folders = vec![root().join("scenarios")];
    let mut examples = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
                let named =
                    folder.join(named.unwrap_or_else(|| panic!("{} names no schema", path.display())));
                let schema = root().join("scenarios/schema.json").canonicalize().unwrap();
                assert_eq!(named.canonicalize().ok(), Some(schema), "{}", path.display());
                let table = serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap();
                let errors: Vec<_> = validator.iter_errors(&table).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{}: {errors:?}", path.display());
                examples += 1;
            }
        }
    }
    assert!(examples > 40, "{examples}");
}

/// As their papers have it, for which nobody lies.
#[test]
fn no_link_of_a_paper_bounds_what_headers_claim() {
    let papers = std::fs::read_dir(root().join("papers")).unwrap().map(|entry| entry.unwrap().path());
    let experiments = ["pxcp", "thesis", "xcp-i", "xcp-r"].map(|name| root().join("scenarios").join(name));
    let mut count = 0;
    for folder in papers.filter(|path| path.is_dir()).chain(experiments) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_scenario = path.extension().is_some_and(|extension| extension == "toml")
                && std::fs::read_to_string(&path).unwrap().contains("\n[run]\n");
            if !is_scenario {
                continue;
            }
            let scenario = Scenario::load(&path, &[], None).unwrap_or_else(|error| panic!("{error}"));
            for link in scenario.model(&Measure::default()).links {
                let law = link.port.law.map(|law| law.config);
                let Some(xcp) = law.as_ref().and_then(|law| law.part::<xcp::LinkConfig>()) else { continue };
                assert!(!xcp.bound_headers, "{}: links.{}", path.display(), link.name);
                count += 1;
            }
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn the_scenarios_of_the_page_run() {
    let page = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let scenario = Scenario::parse("docs.toml", block, Path::new(""), &[], None);
        hold(&scenario.unwrap_or_else(|error| panic!("{error}")));
    }
}

/// Every key that the decoder knows stands on the page, and every result.
#[test]
fn the_page_names_every_key_and_result() {
    let read = |page: &str| std::fs::read_to_string(root().join(page)).unwrap();
    // A figure has a page of its own, and each queue law that tells its settings itself.
    let told = Discipline::told().map(|(law, _)| read(&format!("docs/protocols/{}.md", law.name())));
    let page = read("docs/scenario.md") + &read("docs/papers.md") + &told.collect::<String>();
    let has = |word: &str| {
        [format!("`{word}`"), format!("`{word} ="), format!("{word} = ")]
            .iter()
            .any(|form| page.contains(form))
    };
    let schema = schema::schema();
    let mut keys = Vec::new();
    collect(&schema, &mut keys);
    assert!(keys.len() > 70, "{}", keys.len());
    // Sections have headings of their own.
    let headings = [
        "run",
        "measure",
        "laws",
        "links",
        "flows",
        "sweep",
        "claims",
        "tolerances",
        "figure",
        "bursts",
        "steps",
        "trace",
        "cbr",
        "onoff",
        "red",
        "xcp",
    ];
    for key in keys.iter().filter(|key| !headings.contains(&key.as_str())) {
        assert!(
            has(key),
            "neither docs/scenario.md nor docs/papers.md nor a queue law's page says what `{key}` is"
        );
    }
    let text = "[run]\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbit/s\"\n[flows.b]\nlaw = \"sack\"\npath = [\"a\"]\n";
    let scenario = Scenario::parse("t.toml", text, Path::new(""), &[], None).unwrap();
    let model = scenario.model(&Measure::default());
    let outcome = sim::run(&model, Engine::Reference, &AtomicBool::new(false), &mut |_| ());
    let result = congestlab_scenario::result::RunResult::new(&scenario, &outcome, Meta::default()).to_json();
    for object in [&result, &result["links"]["a"], &result["flows"]["b"][0], &result["meta"]] {
        for key in object
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| !["links", "flows", "jain"].contains(&key.as_str()))
        {
            assert!(page.contains(&format!("`{key}`")), "docs/scenario.md does not name the result `{key}`");
        }
    }
}

/// The fuzzer can only be quick to write what its dictionary has.
#[test]
fn the_dictionary_of_the_fuzzer_has_every_key_and_law() {
    let dictionary = std::fs::read_to_string(root().join("fuzz/scenario.dict")).unwrap();
    let entries = dictionary.lines().filter(|line| !line.starts_with('#'));
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let words: Vec<&str> = entries.flat_map(|entry| entry.split(|letter: char| !is_part(letter))).collect();
    let mut keys = Vec::new();
    collect(&schema::schema(), &mut keys);
    let laws = Protocol::all().map(|protocol| protocol.name);
    let laws = laws.chain(Discipline::NAMES.iter().copied()).map(str::to_owned);
    let lacks: Vec<String> = keys.into_iter().chain(laws).filter(|word| !words.contains(&&**word)).collect();
    assert!(lacks.is_empty(), "fuzz/scenario.dict lacks {lacks:?}");
}

fn collect(schema: &Value, keys: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                keys.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| collect(value, keys));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}

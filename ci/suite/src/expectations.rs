//! `tests/drivers.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::Failure;
use crate::outcome::Outcome;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    driver: Vec<Driver>,
    skip: Vec<Skip>,
    /// Test programs that run once, without variables.
    #[serde(default)]
    once: Vec<String>,
    /// Test programs that run on the machine's own driver alone.
    #[serde(default)]
    own: Vec<String>,
    /// Test programs that take longest.
    #[serde(default)]
    long: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    pub name: String,
    /// It is what the machine has, and not one of those that ci/drivers installs.
    #[serde(skip)]
    pub own: bool,
    /// What the platform is called.
    pub platform: String,
    /// How the driver's version begins.
    pub version: String,
    /// What `clgraph devices` says of it, by what [`said`] calls it.
    says: Said,
    /// A fault that ends the process now and then.
    dies: Option<Dies>,
    /// The runs besides the plain one.
    #[serde(default)]
    runs: Vec<Run>,
}

/// What the machine's own driver is called if nobody has looked at it.
const UNKNOWN: &str = "a driver that tests/drivers.toml does not know";

/// Of a device, what decides how graphs run on it.
pub type Said = BTreeMap<String, Value>;

/// A run of the suite.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its variables.
    #[serde(default)]
    pub with: Vec<String>,
    /// What `clgraph devices` says then. In the file: what it says otherwise than without variables.
    #[serde(default)]
    pub says: Said,
}

impl Run {
    /// For messages, behind the name of what ran.
    pub fn name(&self) -> String {
        if self.with.is_empty() { String::new() } else { format!(" with {}", self.with.join(" ")) }
    }
}

/// How a driver ends the process now and then, whatever the test.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dies {
    /// What it says then: one of these.
    says: Vec<String>,
    /// What is known of it.
    fact: String,
}

impl Driver {
    /// One that nobody has looked at runs by command buffers too, if it has any, and then these must be in use.
    fn unknown(platform: &str, version: &str, device: &Value) -> Self {
        let says = said(device);
        let mut natively = says.clone();
        natively.insert("path".to_owned(), Value::from("native"));
        let run = Run { with: vec!["CLGRAPH_PATH=native".to_owned()], says: natively };
        let runs = if says.contains_key("record") { vec![run] } else { Vec::new() };
        let (platform, version) = (platform.to_owned(), version.to_owned());
        Self { name: UNKNOWN.to_owned(), own: true, platform, version, says, dies: None, runs }
    }

    /// What is known of how a program ended that said this, if it is a fault of the driver's that is listed.
    pub fn died_of(&self, text: &str) -> Option<&str> {
        let dies = self.dies.as_ref()?;
        dies.says.iter().any(|said| text.contains(said)).then_some(&*dies.fact)
    }

    /// Whether a device is one of its.
    pub fn is(&self, platform: &str, version: &str) -> bool {
        platform == self.platform && version.starts_with(&self.version)
    }

    /// All runs: first the plain one.
    pub fn runs(&self) -> Vec<Run> {
        let whole = |run: &Run| {
            let mut says = self.says.clone();
            says.extend(run.says.clone());
            Run { with: run.with.clone(), says }
        };
        std::iter::once(&Run::default()).chain(&self.runs).map(whole).collect()
    }
}

/// The device that programs take which ask for none: the first GPU, or else the first one.
pub fn best(platforms: &Value) -> Option<&Value> {
    let devices =
        platforms.as_array()?.iter().flat_map(|platform| platform["devices"].as_array().into_iter().flatten());
    devices.clone().find(|device| device["caps"]["gpu"] == true).or_else(|| devices.into_iter().next())
}

/// What is said of a device by `clgraph devices --json`, without what it does not have.
pub fn said(device: &Value) -> Said {
    let buffers = &device["caps"]["command_buffers"];
    let list = |values: Vec<&str>| Value::from(values);
    let fields = buffers["mutable"].as_object().map(|mutable| {
        let mut fields: Vec<_> = mutable.iter().filter(|(_, has)| **has == true).map(|(name, _)| &**name).collect();
        fields.sort_unstable();
        list(fields)
    });
    let commands = device["commands"].as_array().map(Vec::as_slice).unwrap_or_default();
    let cannot: Vec<_> =
        commands.iter().filter(|one| one["native"] != true).filter_map(|one| one["command"].as_str()).collect();
    let everything = cannot.len() == commands.len();
    let all = [
        ("path", device["path"].clone()),
        ("detected_by", buffers["detected_by"].clone()),
        ("revision", buffers["version"].clone()),
        ("record", device["abi"]["record"].clone()),
        ("update", device["abi"]["update"].clone()),
        ("fields", fields.unwrap_or_default()),
        ("globals", device["globals"].clone()),
        ("cannot", list(if everything { vec!["everything"] } else { cannot })),
    ];
    all.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What is said and not expected, and what is expected and not said.
pub fn unlike(expected: &Said, said: &Said) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = expected.keys().chain(said.keys()).collect();
    let of = |all: &Said, name: &str| all.get(name).map_or("nothing".to_owned(), ToString::to_string);
    let wrong = names.into_iter().filter(|name| expected.get(*name) != said.get(*name));
    wrong.map(|name| format!("`{name}` is {}, not {}", of(said, name), of(expected, name))).collect()
}

/// A test that cannot run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    pub drivers: Vec<String>,
    pub test: String,
    pub reason: String,
    pub fact: String,
    /// It may run as well.
    #[serde(default)]
    pub sometimes: bool,
}

impl Expectations {
    pub fn read(path: &Path) -> Result<Self, Failure> {
        Ok(toml::from_str(&std::fs::read_to_string(path)?)?)
    }

    /// The drivers that are asked for: names, or all that can be installed.
    pub fn chosen(&self, asked: &[String], installable: &[String]) -> Result<Vec<String>, Failure> {
        let asked: Vec<String> = asked.iter().flat_map(|names| names.split(',').map(str::to_owned)).collect();
        let names = if asked == ["all"] { installable.to_vec() } else { asked };
        names.iter().try_for_each(|name| self.driver(name).map(|_| ()))?;
        Ok(names)
    }

    pub fn driver(&self, name: &str) -> Result<&Driver, Failure> {
        let known = || self.driver.iter().map(|driver| driver.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.driver.iter().find(|driver| driver.name == name);
        found.ok_or_else(|| format!("tests/drivers.toml has no driver `{name}`: it has {}", known()).into())
    }

    /// The driver of the machine, as `clgraph devices --json` tells.
    pub fn own(&self, platforms: &Value) -> Result<Driver, Failure> {
        let device = best(platforms).ok_or("there is no OpenCL device")?;
        let word = |name: &str| device["caps"][name].as_str().unwrap_or_default();
        let (platform, version) = (word("platform"), word("driver_version"));
        let found = self.driver.iter().find(|driver| driver.is(platform, version));
        let unknown = || Driver::unknown(platform, version, device);
        Ok(found.map_or_else(unknown, |found| Driver { own: true, ..found.clone() }))
    }

    /// Whether a program says the same on every path.
    pub fn runs_once(&self, program: &str) -> bool {
        self.once.iter().any(|name| name == program)
    }

    /// Whether a program says the same on every driver.
    pub fn runs_on_own(&self, program: &str) -> bool {
        self.own.iter().any(|name| name == program)
    }

    /// Whether a program is one of those that take longest.
    pub fn is_long(&self, program: &str) -> bool {
        self.long.iter().any(|name| name == program)
    }

    /// What may be left out on a driver.
    pub fn skips<'a>(&'a self, driver: &'a str) -> impl Iterator<Item = &'a Skip> {
        self.skip.iter().filter(move |skip| skip.drivers.iter().any(|name| name == driver))
    }

    /// The names of test programs that are not among these.
    pub fn names_without_program(&self, programs: &[&str]) -> Vec<String> {
        let of_skips =
            self.skip.iter().map(|skip| skip.test.split_once("::").map_or(&*skip.test, |(program, _)| program));
        let of_lists = self.once.iter().chain(&self.own).chain(&self.long).map(|name| &**name);
        let mut names: Vec<_> = of_lists.chain(of_skips).filter(|name| !programs.contains(name)).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(str::to_owned).collect()
    }

    /// What was left out and is not listed, and what is listed and was not left out though its program ran, in each run.
    pub fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let listed: Vec<&Skip> = self.skips(&outcome.driver).collect();
        let is = |skip: &Skip, seen: &crate::outcome::Skipped| skip.test == seen.test && skip.reason == seen.reason;
        let unexpected = outcome.skipped.iter().filter(|seen| !listed.iter().any(|skip| is(skip, seen)));
        let unexpected = unexpected
            .map(|seen| format!("{}{} was left out ({}) and is not listed", seen.test, seen.run, seen.reason));
        let took_part = |skip: &Skip, program: &str| skip.test.split_once("::").is_some_and(|(of, _)| of == program);
        let was_left_out =
            |skip: &Skip, run: &str| outcome.skipped.iter().any(|seen| is(skip, seen) && seen.run == run);
        let missing = outcome.ran.iter().flat_map(|(program, run)| {
            let here = listed.iter().filter(move |skip| took_part(skip, program) && !skip.sometimes);
            here.filter(move |skip| !was_left_out(skip, run)).map(move |skip| (run, skip))
        });
        let missing = missing.map(|(run, skip)| format!("{}{run} is listed ({}) and ran", skip.test, skip.reason));
        unexpected.chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Skipped;

    const FILE: &str = r#"
        [[driver]]
        name = "a"
        platform = "A"
        version = "1"
        says = { path = "replay", cannot = ["everything"] }
        [[driver.runs]]
        with = ["X=1"]
        says = { path = "native", detected_by = "assumed", cannot = ["read"] }
        [[skip]]
        drivers = ["a", "b"]
        test = "build::one"
        reason = "why"
        fact = "because"
    "#;

    #[test]
    fn skips_must_be_listed_and_listed_ones_must_happen() {
        let expectations: Expectations = toml::from_str(FILE).unwrap();
        let seen = |tests: &[(&str, &str)]| {
            let skipped = |(test, run): &(&str, &str)| {
                let [test, reason, run] = [test, "why", run].map(str::to_owned);
                Skipped { test, reason, run }
            };
            let ran = ["", " with X=1"].map(|run| ("build".to_owned(), run.to_owned())).into();
            Outcome { driver: "a".to_owned(), ran, skipped: tests.iter().map(skipped).collect(), ..Outcome::default() }
        };
        let both = [("build::one", ""), ("build::one", " with X=1")];
        assert!(expectations.differences(&seen(&both)).is_empty());
        let one = expectations.differences(&seen(&both[..1]));
        assert_eq!(one, ["build::one with X=1 is listed (why) and ran"]);
        let more = [&both[..], &[("build::two", " with X=1")]].concat();
        let more = expectations.differences(&seen(&more));
        assert_eq!(more, ["build::two with X=1 was left out (why) and is not listed"]);
        // A program that did not run in a run is not looked for there.
        let ran = [("build", ""), ("other", " with X=1")].map(|(program, run)| (program.to_owned(), run.to_owned()));
        assert!(expectations.differences(&Outcome { ran: ran.into(), ..seen(&both[..1]) }).is_empty());
        assert!(expectations.names_without_program(&["build", "other"]).is_empty());
        assert_eq!(expectations.names_without_program(&["other"]), ["build"]);
        assert!(expectations.chosen(&["c".to_owned()], &[]).is_err());
        assert_eq!(expectations.chosen(&["all".to_owned()], &["a".to_owned()]).unwrap(), ["a"]);
    }
    #[test]
    fn a_driver_that_nobody_has_looked_at_must_use_the_command_buffers_that_it_has() {
        let expectations: Expectations = toml::from_str(FILE).unwrap();
        let of = |platform: &str, version: &str, abi: Value| {
            let caps = serde_json::json!({"platform": platform, "driver_version": version, "gpu": false});
            let device = serde_json::json!({"caps": caps, "abi": abi, "path": "replay", "commands": []});
            expectations.own(&serde_json::json!([{"devices": []}, {"devices": [device]}])).unwrap()
        };
        let known = of("A", "1.2", Value::Null);
        assert_eq!((known.name.as_str(), known.own, known.runs().len()), ("a", true, 2));
        let runs = of("A", "2", serde_json::json!({"record": "with-properties"})).runs();
        assert_eq!(runs.iter().map(Run::name).collect::<Vec<_>>(), ["", " with CLGRAPH_PATH=native"]);
        assert_eq!((&runs[0].says["path"], &runs[1].says["path"]), (&Value::from("replay"), &Value::from("native")));
        assert_eq!(of("B", "1", Value::Null).runs().len(), 1);
        assert!(expectations.own(&serde_json::json!([])).is_err());
    }

    #[test]
    fn every_driver_that_can_be_installed_is_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let expectations = Expectations::read(&root.join("tests/drivers.toml")).unwrap();
        let names = crate::installable(&root).unwrap();
        assert_eq!(expectations.chosen(&["all".to_owned()], &names).unwrap(), names);
    }

    #[test]
    fn what_a_device_says_is_compared_run_by_run() {
        let expectations: Expectations = toml::from_str(FILE).unwrap();
        let runs = expectations.driver("a").unwrap().runs();
        assert_eq!(runs.iter().map(Run::name).collect::<Vec<_>>(), ["", " with X=1"]);
        let device = |path: &str, native: bool| {
            let commands =
                serde_json::json!([{"command": "copy", "native": native}, {"command": "read", "native": false}]);
            let buffers =
                if native { serde_json::json!({"detected_by": "assumed", "mutable": null}) } else { Value::Null };
            serde_json::json!({"caps": {"command_buffers": buffers}, "abi": null, "path": path, "commands": commands})
        };
        let (replayed, native) = (said(&device("replay", false)), said(&device("native", true)));
        assert_eq!((unlike(&runs[0].says, &replayed), unlike(&runs[1].says, &native)), (Vec::new(), Vec::new()));
        // A run that is replayed though it should not be.
        let expected = [
            r#"`cannot` is ["everything"], not ["read"]"#,
            r#"`detected_by` is nothing, not "assumed""#,
            r#"`path` is "replay", not "native""#,
        ];
        assert_eq!(unlike(&runs[1].says, &replayed), expected);
    }
}

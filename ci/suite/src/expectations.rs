//! `tests/drivers.toml`.

use std::path::Path;

use serde::Deserialize;

use crate::Failure;
use crate::runs::Outcome;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    driver: Vec<Driver>,
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    pub name: String,
    /// What the platform is called.
    pub platform: String,
    /// How the driver's version begins.
    pub version: String,
    /// The variables of each run besides the plain one.
    pub runs: Vec<Vec<String>>,
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

    /// What may be left out on a driver.
    pub fn skips<'a>(&'a self, driver: &'a str) -> impl Iterator<Item = &'a Skip> {
        self.skip.iter().filter(move |skip| skip.drivers.iter().any(|name| name == driver))
    }

    /// What was left out and is not listed, and what is listed and was not left out.
    pub fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let listed: Vec<&Skip> = self.skips(&outcome.driver).collect();
        let is = |skip: &Skip, seen: &crate::runs::Skipped| skip.test == seen.test && skip.reason == seen.reason;
        let unexpected = outcome.skipped.iter().filter(|seen| !listed.iter().any(|skip| is(skip, seen)));
        let unexpected =
            unexpected.map(|seen| format!("{} was left out ({}) and is not listed", seen.test, seen.reason));
        let missing =
            listed.iter().filter(|skip| !skip.sometimes && !outcome.skipped.iter().any(|seen| is(skip, seen)));
        let missing = missing.map(|skip| format!("{} is listed ({}) and ran", skip.test, skip.reason));
        unexpected.chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Skipped;

    const FILE: &str = r#"
        [[driver]]
        name = "a"
        platform = "A"
        version = "1"
        runs = [["X=1"]]
        [[skip]]
        drivers = ["a", "b"]
        test = "build::one"
        reason = "why"
        fact = "because"
    "#;

    #[test]
    fn skips_must_be_listed_and_listed_ones_must_happen() {
        let expectations: Expectations = toml::from_str(FILE).unwrap();
        let seen = |tests: &[&str]| {
            let skipped = |test: &&str| Skipped { test: (*test).to_owned(), reason: "why".to_owned() };
            Outcome { driver: "a".to_owned(), skipped: tests.iter().map(skipped).collect(), ..Outcome::default() }
        };
        assert!(expectations.differences(&seen(&["build::one"])).is_empty());
        assert_eq!(expectations.differences(&seen(&[])), ["build::one is listed (why) and ran"]);
        let two = expectations.differences(&seen(&["build::one", "build::two"]));
        assert_eq!(two, ["build::two was left out (why) and is not listed"]);
        assert!(expectations.chosen(&["c".to_owned()], &[]).is_err());
        assert_eq!(expectations.chosen(&["all".to_owned()], &["a".to_owned()]).unwrap(), ["a"]);
    }
}

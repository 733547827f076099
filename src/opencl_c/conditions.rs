//! Conditions of the preprocessor, which only the compiler can decide: macros of its own say what device it is for.
//!
//! A [`Skeleton`] of a source has its directives alone, and an empty kernel in each branch of a condition. The names of the kernels that
//! a compiler finds in it say which branches hold. Then the source is written without the others.

use std::collections::{BTreeMap, BTreeSet};

use super::options::Options;
use super::tokens::{Token, TokenKind, definition, directive, plain_directive, split};
use super::words::{PLACES, is_word};

/// The names of the kernels in skeletons begin so.
const BRANCH: &str = "clgraph_fuse_branch_";

/// The kernel outside of all conditions, which says that kernels are found.
const OUTSIDE: &str = "clgraph_fuse_branch";

/// The most branches in a source.
const MOST_BRANCHES: usize = 1_024;

/// Words by which a condition asks for files.
pub(super) const FILES: [&str; 3] = ["__has_include", "__has_include_next", "__has_embed"];

/// NVIDIA's driver does not build a kernel without parameters, if it is to tell what these are (`-cl-kernel-arg-info`).
fn kernel(name: &str) -> String {
    format!("kernel void {name}(uint of) {{}}\n")
}

/// A source that has conditions.
pub(super) struct Skeleton<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    pub(super) text: String,
    conditions: Vec<Condition>,
}

/// A condition, with all of its branches.
#[derive(Default)]
struct Condition {
    /// The branch that it is in.
    within: Option<usize>,
    branches: Vec<usize>,
    has_else: bool,
}

/// What a directive does to conditions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Begins,
    Goes { is_else: bool },
    Ends,
}

fn step(name: &str) -> Option<Step> {
    match name {
        "if" | "ifdef" | "ifndef" => Some(Step::Begins),
        "elif" | "elifdef" | "elifndef" => Some(Step::Goes { is_else: false }),
        "else" => Some(Step::Goes { is_else: true }),
        "endif" => Some(Step::Ends),
        _ => None,
    }
}

/// Macros by name: whether one takes arguments, and with what words they end.
#[derive(Default)]
struct Macros(BTreeMap<String, (bool, BTreeSet<String>)>);

impl Macros {
    fn add(&mut self, head: &str, body: &str) {
        let of = self.0.entry(head.split('(').next().unwrap_or(head).to_owned()).or_default();
        of.0 |= head.contains('(');
        let last = body.trim_end().rsplit(|c| !is_word(c)).next().filter(|last| !last.is_empty());
        of.1.extend(last.map(str::to_owned));
    }

    /// Returns those behind which arguments may begin.
    fn taking(&self) -> BTreeSet<String> {
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, (_, ends)) in &self.0 {
            ends.iter().for_each(|end| users.entry(end).or_default().push(name));
        }
        let mut open: Vec<&str> =
            self.0.iter().filter(|(_, (takes, _))| *takes).map(|(name, _)| name.as_str()).collect();
        let mut taking = BTreeSet::new();
        while let Some(name) = open.pop() {
            if taking.insert(name.to_owned()) {
                open.extend(users.get(name).into_iter().flatten());
            }
        }
        taking
    }
}

impl<'a> Skeleton<'a> {
    /// Returns None if there are no conditions, if they do not match, or if they may ask for something that a skeleton has not.
    pub(super) fn of(source: &'a str, options: &Options<'_>) -> Option<Self> {
        let tokens = split(source).ok()?;
        let mut macros = Macros::default();
        options.macros.iter().for_each(|(head, body)| macros.add(head, body));
        let (mut conditions, mut open): (Vec<Condition>, Vec<usize>) = Default::default();
        let mut text = kernel(OUTSIDE);
        let mut count = 0;
        for token in tokens.iter().filter(|token| token.kind == TokenKind::Directive) {
            let line = &source[token.at.clone()];
            let plain = plain_directive(line);
            if plain.split(|c| !is_word(c)).any(|word| PLACES.contains(&word) || FILES.contains(&word)) {
                return None;
            }
            let (name, rest) = directive(&plain);
            match name {
                "include" | "import" | "include_next" | "embed" => return None,
                // Of a loop, for example. What changes macros is not read later.
                "pragma" => continue,
                "define" => {
                    let (head, body) = definition(rest)?;
                    macros.add(head, body);
                }
                _ => {}
            }
            text.push_str(line);
            text.push('\n');
            match step(name) {
                Some(Step::Begins) => {
                    let within = open.last().and_then(|at| conditions[*at].branches.last().copied());
                    open.push(conditions.len());
                    conditions.push(Condition { within, ..Condition::default() });
                }
                Some(Step::Goes { is_else }) => {
                    let of = &mut conditions[*open.last()?];
                    if of.has_else {
                        return None;
                    }
                    of.has_else = is_else;
                }
                Some(Step::Ends) => {
                    open.pop()?;
                    continue;
                }
                None => continue,
            }
            conditions[*open.last()?].branches.push(count);
            text += &kernel(&format!("{BRANCH}{count}"));
            count += 1;
        }
        // The arguments of a macro may begin behind a directive, or not: that is up to the compiler.
        let (taking, macros) = (macros.taking(), macros.0);
        let is_one_of =
            |token: &Token, of: &dyn Fn(&str) -> bool| token.kind == TokenKind::Word && of(&source[token.at.clone()]);
        let (mut last, mut is_behind): (Option<&Token>, bool) = Default::default();
        for token in &tokens {
            if token.kind == TokenKind::Directive {
                is_behind = true;
                continue;
            }
            let may_take = last.is_some_and(|last| is_one_of(last, &|word| taking.contains(word)));
            let begins = token.kind == TokenKind::Mark(b'(') || is_one_of(token, &|word| macros.contains_key(word));
            if std::mem::take(&mut is_behind) && may_take && begins {
                return None;
            }
            last = Some(token);
        }
        let is_good = open.is_empty() && (1..=MOST_BRANCHES).contains(&count);
        is_good.then_some(Self { source, tokens, text, conditions })
    }

    /// Returns the source without the branches that do not hold, and without conditions. `kernels`: the names of the kernels that a compiler
    /// has found in the skeleton. None if they do not fit together.
    pub(super) fn decided(&self, kernels: &[String]) -> Option<String> {
        let number = |name: &String| name.strip_prefix(BRANCH).and_then(|number| number.parse().ok());
        let holding: BTreeSet<usize> = kernels.iter().filter_map(number).collect();
        let fits = |of: &Condition| {
            let count = of.branches.iter().filter(|branch| holding.contains(*branch)).count();
            let is_reached = of.within.is_none_or(|branch| holding.contains(&branch));
            if is_reached { count == 1 || (count == 0 && !of.has_else) } else { count == 0 }
        };
        if !kernels.iter().any(|name| name == OUTSIDE) || !self.conditions.iter().all(fits) {
            return None;
        }
        // For each open condition, whether the text holds.
        let (mut open, mut all, mut copied, mut branch): (Vec<bool>, String, usize, usize) = Default::default();
        for token in self.tokens.iter().filter(|token| token.kind == TokenKind::Directive) {
            let plain = plain_directive(&self.source[token.at.clone()]);
            let Some(step) = step(directive(&plain).0) else { continue };
            let before = &self.source[copied..token.at.start];
            if open.iter().all(|holds| *holds) {
                all.push_str(before);
            } else {
                // Lines stay lines.
                all.extend(before.chars().filter(|c| *c == '\n'));
            }
            copied = token.at.end;
            if step != Step::Begins {
                open.pop();
            }
            if step != Step::Ends {
                open.push(holding.contains(&branch));
                branch += 1;
            }
        }
        Some(all + &self.source[copied..])
    }
}

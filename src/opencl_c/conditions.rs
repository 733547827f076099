//! Conditions of the preprocessor, which only the compiler can decide: macros of its own say what device it is for.
//!
//! A [`Skeleton`] of a source has its directives alone, and an empty kernel in each branch of a condition. The names of the kernels that
//! a compiler finds in it say which branches hold, and which words are macros of the compiler's own. Then the source is written without
//! the other branches.

use std::collections::{BTreeMap, BTreeSet};

use super::compiler_macros::{ASKED, answer, kernel, question};
use super::options::Options;
use super::tokens::{Token, TokenKind, definition, directive, plain_directive, split};
use super::words::{FILES, PLACES, check_word, is_keyword, is_word};

/// The most branches in a source.
const MOST_BRANCHES: usize = 1_024;

/// What a compiler is asked about a source.
pub(super) struct Skeleton<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    pub(super) text: String,
    words: BTreeSet<String>,
    macros: Macros,
    conditions: Vec<Condition>,
}

/// A source without conditions.
pub(super) struct Decided {
    pub(super) text: String,
    /// Its words that are macros of the compiler's own, or of the options.
    pub(super) macros: BTreeSet<String>,
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

/// Macros by name.
#[derive(Default)]
struct Macros(BTreeMap<String, Ends>);

/// How the definitions of a name begin and end.
#[derive(Default)]
struct Ends {
    takes_arguments: bool,
    /// Whether one may begin with a parenthesis, or with what it is given.
    may_open: bool,
    first: BTreeSet<String>,
    last: BTreeSet<String>,
}

impl Macros {
    fn add(&mut self, head: &str, body: &str) {
        let of = self.0.entry(name_of(head).to_owned()).or_default();
        of.takes_arguments |= head.contains('(');
        of.may_open |= head.contains('(') || body.trim().is_empty() || body.trim_start().starts_with('(');
        let word = |word: Option<&str>| word.filter(|word| !word.is_empty()).map(str::to_owned);
        of.first.extend(word(body.trim_start().split(|c| !is_word(c)).next()));
        of.last.extend(word(body.trim_end().rsplit(|c| !is_word(c)).next()));
    }

    /// Returns the names for which this is so, or that lead to one by these words.
    fn leading_to(&self, is_so: impl Fn(&Ends) -> bool, by: impl Fn(&Ends) -> &BTreeSet<String>) -> BTreeSet<&str> {
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, of) in &self.0 {
            by(of).iter().for_each(|word| users.entry(word).or_default().push(name));
        }
        let mut open: Vec<&str> = self.0.iter().filter(|(_, of)| is_so(of)).map(|(name, _)| name.as_str()).collect();
        let mut found = BTreeSet::new();
        while let Some(name) = open.pop() {
            if found.insert(name) {
                open.extend(users.get(name).into_iter().flatten());
            }
        }
        found
    }
}

/// Returns the name of a macro, without its parameters.
fn name_of(head: &str) -> &str {
    head.split('(').next().unwrap_or(head)
}

/// Whether a word stands for another place, or for files.
fn is_elsewhere(word: &str) -> bool {
    PLACES.contains(&word) || FILES.contains(&word)
}

/// Whether a name may not be a macro where a compiler is asked.
fn is_own(name: &str) -> bool {
    is_keyword(name) || check_word(name).is_err()
}

impl<'a> Skeleton<'a> {
    /// Returns None if conditions do not match, or if they may ask for something that a skeleton has not.
    pub(super) fn of(source: &'a str, options: &Options<'_>) -> Option<Self> {
        let tokens = split(source).ok()?;
        let (mut macros, mut words) = (Macros::default(), BTreeSet::new());
        for (head, body) in &options.macros {
            if is_own(name_of(head)) || body.split(|c| !is_word(c)).any(is_elsewhere) {
                return None;
            }
            macros.add(head, body);
        }
        let (mut conditions, mut open): (Vec<Condition>, Vec<usize>) = Default::default();
        let (mut text, mut count) = (String::new(), 0);
        // What is asked by words before parentheses.
        let mut calls = BTreeSet::new();
        for token in &tokens {
            let line = &source[token.at.clone()];
            if token.kind != TokenKind::Directive {
                words.extend((token.kind == TokenKind::Word).then(|| line.to_owned()));
                continue;
            }
            let plain = plain_directive(line);
            let its = || plain.split(|c| !is_word(c)).filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()));
            if its().any(is_elsewhere) {
                return None;
            }
            let (name, rest) = directive(&plain);
            match name {
                "include" | "import" | "include_next" | "embed" => return None,
                // Of a loop, for example. What changes macros is not read later.
                "pragma" => continue,
                "define" => {
                    let (head, body) = definition(rest)?;
                    if is_own(name_of(head)) {
                        return None;
                    }
                    macros.add(head, body);
                    words.extend(its().map(str::to_owned));
                }
                "undef" if is_own(its().nth(1).unwrap_or_default()) => return None,
                "if" | "elif" => {
                    let before = rest.split('(').map(|before| before.trim_end().rsplit(|c| !is_word(c)).next());
                    calls.extend(before.flatten().map(str::to_owned));
                }
                _ => {}
            }
            // Each condition is to answer, also where no branch holds.
            if let (Some(Step::Ends), Some(at)) = (step(name), open.last())
                && !conditions[*at].has_else
            {
                text += &format!("#else\n{}", kernel(&format!("{ASKED}_none_{at}")));
            }
            text.push_str(line);
            text.push('\n');
            match step(name) {
                Some(Step::Begins) => {
                    let within = open.last().and_then(|at: &usize| conditions[*at].branches.last().copied());
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
            text += &kernel(&format!("{ASKED}_branch_{count}"));
            count += 1;
        }
        // What a macro makes of its arguments in a condition could be a place.
        let asks_by_macro = calls.iter().any(|name| macros.0.get(name).is_some_and(|of| of.takes_arguments));
        if !open.is_empty() || count > MOST_BRANCHES || asks_by_macro {
            return None;
        }
        let text = question(&words)? + &text;
        Some(Self { source, tokens, text, words, macros, conditions })
    }

    /// Returns the source without the branches that do not hold, and without conditions. `kernels`: the names of the kernels that a compiler
    /// has found in the skeleton. None if they do not fit together.
    pub(super) fn decided(&self, kernels: &[String]) -> Option<Decided> {
        let macros = answer(&self.words, kernels)?;
        let begin = format!("{ASKED}_branch_");
        let number = |name: &String| name.strip_prefix(&begin).and_then(|number| number.parse().ok());
        let holding: BTreeSet<usize> = kernels.iter().filter_map(number).collect();
        let found: BTreeSet<&str> = kernels.iter().map(String::as_str).collect();
        let fits = |(at, of): (usize, &Condition)| {
            let count = of.branches.iter().filter(|branch| holding.contains(*branch)).count();
            let is_none = found.contains(&*format!("{ASKED}_none_{at}"));
            let is_reached = of.within.is_none_or(|branch| holding.contains(&branch));
            count + usize::from(is_none) == usize::from(is_reached)
        };
        if !self.conditions.iter().enumerate().all(fits) {
            return None;
        }
        // For each open condition, whether the text holds; and the tokens that hold, each with whether it comes behind a condition.
        let (mut open, mut text, mut copied, mut branch): (Vec<bool>, String, usize, usize) = Default::default();
        let (mut holds, mut kept, mut is_behind): (bool, Vec<(&Token, bool)>, bool) = (true, Vec::new(), false);
        for token in &self.tokens {
            let line = &self.source[token.at.clone()];
            let of = (token.kind == TokenKind::Directive).then(|| step(directive(&plain_directive(line)).0)).flatten();
            let Some(of) = of else {
                if holds && token.kind != TokenKind::Directive {
                    kept.push((token, std::mem::take(&mut is_behind)));
                }
                continue;
            };
            let before = &self.source[copied..token.at.start];
            // Lines stay lines.
            match holds {
                true => text.push_str(before),
                false => text.extend(before.chars().filter(|c| *c == '\n')),
            }
            text.extend(line.chars().filter(|c| *c == '\n'));
            copied = token.at.end;
            if of != Step::Begins {
                open.pop();
            }
            if of != Step::Ends {
                open.push(holding.contains(&branch));
                branch += 1;
            }
            (holds, is_behind) = (open.iter().all(|holds| *holds), true);
        }
        self.check_calls(&kept)?;
        Some(Decided { text: text + &self.source[copied..], macros })
    }

    /// The arguments of a macro may begin behind a condition, or not: that is up to the compiler. Returns None if some could.
    fn check_calls(&self, kept: &[(&Token, bool)]) -> Option<()> {
        let taking = self.macros.leading_to(|of| of.takes_arguments, |of| &of.last);
        let opening = self.macros.leading_to(|of| of.may_open, |of| &of.first);
        let word = |token: &Token| if token.kind == TokenKind::Word { &self.source[token.at.clone()] } else { "" };
        // The word before each parenthesis that is open, and before the one that was closed last.
        let (mut open, mut last): (Vec<&str>, &str) = Default::default();
        for (token, is_behind) in kept {
            let begins = token.kind == TokenKind::Mark(b'(') || opening.contains(word(token));
            if *is_behind && begins && taking.contains(last) {
                return None;
            }
            last = match token.kind {
                TokenKind::Mark(b'(') => {
                    open.push(last);
                    ""
                }
                TokenKind::Mark(b')') => open.pop().unwrap_or_default(),
                _ => word(token),
            };
        }
        Some(())
    }
}

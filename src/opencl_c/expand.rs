//! Sources with their macros written out. A macro that is a statement, a part of a declaration, or that joins names, says nothing by
//! itself; written out where it is used, it can be read.
//!
//! Only macros are of which it is certain what they are: those that are not defined under a condition. The others stay as they are. Where
//! the order in which a compiler replaces macros could matter, because of one that stays, or because a name is not replaced within
//! itself, nothing is written out. So a compiler reads the same tokens in both texts.

mod macros;
mod pieces;

use std::collections::BTreeSet;
use std::rc::Rc;

use self::macros::{Known, Macro, Macros};
use self::pieces::{Piece, PieceKind, has_odd_tokens, joined, pieces_of, with, write_pieces};
use super::options::Options;
use super::tokens::{TokenKind, directive, plain_directive, split};
use super::words::is_word;

/// The most tokens that are looked at: a few macros can give billions.
const MOST_TOKENS: usize = 1 << 18;

/// So many bytes count as much as a token.
const BYTES: usize = 8;

/// The most bytes that are written.
const MOST_BYTES: usize = 1 << 20;

/// How deep macros may be in macros.
const MOST_DEPTH: usize = 64;

/// Returns the source with its macros written out. None if there is none to write out, or if that may change what the source means.
/// `own`: names that are macros of the compiler's too.
pub(super) fn expanded(source: &str, options: &Options<'_>, own: &BTreeSet<String>) -> Option<String> {
    let tokens = split(source).ok()?;
    let macros = Macros::read(source, &tokens, options, own)?;
    let pieces = pieces_of(source, &tokens);
    if has_odd_tokens(&pieces) {
        return None;
    }
    let (mut all, mut copied, mut at, mut steps) = (String::new(), 0, 0, 0);
    // What comes before what is looked at.
    let mut last: Option<Piece> = None;
    while at < tokens.len() {
        // If nothing stays, nobody asks for a macro any more.
        if macros.are_certain && tokens[at].kind == TokenKind::Directive {
            let place = tokens[at].at.clone();
            let plain = plain_directive(&source[place.clone()]);
            let (name, rest) = directive(&plain);
            let name = (name == "define").then(|| rest.split(|c| !is_word(c)).next().unwrap_or_default());
            if name.is_some_and(|name| !macros.all.get(name).is_some_and(Known::is_option)) {
                all.push_str(&source[copied..place.start]);
                copied = place.end;
            }
        }
        let mut run =
            Run { macros: &macros, pieces: &pieces, next: at + 1, here: tokens[at].at.start, steps: &mut steps };
        if tokens[at].kind == TokenKind::Word
            && let Some(written) = run.written_out(&pieces[at])?
        {
            let end = run.next;
            // Now there are parentheses behind a macro that had none.
            let may_begin_arguments = written.first().is_none_or(|first| first.is_mark(b'('));
            if may_begin_arguments && last.as_ref().is_some_and(|last| run.may_take_arguments(last)) {
                return None;
            }
            last = written.last().cloned().or(last);
            all.push_str(&source[copied..tokens[at].at.start]);
            write_pieces(&mut all, &written);
            if all.len() > MOST_BYTES {
                return None;
            }
            copied = tokens[end - 1].at.end;
            at = end;
        } else {
            last = Some(pieces[at].clone());
            at += 1;
        }
    }
    (copied > 0).then(|| all + &source[copied..])
}

/// What a word is at a place.
enum Now<'a> {
    Nothing,
    Macro(&'a Macro),
    /// It may be one.
    Open,
}

/// The replacement of one name in the source, with what follows from it.
struct Run<'a> {
    macros: &'a Macros,
    /// Those of the source.
    pieces: &'a [Piece],
    /// The next of them.
    next: usize,
    /// Where the name is. Macros that are defined later are none yet.
    here: usize,
    steps: &'a mut usize,
}

impl<'a> Run<'a> {
    /// Returns what a word of the source becomes; `Some(None)` if it stays.
    #[expect(clippy::option_option, reason = "None ends all of it")]
    fn written_out(&mut self, piece: &Piece) -> Option<Option<Vec<Piece>>> {
        match self.now(piece) {
            Now::Nothing => Some(None),
            Now::Macro(_) => {
                let begin = self.next;
                let written = self.replaced(vec![piece.clone()], true, 0)?;
                self.check_calls(&written)?;
                let stays = self.next == begin && matches!(&written[..], [only] if only.text == piece.text);
                Some((!stays).then_some(written))
            }
            // A compiler replaces it after what is written out here, and not before.
            Now::Open => {
                if self.macros.taking.contains(&*piece.text) {
                    self.check_arguments(&piece.text)?;
                }
                Some(None)
            }
        }
    }

    /// Returns what a word is at this place.
    fn now(&self, piece: &Piece) -> Now<'a> {
        let Some(known) = self.macros.all.get(&*piece.text).filter(|_| piece.is_word()) else { return Now::Nothing };
        if known.is_open {
            return Now::Open;
        }
        let before = known.all.partition_point(|(from, _)| from.is_none_or(|from| from < self.here));
        let last = before.checked_sub(1).and_then(|last| known.all.get(last));
        last.and_then(|(_, of)| of.as_ref()).map_or(Now::Nothing, Now::Macro)
    }

    fn may_take_arguments(&self, piece: &Piece) -> bool {
        match self.now(piece) {
            Now::Nothing => false,
            Now::Macro(of) => of.params.is_some(),
            Now::Open => self.macros.taking.contains(&*piece.text),
        }
    }

    /// Returns None if a compiler that reads what is written out would replace more: a name that is not replaced within itself.
    fn check_calls(&self, written: &[Piece]) -> Option<()> {
        for (at, piece) in written.iter().enumerate() {
            let next = written.get(at + 1).or_else(|| self.pieces.get(self.next));
            let may_call =
                next.is_some_and(|next| next.is_mark(b'(') || next.kind == PieceKind::Token(TokenKind::Directive));
            if may_call && matches!(self.now(piece), Now::Macro(_)) {
                return None;
            }
        }
        Some(())
    }

    /// Returns None if it matters to a macro that stays whether something in its arguments is written out.
    fn check_arguments(&mut self, name: &str) -> Option<()> {
        if self.macros.joining.contains(name) {
            return None;
        }
        let mut depth = 0_usize;
        for piece in &self.pieces[self.next..] {
            *self.steps += 1;
            if *self.steps > MOST_TOKENS {
                return None;
            }
            match piece.kind {
                PieceKind::Token(TokenKind::Mark(b'(')) => depth += 1,
                PieceKind::Token(TokenKind::Mark(b')')) if depth > 0 => depth -= 1,
                // Its arguments could begin behind it.
                PieceKind::Token(TokenKind::Directive) => return None,
                _ if piece.is_word() && self.macros.not_one.contains(&*piece.text) => return None,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        Some(())
    }

    /// Replaces macros in a list. `goes_on`: what follows in the source may be their arguments.
    fn replaced(&mut self, mut list: Vec<Piece>, goes_on: bool, depth: usize) -> Option<Vec<Piece>> {
        list.reverse();
        let mut all = Vec::new();
        while let Some(piece) = list.pop() {
            *self.steps += 1 + piece.text.len() / BYTES;
            if *self.steps > MOST_TOKENS || depth > MOST_DEPTH || piece.hides.len() > MOST_DEPTH {
                return None;
            }
            let macros = self.macros;
            let of = match self.now(&piece) {
                Now::Macro(of) => of,
                Now::Open
                    if macros.taking.contains(&*piece.text)
                        || (!goes_on && macros.not_one.contains(&*piece.text))
                        || macros.leading.contains(&*piece.text) =>
                {
                    return None;
                }
                Now::Open | Now::Nothing => {
                    all.push(piece);
                    continue;
                }
            };
            if piece.hides.contains(&piece.text) {
                // Without parentheses behind it, it stays.
                of.params.is_some().then(|| all.push(piece))?;
                continue;
            }
            let Some(params) = &of.params else {
                let hides = with(&piece.hides, &piece.text);
                let body = self.substituted((&piece.text, of), &[], depth)?;
                self.put(&mut list, body.into_iter().map(|of| Piece { hides: Rc::clone(&hides), ..of }));
                continue;
            };
            let follows = list.last().or_else(|| self.pieces.get(self.next).filter(|_| goes_on));
            match follows {
                Some(next) if next.is_mark(b'(') => {}
                Some(next) if next.kind == PieceKind::Token(TokenKind::Directive) => return None,
                _ => {
                    all.push(piece);
                    continue;
                }
            }
            let (arguments, end) = self.arguments(&mut list, goes_on)?;
            let arguments = fitting(arguments, params.len(), of.is_variadic)?;
            let common = piece.hides.intersection(&end.hides).cloned().collect();
            let hides = with(&Rc::new(common), &piece.text);
            let body = self.substituted((&piece.text, of), &arguments, depth)?;
            let hiding = |of: Piece| {
                let is_more = !of.hides.is_subset(&hides);
                let hides = match is_more {
                    true => Rc::new(hides.union(&of.hides).cloned().collect()),
                    false => Rc::clone(&hides),
                };
                Piece { hides, ..of }
            };
            self.put(&mut list, body.into_iter().map(hiding));
        }
        Some(all)
    }

    /// Puts what a macro gives before what follows. Nothing of it is a part of a token beside it.
    fn put(&mut self, list: &mut Vec<Piece>, body: impl DoubleEndedIterator<Item = Piece>) {
        if let Some(next) = list.last_mut() {
            next.is_glued = false;
        }
        list.extend(body.rev());
        if let Some(first) = list.last_mut() {
            first.is_glued = false;
        }
    }

    /// Takes what is in the parentheses that follow, divided at the commas, and the mark that closes them.
    fn arguments(&mut self, list: &mut Vec<Piece>, goes_on: bool) -> Option<(Vec<Vec<Piece>>, Piece)> {
        let (mut all, mut depth) = (vec![Vec::new()], 0_usize);
        loop {
            let piece = match list.pop() {
                Some(piece) => piece,
                None if goes_on => {
                    let piece = self.pieces.get(self.next)?.clone();
                    self.next += 1;
                    piece
                }
                None => return None,
            };
            *self.steps += 1;
            match piece.kind {
                _ if *self.steps > MOST_TOKENS => return None,
                PieceKind::Token(TokenKind::Directive) => return None,
                PieceKind::Token(TokenKind::Mark(b'(')) => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                PieceKind::Token(TokenKind::Mark(b')')) => {
                    depth -= 1;
                    if depth == 0 {
                        return Some((all, piece));
                    }
                }
                PieceKind::Token(TokenKind::Mark(b',')) if depth == 1 => {
                    all.push(vec![piece]);
                    continue;
                }
                _ => {}
            }
            all.last_mut()?.push(piece);
        }
    }

    /// Returns the body of a macro with its arguments.
    fn substituted(
        &mut self,
        (name, of): (&str, &Macro),
        arguments: &[Vec<Piece>],
        depth: usize,
    ) -> Option<Vec<Piece>> {
        let params = of.params.as_deref().unwrap_or_default();
        let mut all: Vec<Piece> = Vec::new();
        // Whether what comes is joined to the last one, and whether the last one came of that: then nothing is a part of it.
        let (mut joins, mut is_joined) = (false, false);
        for (at, piece) in of.body.iter().enumerate() {
            if piece.kind == PieceKind::Join {
                joins = true;
                continue;
            }
            let is_beside = |at: Option<usize>| {
                at.and_then(|at| of.body.get(at)).is_some_and(|beside| beside.kind == PieceKind::Join)
            };
            let argument = params.iter().position(|name| piece.is_word() && *name == piece.text);
            let mut put = match argument.map(|at| &arguments[at]) {
                None => vec![piece.clone()],
                Some(raw) if is_beside(at.checked_sub(1)) || is_beside(Some(at + 1)) => raw.clone(),
                Some(raw) => {
                    let put = self.replaced(raw.clone(), false, depth + 1)?;
                    // What it stands for would be joined, and not its name.
                    let stays = |piece: &Piece| matches!(self.now(piece), Now::Open);
                    if self.macros.joining.contains(name) && put.iter().any(stays) {
                        return None;
                    }
                    put
                }
            };
            if put.is_empty() {
                let nothing = Piece { text: "".into(), kind: PieceKind::Nothing, ..piece.clone() };
                put.push(nothing);
            }
            *self.steps += put.iter().map(|piece| 1 + piece.text.len() / BYTES).sum::<usize>();
            if *self.steps > MOST_TOKENS {
                return None;
            }
            let follows_argument = at.checked_sub(1).is_some_and(|before| params.contains(&of.body[before].text));
            for (number, mut piece) in put.into_iter().enumerate() {
                let is_first = number == 0 && (argument.is_some() || follows_argument);
                if is_first || is_joined {
                    piece = piece.apart();
                }
                is_joined = number == 0 && std::mem::take(&mut joins);
                if is_joined {
                    piece = joined(all.pop()?, piece)?;
                }
                all.push(piece);
            }
        }
        all.retain(|piece| piece.kind != PieceKind::Nothing);
        Some(all)
    }
}

/// Makes as many arguments as a macro takes of those that are there, each but the first with the comma before it. None if they do not fit.
fn fitting(found: Vec<Vec<Piece>>, params: usize, is_variadic: bool) -> Option<Vec<Vec<Piece>>> {
    let without_comma = |(at, of): (usize, Vec<Piece>)| if at == 0 { of } else { of.into_iter().skip(1).collect() };
    if params == 0 {
        return matches!(&found[..], [only] if only.is_empty()).then(Vec::new);
    }
    let is_enough = if is_variadic { found.len() >= params } else { found.len() == params };
    if !is_enough {
        return None;
    }
    let mut found: Vec<Vec<Piece>> = found;
    let more: Vec<Piece> = found.drain(params..).flatten().collect();
    let mut all: Vec<Vec<Piece>> = found.into_iter().enumerate().map(without_comma).collect();
    all.last_mut()?.extend(more);
    Some(all)
}

//! The tokens of a source in OpenCL C.

use std::ops::Range;

use super::words::is_word;

/// A token, with its bytes in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An identifier or a keyword.
    Word,
    Number,
    /// A character or string constant.
    Text,
    /// One character of punctuation.
    Mark(u8),
    /// A line of the preprocessor, with the lines that continue it.
    Directive,
}

/// Why a source cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSplit {
    /// There is something by which a compiler may read the text in another way than this does: a backslash outside of constants and
    /// directives, a trigraph or digraph, a line that ends with a carriage return alone, or a byte that is no plain text.
    Odd,
    /// A comment or constant has no end.
    Open,
}

/// Marks that stand for others.
const DIGRAPHS: [&[u8; 2]; 5] = [b"%:", b"<:", b":>", b"<%", b"%>"];

/// Splits a source. Comments are left out.
pub(super) fn split(source: &str) -> Result<Vec<Token>, NotSplit> {
    let bytes = source.as_bytes();
    // Also in comments and constants: they may end lines, or hide that a line ends.
    let is_odd = |at: usize| match bytes[at] {
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        b'?' => bytes.get(at + 1) == Some(&b'?'),
        b'\t' | b'\n' => false,
        byte => byte.is_ascii_control(),
    };
    if (0..bytes.len()).any(is_odd) {
        return Err(NotSplit::Odd);
    }
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let (mut tokens, mut at, mut line_begins) = (Vec::new(), 0, true);
    while let Some(&byte) = bytes.get(at) {
        let begin = at;
        let kind = match byte {
            b'\n' => {
                line_begins = true;
                at += 1;
                continue;
            }
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let (end, continued) = line_end(bytes, at);
                if continued {
                    return Err(NotSplit::Odd);
                }
                at = end;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = comment_end(source, at)?;
                continue;
            }
            b'#' if line_begins => {
                at = directive_end(source, at)?;
                TokenKind::Directive
            }
            // Some compilers take dollars for letters.
            b'\\' | b'#' | b'$' | b'@' | b'`' => return Err(NotSplit::Odd),
            _ if !byte.is_ascii() => return Err(NotSplit::Odd),
            b'%' | b'<' | b':' if DIGRAPHS.iter().any(|two| bytes[at..].starts_with(&two[..])) => {
                return Err(NotSplit::Odd);
            }
            b'"' | b'\'' => {
                at = text_end(bytes, at)?;
                TokenKind::Text
            }
            _ if is_word_start(byte) => {
                at += bytes[at..].iter().take_while(|byte| is_word_start(**byte) || byte.is_ascii_digit()).count();
                TokenKind::Word
            }
            _ if is_digit(at) || (byte == b'.' && is_digit(at + 1)) => {
                at += 1;
                while let Some(&byte) = bytes.get(at) {
                    // `1e-3f` is one number, as `0x1p+4` is.
                    let is_sign = b"+-".contains(&byte) && b"eEpP".contains(&bytes[at - 1]);
                    if !is_word_start(byte) && !is_digit(at) && byte != b'.' && !is_sign {
                        break;
                    }
                    at += 1;
                }
                TokenKind::Number
            }
            _ => {
                at += 1;
                TokenKind::Mark(byte)
            }
        };
        line_begins = kind == TokenKind::Directive;
        tokens.push(Token { kind, at: begin..at });
    }
    Ok(tokens)
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Returns the end of a line, without its line break, and whether a backslash continues it.
fn line_end(bytes: &[u8], from: usize) -> (usize, bool) {
    let end = bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |len| from + len);
    let before = bytes[from..end].strip_suffix(b"\r").unwrap_or(&bytes[from..end]);
    (end, before.trim_ascii_end().ends_with(b"\\"))
}

fn comment_end(source: &str, from: usize) -> Result<usize, NotSplit> {
    let bytes = source.as_bytes();
    let inside = from + 2;
    // The bytes are ASCII, so the place is one between characters.
    let len = source[inside..].find("*/").ok_or(NotSplit::Open)?;
    // The end of a comment may be divided by a line that continues.
    let may_end =
        |at: usize| bytes[at] == b'*' && bytes.get(at + 1) == Some(&b'\\') && continuation(bytes, at + 1).is_some();
    if (inside..inside + len).any(may_end) { Err(NotSplit::Odd) } else { Ok(inside + len + 2) }
}

fn text_end(bytes: &[u8], from: usize) -> Result<usize, NotSplit> {
    let mut at = from + 1;
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(byte) if *byte == bytes[from] => return Ok(at + 1),
            Some(b'\n') | None => return Err(NotSplit::Open),
            Some(_) => at += 1,
        }
    }
}

/// Returns the end of a line of the preprocessor. Comments in it may have several lines.
fn directive_end(source: &str, from: usize) -> Result<usize, NotSplit> {
    let bytes = source.as_bytes();
    let mut at = from;
    loop {
        match bytes.get(at) {
            None | Some(b'\n') => return Ok(at),
            Some(b'/') if bytes.get(at + 1) == Some(&b'*') => at = comment_end(source, at)?,
            Some(b'/') if bytes.get(at + 1) == Some(&b'/') => {
                let (end, continued) = line_end(bytes, at);
                return if continued { Err(NotSplit::Odd) } else { Ok(end) };
            }
            Some(b'"' | b'\'') => at = text_end(bytes, at)?,
            // A comment could begin across the lines.
            Some(b'\\') if bytes[at - 1] == b'/' => return Err(NotSplit::Odd),
            Some(b'\\') => at = continuation(bytes, at).ok_or(NotSplit::Odd)?,
            Some(byte) if !byte.is_ascii() || *byte == b'$' => return Err(NotSplit::Odd),
            Some(_) => at += 1,
        }
    }
}

/// Returns where the line goes on that a backslash continues; compilers allow blanks behind it.
fn continuation(bytes: &[u8], at: usize) -> Option<usize> {
    let blanks = bytes[at + 1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    (bytes.get(at + 1 + blanks) == Some(&b'\n')).then_some(at + 1 + blanks + 1)
}

/// Returns the text of a directive without its comments, and without what continues its lines.
pub(super) fn plain_directive(text: &str) -> String {
    let (bytes, mut plain, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let end = match byte {
            b'/' if bytes.get(at + 1) == Some(&b'/') => break,
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                plain.push(b' ');
                at = comment_end(text, at).unwrap_or(bytes.len());
                continue;
            }
            b'"' | b'\'' => text_end(bytes, at).unwrap_or(bytes.len()),
            b'\\' => match continuation(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => at + 1,
            },
            _ => at + 1,
        };
        plain.extend_from_slice(&bytes[at..end]);
        at = end;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Returns the name of a directive, without its comments, and what comes behind it.
pub(super) fn directive(plain: &str) -> (&str, &str) {
    let line = plain.trim_start_matches('#').trim_start();
    let end = line.find(|c: char| !is_word(c)).unwrap_or(line.len());
    (&line[..end], line[end..].trim())
}

/// Divides what is behind `#define`: the name, with parameters if it has some, and the body. None if no parenthesis closes them.
pub(super) fn definition(rest: &str) -> Option<(&str, &str)> {
    let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let end = if rest[end..].starts_with('(') { rest.find(')')? + 1 } else { end };
    Some((&rest[..end], &rest[end..]))
}

/// Returns the parenthesis that the one at this place closes.
pub(super) fn opening(tokens: &[Token], end: usize) -> Option<usize> {
    let mut depth = 0;
    (0..=end).rev().find(|at| {
        match tokens[*at].kind {
            TokenKind::Mark(b')') => depth += 1,
            TokenKind::Mark(b'(') => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// Whether a circumflex begins a block, `^{ .. }` or `^int (int a) { .. }`: nothing else has braces behind it, but for `(uint2){ .. }`, a
/// value of a type in parentheses.
pub(super) fn begins_block(tokens: &[Token], at: usize, is_value_type: impl Fn(&Token) -> bool) -> bool {
    let is_type = |token: &&Token| matches!(token.kind, TokenKind::Word | TokenKind::Mark(b'*'));
    let mut next = at + 1 + tokens[at + 1..].iter().take_while(is_type).count();
    if tokens.get(next).is_some_and(|token| token.kind == TokenKind::Mark(b'(')) {
        let Some(end) = closing(tokens, next, b'(', b')') else { return true };
        if next == at + 1 && end == next + 3 && is_value_type(&tokens[next + 1]) {
            return false;
        }
        next = end;
    }
    tokens.get(next).is_some_and(|token| token.kind == TokenKind::Mark(b'{'))
}

/// Returns whether a number has no fraction, and no exponent.
pub(super) fn is_whole_number(text: &str) -> bool {
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    if is_hex { !text.contains(['.', 'p', 'P']) } else { !text.contains(['.', 'e', 'E', 'f', 'F', 'h', 'H']) }
}

/// Returns where what opens at a place is closed, behind the closing mark.
pub(super) fn closing(tokens: &[Token], begin: usize, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.kind {
            TokenKind::Mark(mark) if mark == open => depth += 1,
            TokenKind::Mark(mark) if mark == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

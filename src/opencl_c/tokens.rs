//! The tokens of a source in OpenCL C.

use std::ops::Range;

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
    /// A line outside of the preprocessor's ends with a backslash: words may be divided there.
    Continued,
    /// A comment or constant has no end.
    Open,
}

/// Splits a source. Comments are left out.
pub(super) fn split(source: &str) -> Result<Vec<Token>, NotSplit> {
    let bytes = source.as_bytes();
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
                    return Err(NotSplit::Continued);
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
            b'\\' if matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => return Err(NotSplit::Continued),
            b'"' | b'\'' => {
                at = text_end(bytes, at)?;
                TokenKind::Text
            }
            _ if is_word_start(byte) => {
                at += bytes[at..].iter().take_while(|byte| is_word_start(**byte) || byte.is_ascii_digit()).count();
                TokenKind::Word
            }
            _ if byte.is_ascii_digit() => {
                let inside = |byte: &&u8| is_word_start(**byte) || byte.is_ascii_digit() || **byte == b'.';
                at += bytes[at..].iter().take_while(inside).count();
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
    // Compilers accept dollars, and letters beyond ASCII.
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

/// Returns the end of a line, without its line break, and whether a backslash continues it.
fn line_end(bytes: &[u8], from: usize) -> (usize, bool) {
    let end = bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |len| from + len);
    let before = bytes[from..end].strip_suffix(b"\r").unwrap_or(&bytes[from..end]);
    (end, before.trim_ascii_end().ends_with(b"\\"))
}

fn comment_end(source: &str, from: usize) -> Result<usize, NotSplit> {
    // The bytes are ASCII, so the place is one between characters.
    source[from + 2..].find("*/").map(|len| from + 2 + len + 2).ok_or(NotSplit::Open)
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
                return if continued { Err(NotSplit::Continued) } else { Ok(end) };
            }
            Some(b'\\') if bytes.get(at + 1) == Some(&b'\n') => at += 2,
            Some(b'\\') if bytes.get(at + 1) == Some(&b'\r') && bytes.get(at + 2) == Some(&b'\n') => at += 3,
            Some(_) => at += 1,
        }
    }
}

/// Returns the text of a directive without its comments, and without what continues its lines.
pub(super) fn plain_directive(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(begin) = rest.find("/*") {
        plain.push_str(&rest[..begin]);
        plain.push(' ');
        rest = rest[begin + 2..].find("*/").map_or("", |end| &rest[begin + 2 + end + 2..]);
    }
    plain.push_str(rest.find("//").map_or(rest, |end| &rest[..end]));
    plain.replace("\\\r\n", "").replace("\\\n", "")
}

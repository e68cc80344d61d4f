//! Reads one source file as far as layers need it: which paths it uses, which modules it names, whether it is `async`,
//! and the names of the fields that it logs. Works on words and braces, which is enough for formatted code without
//! tricks.

/// What a file uses outside its tests.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Every path, as written but with `use` groups taken apart: `crate::api::Role`, `super::plan`, `tokio::spawn`.
    pub(crate) paths: Vec<Path>,
    /// `mod name;`, and whether it is for tests only.
    pub(crate) modules: Vec<(String, bool)>,
    /// Lines with `async` or `.await`.
    pub(crate) async_lines: Vec<usize>,
    /// Field names in `tracing`'s macros.
    pub(crate) log_fields: Vec<(usize, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// The path separator `::`.
    Colons,
    Other(char),
}

type Tokens = [(usize, Token)];

pub(crate) fn read(text: &str) -> Source {
    let tokens = tokens(text);
    let mut source = Source::default();
    let mut at = 0;
    while at < tokens.len() {
        let (line, token) = &tokens[at];
        if let Some((item, end)) = test_item(&tokens, at) {
            // A file for tests only is named in the same way.
            if let [
                ..,
                (_, Token::Word(word)),
                (_, Token::Word(name)),
                (_, Token::Other(';')),
            ] = &tokens[item..end]
                && word == "mod"
            {
                source.modules.push((name.clone(), true));
            }
            at = end;
            continue;
        }
        match token {
            Token::Word(word) if word == "use" => {
                at = use_tree(&tokens, at + 1, &[], &mut source.paths);
            }
            Token::Word(word) if word == "mod" => {
                if let Some((_, Token::Word(name))) = tokens.get(at + 1)
                    && tokens.get(at + 2).map(|(_, token)| token) == Some(&Token::Other(';'))
                {
                    source.modules.push((name.clone(), false));
                }
                at += 1;
            }
            Token::Word(word) => {
                if word == "async" || word == "await" {
                    source.async_lines.push(*line);
                }
                at = inline_path(&tokens, at, &mut source.paths);
                source.log_fields.extend(log_fields(&tokens, at));
            }
            _ => at += 1,
        }
    }
    source
}

/// If a `#[cfg(test)]` or `#[test]` item begins at `at`: where the item itself begins and where it ends.
fn test_item(tokens: &Tokens, at: usize) -> Option<(usize, usize)> {
    let is = |at: usize, c: char| tokens.get(at).is_some_and(|(_, token)| *token == Token::Other(c));
    let word = |at: usize| match tokens.get(at) {
        Some((_, Token::Word(word))) => word.as_str(),
        _ => "",
    };
    if !is(at, '#') || !is(at + 1, '[') {
        return None;
    }
    let cfg = word(at + 2) == "cfg" && is(at + 3, '(') && word(at + 4) == "test" && is(at + 5, ')');
    let plain = word(at + 2) == "test" && is(at + 3, ']');
    if !cfg && !plain {
        return None;
    }
    let mut item = closing(tokens, at + 1, '[', ']') + 1;
    while is(item, '#') {
        item = closing(tokens, item + 1, '[', ']') + 1;
    }
    let mut end = item;
    while end < tokens.len() && !is(end, ';') && !is(end, '{') {
        end += 1;
    }
    let end = if is(end, '{') {
        closing(tokens, end, '{', '}')
    } else {
        end
    };
    Some((item, (end + 1).min(tokens.len())))
}

/// Where the bracket that opens at `at` closes.
fn closing(tokens: &Tokens, at: usize, open: char, close: char) -> usize {
    let mut depth = 0;
    for (index, (_, token)) in tokens.iter().enumerate().skip(at) {
        if *token == Token::Other(open) {
            depth += 1;
        } else if *token == Token::Other(close) {
            depth -= 1;
            if depth == 0 {
                return index;
            }
        }
    }
    tokens.len()
}

/// Takes one branch of a `use` apart; returns where it ends.
fn use_tree(tokens: &Tokens, mut at: usize, before: &[String], paths: &mut Vec<Path>) -> usize {
    let mut segments = before.to_vec();
    let mut leaf = None;
    while let Some((line, token)) = tokens.get(at) {
        match token {
            Token::Word(word) if word == "as" => at += 2,
            Token::Word(word) => {
                // `{self}` is the path before it.
                if word != "self" || segments.is_empty() {
                    segments.push(word.clone());
                }
                leaf = Some(*line);
                at += 1;
            }
            Token::Colons => at += 1,
            Token::Other('{') => {
                at += 1;
                while !matches!(tokens.get(at), None | Some((_, Token::Other('}')))) {
                    at = use_tree(tokens, at, &segments, paths);
                    if matches!(tokens.get(at), Some((_, Token::Other(',')))) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Token::Other('*') => {
                leaf = Some(*line);
                at += 1;
            }
            Token::Other(_) => break,
        }
    }
    if let Some(line) = leaf {
        paths.push(Path { line, segments });
    }
    at
}

/// `a::b::c` in the middle of code; returns where it ends.
fn inline_path(tokens: &Tokens, mut at: usize, paths: &mut Vec<Path>) -> usize {
    let line = tokens[at].0;
    let mut segments = Vec::new();
    while let Some((_, Token::Word(word))) = tokens.get(at) {
        segments.push(word.clone());
        at += 1;
        let more = matches!(
            (tokens.get(at), tokens.get(at + 1)),
            (Some((_, Token::Colons)), Some((_, Token::Word(_))))
        );
        if !more {
            break;
        }
        at += 1;
    }
    if segments.len() > 1 {
        paths.push(Path { line, segments });
    }
    at
}

/// The field names of the `tracing` macro whose `!` is at `at`, if it is one. String literals are no tokens, so the
/// message is an empty argument; what comes after it are the message's own values.
fn log_fields(tokens: &Tokens, at: usize) -> Vec<(usize, String)> {
    const EVENTS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];
    let mut fields = Vec::new();
    let Some((_, Token::Word(name))) = at.checked_sub(1).and_then(|at| tokens.get(at)) else {
        return fields;
    };
    let level = name.trim_end_matches("_span");
    let called = matches!(
        (tokens.get(at), tokens.get(at + 1)),
        (Some((_, Token::Other('!'))), Some((_, Token::Other('('))))
    );
    if !EVENTS.contains(&level) || !called {
        return fields;
    }
    let mut names_to_come = usize::from(name.ends_with("_span"));
    let end = closing(tokens, at + 1, '(', ')');
    for argument in arguments(&tokens[at + 2..end]) {
        match argument {
            [] if names_to_come > 0 => names_to_come -= 1,
            [] => break,
            [_, (_, Token::Other(':')), ..] => {}
            [(_, Token::Other('%' | '?')), (line, Token::Word(field)), ..] | [(line, Token::Word(field)), ..] => {
                fields.push((*line, field.clone()))
            }
            _ => {}
        }
    }
    fields
}

/// Splits at the commas that are in no bracket.
fn arguments(tokens: &Tokens) -> Vec<&Tokens> {
    let mut depth = 0;
    tokens
        .split(|(_, token)| {
            match token {
                Token::Other('(' | '[' | '{') => depth += 1,
                Token::Other(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            depth == 0 && *token == Token::Other(',')
        })
        .collect()
}

/// Words and signs with their line numbers, without comments, string and character literals.
fn tokens(text: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        let end = match c {
            '/' if next == Some('/') => find(&chars, at, "\n"),
            '/' if next == Some('*') => find(&chars, at + 2, "*/") + 2,
            '"' => quoted(&chars, at + 1, '"'),
            'r' | 'b' if raw_text(&chars, at).is_some() => raw_text(&chars, at).unwrap_or(at + 1),
            '\'' if next == Some('\\') => quoted(&chars, at + 1, '\''),
            '\'' if chars.get(at + 2) == Some(&'\'') => at + 3,
            ':' if next == Some(':') => {
                tokens.push((line, Token::Colons));
                at + 2
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word: String = chars[at..]
                    .iter()
                    .take_while(|c| c.is_alphanumeric() || **c == '_')
                    .collect();
                let end = at + word.chars().count();
                tokens.push((line, Token::Word(word)));
                end
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push((line, Token::Other(c)));
                }
                at + 1
            }
        };
        let end = end.min(chars.len());
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    tokens
}

fn find(chars: &[char], from: usize, what: &str) -> usize {
    let what: Vec<char> = what.chars().collect();
    let rest = chars.get(from..).unwrap_or_default();
    let found = rest.windows(what.len()).position(|window| window == what);
    found.map_or(chars.len(), |offset| from + offset)
}

fn quoted(chars: &[char], mut at: usize, end: char) -> usize {
    while let Some(&c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            _ if c == end => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// `r"…"`, `r#"…"#`, with a `b` before: where it ends.
fn raw_text(chars: &[char], at: usize) -> Option<usize> {
    let mut start = at;
    if chars.get(start) == Some(&'b') {
        start += 1;
    }
    if chars.get(start) != Some(&'r') || (at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')) {
        return None;
    }
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(start + 1 + hashes) != Some(&'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(find(chars, start + 2 + hashes, &end) + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let paths = read(text).paths;
        paths.iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn groups_are_taken_apart() {
        assert_eq!(
            paths("use crate::{api::{self, Role as R}, azure::*};\nfn f() { tokio::spawn(x) }"),
            ["crate::api", "crate::api::Role", "crate::azure", "tokio::spawn"]
        );
    }

    #[test]
    fn comments_texts_and_tests_do_not_count() {
        let text = "// kube::Api\n/* kube::Api */ const A: &str = \"kube::Api \\\" kube::Api\";\n\
                    const B: &str = r#\"\" kube::Api\"#; const C: char = '\"';\n\
                    #[cfg(test)]\n#[allow(x)]\nmod tests { use kube::Api; fn f() { { async {} } } }\n\
                    #[cfg(test)]\nuse kube::Client;\nfn g<'a>(a: &'a str) { late::use_of(a) }";
        let source = read(text);
        assert_eq!(paths(text), ["late::use_of"]);
        assert_eq!(source.paths[0].line, 9);
        assert!(source.async_lines.is_empty());
    }

    #[test]
    fn modules_are_named() {
        let modules = read("pub mod a;\nmod b { }\n#[cfg(test)]\npub(crate) mod c;").modules;
        assert_eq!(modules, [("a".to_owned(), false), ("c".to_owned(), true)]);
    }

    #[test]
    fn async_and_await_are_found() {
        assert_eq!(read("\nasync fn f() {}\nfn g() { h.await }").async_lines, [2, 3]);
    }

    #[test]
    fn fields_of_events_and_spans_are_found_and_message_values_not() {
        let text = "fn f() { tracing::warn!(target: \"x\", lease = %a.b(c, d), ?error, took_ms, \"m {}\", value);\n\
                    let s = info_span!(\"pass\", role = r.as_str(), %uid); warn(role); println!(\"x\") }";
        let fields = read(text).log_fields;
        let names: Vec<&str> = fields.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["lease", "error", "took_ms", "role", "uid"]);
        assert_eq!(fields[3].0, 2);
    }
}

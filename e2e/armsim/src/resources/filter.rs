//! `$filter` of the lists of groups and resources: comparisons joined by `and` and `or`, without parentheses.

use serde_json::Value;

use crate::engine::error::ArmError;
use crate::engine::kind::Call;

/// Alternatives of conditions that hold together; the empty filter lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter(Vec<Vec<Condition>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    /// In lower case.
    field: String,
    test: Test,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Equal,
    Unequal,
    Contains,
    Starts,
}

impl Filter {
    /// The filter of a call that may name `fields` (in lower case), or ARM's 400.
    pub(super) fn of(call: &Call<'_>, fields: &[&str]) -> Result<Self, ArmError> {
        let Some(text) = call.parameter("$filter").filter(|text| !text.trim().is_empty()) else {
            return Ok(Self::default());
        };
        Self::parse(text, fields).ok_or_else(|| {
            let message = format!("Invalid $filter '{text}' specified in the query string.");
            ArmError::gateway(400, "InvalidFilterInQueryString", message)
        })
    }

    fn parse(text: &str, fields: &[&str]) -> Option<Self> {
        let mut tokens = tokens(text)?.into_iter().peekable();
        let mut all = vec![vec![]];
        loop {
            let condition = condition(&mut tokens)?;
            if !fields.contains(&condition.field.as_str()) {
                return None;
            }
            all.last_mut()?.push(condition);
            match tokens.next() {
                None => return Some(Self(all)),
                Some(Token::Word(word)) if word.eq_ignore_ascii_case("and") => {}
                Some(Token::Word(word)) if word.eq_ignore_ascii_case("or") => all.push(vec![]),
                Some(_) => return None,
            }
        }
    }

    /// Whether the filter selects a resource: `field` gives the text of a field, `tags` are its tags.
    pub(super) fn selects(&self, field: impl Fn(&str) -> String, tags: &Value) -> bool {
        self.0.is_empty()
            || self.0.iter().any(|together| {
                let (of_tags, others): (Vec<_>, Vec<_>) = together
                    .iter()
                    .partition(|condition| condition.field.starts_with("tag"));
                others.iter().all(|condition| condition.holds(&field(&condition.field)))
                    && (of_tags.is_empty() || has_tag(tags, &of_tags))
            })
    }
}

/// Whether one tag fulfils all conditions on its name and value.
fn has_tag(tags: &Value, conditions: &[&Condition]) -> bool {
    tags.as_object().is_some_and(|tags| {
        tags.iter().any(|(name, value)| {
            conditions.iter().all(|condition| match condition.field.as_str() {
                "tagname" => condition.holds(name),
                _ => condition.holds(value.as_str().unwrap_or_default()),
            })
        })
    })
}

impl Condition {
    fn holds(&self, text: &str) -> bool {
        let (text, value) = (text.to_lowercase(), self.value.to_lowercase());
        match self.test {
            Test::Equal => text == value,
            Test::Unequal => text != value,
            Test::Contains => text.contains(&value),
            Test::Starts => text.starts_with(&value),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = vec![];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            // A quote inside is doubled.
            let mut value = String::new();
            let mut tail = rest.get(1..)?;
            loop {
                let (part, after) = tail.split_once('\'')?;
                value.push_str(part);
                tail = after;
                let Some(after) = tail.strip_prefix('\'') else { break };
                value.push('\'');
                tail = after;
            }
            tokens.push(Token::Text(value));
            rest = tail;
        } else if matches!(first, '(' | ')' | ',') {
            tokens.push(Token::Sign(first));
            rest = rest.get(1..)?;
        } else {
            let end = rest.find(|letter: char| letter.is_whitespace() || "'(),".contains(letter));
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    Some(tokens)
}

/// `field eq 'x'`, `field ne 'x'`, `substringof('x', field)` or `startswith(field, 'x')`.
fn condition(tokens: &mut impl Iterator<Item = Token>) -> Option<Condition> {
    let word = |token: Option<Token>| match token {
        Some(Token::Word(word)) => Some(word.to_ascii_lowercase()),
        _ => None,
    };
    let text = |token: Option<Token>| match token {
        Some(Token::Text(text)) => Some(text),
        _ => None,
    };
    let sign = |token: Option<Token>, expected: char| (token == Some(Token::Sign(expected))).then_some(());
    let first = word(tokens.next())?;
    let (field, test, value) = match first.as_str() {
        "substringof" => {
            sign(tokens.next(), '(')?;
            let value = text(tokens.next())?;
            sign(tokens.next(), ',')?;
            let field = word(tokens.next())?;
            sign(tokens.next(), ')')?;
            (field, Test::Contains, value)
        }
        "startswith" => {
            sign(tokens.next(), '(')?;
            let field = word(tokens.next())?;
            sign(tokens.next(), ',')?;
            let value = text(tokens.next())?;
            sign(tokens.next(), ')')?;
            (field, Test::Starts, value)
        }
        _ => {
            let test = match word(tokens.next())?.as_str() {
                "eq" => Test::Equal,
                "ne" => Test::Unequal,
                _ => return None,
            };
            (first, test, text(tokens.next())?)
        }
    };
    Some(Condition { field, test, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FIELDS: &[&str] = &["name", "resourcetype", "tagname", "tagvalue"];

    fn selects(filter: &str) -> Option<bool> {
        let field = |field: &str| match field {
            "name" => "it's".to_owned(),
            _ => "Microsoft.Network/virtualNetworks".to_owned(),
        };
        let tags = json!({"env": "prod", "team": "x"});
        Filter::parse(filter, FIELDS).map(|filter| filter.selects(field, &tags))
    }

    #[test]
    fn comparisons_hold_or_do_not() {
        for (filter, holds) in [
            ("resourceType eq 'microsoft.network/VirtualNetworks'", Some(true)),
            ("resourceType eq 'Microsoft.Network/privateEndpoints'", Some(false)),
            ("resourceType eq 'a' or name eq 'it''s'", Some(true)),
            ("name ne 'it''s'", Some(false)),
            ("tagName eq 'env' and tagValue eq 'prod'", Some(true)),
            ("tagName eq 'team' and tagValue eq 'prod'", Some(false)),
            ("substringof('t''', name)", Some(true)),
            ("startswith(tagName, 'en')", Some(true)),
            ("startswith(tagName, 'x')", Some(false)),
            ("color eq 'red'", None),
            ("name eq x", None),
            ("name eq 'x", None),
            ("name eq 'x' and", None),
            ("(name eq 'x')", None),
            ("name", None),
        ] {
            assert_eq!(selects(filter), holds, "{filter}");
        }
    }
}

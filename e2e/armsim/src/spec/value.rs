//! Holds one JSON value against a schema.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::schema::{Format, Object, Others, Schema, SchemaId, Schemas, Text};
use super::violation::{Part, Rule};

/// Something that the spec does not allow.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) part: Part,
    pub(super) rule: Rule,
    /// JSON pointer in the body, or the name of a parameter or header.
    pub(super) place: String,
    /// The definition that an unknown field or a value is not in.
    pub(super) definition: String,
    pub(super) expected: String,
    pub(super) found: String,
}

/// The check of one JSON value.
pub(super) struct ValueCheck<'a> {
    pub(super) schemas: &'a Schemas,
    pub(super) part: Part,
    /// The api-version asked for is newer than the spec: what the spec does not name may be there.
    pub(super) newer: bool,
    pub(super) findings: &'a mut Vec<Finding>,
}

impl ValueCheck<'_> {
    /// Notes all that is wrong with `value`, which stands at `place`.
    pub(super) fn at(&mut self, schema: SchemaId, value: &Value, place: &mut String) {
        let schemas = self.schemas;
        match (schemas.get(schema), value) {
            (Schema::Any, _) | (Schema::Boolean, Value::Bool(_)) | (Schema::Number, Value::Number(_)) => {}
            (Schema::Integer { least, most }, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                let given = number.as_i64().unwrap_or(i64::MAX);
                if least.is_some_and(|least| given < least) || most.is_some_and(|most| given > most) {
                    let expected = format!("an integer from {least:?} to {most:?}");
                    self.note(Rule::Value, place, expected, value);
                }
            }
            (Schema::Text(text), Value::String(given)) => {
                if let Some(expected) = refused(text, given, self.part, self.newer) {
                    self.find(Rule::Value, place.clone(), &text.name, expected, value);
                }
            }
            (Schema::List(items), Value::Array(values)) => {
                for (number, value) in values.iter().enumerate() {
                    self.below(*items, value, place, &number.to_string());
                }
            }
            (Schema::Object(object), Value::Object(fields)) => self.object(object, fields, place),
            (schema, _) => self.note(Rule::Type, place, name(schema).to_owned(), value),
        }
    }

    fn object(&mut self, object: &Object, fields: &Map<String, Value>, place: &mut String) {
        for name in &object.required {
            let property = object.properties.get(name);
            let not_asked = self.part == Part::Request && property.is_some_and(|property| property.read_only);
            if !not_asked && !fields.contains_key(name) {
                self.note(Rule::Missing, place, name.clone(), &Value::Null);
            }
        }
        for (name, value) in fields {
            match (object.properties.get(name), object.others) {
                // Azure takes no notice of them.
                (Some(property), _) if property.read_only && self.part == Part::Request => {}
                (Some(property), _) if property.nullable && value.is_null() => {}
                (Some(property), _) => self.below(property.schema, value, place, name),
                (None, Others::Any) => {}
                (None, Others::Like(schema)) => self.below(schema, value, place, name),
                (None, Others::Unknown) if self.newer => {}
                (None, Others::Unknown) => {
                    let (place, expected) = (format!("{place}/{name}"), "no such field".to_owned());
                    self.find(Rule::Unknown, place, &object.name, expected, value);
                }
            }
        }
    }

    fn below(&mut self, schema: SchemaId, value: &Value, place: &mut String, name: &str) {
        let length = place.len();
        place.push('/');
        place.push_str(name);
        self.at(schema, value, place);
        place.truncate(length);
    }

    fn note(&mut self, rule: Rule, place: &str, expected: String, found: &Value) {
        self.find(rule, place.to_owned(), "", expected, found);
    }

    fn find(&mut self, rule: Rule, place: String, definition: &str, expected: String, found: &Value) {
        self.findings.push(Finding {
            part: self.part,
            rule,
            place,
            definition: definition.to_owned(),
            expected,
            found: found.to_string(),
        });
    }
}

fn name(schema: &Schema) -> &'static str {
    match schema {
        Schema::Any => "anything",
        Schema::Boolean => "a boolean",
        Schema::Number => "a number",
        Schema::Integer { .. } => "an integer",
        Schema::Text(_) => "a string",
        Schema::List(_) => "an array",
        Schema::Object(_) => "an object",
    }
}

/// What the rules of a string expect, if they refuse `given`.
pub(super) fn refused(text: &Text, given: &str, part: Part, newer: bool) -> Option<String> {
    let known = |value: &String| match part {
        Part::Request => value.eq_ignore_ascii_case(given),
        Part::Answer => value == given,
    };
    if !newer && !text.values.is_empty() && !text.values.iter().any(known) {
        return Some(format!("one of {}", text.values.join(", ")));
    }
    if let Some(pattern) = text.pattern.as_ref().filter(|pattern| !pattern.is_match(given)) {
        return Some(format!("text like {pattern}"));
    }
    let length = given.chars().count() as u64;
    if text.shortest.is_some_and(|shortest| length < shortest) || text.longest.is_some_and(|longest| length > longest) {
        let (shortest, longest) = (text.shortest.unwrap_or(0), text.longest);
        return Some(format!("{shortest} to {longest:?} characters"));
    }
    let (fits, expected) = match text.format? {
        Format::DateTime => (given.parse::<Timestamp>().is_ok(), "a date and time"),
        Format::ArmId => (given.starts_with('/'), "an ARM id"),
        Format::Uuid => (uuid::Uuid::try_parse(given).is_ok(), "a UUID"),
    };
    (!fits).then(|| expected.to_owned())
}

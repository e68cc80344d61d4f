//! Schemas of Swagger 2.0 in the form that they are checked in: references followed, `allOf` merged.
//!
//! A general JSON Schema validator does not do here: Azure's schemas mean that a property which no part of an `allOf`
//! names is not known, that read-only properties are ignored in a request, and that a reference may say more beside it.

use std::collections::HashMap;
use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};

use super::SpecError;
use super::document::{Documents, SpecLocation};

/// A schema's index in [`Schemas`].
pub(super) type SchemaId = usize;

/// What a value may be.
#[derive(Clone, Debug)]
pub(super) enum Schema {
    Any,
    Boolean,
    Number,
    Integer { least: Option<i64>, most: Option<i64> },
    Text(Text),
    List(SchemaId),
    Object(Object),
}

/// A string.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    /// Of the definition; empty for one that stands where it is used.
    pub(super) name: String,
    /// None: any.
    pub(super) values: Vec<String>,
    pub(super) pattern: Option<Regex>,
    pub(super) shortest: Option<u64>,
    pub(super) longest: Option<u64>,
    pub(super) format: Option<Format>,
}

/// The formats of strings that the specs use and that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    DateTime,
    ArmId,
    Uuid,
}

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Of the definition; empty for one that stands where it is used.
    pub(super) name: String,
    pub(super) properties: HashMap<String, Property>,
    pub(super) required: Vec<String>,
    pub(super) others: Others,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Property {
    pub(super) schema: SchemaId,
    pub(super) read_only: bool,
    pub(super) nullable: bool,
}

/// What properties that are not named may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Others {
    Unknown,
    Any,
    Like(SchemaId),
}

/// All schemas of a set of files.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    all: Vec<Schema>,
    known: HashMap<SpecLocation, SchemaId>,
}

impl Schemas {
    pub(super) fn get(&self, id: SchemaId) -> &Schema {
        &self.all[id]
    }

    /// The schema `json`, which stands in `file`.
    pub(super) fn read(&mut self, documents: &mut Documents, file: &Path, json: &Value) -> Result<SchemaId, SpecError> {
        if let Some(reference) = json["$ref"].as_str() {
            return self.follow(documents, documents.refers(file, reference));
        }
        let parents = json["allOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let ([parent], None) = (parents, json.get("properties")) {
            return self.read(documents, file, parent);
        }
        let schema = self.parse(documents, file, json)?;
        self.all.push(schema);
        Ok(self.all.len() - 1)
    }

    fn follow(&mut self, documents: &mut Documents, location: SpecLocation) -> Result<SchemaId, SpecError> {
        if let Some(known) = self.known.get(&location) {
            return Ok(*known);
        }
        let json = documents.at(&location)?;
        // Known before it is read, because it may refer to itself.
        let id = self.all.len();
        self.all.push(Schema::Any);
        self.known.insert(location.clone(), id);
        let mut schema = self.parse(documents, &location.file, &json)?;
        if let Schema::Object(Object { name, .. }) | Schema::Text(Text { name, .. }) = &mut schema {
            location.pointer.rsplit('/').next().unwrap_or_default().clone_into(name);
        }
        self.all[id] = schema;
        Ok(id)
    }

    fn parse(&mut self, documents: &mut Documents, file: &Path, json: &Value) -> Result<Schema, SpecError> {
        let bad = |why: String| SpecError {
            place: file.display().to_string(),
            why,
        };
        Ok(match json["type"].as_str() {
            Some("boolean") => Schema::Boolean,
            Some("number") => Schema::Number,
            Some("integer") => integer(json),
            Some("string") => Schema::Text(text(json).map_err(|error| bad(error.to_string()))?),
            Some("array") => Schema::List(self.read(documents, file, &json["items"])?),
            None if ["properties", "allOf", "additionalProperties"]
                .iter()
                .all(|key| json.get(key).is_none()) =>
            {
                Schema::Any
            }
            None | Some("object") => self.object(documents, file, json)?,
            Some(other) => return Err(bad(format!("unknown type {other}"))),
        })
    }

    fn object(&mut self, documents: &mut Documents, file: &Path, json: &Value) -> Result<Schema, SpecError> {
        let named = json.get("properties").and_then(Value::as_object);
        let parents = json["allOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut object = Object {
            name: String::new(),
            properties: HashMap::new(),
            required: strings(&json["required"]),
            others: match &json["additionalProperties"] {
                Value::Bool(true) => Others::Any,
                Value::Object(_) => Others::Like(self.read(documents, file, &json["additionalProperties"])?),
                _ if named.is_none() && parents.is_empty() => Others::Any,
                _ => Others::Unknown,
            },
        };
        for parent in parents {
            let id = self.read(documents, file, parent)?;
            let Schema::Object(inherited) = self.get(id).clone() else {
                continue;
            };
            object.properties.extend(inherited.properties);
            object.required.extend(inherited.required);
            if !matches!(inherited.others, Others::Unknown) {
                object.others = inherited.others;
            }
        }
        for (name, property) in named.unwrap_or(&Map::new()) {
            let property = Property {
                schema: self.read(documents, file, property)?,
                read_only: property["readOnly"] == true,
                nullable: property["x-nullable"] == true,
            };
            object.properties.insert(name.clone(), property);
        }
        Ok(Schema::Object(object))
    }
}

/// The strings of a JSON array.
pub(super) fn strings(json: &Value) -> Vec<String> {
    let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn integer(json: &Value) -> Schema {
    let least = (json["format"] == "int32").then_some(i64::from(i32::MIN));
    let most = (json["format"] == "int32").then_some(i64::from(i32::MAX));
    let above = i64::from(json["exclusiveMinimum"] == true);
    Schema::Integer {
        least: json["minimum"].as_i64().map(|least| least + above).or(least),
        most: json["maximum"].as_i64().or(most),
    }
}

/// A string's rules; also those of a parameter.
pub(super) fn text(json: &Value) -> Result<Text, regex::Error> {
    Ok(Text {
        name: String::new(),
        values: strings(&json["enum"]),
        pattern: json["pattern"].as_str().map(Regex::new).transpose()?,
        shortest: json["minLength"].as_u64(),
        longest: json["maxLength"].as_u64(),
        format: match json["format"].as_str() {
            Some("date-time") => Some(Format::DateTime),
            Some("arm-id") => Some(Format::ArmId),
            Some("uuid") => Some(Format::Uuid),
            _ => None,
        },
    })
}

// SPDX-License-Identifier: BSD-3-Clause
//! Checks JSON against its schema.

use serde_json::Value;

/// Violations of a schema by a value.
pub fn wrong(schema: &Value, value: &Value) -> Vec<String> {
    of(schema, schema, value, "$")
}

/// The part of JSON Schema that ours use.
fn of(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return of(root, root.pointer(name.trim_start_matches('#')).unwrap(), value, place);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let all: Vec<_> = choices.iter().map(|choice| of(root, choice, value, place)).collect();
        return if all.iter().any(Vec::is_empty) { Vec::new() } else { all.concat() };
    }
    let is = match schema["type"].as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    let mut found = Vec::new();
    if !is {
        return vec![format!("{place}: {value} is not of type {}", schema["type"])];
    }
    if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
        found.push(format!("{place}: {value} is not known"));
    }
    if schema["minimum"].as_f64().zip(value.as_f64()).is_some_and(|(min, value)| value < min) {
        found.push(format!("{place}: {value} is too small"));
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(of(root, &schema["items"], item, &format!("{place}[{n}]")));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{place}: no {name}"));
        }
    }
    for (name, item) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(its) => found.extend(of(root, its, item, &format!("{place}.{name}"))),
            None => found.push(format!("{place}.{name}: not in the schema")),
        }
    }
    found
}

//! Names of resources: what is refused before a type checks anything else.
//!
//! Rules: <https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules>.

use super::error::ArmError;

/// Microsoft.Network: up to 80 letters, digits, `.`, `-` and `_`; the first a letter or digit, the last that or `_`.
pub(crate) fn network(name: &str) -> Result<(), ArmError> {
    let word = |letter: char| letter.is_ascii_alphanumeric();
    let inner = |letter: char| word(letter) || matches!(letter, '.' | '-' | '_');
    let good = name.len() <= 80
        && name.starts_with(word)
        && name.ends_with(|letter| word(letter) || letter == '_')
        && name.chars().all(inner);
    if good {
        return Ok(());
    }
    let message = format!(
        "Resource name {name} is invalid. The name can be up to 80 characters long. It must begin with a word character, and \
         it must end with a word character or with '_'. The name may contain word characters or '.', '-', '_'."
    );
    Err(ArmError::service(400, "InvalidResourceName", message))
}

/// Resource groups: up to 90 letters, digits, `-`, `_`, `.` and parentheses; no dot at the end.
pub(crate) fn group(name: &str) -> Result<(), ArmError> {
    let refuse = |message: String| Err(ArmError::gateway(400, "InvalidResourceGroup", message));
    let bad = |letter: &char| !letter.is_alphanumeric() && !matches!(letter, '-' | '_' | '.' | '(' | ')');
    if let Some(letter) = name.chars().find(bad) {
        return refuse(format!(
            "The provided resource group name '{name}' has these invalid characters: '{letter}'. The name can only be a \
             letter, digit, '-', '.', '(', ')' or '_'."
        ));
    }
    if name.ends_with('.') {
        return refuse(format!(
            "The provided resource group name '{name}' has these trailing characters: '.'. The name can not end with a period."
        ));
    }
    if name.chars().count() > 90 {
        return refuse(format!(
            "The provided resource group name '{name}' is longer than 90 characters."
        ));
    }
    Ok(())
}

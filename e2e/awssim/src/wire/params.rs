//! The parameters of a query request: flat names with dots, of which lists and structures are made.

use std::collections::{BTreeMap, BTreeSet};

use super::error::AwsError;

/// The parameters of one request, or of one structure in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params(BTreeMap<String, String>);

impl Params {
    /// Reads a form.
    ///
    /// # Errors
    /// A name that is given twice.
    pub(crate) fn parse(form: &[u8]) -> Result<Self, AwsError> {
        let mut params = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(form) {
            if params.insert(name.to_string(), value.into_owned()).is_some() {
                let message = format!("The parameter {name} is given more than once");
                return Err(AwsError::bad("InvalidParameterCombination", message));
            }
        }
        Ok(Self(params))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// An empty value counts as absent.
    pub(crate) fn required(&self, name: &str) -> Result<&str, AwsError> {
        self.text(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| AwsError::missing(name))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, AwsError> {
        match self.text(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(AwsError::invalid_value(other, name)),
        }
    }

    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, AwsError> {
        let parse = |text: &str| text.parse().map_err(|_| AwsError::invalid_value(text, name));
        self.text(name).map(parse).transpose()
    }

    /// The values of `Name.1`, `Name.2`, …, in the order of their numbers.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        let mut found: Vec<(u32, &str)> = Vec::new();
        for (key, value) in &self.0 {
            let number = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                found.push((number, value));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// The structures `Name.1.…`, `Name.2.…`, in the order of their numbers.
    pub(crate) fn structures(&self, name: &str) -> Vec<Params> {
        let mut found: BTreeMap<u32, Params> = BTreeMap::new();
        for (key, value) in &self.0 {
            let rest = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            let Some((number, member)) = rest.and_then(|rest| rest.split_once('.')) else {
                continue;
            };
            if let Ok(number) = number.parse() {
                let structure = found.entry(number).or_default();
                structure.0.insert(member.to_owned(), value.clone());
            }
        }
        found.into_values().collect()
    }

    /// Refuses what the action does not take. `known` are first parts of names.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), AwsError> {
        let heads: BTreeSet<&str> = self.0.keys().map(|key| key.split('.').next().unwrap_or(key)).collect();
        let general = ["Action", "Version", "DryRun"];
        match heads
            .into_iter()
            .find(|head| !known.contains(head) && !general.contains(head))
        {
            None => Ok(()),
            Some(unknown) => {
                let message = format!("The parameter {unknown} is not recognized");
                Err(AwsError::bad("UnknownParameter", message))
            }
        }
    }

    /// As a form, without tokens of identities.
    pub(crate) fn without_secrets(&self) -> String {
        let shown = self.0.iter().filter(|(name, _)| name.as_str() != "WebIdentityToken");
        url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(shown)
            .finish()
    }

    /// All but what tells two tries of one call apart: what an idempotent call is compared by.
    pub(crate) fn fingerprint(&self) -> String {
        let kept = self.0.iter().filter(|(name, _)| name.as_str() != "ClientToken");
        kept.map(|(name, value)| format!("{name}={value}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_the_order_of_their_numbers() {
        let params = Params::parse(b"A.2=two&A.10=ten&A.1=one&AB.1=no&F.1.Name=n&F.1.Value.1=v").unwrap();
        assert_eq!(params.list("A"), ["one", "two", "ten"]);
        let filters = params.structures("F");
        assert_eq!((filters.len(), filters[0].text("Name")), (1, Some("n")));
        assert_eq!(filters[0].list("Value"), ["v"]);
    }

    #[test]
    fn parameter_given_twice_or_unknown_is_refused() {
        assert_eq!(
            Params::parse(b"A=1&A=1").unwrap_err().code,
            "InvalidParameterCombination"
        );
        let params = Params::parse(b"Action=X&VpcId.1=v").unwrap();
        assert_eq!(params.only(&["VpcIds"]).unwrap_err().code, "UnknownParameter");
        assert!(params.only(&["VpcId"]).is_ok());
    }
}

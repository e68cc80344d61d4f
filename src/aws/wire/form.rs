//! The parameters of AWS's query protocols, as an HTML form.
//!
//! Lists are numbered from 1. EC2 has `SubnetId.1`
//! (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html>),
//! the other services `Names.member.1` (<https://smithy.io/2.0/aws/protocols/aws-query-protocol.html>).

use url::form_urlencoded::Serializer;

/// The parameters of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// This form with one more parameter.
    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// This form with a list, as EC2 takes it.
    #[must_use]
    pub(crate) fn with_list(mut self, name: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        for (index, value) in values.into_iter().enumerate() {
            self = self.with(format!("{name}.{}", index + 1), value);
        }
        self
    }

    /// This form with a list, as services other than EC2 take it.
    #[must_use]
    pub(crate) fn with_members(self, name: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with_list(&format!("{name}.member"), values)
    }

    /// This form with tags below `prefix`.
    #[must_use]
    pub(crate) fn with_tags(mut self, prefix: &str, tags: &[(String, String)]) -> Self {
        for (index, (key, value)) in tags.iter().enumerate() {
            let number = index + 1;
            self = self
                .with(format!("{prefix}.{number}.Key"), key)
                .with(format!("{prefix}.{number}.Value"), value);
        }
        self
    }

    /// This form with EC2's filters: what is listed fits one of the values of each.
    #[must_use]
    pub(crate) fn with_filters(mut self, filters: &[(String, Vec<String>)]) -> Self {
        for (index, (name, values)) in filters.iter().enumerate() {
            let number = index + 1;
            self = self
                .with(format!("Filter.{number}.Name"), name)
                .with_list(&format!("Filter.{number}.Value"), values);
        }
        self
    }

    /// This form with the parameters of another one.
    #[must_use]
    pub(crate) fn followed_by(mut self, other: &Self) -> Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// The form as a body or a query.
    pub(crate) fn encoded(&self) -> String {
        let mut serializer = Serializer::new(String::new());
        serializer.extend_pairs(&self.0);
        serializer.finish()
    }

    /// Whether there is no parameter.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_filters_and_tags_are_numbered_from_one() {
        let form = Form::default()
            .with_filters(&[
                ("service-name".into(), vec!["a".into()]),
                ("vpc-id".into(), vec!["b".into(), "c d".into()]),
            ])
            .with_list("SubnetId", ["s1", "s2"])
            .with_members("Names", ["n"])
            .with_tags("TagSpecification.1.Tag", &[("k".into(), "v&=".into())]);
        assert_eq!(
            form.encoded(),
            "Filter.1.Name=service-name&Filter.1.Value.1=a&Filter.2.Name=vpc-id&Filter.2.Value.1=b&Filter.2.Value.2=c+d\
             &SubnetId.1=s1&SubnetId.2=s2&Names.member.1=n&TagSpecification.1.Tag.1.Key=k\
             &TagSpecification.1.Tag.1.Value=v%26%3D"
        );
    }

    #[test]
    fn empty_list_adds_no_parameter() {
        assert!(Form::default().with_list("SubnetId", Vec::<String>::new()).is_empty());
    }
}

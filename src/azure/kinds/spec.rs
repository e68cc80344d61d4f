//! What calls and the engine have to know of a kind of resources.

use hyperlink_engine::kind_rules::KindRules;

use crate::cloud::Arm;

/// All that is asked about a kind outside its file. Each kind's file has one, as `SPEC`.
#[derive(Debug, Clone)]
pub struct KindSpec {
    /// The metric label and the word for logs and messages.
    pub label: &'static str,
    /// The resource provider.
    pub provider: &'static str,
    /// The type's levels below the provider, outermost first.
    pub path: &'static [&'static str],
    /// The api-version of every call.
    pub api_version: &'static str,
    /// The service that counts requests beside ARM: kinds of one service share its request budgets.
    pub service: &'static str,
    /// How many reads the service grants a subscription in five minutes, where that is less than ARM grants.
    pub reads_in_5_minutes: Option<u32>,
    /// The longest name, in characters; none if names are not checked here.
    pub max_name: Option<usize>,
    /// What lists all such resources in a parent, where that is not the type's own name there.
    pub all_in_parent: Option<&'static str>,
    /// What a read asks Azure to show in full (`$expand`).
    pub expand: Option<&'static str>,
    /// What the engine has to know of the kind.
    pub rules: Rules,
}

/// What the engine has to know of a kind of ARM resources.
pub type Rules = KindRules<Arm>;

impl KindSpec {
    /// The fields that a kind leaves out: nothing special.
    pub const DEFAULT: Self = Self {
        label: "",
        provider: "",
        path: &[],
        api_version: "",
        service: "",
        reads_in_5_minutes: None,
        max_name: None,
        all_in_parent: None,
        expand: None,
        rules: Rules::DEFAULT,
    };
}

/// Where the resources are that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope {
    /// In the subscription.
    Subscription,
    /// In the resource group.
    Group,
    /// In the parent resource.
    Parent,
}

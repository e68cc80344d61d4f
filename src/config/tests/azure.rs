//! The settings of the cloud and of role `ho`.

use super::*;

#[test]
fn a_cloud_by_its_addresses() {
    let config = cpo(&[
        ("arm-endpoint", "http://127.0.0.1:4000"),
        ("authority", "https://127.0.0.1:4001"),
        ("audience", "https://management.example"),
    ])
    .unwrap();
    assert_eq!(azure(&config).cloud.endpoint().as_str(), "http://127.0.0.1:4000/");
    assert_eq!(azure(&config).cloud.authority().as_str(), "https://127.0.0.1:4001/");
    assert_eq!(azure(&config).cloud.audience(), "https://management.example");
}

#[test]
fn cloud_by_its_name_and_own_endpoint_needs_no_audience() {
    let line = [
        ("cloud", "azurechinacloud"),
        ("arm-endpoint", "https://management.chinacloudapi.cn"),
    ];
    let config = cpo(&line).unwrap();
    assert_eq!(azure(&config).cloud_name, "AzureChinaCloud");
    assert_eq!(azure(&config).cloud, AzureCloud::china());
}

#[rstest]
#[case("AzurePublicCloud", AzureCloud::public())]
#[case("AzureUSGovernmentCloud", AzureCloud::us_government())]
#[case("AzureChinaCloud", AzureCloud::china())]
fn clouds_whose_addresses_are_known(#[case] name: &'static str, #[case] cloud: AzureCloud) {
    let variables = [&CPO[..], &[("AZURE_CLOUD_NAME", name)]].concat();
    let config = resolve(&[("role", "cpo")], &Environment::of(&variables)).unwrap();
    assert_eq!((azure(&config).cloud_name, azure(&config).cloud), (name, cloud));
    assert_eq!(azure(&cpo(&[]).unwrap()).cloud_name, "AzurePublicCloud");
}

#[rstest]
#[case("AzureGermanCloud")]
#[case("AzureBleuCloud")]
#[case("AzureStackCloud")]
fn clouds_whose_addresses_have_to_be_given(#[case] name: &str) {
    let problems = cpo(&[("cloud", name)]).unwrap_err();
    let missing = |setting| format!("{setting} is missing: that of {name} has to be given");
    let expected = [
        "--arm-endpoint (or HYPERLINK_ARM_ENDPOINT)",
        "--authority (or AZURE_AUTHORITY_HOST)",
        "--audience (or HYPERLINK_AUDIENCE)",
    ];
    assert_eq!(problems, expected.map(missing));
    let config = cpo(&[
        ("cloud", name),
        ("arm-endpoint", "https://management.example"),
        ("authority", "https://login.example"),
        ("audience", "https://management.example"),
    ]);
    assert_eq!(azure(&config.unwrap()).cloud_name, name);
}

#[test]
fn every_setting_of_role_ho() {
    let scope = format!("/SUBSCRIPTIONS/{SUBSCRIPTION}/resourcegroups/old.group");
    let network = "providers/Microsoft.Network/virtualNetworks/v";
    let subnet = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/{network}/subnets/nat");
    let config = ho(&[
        ("also-manage", &scope),
        ("also-manage", &format!("/subscriptions/{SUBSCRIPTION}/")),
        ("nat-prefix-length", "24"),
        ("nat-address-pool", "10.1.0.0/16"),
        ("nat-subnet-id", &subnet),
        ("frontend-match", "address"),
        ("log-format", "json"),
        ("log-level", "debug,,kube_runtime=info,"),
    ])
    .unwrap();
    let management = config.management.unwrap().ho;
    let subscription = SubscriptionId::parse(SUBSCRIPTION).unwrap();
    assert_eq!(
        management.also_manage,
        [
            AzureScope::Group(subscription.clone(), "old.group".into()),
            AzureScope::Subscription(subscription)
        ]
    );
    assert_eq!(management.nat_prefix_length, 24);
    assert_eq!(management.nat_address_pool, Some("10.1.0.0/16".parse().unwrap()));
    assert_eq!(management.nat_subnet_id.map(|id| id.to_string()), Some(subnet));
    assert_eq!(management.frontend_match, FrontendMatch::Address);
    assert_eq!(config.log.format, Format::Json);
}

#[test]
fn proxy_is_used_and_a_wrong_one_refused_without_its_password() {
    let with = |proxy| {
        let variables: [(&str, &str); 7] = [
            CPO[0],
            CPO[1],
            CPO[2],
            CPO[3],
            CPO[4],
            ("https_proxy", proxy),
            ("NO_PROXY", "10.0.0.0/8"),
        ];
        resolve(&[("role", "cpo")], &Environment::of(&variables))
    };
    let config = with("http://me:hunter2@proxy.example:3128").unwrap();
    assert!(azure(&config).http.proxy.https_proxy.is_some());
    assert_eq!(azure(&config).http.proxy.no_proxy.as_deref(), Some("10.0.0.0/8"));
    assert!(!format!("{config:?}").contains("hunter2"));
    let problems = with("ftp://me:hunter2@proxy.example").unwrap_err();
    assert_eq!(problems, ["the https proxy is not an http or https URL"]);
}

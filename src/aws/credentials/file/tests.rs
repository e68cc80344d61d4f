use std::io::Write;

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const ROLE: &str = "arn:aws:iam::123456789012:role/ho";

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn keys_of_the_default_profile_are_read() {
    let text = "# by hand\n[other]\naws_access_key_id = AKIA0\n\n[default]\naws_access_key_id=AKIA1 ; old\n\
                AWS_SECRET_ACCESS_KEY = a/b+c==\r\nregion = eu-west-1\ns3 =\n  max = 1\n";
    let profile = Profile::read(file(text).path()).unwrap();
    let IdentitySource::Keys(session) = profile.source else {
        panic!("{profile:?}")
    };
    assert_eq!(session.access_key_id(), "AKIA1");
    assert_eq!(session.secret().expose_secret(), "a/b+c==");
    assert!(session.token().is_none());
    assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
}

#[test]
fn form_that_hypershift_writes_is_read() {
    let text = format!(
        "[default]\nrole_arn = {ROLE}\nweb_identity_token_file = /var/run/a#b;c\nsts_regional_endpoints = regional\n"
    );
    let profile = Profile::parse(&text).unwrap();
    let IdentitySource::WebIdentity { role, token_file } = profile.source else {
        panic!("{profile:?}")
    };
    assert_eq!((role.as_str(), token_file), (ROLE, PathBuf::from("/var/run/a#b;c")));
}

#[test]
fn role_of_the_machine_is_read() {
    let text = format!("[profile default]\nrole_arn = {ROLE}\ncredential_source = Ec2InstanceMetadata\n");
    let profile = Profile::parse(&text).unwrap();
    assert!(matches!(profile.source, IdentitySource::InstanceMetadata { .. }));
}

#[rstest]
#[case::nothing("", "has no profile default")]
#[case::other_profile("[other]\na = b\n", "has no profile default")]
#[case::empty_profile("[default]\n", "lacks aws_access_key_id with aws_secret_access_key, and role_arn")]
#[case::half_of_the_keys(
    "[default]\naws_access_key_id = A\naws_secret_access_key =\n",
    "lacks aws_access_key_id with aws_secret_access_key, and role_arn"
)]
#[case::no_role("[default]\nweb_identity_token_file = /t\n", "lacks role_arn")]
#[case::no_role_for_the_machine("[default]\ncredential_source = Ec2InstanceMetadata\n", "lacks role_arn")]
#[case::malformed_role("[default]\nrole_arn = hunter2\n", "has a role_arn that is not the ARN of a role")]
#[case::other_source(
    "[default]\ncredential_source = Environment\n",
    "has a credential_source other than Ec2InstanceMetadata"
)]
#[case::process(
    "[default]\ncredential_process = /bin/hunter2\n",
    "has credential_process, which is not supported"
)]
#[case::no_equals_sign("[default]\nhunter2\n", "has no = in line 2")]
#[case::open_section("[default\n", "has no ] in line 1")]
#[case::blank_in_a_key(
    "[default]\naws_access_key_id = A\naws_secret_access_key = hunter2 b\n",
    "has a key with characters that no key has"
)]
fn unusable_file_is_refused_without_its_values(#[case] text: &str, #[case] why: &str) {
    assert_eq!(Profile::parse(text).unwrap_err(), why);
    let file = file(text);
    let error = Profile::read(file.path()).unwrap_err().to_string();
    assert_eq!(error, format!("the credentials file {} {why}", file.path().display()));
    assert!(!error.contains("hunter2"));
}

#[test]
fn role_without_a_source_is_refused() {
    let error = Profile::parse(&format!("[default]\nrole_arn={ROLE}\n")).unwrap_err();
    assert_eq!(error, "lacks web_identity_token_file or credential_source");
}

#[test]
fn absent_and_huge_files_are_refused() {
    let error = Profile::read(Path::new("/nowhere/credentials")).unwrap_err();
    let text = "the credentials file /nowhere/credentials cannot be read: entity not found";
    assert_eq!(error.to_string(), text);
    let error = Profile::read(file(&"#".repeat(70_000)).path()).unwrap_err();
    assert!(error.to_string().ends_with("is too large"), "{error}");
}

#[test]
fn newline_after_a_token_is_dropped_and_an_empty_one_refused() {
    let token = web_identity_token(file("a.b.c\n").path()).unwrap();
    assert_eq!(token.expose_secret(), "a.b.c");
    let error = web_identity_token(file("\n").path()).unwrap_err();
    assert!(error.to_string().ends_with("is empty"), "{error}");
}

#[test]
fn replaced_file_has_another_stamp() {
    let file = file("a");
    let stamp = FileStamp::of(file.path());
    assert_eq!(stamp, FileStamp::of(file.path()));
    std::fs::write(file.path(), "ab").unwrap();
    assert_ne!(stamp, FileStamp::of(file.path()));
}

proptest! {
    #[test]
    fn any_text_is_a_profile_or_a_short_error(
        text in "(\\[default\\]\n)?([a-z_]{0,12}[ =\n\\[\\];#]{0,3}\\PC{0,10}\n){0,8}",
    ) {
        if let Err(why) = Profile::parse(&text) {
            prop_assert!(why.len() < 100 && !why.contains(char::is_control), "{why}");
        }
    }

    #[test]
    fn secret_is_read_as_it_was_written(secret in "[A-Za-z0-9+/=]{1,60}") {
        let text = format!("[default]\naws_access_key_id = A\naws_secret_access_key = {secret}\n");
        let IdentitySource::Keys(session) = Profile::parse(&text).unwrap().source else {
            panic!("keys")
        };
        prop_assert_eq!(session.secret().expose_secret(), secret);
    }
}

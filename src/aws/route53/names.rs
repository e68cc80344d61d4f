//! Names as Route 53 shows them: with a dot at the end, and some characters by their octal code
//! (<https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DomainNameFormat.html>).

/// The name in plain form: `\052.apps.example.` is `*.apps.example`. Codes of characters that names do not have stay.
pub(super) fn plain(shown: &str) -> String {
    let (mut name, mut rest) = (String::new(), shown);
    while let Some(at) = rest.find('\\') {
        let (before, code) = rest.split_at(at);
        name.push_str(before);
        // A sign is no digit, though a number may have one.
        let digits = code.get(1..4).filter(|digits| !digits.starts_with('+'));
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match decoded.filter(|byte| byte.is_ascii_graphic() && !b".\\".contains(byte)) {
            Some(byte) => {
                name.push(char::from(byte));
                rest = &code[4..];
            }
            None => {
                name.push('\\');
                rest = &code[1..];
            }
        }
    }
    name.push_str(rest);
    if name.ends_with('.') {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain_name("api.c.hypershift.local.", "api.c.hypershift.local")]
    #[case::asterisk("\\052.apps.c.hypershift.local.", "*.apps.c.hypershift.local")]
    #[case::two_codes("\\052\\100.x", "*@.x")]
    #[case::dot_inside_a_label("a\\056b.x.", "a\\056b.x")]
    #[case::control_character("a\\007.x", "a\\007.x")]
    #[case::no_code("a\\9.x", "a\\9.x")]
    #[case::sign_is_no_digit("a\\+52.x", "a\\+52.x")]
    #[case::cut_code("a\\05", "a\\05")]
    #[case::root(".", "")]
    fn shown_name_is_read_as_people_write_it(#[case] shown: &str, #[case] name: &str) {
        assert_eq!(plain(shown), name);
    }

    proptest! {
        #[test]
        fn any_name_is_read(shown in "(\\\\[0-9+]{0,4}|\\PC){0,20}") {
            prop_assert!(plain(&shown).len() <= shown.len());
        }
    }
}

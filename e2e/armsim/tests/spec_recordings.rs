//! Recorded traffic of Azure against the specs: what the checker finds there is where spec and service disagree, and
//! nothing else.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod spec_support;

#[test]
fn recorded_traffic_keeps_to_the_specs_but_for_what_is_listed() {
    let Some(specs) = spec_support::specs() else { return };
    let mut found = Vec::new();
    let mut exchanges = 0;
    for folder in ["aso", "cloud-provider-azure"] {
        let dir = spec_support::reference().unwrap().join("recordings").join(folder);
        for file in std::fs::read_dir(dir).unwrap() {
            let path = file.unwrap().path();
            for (request, response) in spec_support::cassette(&path) {
                exchanges += 1;
                for violation in specs.check(&request, &response) {
                    found.push(format!(
                        "{} {}: {violation}",
                        request.method(),
                        path.file_name().unwrap().display()
                    ));
                }
            }
        }
    }
    println!("{exchanges} exchanges\n{:#?}", specs.tally());
    assert!(found.is_empty(), "{} findings\n{}", found.len(), found.join("\n"));
}

//! Answers to calls: any input is an error of bounded size, or an answer that leads to no other host.
//!
//! An input is text: `get 200`, header lines, an empty line and a body; `---` on a line begins the next answer. The
//! first word says which call is answered. After `seen` comes what [`bodies::observed`] reads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use http::{HeaderName, HeaderValue, Request, Response};
use hyperlink::azure::arm::client::{Answer, Client};
use hyperlink::azure::arm::error::ArmError;
use hyperlink::azure::arm::id::ResourceId;
use hyperlink::azure::arm::operation;
use hyperlink::azure::arm::ports::{Counters, ObservedCall};
use hyperlink::azure::arm::transport::{Transport, TransportError};
use hyperlink::azure::kinds::Kind;
use hyperlink::engine::client::{Condition, OperationState, Reconcile, WriteError};
use hyperlink::engine::failure::Class;
use hyperlink::engine::gate::Gate;
use serde_json::json;
use url::Url;

use super::{bodies, desired};

const HOST: &str = "arm.test";
/// The longest wait that is accepted from Azure.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// One call, and what answers it.
pub fn answers(data: &[u8]) {
    let word = data.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    if word == b"seen" {
        return bodies::observed(data.get(5..).unwrap_or_default());
    }
    let scripted = Arc::new(Scripted::read(data));
    let endpoint = Url::parse(&format!("https://{HOST}")).unwrap();
    let client = Client::new(scripted.clone(), endpoint, Arc::new(Open), Arc::new(Uncounted));
    let id = desired::zone().id;
    block_on(call(&client, word, &id));
    for uri in scripted.sent.lock().unwrap().iter() {
        let scheme = uri.scheme_str();
        let authority = uri.authority().map(http::uri::Authority::as_str);
        assert_eq!((scheme, authority), (Some("https"), Some(HOST)), "{uri}");
    }
}

async fn call(client: &Client, word: &[u8], id: &ResourceId) {
    let (reconcile, kind) = (Reconcile::begin(), Kind::PrivateDnsZone);
    let answer = match word {
        b"list" => match client
            .list(reconcile, kind, id.subscription(), "/subscriptions/s")
            .await
        {
            Ok(items) => return assert!(items.len() <= 25_000),
            Err(error) => Err(error),
        },
        b"put" => of_write(client.put(reconcile, kind, id, &json!({}), &Condition::New).await),
        b"delete" => {
            let unchanged = Condition::Unchanged("x".into());
            of_write(client.delete(reconcile, kind, id, &unchanged).await)
        }
        _ => client.get(reconcile, kind, id).await,
    };
    match answer {
        Ok(answer) => is_one(client, id, &answer).await,
        Err(error) => is_bounded(&error),
    }
}

/// The answer to a write that the gate lets pass.
fn of_write(result: Result<Answer, WriteError<ArmError>>) -> Result<Answer, ArmError> {
    result.map_err(|error| match error {
        WriteError::Failed(error) => error,
        WriteError::NotLeading => panic!("the gate is open"),
    })
}

/// Checks an answer. If it names an operation, asks about that, too; the next answer is that of the operation.
async fn is_one(client: &Client, id: &ResourceId, answer: &Answer) {
    assert!(
        answer
            .retry_after
            .is_none_or(|wait| wait <= LONGEST_WAIT && !wait.is_zero())
    );
    state_is_one(&operation::state(answer));
    if let Some(operation) = &answer.operation {
        state_is_one(
            &client
                .operation(Reconcile::begin(), Kind::PrivateDnsZone, id, operation)
                .await,
        );
    }
}

fn state_is_one(state: &Result<OperationState<ArmError>, ArmError>) {
    match state {
        Ok(OperationState::Failed(error)) | Err(error) => is_bounded(error),
        Ok(OperationState::Running(wait)) => assert!(wait.is_none_or(|wait| wait <= LONGEST_WAIT)),
        Ok(OperationState::Succeeded) => {}
    }
}

fn is_bounded(error: &ArmError) {
    assert!(
        !error.code.trim().is_empty() && error.code.chars().count() <= 80,
        "{error:?}"
    );
    assert!(error.text.chars().count() <= 300, "{error:?}");
    assert!(
        !format!("{error}{}", error.text).contains(char::is_control),
        "{error:?}"
    );
    assert!(
        error.class != Class::Throttled || error.retry_after.is_some(),
        "{error:?}"
    );
    for failures in [0, 1, 2, 7, 63, 64, 65, u32::MAX] {
        let delay = error.delay(failures);
        assert!(
            (Duration::from_secs(1)..=LONGEST_WAIT).contains(&delay),
            "{delay:?} {error:?}"
        );
    }
}

/// Answers in turn, the last one again and again; and where requests went.
struct Scripted {
    answers: Mutex<VecDeque<Response<Bytes>>>,
    sent: Mutex<Vec<http::Uri>>,
}

impl Scripted {
    fn read(data: &[u8]) -> Self {
        let mut rest = data;
        let mut answers = VecDeque::new();
        while let Some((one, next)) = split(rest, b"\n---\n") {
            answers.push_back(response(one));
            rest = next;
        }
        answers.push_back(response(rest));
        Self {
            answers: Mutex::new(answers),
            sent: Mutex::default(),
        }
    }
}

fn split<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let found = text.windows(at.len()).position(|window| window == at)?;
    Some((&text[..found], &text[found + at.len()..]))
}

fn response(text: &[u8]) -> Response<Bytes> {
    let (head, body) = split(text, b"\n\n").unwrap_or((text, b""));
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let status = first.split_whitespace().last().and_then(|word| word.parse().ok());
    let mut response = Response::new(Bytes::copy_from_slice(body));
    *response.status_mut() = status.unwrap_or_default();
    for line in lines {
        let Some((name, value)) = split(line, b": ") else {
            continue;
        };
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

#[async_trait]
impl Transport for Scripted {
    async fn ready(&self) -> Result<(), TransportError> {
        Ok(())
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.sent.lock().unwrap().push(request.uri().clone());
        let mut answers = self.answers.lock().unwrap();
        let last = answers.len() == 1;
        let next = if last {
            answers.front().cloned()
        } else {
            answers.pop_front()
        };
        Ok(next.unwrap())
    }
}

struct Open;

impl Gate for Open {
    fn open(&self) -> bool {
        true
    }
}

struct Uncounted;

impl Counters for Uncounted {
    fn call(&self, _: ObservedCall) {}
    fn budget(&self, _: &'static str, _: u64) {}
    fn call_budget_exhausted(&self, kind: Kind) {
        panic!("{kind:?} was called too often");
    }
}

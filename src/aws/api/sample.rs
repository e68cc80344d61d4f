//! AWS in memory, for tests: answers requests in turn, and remembers them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use hyperlink_engine::client::Reconcile;
use hyperlink_engine::gate::Gate;

use crate::api::action::Action;
use crate::api::client::{Client, Connection};
use crate::api::ports::{Counters, ObservedCall};
use crate::api::transport::{Transport, TransportError};
use crate::credentials::{CredentialError, Session, SessionSource};
use crate::endpoints::{EndpointOverrides, Endpoints};
use crate::kinds::Kind;
use crate::region::Region;

type Answer = Result<Response<Bytes>, TransportError>;

/// Answers in turn, the last one again and again.
pub(crate) struct FakeAws {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Request<Bytes>>>,
}

/// An answer with this status and body.
pub(crate) fn answer(status: u16, body: &str) -> Answer {
    Ok(Response::builder()
        .status(status)
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap())
}

/// An error answer in EC2's form.
pub(crate) fn refusal(status: u16, code: &str) -> Answer {
    let body = format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>m</Message></Error></Errors><RequestID>r</RequestID>\
        </Response>"
    );
    answer(status, &body)
}

impl FakeAws {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        })
    }

    pub(crate) fn answering(status: u16, body: &str) -> Arc<Self> {
        Self::new([answer(status, body)])
    }

    /// The requests so far: method, address and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let shown = requests.iter().map(|request| {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            format!("{} {} {body}", request.method(), request.uri())
                .trim()
                .to_owned()
        });
        shown.collect()
    }

    /// The value of a header of the request with this number, from zero.
    pub(crate) fn header(&self, request: usize, name: &str) -> Option<String> {
        let requests = self.requests.lock().unwrap();
        let value = requests[request].headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }
}

#[async_trait]
impl Transport for FakeAws {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.requests.lock().unwrap().push(request);
        let mut answers = self.answers.lock().unwrap();
        let last = answers.len() == 1;
        let next = if last {
            answers.front().cloned()
        } else {
            answers.pop_front()
        };
        next.unwrap()
    }
}

/// Counts calls.
#[derive(Default)]
pub(crate) struct Calls(pub(crate) Mutex<Vec<ObservedCall>>, pub(crate) Mutex<Vec<Action>>);

impl Counters for Calls {
    fn call(&self, observed: ObservedCall) {
        self.0.lock().unwrap().push(observed);
    }

    fn held_back(&self, action: Action) {
        self.1.lock().unwrap().push(action);
    }

    fn call_budget_exhausted(&self, _: Kind) {}
}

/// A gate that can be shut.
pub(crate) struct TestGate(pub(crate) AtomicBool);

impl Gate for TestGate {
    fn open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Supplies `AKIA1`, and after each invalidation the next one.
pub(crate) struct TestSessions(pub(crate) Mutex<(u32, Arc<Session>)>);

impl Default for TestSessions {
    fn default() -> Self {
        Self(Mutex::new((1, Self::session_number(1))))
    }
}

impl TestSessions {
    fn session_number(number: u32) -> Arc<Session> {
        let id = format!("AKIA{number}");
        Arc::new(Session::new(&id, "secret".into(), Some("token".into())))
    }
}

#[async_trait]
impl SessionSource for TestSessions {
    async fn session(&self) -> Result<Arc<Session>, CredentialError> {
        Ok(self.0.lock().unwrap().1.clone())
    }

    fn invalidate(&self, refused: &Arc<Session>) {
        let mut state = self.0.lock().unwrap();
        assert!(Arc::ptr_eq(refused, &state.1));
        *state = (state.0 + 1, Self::session_number(state.0 + 1));
    }
}

/// A client on this AWS, and what it is made of.
pub(crate) struct Sample {
    pub(crate) aws: Arc<FakeAws>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) gate: Arc<TestGate>,
    pub(crate) client: Client,
}

/// The connection of a process in us-east-1.
pub(crate) fn connection(aws: &Arc<FakeAws>, calls: &Arc<Calls>) -> Connection {
    let region = Region::parse("us-east-1").unwrap();
    let endpoints = Endpoints::new(region, &EndpointOverrides::default()).unwrap();
    Connection::new(aws.clone(), endpoints, calls.clone())
}

impl Sample {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let (aws, calls) = (FakeAws::new(answers), Arc::new(Calls::default()));
        let gate = Arc::new(TestGate(AtomicBool::new(true)));
        let sessions = TestSessions::default();
        let connection = connection(&aws, &calls);
        let client = Client::new(connection, Arc::new(sessions), "123456789012", gate.clone());
        Self {
            aws,
            calls,
            gate,
            client,
        }
    }

    pub(crate) fn answering(body: &str) -> Self {
        Self::new([answer(200, body)])
    }

    /// The form of the only request.
    pub(crate) fn form(&self) -> String {
        let requests = self.aws.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        let body = requests[0].rsplit(' ').next().unwrap();
        let decoded = url::form_urlencoded::parse(body.as_bytes());
        let shown: Vec<_> = decoded
            .filter(|(name, _)| name != "Version")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        shown.join(" & ")
    }
}

pub(crate) fn reconcile() -> Reconcile {
    Reconcile::begin()
}

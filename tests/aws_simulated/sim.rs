//! The simulated AWS behind the transport.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use awssim::{Answer, FaultRule, JournalEntry, Preset, Question, Reachable, Seed, SimulatedAws, WireFault};
use bytes::Bytes;
use http::{Request, Response};
use hyperlink::aws::api::transport::{ANSWER_LIMIT, Transport, TransportError};
use hyperlink::aws::region::Region;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::desired::seed;
use crate::odd_xml::rewritten;

/// A simulated AWS whose time is the paused clock's.
pub(crate) struct SimTransport {
    aws: Mutex<SimulatedAws>,
    /// The region of its resources.
    pub(crate) region: Region,
    began: Instant,
    began_at: Timestamp,
    sent: Mutex<Vec<Value>>,
    /// How far the clocks of callers are behind AWS's.
    behind: Mutex<SignedDuration>,
    /// How far STS's clock is behind that of the other services.
    sessions_behind: Mutex<SignedDuration>,
    /// Whether successful answers have another form with the same content.
    is_rewriting: AtomicBool,
}

/// A request to a region, as `e2e/clients/aws/sent.py` reads it.
pub(crate) fn shown(region: &str, request: &Request<Bytes>) -> Value {
    let authorization = request.headers().get(http::header::AUTHORIZATION);
    json!({
        "region": region,
        "method": request.method().as_str(),
        "url": request.uri().to_string(),
        "authorization": authorization.map(|value| value.to_str().unwrap()),
        "body": String::from_utf8(request.body().to_vec()).unwrap(),
    })
}

impl SimTransport {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(|_| {})
    }

    /// With a changed seed.
    pub(crate) fn with(change: impl FnOnce(&mut Value)) -> Arc<Self> {
        let mut seeded = seed();
        change(&mut seeded);
        let mut aws = SimulatedAws::new(Preset::Recorded, 1);
        let began_at = Timestamp::now();
        let seed = Seed::parse(seeded.to_string().as_bytes()).unwrap();
        aws.seed(began_at, seed).unwrap();
        let first = seeded["resources"][0]["id"].as_str().unwrap();
        Arc::new(Self {
            aws: Mutex::new(aws),
            region: Region::parse(first.split(':').nth(3).unwrap()).unwrap(),
            began: Instant::now(),
            began_at,
            sent: Mutex::default(),
            behind: Mutex::default(),
            sessions_behind: Mutex::default(),
            is_rewriting: AtomicBool::default(),
        })
    }

    /// Every request so far, as [`shown`].
    pub(crate) fn sent(&self) -> Vec<Value> {
        self.sent.lock().unwrap().clone()
    }

    pub(crate) fn aws(&self) -> MutexGuard<'_, SimulatedAws> {
        self.aws.lock().unwrap()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.began_at + SignedDuration::try_from(self.began.elapsed()).unwrap()
    }

    /// Seconds since the start.
    pub(crate) fn elapsed(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    pub(crate) fn journal(&self) -> Vec<JournalEntry> {
        self.aws().journal(0).to_vec()
    }

    /// The calls that changed something, by service and action.
    pub(crate) fn writes(&self) -> Vec<String> {
        let journal = self.journal().into_iter().filter(|entry| entry.changed);
        journal.map(|entry| entry.path).collect()
    }

    /// Each call: the second, the service and action, and the code if it was refused.
    pub(crate) fn actions(&self) -> Vec<String> {
        let journal = self.journal().into_iter();
        let shown = journal.map(|entry| format!("{} {} {}", entry.time, entry.path, entry.code.unwrap_or_default()));
        shown.collect()
    }

    pub(crate) fn clear_journal(&self) {
        self.aws().clear_journal();
    }

    /// Whether a worker of the guest reaches the control plane by this name.
    pub(crate) fn reachable(&self, name: &str) -> Reachable {
        let now = self.now();
        let question = Question {
            vpc: "vpc-2",
            name,
            from: None,
            port: None,
        };
        self.aws().reachable(now, &question)
    }

    /// The resources of one kind, as EC2 names it.
    pub(crate) fn resources(&self, kind: &str) -> Vec<Value> {
        self.resources_of("ec2", &format!("{kind}/"))
    }

    /// The resources of one service that have this in their ARN.
    pub(crate) fn resources_of(&self, service: &str, part: &str) -> Vec<Value> {
        let prefix = format!("arn:{}:{service}:", self.region.partition().name());
        let mut all = self.aws().resources(self.now(), &prefix);
        all.retain(|body| body["id"].as_str().is_some_and(|id| id.contains(&format!(":{part}"))));
        all
    }

    /// Changes a resource behind everybody's back.
    pub(crate) fn change(&self, mut body: Value, change: impl FnOnce(&mut Value)) {
        let now = self.now();
        change(&mut body);
        let id = body["id"].as_str().unwrap().to_owned();
        self.aws().put_resource(now, &id, body).unwrap();
    }

    pub(crate) fn set_clocks_behind(&self, behind: SignedDuration) {
        *self.behind.lock().unwrap() = behind;
    }

    /// Sessions are refused by so much earlier than their callers expect.
    pub(crate) fn set_sessions_behind(&self, behind: SignedDuration) {
        *self.sessions_behind.lock().unwrap() = behind;
    }

    /// From now on successful answers are [`rewritten`].
    pub(crate) fn rewrite_answers(&self) {
        self.is_rewriting.store(true, Ordering::SeqCst);
    }

    /// The time at the service that is called.
    fn time_at(&self, is_sts: bool) -> Timestamp {
        match is_sts {
            true => self.now() - *self.sessions_behind.lock().unwrap(),
            false => self.now(),
        }
    }

    /// The time in an answer. A caller corrects its clock by it, and counts a session's life from it.
    fn date(&self, is_sts: bool) -> Timestamp {
        match is_sts {
            true => self.time_at(is_sts),
            false => Timestamp::now() + *self.behind.lock().unwrap(),
        }
    }

    pub(crate) fn set_faults(&self, rules: &Value) {
        self.set_rules(awssim::parse_faults(rules.to_string().as_bytes()).unwrap());
    }

    /// As [`set_faults`](Self::set_faults), for rules that are read already.
    pub(crate) fn set_rules(&self, rules: Vec<FaultRule>) {
        self.aws().set_faults(rules);
    }
}

#[async_trait]
impl Transport for SimTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.sent.lock().unwrap().push(shown(self.region.name(), &request));
        let is_sts = request.uri().host().is_some_and(|host| host.starts_with("sts."));
        let Answer { mut response, wire } = {
            let now = self.time_at(is_sts);
            let mut aws = self.aws();
            let behind = *self.behind.lock().unwrap();
            aws.set_callers_behind(now.duration_since(Timestamp::now()) - behind);
            aws.handle(now, &request)
        };
        let date = self.date(is_sts).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        response.headers_mut().insert(http::header::DATE, date.parse().unwrap());
        if self.is_rewriting.load(Ordering::SeqCst) && response.status().is_success() {
            response = response.map(|body| rewritten(&body).into());
        }
        sleep(wire.delay.unwrap_or_default()).await;
        arriving(response, &wire)
    }
}

/// What the caller gets of an answer, as the real transport reads it.
fn arriving(response: Response<Bytes>, wire: &WireFault) -> Result<Response<Bytes>, TransportError> {
    if wire.drop.is_some() {
        return Err(TransportError::Timeout);
    }
    let (parts, mut body) = response.into_parts();
    match (wire.cut_body_at, wire.content_length) {
        // The length promises no more than there is.
        (Some(at), Some(_)) => body.truncate(at),
        (Some(_), None) => return Err(TransportError::Connection("the connection broke".to_owned())),
        (None, _) => {}
    }
    match body.len() > ANSWER_LIMIT {
        true => Err(TransportError::TooLarge(ANSWER_LIMIT)),
        false => Ok(Response::from_parts(parts, body)),
    }
}

/// A fault rule: from the match number `from` on, `times` times.
pub(crate) fn fault(path: &str, times: u64, action: &Value) -> Value {
    json!([{"match": {"path": path, "times": times}, "do": action}])
}

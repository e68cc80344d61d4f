"""Holds requests that somebody else has sent against the services' models and botocore's own addresses. Each line of
the input is a request, `{"region", "method", "url", "authorization", "body"}`; each line of the output is what it is
of, or what is wrong with it: `{"action"}` or `{"wrong", "request"}`.

A request is read back into parameters by the model; botocore has to make the same request of these again."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from urllib.parse import parse_qsl, unquote, urlsplit

import botocore.session
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator

SESSION = botocore.session.get_session()
SERVICES = ("ec2", "elbv2", "route53", "sts")


class Wrong(Exception):
    pass


def scalar(shape, text, where):
    """A value by its type; `where` is for messages."""
    enum = getattr(shape, "enum", None)
    if enum and text not in enum:
        raise Wrong(f"{where}: {text!r} is none of {enum[:8]}")
    if shape.type_name == "string":
        pattern, longest = shape.metadata.get("pattern"), shape.metadata.get("max")
        if pattern and not re.fullmatch(pattern, text):
            raise Wrong(f"{where}: {text!r} is not {pattern}")
        if longest and len(text) > longest:
            raise Wrong(f"{where}: longer than {longest}")
        return text
    if shape.type_name == "boolean" and text in ("true", "false"):
        return text == "true"
    if shape.type_name in ("integer", "long") and re.fullmatch(r"-?\d+", text):
        return int(text)
    raise Wrong(f"{where}: {text!r} is no {shape.type_name}")


class Form:
    """Parameters of the protocols `ec2` and `query`, which are flat."""

    def __init__(self, protocol, fields):
        self.protocol, self.fields, self.used = protocol, fields, set()

    def member(self, key, shape):
        if self.protocol == "ec2":
            given = shape.serialization.get("queryName")
            own = shape.serialization.get("name", key)
            return given or own[0].upper() + own[1:]
        return shape.serialization.get("name", key)

    def has(self, prefix):
        return any(field == prefix or field.startswith(f"{prefix}.") for field in self.fields)

    def read(self, shape, prefix):
        if shape.type_name == "structure":
            members = ((key, member, self.member(key, member)) for key, member in shape.members.items())
            paths = ((key, member, f"{prefix}.{name}" if prefix else name) for key, member, name in members)
            return {key: self.read(member, path) for key, member, path in paths if self.has(path)}
        if shape.type_name == "list":
            flat = self.protocol == "ec2" or shape.serialization.get("flattened")
            if not flat:
                prefix = f"{prefix}.{shape.member.serialization.get('name', 'member')}"
            values = []
            while self.has(path := f"{prefix}.{len(values) + 1}"):
                values.append(self.read(shape.member, path))
            return values
        self.used.add(prefix)
        return scalar(shape, self.fields.get(prefix, ""), prefix)


def unqualified(element):
    return element.tag.rsplit("}", 1)[-1]


def document(shape, element):
    """The value of an XML element, with the members in the order that the model has."""
    if shape.type_name == "structure":
        names = {member.serialization.get("name", key): key for key, member in shape.members.items()}
        unknown = [unqualified(child) for child in element if unqualified(child) not in names]
        if unknown:
            raise Wrong(f"{unqualified(element)}: no {unknown} in {shape.name}")
        children = {names[unqualified(child)]: child for child in element}
        if len(children) != len(element):
            raise Wrong(f"{unqualified(element)}: an element twice")
        return {key: document(shape.members[key], children[key]) for key in shape.members if key in children}
    if shape.type_name == "list":
        return [document(shape.member, child) for child in element]
    return scalar(shape, element.text or "", unqualified(element))


def of_path(model, method, path):
    """The operation of a REST service with this path, and the parameters that the path holds."""
    for name in model.operation_names:
        http = model.operation_model(name).http
        template = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(http["requestUri"].split("?")[0]))
        found = re.fullmatch(template, path)
        if found and http["method"] == method:
            return model.operation_model(name), found.groupdict()
    raise Wrong(f"no operation has {method} {path}")


def parameters(model, request):
    """The operation and its parameters."""
    url, protocol = urlsplit(request["url"]), model.metadata["protocol"]
    if protocol == "rest-xml":
        operation, path = of_path(model, request["method"], url.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        values, body = {}, {}
        for key, member in operation.input_shape.members.items():
            name, location = member.serialization.get("name", key), member.serialization.get("location")
            if location == "uri":
                values[key] = scalar(member, unquote(path[name]), name)
            elif location == "querystring" and name in query:
                values[key] = scalar(member, query.pop(name), name)
            elif location is None:
                body[key] = member
        if query:
            raise Wrong(f"no parameters {sorted(query)}")
        if request["body"]:
            root = {unqualified(child): child for child in ET.fromstring(request["body"])}
            values |= {key: document(member, root.pop(key)) for key, member in body.items() if key in root}
        return operation, values
    fields = parse_qsl(request["body"], keep_blank_values=True)
    form = Form(protocol, dict(fields))
    if len(form.fields) != len(fields):
        raise Wrong("a parameter twice")
    operation = model.operation_model(form.fields["Action"])
    values = form.read(operation.input_shape, "") if operation.input_shape else {}
    unknown = set(form.fields) - form.used - {"Action", "Version"}
    if unknown:
        raise Wrong(f"{operation.name} has no {sorted(unknown)}")
    return operation, values


def canonical(body):
    """A body in a form that two writers agree on."""
    if isinstance(body, dict):
        return body
    text = body.decode() if isinstance(body, bytes) else body
    return ET.canonicalize(text) if text.startswith("<") else dict(parse_qsl(text, keep_blank_values=True))


def same(operation, values, request):
    """botocore makes this request of these parameters too."""
    report = ParamValidator().validate(values, operation.input_shape) if operation.input_shape else None
    if report is not None and report.has_errors():
        raise Wrong(report.generate_report())
    own = create_serializer(operation.metadata["protocol"]).serialize_to_request(values, operation)
    url = urlsplit(request["url"])
    sent = (request["method"], url.path, dict(parse_qsl(url.query)), canonical(request["body"]))
    query = {key: str(value) for key, value in own["query_string"].items()} if own["query_string"] else {}
    # Values of the form protocols are written by botocore's own writer of URLs.
    body = own["body"]
    if isinstance(body, dict):
        body = {key: str(value) for key, value in body.items()}
    expected = (own["method"], own["url_path"], query, canonical(body))
    if sent != expected:
        raise Wrong(f"botocore would send {expected}, not {sent}")


def addressed(service, request):
    """The host is the service's, and the signature is for its region; an unsigned request is allowed to have none."""
    region = request["region"]
    partition = SESSION.get_partition_for_region(region)
    client = SESSION.create_client(service, region, aws_access_key_id="a", aws_secret_access_key="b")
    if f"https://{urlsplit(request['url']).netloc}" != client.meta.endpoint_url:
        raise Wrong(f"{region}: botocore calls {client.meta.endpoint_url}")
    if not request["authorization"]:
        return
    resolver = SESSION.get_component("endpoint_resolver")
    scope = resolver.construct_endpoint(service, region, partition).get("credentialScope", {})
    model = client.meta.service_model
    signed = f"/{scope.get('region', region)}/{model.signing_name}/aws4_request"
    if signed not in request["authorization"]:
        raise Wrong(f"{region}: not signed for {signed}")


def checked(request):
    by_prefix = {SESSION.get_service_model(service).endpoint_prefix: service for service in SERVICES}
    service = by_prefix.get(urlsplit(request["url"]).netloc.split(".")[0])
    if service is None:
        raise Wrong("to no service")
    operation, values = parameters(SESSION.get_service_model(service), request)
    same(operation, values, request)
    addressed(service, request)
    return operation.name


def main():
    known = {}
    for line in sys.stdin:
        if line in known:
            continue
        known[line] = True
        request = json.loads(line)
        try:
            print(json.dumps({"action": checked(request)}))
        except Wrong as wrong:
            print(json.dumps({"wrong": str(wrong), "request": request}))


main()

"""Holds every answer against the service's own model, more strictly than botocore's parser, which skips what it does not
know: each element has to be a member of the shape, of its type, and required members have to be there."""

import re
import xml.etree.ElementTree as ET

# Where AWS's own documented answers are not what the models say.
EXPLAINED = {
    # Repeats the request's marker, so it is absent from the first page.
    "route53:ListHostedZones.Marker: required, and absent",
    # The reference's example of a refused batch has it with a capital.
    "route53:ChangeResourceRecordSets.Messages: not in InvalidChangeBatch",
}

TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$")


def name(element):
    return element.tag.rsplit("}", 1)[-1]


class Checker:
    """What was called with success, by which paginators and waiters, and what broke a model."""

    def __init__(self):
        self.called, self.paginators, self.waiters = set(), set(), set()
        self.violations = []

    def unexplained(self):
        return [violation for violation in self.violations if violation not in EXPLAINED]

    def attach(self, client):
        client.meta.events.register("before-parse.*.*", self.check)
        self.note(client, "get_paginator", self.paginators)
        self.note(client, "get_waiter", self.waiters)

    def note(self, client, getter, used):
        """Keeps the names with which a client's method is called."""
        get, service = getattr(client, getter), client.meta.service_model.service_name

        def noted(name):
            used.add((service, name))
            return get(name)

        setattr(client, getter, noted)

    def check(self, operation_model, response_dict, **_):
        protocol = operation_model.service_model.metadata["protocol"]
        where = f"{operation_model.service_model.service_name}:{operation_model.name}"
        root = ET.fromstring(response_dict["body"])
        if response_dict["status_code"] >= 300:
            return self.check_error(where, operation_model, root)
        self.called.add(where)
        if name(root) != f"{operation_model.name}Response":
            self.violations.append(f"{where}: root {name(root)}")
        children = list(root)
        output = operation_model.output_shape
        if protocol == "ec2":
            # The documented answers of many actions have `return` too, which the models leave out.
            extra = {"requestId"} | ({"return"} if output is None or "Return" not in output.members else set())
            if output is not None and "ReturnValue" in output.members:
                extra.discard("return")
            children = [child for child in children if name(child) not in extra]
        elif protocol == "query":
            if [name(child) for child in children] != [f"{operation_model.name}Result", "ResponseMetadata"]:
                self.violations.append(f"{where}: {[name(child) for child in children]}")
            children = list(children[0])
        if output is None:
            if children:
                self.violations.append(f"{where}: has no output")
            return None
        return self.check_structure(where, output, children)

    def check_error(self, where, operation_model, root):
        own = [shape for shape in operation_model.error_shapes if shape.name == name(root)]
        if own:
            # Documented for refused batches of records: the error's own element.
            children = [child for child in root if name(child) != "RequestId"]
            return self.check_structure(where, own[0], children)
        path = "Errors/Error" if operation_model.metadata["protocol"] == "ec2" else "Error"
        bare = ET.fromstring(re.sub(r' xmlns="[^"]*"', "", ET.tostring(root, encoding="unicode").replace("ns0:", "")))
        error = bare.find(path)
        if error is None or not error.findtext("Code") or error.findtext("Message") is None:
            self.violations.append(f"{where}: error without code or message")

    def check_structure(self, where, shape, children):
        known = {member.serialization.get("name", key): (key, member) for key, member in shape.members.items()}
        present = set()
        for child in children:
            if name(child) not in known:
                self.violations.append(f"{where}.{name(child)}: not in {shape.name}")
                continue
            key, member = known[name(child)]
            if key in present:
                self.violations.append(f"{where}.{key}: twice")
            present.add(key)
            self.check_value(f"{where}.{key}", member, child)
        for key in shape.required_members:
            if key not in present and key not in shape.serialization.get("locations", ()):
                self.violations.append(f"{where}.{key}: required, and absent")

    def check_value(self, where, shape, element):
        if shape.type_name == "structure":
            self.check_structure(where, shape, list(element))
        elif shape.type_name == "list":
            item = shape.member.serialization.get("name", "member")
            for child in element:
                if name(child) != item:
                    self.violations.append(f"{where}: {name(child)} in a list of {item}")
                self.check_value(f"{where}[]", shape.member, child)
        else:
            self.check_text(where, shape, element)

    def check_text(self, where, shape, element):
        text = element.text or ""
        good = {
            "boolean": text in ("true", "false"),
            "integer": re.fullmatch(r"-?\d+", text) is not None,
            "long": re.fullmatch(r"-?\d+", text) is not None,
            "timestamp": TIMESTAMP.match(text) is not None,
        }.get(shape.type_name, True)
        # EC2's models capitalise states that the wire has in camel case.
        enum = [value.lower() for value in getattr(shape, "enum", [])]
        if not good or len(element) or (enum and text.lower() not in enum):
            self.violations.append(f"{where}: {text!r} is no {shape.type_name} {enum[:8]}")

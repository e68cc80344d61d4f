"""The answers that AWS documents, as the wire has them: the examples of botocore's models and of the AWS CLI. Each line
of the input names an action and an expression of JMESPath, `{"service", "action", "shown"}`; each line of the output is
an example, `{"action", "title", "answer", "shown"}`, with what the expression finds in it."""

import json
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import awscli
import botocore.session
import dateutil.parser
import jmespath
from botocore import xform_name

SESSION = botocore.session.get_session()


def text(shape, value):
    if shape.type_name == "boolean":
        return "true" if value else "false"
    if shape.type_name == "timestamp":
        return dateutil.parser.parse(value).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return escape(str(value))


def element(name, shape, value):
    if shape.type_name == "structure":
        inner = members(shape, value)
    elif shape.type_name == "list":
        item = shape.member.serialization.get("name", "member")
        inner = "".join(element(item, shape.member, each) for each in value)
    else:
        inner = text(shape, value)
    return f"<{name}>{inner}</{name}>"


def members(shape, value):
    """The elements of a structure, in the order that the model has; what the model does not know is an error."""
    unknown = set(value) - set(shape.members)
    if unknown:
        raise KeyError(f"no {sorted(unknown)} in {shape.name}")
    known = [(key, member) for key, member in shape.members.items() if value.get(key) is not None]
    return "".join(element(member.serialization.get("name", key), member, value[key]) for key, member in known)


def answer(operation, value):
    inner = members(operation.output_shape, value) if operation.output_shape else ""
    if operation.metadata["protocol"] == "query":
        inner = f"<{operation.name}Result>{inner}</{operation.name}Result>"
    return f"<{operation.name}Response>{inner}</{operation.name}Response>"


def of_models(service, action):
    """botocore's own examples of an action."""
    loader = SESSION.get_component("data_loader")
    for example in loader.load_service_model(service, "examples-1")["examples"].get(action, []):
        if example.get("output"):
            yield f"model: {example['title']}", json.dumps(example["output"])


def of_command_line(service, action):
    """What the CLI prints in its examples: every indented block of JSON that follows the word `Output`."""
    command = xform_name(action, "-")
    page = Path(awscli.__file__).parent / "examples" / service / f"{command}.rst"
    if not page.exists():
        return
    blocks = re.findall(r"^Output *::\n\n?((?:[ \t]+.*\n|\s*\n)+)", f"{page.read_text()}\n", re.MULTILINE)
    for number, block in enumerate(blocks, 1):
        # reStructuredText escapes asterisks, and whoever wrote these left commas at the end of lists.
        block = re.sub(r",(\s*[}\]])", r"\1", block.replace(r"\*", "*"))
        yield f"command line: {command} {number}", block


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        service, action = asked["service"], asked["action"]
        operation = SESSION.get_service_model(service).operation_model(action)
        for title, example in [*of_models(service, action), *of_command_line(service, action)]:
            try:
                value = json.loads(example)
                body = answer(operation, value)
            except (KeyError, TypeError, ValueError) as error:
                print(json.dumps({"action": action, "title": title, "left_out": str(error)}))
                continue
            shown = jmespath.search(asked["shown"], value)
            print(json.dumps({"action": action, "title": title, "answer": body, "shown": shown}))


main()

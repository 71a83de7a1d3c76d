import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake, RpcError  # noqa: E402,F401

fake = Fake("docs")
ns = fake.cli()
for uri in ("info://about", "file:///etc/motd", "doc://a/%20blank%C3%A9", "doc://q?x=1&y=2#frag", "data-x:opaque"):
    fake.resource(uri, "%s has %s" % (ns.name, uri))
fake.templates.append({"uriTemplate": "note://{id}", "name": "note", "mimeType": "text/plain"})


@fake.method("resources/read")
def read(params, ctx):
    uri = params.get("uri", "")
    text = fake.contents.get(uri) or ("%s note %s" % (ns.name, uri[7:]) if uri.startswith("note://") else None)
    if text is None:
        raise RpcError(-32002, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}


fake.run(parse=False)

"""Things that belong to users: each request must say whose it is, by a header (--header with --key USER=VALUE), by a
token of an authorization server (--issuer URL), or by one of its own (--own), which it gives to users who log in and to
a client with a secret (--client ID:SECRET). Who calls is written down, and so is whoever goes on in a session of somebody else."""
import base64
import hashlib
import json
import os
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fakemcp import Fake  # noqa: E402

fake = Fake("vault")
asking = threading.local()
owners = {}  # by session
granted = {}  # users by access token of our own
renewals = {}  # users by refresh token, each good once
codes = {}  # by code: user, client, challenge, redirect
withdrawn = set()


def options(parser):
    parser.add_argument("--header", default="Authorization")
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--issuer")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--client")
    parser.add_argument("--jwks")


ns = fake.cli(extra=options)
SCHEME = "https://" if fake.f["tls"] else "http://"
keys = dict(reversed(key.split("=", 1)) for key in ns.key)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def user_of(value):
    """Whose credential it is."""
    if value in withdrawn:
        return None
    if value in keys:
        return keys[value]
    scheme, _, token = (value or "").partition(" ")
    if scheme != "Bearer":
        return None
    if ns.own:
        return granted.get(token)
    if ns.issuer:
        request = urllib.request.Request(ns.issuer + "/userinfo", headers={"Authorization": value})
        try:
            return json.load(opener.open(request))["sub"]
        except urllib.error.HTTPError:
            return None
    return None


def check(handler, msg):
    user = user_of(handler.headers.get(ns.header))
    session = handler.headers.get("Mcp-Session-Id")
    if user is None:
        fake._note({"refused": msg.get("method")})
        where = SCHEME + handler.headers["Host"] + "/.well-known/oauth-protected-resource/mcp"
        handler.reply(401, None, {"WWW-Authenticate": 'Bearer resource_metadata="%s"' % where})
        return True
    if session and owners.setdefault(session, user) != user:
        fake._note({"crossed": user, "owner": owners[session]})
    asking.user, asking.value = user, handler.headers.get(ns.header)
    fake._note({"user": user, "method": msg.get("method"), "params": msg.get("params")})
    return False


def metadata(handler, _body):
    own = SCHEME + handler.headers["Host"]
    handler.reply(200, {"resource": own + "/mcp", "authorization_servers": [ns.issuer or own]})


def server_metadata(handler, _body):
    own = SCHEME + handler.headers["Host"]
    handler.reply(200, {"issuer": own, "authorization_endpoint": own + "/authorize", "token_endpoint": own + "/token",
                        "registration_endpoint": own + "/register", "response_types_supported": ["code"],
                        "code_challenge_methods_supported": ["S256"], "scopes_supported": ["read", "offline_access"],
                        "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
                        "authorization_response_iss_parameter_supported": True})


def register(handler, body):
    asked = json.loads(body)
    fake._note({"registered": asked})
    handler.reply(201, {"client_id": "client-%d" % len(codes), "redirect_uris": asked["redirect_uris"],
                        "token_endpoint_auth_method": "none"})


def authorize(handler, body):
    """The user says who they are and agrees."""
    asked = dict(urllib.parse.parse_qsl(handler.path.split("?", 1)[1]))
    fake._note({"authorize": asked})
    code = "code-%d" % len(codes)
    codes[code] = (dict(urllib.parse.parse_qsl(body.decode()))["sub"], asked["client_id"], asked["code_challenge"],
                   asked["redirect_uri"])
    back = {"code": code, "state": asked["state"], "iss": SCHEME + handler.headers["Host"]}
    handler.reply(302, None, {"Location": asked["redirect_uri"] + "?" + urllib.parse.urlencode(back)})


def user_of_grant(form):
    grant = form.get("grant_type")
    if grant == "client_credentials" and ns.client == "%s:%s" % (form.get("client_id"), form.get("client_secret")):
        return "client"
    if grant == "authorization_code":
        user, client, challenge, redirect = codes.pop(form["code"], (None,) * 4)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if (client, challenge, redirect) == (form["client_id"], proof, form["redirect_uri"]):
            return user
    if grant == "refresh_token":
        return renewals.pop(form["refresh_token"], None)
    return None


def token(handler, body):
    form = dict(urllib.parse.parse_qsl(body.decode()))
    fake._note({"token": form.get("grant_type"), "resource": form.get("resource"), "scope": form.get("scope")})
    user = user_of_grant(form)
    if user is None:
        return handler.reply(400, {"error": "invalid_grant"})
    given = {"access_token": "access-%d" % len(granted), "token_type": "Bearer", "expires_in": 3600}
    granted[given["access_token"]] = user
    if user != "client":
        given["refresh_token"] = "refresh-%d" % len(granted)
        renewals[given["refresh_token"]] = user
    handler.reply(200, given)


fake.pages["/.well-known/oauth-protected-resource/mcp"] = metadata
if ns.jwks:
    fake.pages["/keys"] = lambda handler, _body: handler.reply(200, json.load(open(ns.jwks)))
if ns.own:
    fake.pages["/.well-known/oauth-authorization-server"] = server_metadata
    fake.pages.update({"/register": register, "/authorize": authorize, "/token": token})


@fake.tool("whoami", "says whose the credential is", annotations={"readOnlyHint": True})
def whoami(args, ctx):
    return asking.user


@fake.tool("whoami_deep", "says it in ways that a cache could keep", annotations={"readOnlyHint": True})
def whoami_deep(args, ctx):
    return {"content": [{"type": "text", "text": asking.user}], "structuredContent": {"user": asking.user}}


@fake.tool("withdraw", "makes the credential worthless that it is called with")
def withdraw(args, ctx):
    withdrawn.add(asking.value)
    return "withdrawn"


@fake.method("resources/read")
def read(params, ctx):
    return {"contents": [{"uri": params["uri"], "text": "of " + asking.user}]}


fake.resource("vault://mine", "nobody's")
fake.run_http(0, on_request=check, sessions=fake.f["era"] == "legacy")

"""The recipe for decisions over HTTP: its unit for systemd, and proxies in front of the service."""

import base64
import configparser
import http.client
import http.server
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from serving import Client, served

pytest.importorskip("uvicorn", reason="omma serve needs the extra 'serve'")

PAGE = Path(__file__).parents[2] / "docs/recipes/serving.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def unit():
    (text,) = blocks("ini")
    return text


def of_service(text):
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = str
    read.read_string(text)
    return read["Service"]


def test_systemd_knows_every_line_of_the_unit(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is absent")
    program = tmp_path / "omma"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "omma-tags.service"
    text = unit().replace("/opt/omma/bin/omma", str(program)).replace("User=omma", "User=root")
    for line, wrong in ((text, False), (text.replace("Restart=always", "Restart=sometimes"), True)):
        path.write_text(line)
        done = subprocess.run(
            [analyze, "verify", "--man=no", str(path)], capture_output=True, text=True
        )
        assert (path.name in done.stderr) == wrong, done.stderr


def test_what_the_unit_starts_ends_in_time_and_goes_on(tmp_path):
    found = of_service(unit())
    program, command, *arguments = shlex.split(found["ExecStart"])
    assert (Path(program).name, command) == ("omma", "serve")
    asked = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert asked.pop("--port") == "8765"
    assert Path(asked["--journal"]).is_relative_to(f"/var/lib/{found['StateDirectory']}")
    asked["--journal"] = str(tmp_path / "tags")
    options = [part for pair in asked.items() for part in pair]
    with served(*options) as client:
        assert client.post("/decide", {"id": "a", "eta": [0.9, 0.2]})[0] == 200
        began = time.monotonic()
        client.process.terminate()
        client.process.wait(600)
        assert time.monotonic() - began < float(found["TimeoutStopSec"])
    with served(*options) as client:
        assert client.post("/labels", {"id": "a", "y": [1, 0]}) == (200, {"learned": 1})


class Proxy(http.server.BaseHTTPRequestHandler):
    """Takes a path's prefix off and says who asked, as proxies do; bodies go on in chunks."""

    protocol_version = "HTTP/1.1"
    behind = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.hand_on(body[i : i + 10] for i in range(0, len(body), 10))

    def do_GET(self):
        self.hand_on(None)

    def hand_on(self, body):
        said = {
            "Host": "decide.example.org",
            "X-Forwarded-For": "203.0.113.7, 10.0.0.1",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Prefix": "/omma",
            "Forwarded": "for=203.0.113.7;proto=https",
        }
        if body is not None:
            said |= {"Content-Type": self.headers["Content-Type"], "Transfer-Encoding": "chunked"}
        asked = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=600)
        path = self.path.removeprefix("/omma")
        asked.request(self.command, path, body, said, encode_chunked=body is not None)
        answer = asked.getresponse()
        content = answer.read()
        asked.close()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def test_it_serves_behind_a_proxy_with_a_prefix():
    asked = ("--metric", "macro_f1", "--max-body", 500, "--allowed-host", "decide.example.org")
    with served(*asked) as behind:
        Proxy.behind = behind.port
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        client = Client(proxy.server_port)
        try:
            status, answer = client.post("/omma/decide", {"id": "a", "eta": [0.9, 0.2]})
            assert (status, answer) == (200, {"id": "a", "decision": [1, 0]})
            assert client.post("/omma/labels", {"id": "a", "y": [1, 0]}) == (200, {"learned": 1})
            assert client.get("/omma/stats")[1]["labels"] == 1
            status, answer = client.post("/omma/decide", {"id": "b" * 600, "eta": [0.9, 0.2]})
            assert (status, "at most 500 bytes" in answer["error"]) == (413, True)
            assert client.get("/omma/nothing")[0] == 404
        finally:
            client.connection.close()
            proxy.shutdown()
            thread.join()
            proxy.server_close()


def test_nginx_would_read_the_page(tmp_path):
    """Every directive is one of nginx's, in a place where it may stand."""
    crossplane = pytest.importorskip("crossplane", reason="needs the extra 'test'")
    whole, under = blocks("nginx")
    for inside, wrong in ((whole, False), (whole.replace("proxy_pass", "proxy_past"), True)):
        path = tmp_path / "nginx.conf"
        path.write_text(f"events {{}} http {{ {inside} server {{ {under} }} }}")
        found = crossplane.parse(str(path), strict=True, check_args=True, check_ctx=True)
        assert (found["status"] == "failed") == wrong, found["errors"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def nginx_running(folder, port, behind):
    """nginx with the page's configuration, at other addresses and with other files."""
    key, certificate, users = (folder / name for name in ("key", "certificate", "users"))
    users.write_text("me:{PLAIN}secret\n")
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -keyout {key} "
    subprocess.run(shlex.split(f"{made} -out {certificate}"), capture_output=True, check=True)
    whole, under = blocks("nginx")
    text = whole.replace("    location / {", f"    {under}\n    location / {{")
    for there, here in {
        "443 ssl": f"127.0.0.1:{port} ssl",
        "127.0.0.1:8765": f"127.0.0.1:{behind}",
        "/etc/ssl/decide.pem": str(certificate),
        "/etc/ssl/decide.key": str(key),
        "/etc/nginx/omma.htpasswd": str(users),
    }.items():
        assert there in text
        text = text.replace(there, here)
    kept = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{name}_temp_path {folder}/{name};" for name in kept)
    own = "user root;" if os.geteuid() == 0 else ""  # or it could not read what is made here
    head = f"{own} daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}"
    path = folder / "nginx.conf"
    path.write_text(f"{head} http {{ access_log off; {places} {text} }}")
    with subprocess.Popen(["nginx", "-p", str(folder), "-c", str(path)]) as process:
        try:
            for _ in range(600):
                if process.poll() is not None:
                    raise AssertionError((folder / "errors").read_text())
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def test_the_page_serves_behind_nginx(tmp_path):
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is absent")
    port = free_port()
    with served("--metric", "macro_f1") as behind, nginx_running(tmp_path, port, behind.port):
        context = ssl.create_default_context(cafile=tmp_path / "certificate")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        made = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        client = Client(port, made)
        known = {"Authorization": "Basic " + base64.b64encode(b"me:secret").decode()}
        assert client.get("/health")[0] == 401
        row = {"id": "a", "eta": [0.9, 0.2]}
        found = client.ask("POST", "/decide", row, headers=known)
        assert found == (200, {"id": "a", "decision": [1, 0]})
        told = client.ask("POST", "/omma/labels", {"id": "a", "y": [1, 0]}, headers=known)
        assert told == (200, {"learned": 1})
        assert client.ask("GET", "/metrics", headers=known)[0] == 403
        assert client.ask("GET", "/stats", headers=known)[1]["labels"] == 1
        assert client.ask("POST", "/decide", raw=" " * 1_100_000, headers=known)[0] == 413
        made.close()

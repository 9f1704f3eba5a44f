"""A real ``omma serve`` on loopback, and a client of it."""

import http.client
import json
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

from omma.cli import main
from omma.cli.learners import LearnerKeeper

RUN = "import sys; from omma.cli import main; sys.exit(main())"


def keeper_of(command, *options):
    """The keeper of a command's learner, for these options."""
    made = main.get_command(None, command).make_context(command, [*map(str, options)])
    return LearnerKeeper(made)


class Client:
    """One connection that is kept alive."""

    def __init__(self, port, connection=None):
        self.port = port
        self.connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def ask(self, method, path, content=None, *, raw=None, kind="application/json", headers=()):
        body = raw if raw is not None else None if content is None else json.dumps(content)
        kinds = {} if body is None else {"Content-Type": kind}
        self.connection.request(method, path, body, {**kinds, **dict(headers)})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text

    def post(self, path, content):
        return self.ask("POST", path, content)

    def get(self, path):
        return self.ask("GET", path)


@contextmanager
def served(*arguments):
    """A server, and a client of it; it is told to end, and does so in order."""
    command = [sys.executable, "-c", RUN, "serve", "--port", "0", *map(str, arguments)]
    with ExitStack() as held:
        process = held.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        try:
            for line in process.stderr:
                if found := re.match(r"Listening on http://127\.0\.0\.1:(\d+)", line):
                    break
            else:
                raise AssertionError("the server ended before it listened")
            client = Client(int(found[1]))
            held.callback(client.connection.close)
            client.process = process
            yield client
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(600) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        finally:
            if process.poll() is None:
                process.kill()

"""A `bncli` that is started already: its libraries are loaded once, and a fork of it runs each command.

Half of the time of most commands in a transcript is that of loading numpy, scipy and pyarrow. `program` writes a shell
script like `python -m bncli`: a client hands over its words, folder, environment and standard streams, a fork runs
`main` with them, and the client ends with its exit code. How the command is started really, and what it loads then, is
tested by tests/test_main.py and tests/cli.
"""

from __future__ import annotations

import atexit
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIENT = """import _socket as s, marshal, posix, sys
server = s.socket(s.AF_UNIX)
server.connect(sys.argv[1])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([b"."], [(s.SOL_SOCKET, s.SCM_RIGHTS, streams)])
server.sendall(marshal.dumps([sys.argv[2:], posix.getcwd(), posix.environ]))
server.shutdown(s.SHUT_WR)
code = server.recv(1)
if not code:
    print("the command ended without an exit code", file=sys.stderr)
sys.exit(code[0] if code else 134)
"""
"""Without the modules that Python has in Python: to load them takes longer than everything else here."""


def program(path: Path, package: Path = ROOT) -> Path:
    """Writes a script that does what `bncli` does, with the package that is in a folder."""
    address = _address(package)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{address}.py" "{address}" "$@"\n')
    path.chmod(0o755)
    return path


@cache
def bncli() -> str:
    """The path of such a script, for as long as this process lives."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return str(program(Path(folder, "bncli")))


@cache
def _address(package: Path) -> str:
    """The socket of the process that forks, which ends with this one: then its standard input does."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.started"],
        cwd=package,  # so that it comes first
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)
    assert server.stdout is not None
    return server.stdout.readline().rstrip("\n")


def _serve() -> None:
    _load_everything()
    folder = Path(tempfile.mkdtemp())
    try:
        _fork_for_each_client(folder / "bncli")
    finally:
        shutil.rmtree(folder)


def _fork_for_each_client(address: Path) -> None:
    address.with_suffix(".py").write_text(CLIENT)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        print(address, flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            client, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(client)
            client.close()
            with suppress(ChildProcessError):  # those that have ended since
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _load_everything() -> None:
    from bncli import __main__ as begin

    sys.meta_path.insert(0, begin._PandasBlocker())
    for module in pkgutil.walk_packages(importlib.import_module("bncli").__path__, "bncli."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # of an extra that is not installed
            if str(error.name).startswith("bncli"):
                raise
    if Path.cwd() == ROOT:  # a copy of the package meets no cluster
        with suppress(ImportError):
            importlib.import_module("distributed")  # which takes longer than all the rest


def _answer(client: socket.socket) -> None:
    """Runs the command that a client sends; never returns."""
    from bncli import __main__ as begin

    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    sent = b"".join(iter(lambda: client.recv(1 << 16), b""))
    words, folder, environment = marshal.loads(sent)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)
    if "PYTHONWARNINGS" in os.environ:
        warnings.simplefilter(os.environ["PYTHONWARNINGS"])  # type: ignore[arg-type]
    sys.argv = [str(begin.__file__), *words]
    code = 1
    try:
        begin.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(bytes([code]))
    os._exit(code)


if __name__ == "__main__":
    _serve()

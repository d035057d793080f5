"""localstripe on a free port of this machine alone: prints the port. Its own start listens on all
interfaces and keeps its state in a file of fixed name; both are left out here."""
import socket

from aiohttp import web
from localstripe import resources
from localstripe.server import app

resources.Store.dump_to_disk = lambda self: None
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
web.run_app(app, sock=listener, print=None, access_log=None)

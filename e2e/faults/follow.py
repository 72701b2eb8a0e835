"""follow.py - list a collection, watch it, and start again after any failure of the API server."""

import contextlib
import http.client
import json
import socket
import threading
import time

from plane import Refused

AGAIN_S = 0.2


class Follow(threading.Thread):
    """Calls seen(object, gone) for each object, for each change, and with gone=True for each removed object."""

    def __init__(self, api, path, seen):
        super().__init__(daemon=True)
        self.api, self.path, self.seen = api, path, seen
        self.known, self.ending = {}, False
        self.problem = self.connection = None

    def end(self):
        """Nothing more is read. Returns when nothing more is seen."""
        self.ending = True
        with contextlib.suppress(AttributeError, TypeError, OSError):  # there is no connection
            socket.socket.shutdown(self.connection.sock, socket.SHUT_RDWR)
        self.join()

    def run(self):
        while not self.ending and not self.problem:
            try:
                self.watch(self.list())
            except (OSError, http.client.HTTPException, Refused, json.JSONDecodeError):
                time.sleep(AGAIN_S)
            except Exception as e:  # a bug of the cases: reported to the main thread
                self.problem = f"{self.path}: {e!r}"

    def list(self):
        answer = self.api.get(self.path)
        there = {item["metadata"]["uid"]: item for item in answer["items"]}
        for uid in self.known.keys() - there.keys():
            self.seen(self.known.pop(uid), True)
        for uid, item in there.items():
            if self.known.get(uid) != item:
                self.known[uid] = item
                self.seen(item, False)
        return answer["metadata"]["resourceVersion"]

    def watch(self, version):
        self.connection = self.api.connect()
        try:
            self.connection.request("GET", f"{self.path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}")
            answer = self.connection.getresponse()
            rest = b""
            while not self.ending and (piece := answer.read1(1 << 18)):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if not self.take(json.loads(line)):
                        return
        finally:
            self.connection.close()

    def take(self, event):
        item = event["object"]
        if event["type"] == "ERROR":
            return False
        if event["type"] == "BOOKMARK":
            return True
        uid = item["metadata"]["uid"]
        if event["type"] == "DELETED":
            self.known.pop(uid, None)
        else:
            self.known[uid] = item
        self.seen(item, event["type"] == "DELETED")
        return True

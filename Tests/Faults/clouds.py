"""Small fakes of the Dropbox, Box and Google Drive APIs, behind a proxy that speaks TLS under their names.

rclone reaches them through HTTPS_PROXY and the certificate of a CA created for the run (SSL_CERT_FILE). Each has one folder of COUNT files,
and can be set to answer late, in any order, with errors, or with an expired token.
"""

import http.server
import json
import os
import random
import re
import socketserver
import ssl
import subprocess
import threading
import time
import urllib.parse

HOSTS = ["api.dropboxapi.com", "content.dropboxapi.com", "api.box.com", "www.googleapis.com", "oauth2.googleapis.com", "accounts.google.com"]
TIME = "2026-11-20T10:00:00Z"


def configuration():
    token = '{"access_token":"good","token_type":"bearer","refresh_token":"","expiry":"2099-01-01T00:00:00Z"}'
    return "\n".join(
        f"[{name}]\ntype = {kind}\ntoken = {token}\n{more}"
        for name, kind, more in [("drop", "dropbox", ""), ("box", "box", ""), ("drive", "drive", "scope = drive\nroot_folder_id = root\n")])


class Clouds:
    """The fake services. `asked` counts their requests by kind; the other members control the replies."""

    def __init__(self, folder, count=20, seed=0):
        self.count = count
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.reset()
        self.certificate(folder)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_CONNECT(self):
                self.send_response(200, "Connection established")
                self.end_headers()
                host = self.path.split(":")[0]
                try:
                    self.connection = outer.context.wrap_socket(self.connection, server_side=True)
                except OSError:
                    self.close_connection = True
                    return
                self.rfile = self.connection.makefile("rb")
                self.wfile = self.connection.makefile("wb", 0)
                self.host = host

            def answer(self):
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                status, value, headers = outer.answer(self, getattr(self, "host", ""), body)
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    for name, text in headers.items():
                        self.send_header(name, text)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = answer

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self):
        self.asked = {}
        self.under_way = self.most_under_way = 0
        self.fault = None  # "expired", "429", "500"
        self.faults_left = 0  # number of failures; -1: unlimited
        self.delay = 0

    def environment(self):
        return {"HTTPS_PROXY": f"http://127.0.0.1:{self.port}", "SSL_CERT_FILE": self.ca, "NO_PROXY": ""}

    def certificate(self, folder):
        def path(name):
            return os.path.join(folder, name)

        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        self.ca = path("ca.pem")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=fakes",
                "-addext", "subjectAltName=" + ",".join("DNS:" + host for host in HOSTS), "-keyout", path("key.pem"), "-out", self.ca)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.ca, path("key.pem"))

    # Replies

    def answer(self, request, host, body):
        path = urllib.parse.urlsplit(request.path)
        what = self.kind(host, path.path, request.command)
        with self.lock:
            self.asked[what] = self.asked.get(what, 0) + 1
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            fault = self.fault if self.faults_left else None
            if fault and self.faults_left > 0:
                self.faults_left -= 1
            delay = self.random.uniform(0, self.delay) if self.delay else 0
        try:
            if delay:
                time.sleep(delay)
            if fault == "expired":
                return 401, {"error_summary": "expired_access_token/..", "error": {".tag": "expired_access_token"}, "type": "error",
                             "code": "unauthorized", "message": "unauthorized"}, {}
            if fault == "429":
                return 429, {"error_summary": "too_many_requests/..", "error": {"reason": {".tag": "too_many_requests"}, "retry_after": 1},
                             "type": "error", "code": "rate_limit_exceeded", "message": "too many requests"}, {"Retry-After": "1"}
            if fault == "500":
                return 500, {"error_summary": "internal_error/..", "error": {".tag": "internal_error"}, "message": "internal error"}, {}
            return self.good(host, path, body, request.command)
        finally:
            with self.lock:
                self.under_way -= 1

    @staticmethod
    def kind(host, path, command):
        if "shared_link" in path or path.endswith("/permissions") or command == "PUT":
            return "link"
        return "list" if re.search(r"list_folder|/items$|/files$", path) else "other"

    def good(self, host, path, body, command):
        names = [f"f{number}.txt" for number in range(self.count)]
        query = {name: values[0] for name, values in urllib.parse.parse_qs(path.query).items()}
        if "dropbox" in host:
            given = json.loads(body or b"null") or {}

            def entry(name):
                return {".tag": "file", "name": name, "id": "id:" + name, "path_lower": "/" + name, "path_display": "/" + name, "size": 5,
                        "client_modified": TIME, "server_modified": TIME, "rev": "0123456789abcdef", "is_downloadable": True}

            if path.path.endswith("list_folder"):
                return 200, {"entries": [entry(name) for name in names], "cursor": "c", "has_more": False}, {}
            if path.path.endswith("get_metadata"):
                name = given.get("path", "").lstrip("/")
                if name not in names:
                    return 409, {"error_summary": "path/not_found/..", "error": {".tag": "path", "path": {".tag": "not_found"}}}, {}
                return 200, entry(name), {}
            if path.path.endswith("create_shared_link_with_settings"):
                name = given["path"].lstrip("/")
                return 200, {".tag": "file", "url": f"https://www.dropbox.com/s/x/{name}?dl=0", "name": name, "path_lower": "/" + name,
                             "client_modified": TIME, "server_modified": TIME, "rev": "0123456789abcdef", "size": 5,
                             "link_permissions": {"can_revoke": True}}, {}
            return 400, {"error_summary": "unknown"}, {}
        if "box" in host:
            if path.path.endswith("/items"):
                entries = [{"type": "file", "id": str(number), "name": name, "size": 5, "sha1": "0" * 40, "created_at": TIME,
                            "modified_at": TIME, "content_created_at": TIME, "content_modified_at": TIME, "item_status": "active",
                            "parent": {"id": "0"}} for number, name in enumerate(names)]
                offset, limit = int(query.get("offset", 0)), int(query.get("limit", 1000))
                return 200, {"total_count": len(entries), "entries": entries[offset:offset + limit], "offset": offset, "limit": limit}, {}
            if command == "PUT":
                number = path.path.rsplit("/", 1)[1]
                return 200, {"type": "file", "id": number, "shared_link": {"url": f"https://app.box.com/s/{number}"}}, {}
            return 200, {"type": "folder", "id": "0", "name": "All Files"}, {}
        if path.path.endswith("/permissions"):
            return 200, {"id": "anyoneWithLink", "role": "reader", "type": "anyone"}, {}
        if path.path.endswith("/files"):
            wanted = re.findall(r"name[ =]+'([^']*)'", query.get("q", ""))
            files = [{"id": "id-" + name, "name": name, "size": "5", "mimeType": "text/plain", "modifiedTime": TIME, "createdTime": TIME,
                      "parents": ["root"], "md5Checksum": "0" * 32, "trashed": False} for name in names if not wanted or name in wanted]
            return 200, {"files": files}, {}
        return 200, {"id": "root", "name": "My Drive", "mimeType": "application/vnd.google-apps.folder"}, {}

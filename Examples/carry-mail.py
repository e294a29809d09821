#!/usr/bin/python3 -I
"""Carries a folder of the route `folder` by mail, for machines that share nothing but mail (Docs/Network.md, "A folder").

    carry-mail.py FOLDER --from me@example.org --to UUID=bob@example.org [--to …] --smtp HOST[:PORT] --imap HOST[:PORT]
                  --password FILE [--card]

FOLDER is the folder of the route on this machine. Each run mails the envelopes in the mailboxes of the given peers, then stores the
envelopes that arrived by mail in this machine's mailbox. Run it from cron or a timer. `--card` also mails this machine's card, which peers
need once. The mail account needs no trust: envelopes are encrypted and signed. Every mail whose subject begins with "hexlist-route " is
removed after it was read. Connections to 127.0.0.1 have no TLS and no SMTP login.
"""

import argparse
import email.message
import email.policy
import imaplib
import os
import re
import smtplib

NAME = re.compile(r"([0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})/([0-9A-F]{12}-[0-9A-F]{32}\.hxe|card\.hxc)")
SUBJECT, LONGEST = "hexlist-route ", 984_204


def place(text, port):
    """A host, a port, and whether the connection needs TLS."""
    host, _, number = text.partition(":")
    return host, int(number or port), host != "127.0.0.1"


def mail_out(options, peers, password):
    cards = [(entry, "card.hxc") for entry in os.listdir(options.folder) if entry not in peers] if options.card else []
    files = [(peer, name) for peer in peers for name in sorted(os.listdir(os.path.join(options.folder, peer)))]
    host, port, secure = place(options.smtp, 587)
    with smtplib.SMTP(host, port) as server:
        if secure:
            server.starttls()
            server.login(options.sender, password)
        for owner, name in cards + files:
            path, is_own = os.path.join(options.folder, owner, name), owner not in peers
            if not NAME.fullmatch(f"{owner}/{name}") or not os.path.isfile(path) or (name == "card.hxc") != is_own:
                continue
            message = email.message.EmailMessage()
            message["From"], message["To"] = options.sender, ", ".join(peers.values() if is_own else [peers[owner]])
            message["Subject"] = f"{SUBJECT}{owner}/{name}"
            with open(path, "rb") as file:
                message.add_attachment(file.read(), maintype="application", subtype="octet-stream", filename=name)
            server.send_message(message)
            if not is_own:
                os.unlink(path)  # the server has it; without a receipt hexlistd posts the hexes again


def mail_in(options, peers, password):
    host, port, secure = place(options.imap, 993)
    server = (imaplib.IMAP4_SSL if secure else imaplib.IMAP4)(host, port)
    server.login(options.sender, password)
    server.select("INBOX")
    for number in server.search(None, "SUBJECT", f'"{SUBJECT}"')[1][0].split():
        message = email.message_from_bytes(server.fetch(number, "(RFC822)")[1][0][1], policy=email.policy.default)
        found = NAME.fullmatch(str(message["Subject"]).removeprefix(SUBJECT).strip())
        data = next((part.get_content() for part in message.iter_attachments()), b"")
        folder = os.path.join(options.folder, found[1]) if found else ""
        # Cards of the given peers, and envelopes for this machine, whose mailbox hexlistd has created.
        is_expected = found and os.path.isdir(folder) and (found[1] in peers) == (found[2] == "card.hxc")
        if is_expected and isinstance(data, bytes) and len(data) <= LONGEST:
            with open(os.path.join(folder, ".carry-mail.tmp"), "wb") as file:
                file.write(data)
                os.fsync(file.fileno())
            os.rename(file.name, os.path.join(folder, found[2]))
        server.store(number, "+FLAGS", "\\Deleted")
    server.expunge()
    server.logout()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--from", dest="sender", required=True)
    parser.add_argument("--to", action="append", required=True, metavar="UUID=ADDRESS")
    for name in ("--smtp", "--imap", "--password"):
        parser.add_argument(name, required=True)
    parser.add_argument("--card", action="store_true")
    options = parser.parse_args()
    with open(options.password) as file:
        password = file.read().strip()
    peers = dict(text.split("=", 1) for text in options.to)
    for peer in peers:
        os.makedirs(os.path.join(options.folder, peer), exist_ok=True)
    mail_out(options, peers, password)
    mail_in(options, peers, password)

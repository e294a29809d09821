#!/usr/bin/python3 -I
"""Carries a folder of the route `folder` by mail, for machines that share nothing but mail (Docs/Network.md, "A folder").

    carry-mail.py FOLDER --from me@example.org --to UUID=bob@example.org [--to …] --smtp HOST[:PORT] --imap HOST[:PORT]
                  --password FILE [--card]

FOLDER is the folder of the route on this machine. Each run stores the envelopes that arrived by mail in this machine's mailbox, then mails
the envelopes in the mailboxes of the given peers. Run it from cron or a timer. `--card` also mails this machine's card, which peers
need once. The mail server needs no trust: envelopes are encrypted and signed. Each machine needs a mail account of its own, because a mail
whose subject is "hexlist-route " and the name of an envelope or a card is deleted after it was read. Other mail is left alone. The IMAP
server needs UIDPLUS (RFC 4315). Connections to 127.0.0.1 have no TLS and no SMTP login.
"""

import argparse
import email.message
import email.policy
import imaplib
import os
import re
import smtplib
import ssl
import sys

NAME = re.compile(r"([0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})/([0-9A-F]{12}-[0-9A-F]{32}\.hxe|card\.hxc)")
SUBJECT, LONGEST = "hexlist-route ", 984_204


def server_of(text, port):
    """Returns a host, a port, and the TLS context; `None` for a connection without TLS."""
    host, _, number = text.partition(":")
    return host, int(number or port), None if host == "127.0.0.1" else ssl.create_default_context()


def mail_out(options, peers, password):
    cards = [(entry, "card.hxc") for entry in os.listdir(options.folder) if entry not in peers] if options.card else []
    files = [(peer, name) for peer in peers for name in sorted(os.listdir(os.path.join(options.folder, peer)))]
    host, port, context = server_of(options.smtp, 587)
    with smtplib.SMTP(host, port) as server:
        if context:
            server.starttls(context=context)
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
            try:
                server.send_message(message)
            except smtplib.SMTPResponseException as error:
                print(f"{name} was not sent to {message['To']}: {error}", file=sys.stderr)
            except smtplib.SMTPRecipientsRefused as error:
                print(f"{name} was not sent: {error}", file=sys.stderr)
            else:
                if not is_own:
                    os.unlink(path)  # the server has it; without a receipt hexlistd posts the hexes again


def mail_in(options, peers, password):
    host, port, context = server_of(options.imap, 993)
    server = imaplib.IMAP4_SSL(host, port, ssl_context=context) if context else imaplib.IMAP4(host, port)
    server.login(options.sender, password)
    server.select("INBOX")
    # SUBJECT finds the text anywhere in a subject, so NAME decides. PEEK does not mark other mail as read.
    for uid in server.uid("SEARCH", "SUBJECT", f'"{SUBJECT}"')[1][0].split():
        message = email.message_from_bytes(server.uid("FETCH", uid, "(BODY.PEEK[])")[1][0][1], policy=email.policy.default)
        subject = str(message["Subject"])
        found = NAME.fullmatch(subject.removeprefix(SUBJECT).strip())
        if not subject.startswith(SUBJECT) or not found:
            continue
        folder = os.path.join(options.folder, found[1])
        if not os.path.isdir(folder):
            continue
        # Cards of the given peers, and envelopes for this machine, whose mailbox hexlistd has created.
        if (found[1] in peers) == (found[2] == "card.hxc"):
            store(attachment(message), os.path.join(folder, found[2]))
        server.uid("STORE", uid, "+FLAGS", "\\Deleted")
        server.uid("EXPUNGE", uid)
    server.logout()


def attachment(message):
    """Returns the bytes of the first attachment; `None` if there is none, or if it is of another kind than this program sends."""
    for part in message.iter_attachments():
        if part.get_content_type() == "application/octet-stream":
            return part.get_payload(decode=True)
    return None


def store(data, path):
    if data is None or len(data) > LONGEST:
        return
    with open(os.path.join(os.path.dirname(path), ".carry-mail.tmp"), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())
    os.rename(file.name, path)


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
    mail_in(options, peers, password)
    mail_out(options, peers, password)

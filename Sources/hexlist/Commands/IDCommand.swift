import ArgumentParser
import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel
import HexlistSystem

struct IDCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "id", abstract: "Show this machine's name, UUID and fingerprint, or change its identity.",
        subcommands: [IDShowCommand.self, IDRotateCommand.self, IDKeepCommand.self], defaultSubcommand: IDShowCommand.self)
}

struct IDShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show this machine's name, UUID and fingerprint.",
        discussion: "To trust this machine, others compare the fingerprint with the one that `hexlist peer trust` shows there.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Print a URI for `hexlist peer add` on another machine, with its QR code on a terminal.")
    var qr = false

    @Flag(help: "Print this machine's card: its public keys, for `hexlist peer add` on a machine that it never meets.")
    var card = false

    @Flag(help: "Print this machine's certificate as PEM, for a broker.")
    var pem = false

    func validate() throws {
        if [qr, card, pem, common.json].count(where: \.self) > 1 {
            throw ValidationError("Give only one of --qr, --card, --pem and --json.")
        }
    }

    func run() async throws {
        if card || pem {
            let keys = try await common.withClient { try await $0.ownKeys() }
            let output = common.output
            for line in (card ? keys.card : keys.certificate).split(separator: "\n") { try output.line(String(line)) }
            return try output.flush()
        }
        guard qr else { return try show(try await common.withClient { try await $0.status() }, common.output) }
        let (status, configuration) = try await common.withClient { (try await $0.status(), try await $0.configuration()) }
        let listen = configuration.items.first { $0.key == "listen" }?.value.split(separator: ",").map(String.init) ?? []
        let addresses = OwnAddresses.list(port: status.port, listen: ListenAddresses(listen))
        let own = PeerURI(fingerprint: status.fingerprint, name: status.name, addresses: addresses)
        let output = common.output
        if output.terminal.isInteractive { try QRCodeText.write(own.text, output) }
        try output.line(own.text)
        try output.flush()
        if addresses.isEmpty, !listen.isEmpty {
            StandardError.note(
                "It has no address: hexlistd listens only on \(listen.joined(separator: ", ")) (`listen`), where other machines do not "
                    + "reach it.")
        }
    }
}

struct IDRotateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Give this machine a new key, certificate and UUID.",
        discussion: """
            Inbox, My Hexlist, outbox, aliases and your trust in others stay. To others this machine becomes a stranger: they have to \
            trust it again. Undelivered hexes are sent under the new identity. Keys given with `send --key` start afresh, so running \
            such a command again sends again. If you have several machines, it prints the commands after which My Hexlist is exchanged again.
            """)

    @OptionGroup var common: CommonOptions

    @Flag(help: "Do not ask.")
    var yes = false

    func run() async throws {
        let output = common.output
        let before = try await common.withClient { try await $0.status() }
        if !yes {
            guard isatty(STDIN_FILENO) == 1 else {
                throw HexlistError(
                    .badRequest, "This gives the machine a new identity, and there is no terminal to confirm it.",
                    hint: "To do it without a question: `hexlist id rotate --yes`.")
            }
            StandardError.note("Peers that trust \(before.uuid) will no longer recognise this machine. This cannot be undone.")
            try Terminal.confirm("Give this machine a new identity? [y/N]")
        }
        let status = try await common.withClient { client in
            let status = try await client.rotateIdentity()
            try show(status, output)
            let own = output.json ? [] : try await client.ownMachinesIfAny()
            if !own.isEmpty { OwnText.show(OwnText.identityChanged(own, OwnAddLines(status))) }
            return status
        }
        if !output.json, let count = status.formerEnvelopes { StandardError.note(Self.note(of: count)) }
    }

    /// Returns the note that is printed after a change of the identity.
    /// - Parameter count: the number of envelopes that cannot be opened any more.
    static func note(of count: Int) -> String {
        count == 1
            ? "1 envelope in a mailbox was sealed for the old identity and can no longer be opened. Its sender still has the hexes."
            : "\(count) envelopes in mailboxes were sealed for the old identity and can no longer be opened. Their senders still have the "
                + "hexes."
    }
}

struct IDKeepCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keep", abstract: "Confirm that this identity moved to this machine.")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        try show(try await common.withClient { try await $0.keepIdentity() }, common.output)
    }
}

private func show(_ status: StatusJSON, _ output: Output) throws {
    if output.json {
        try output.object(OwnIdentity(status: status))
    } else {
        var table = Table()
        table.add("name", status.name, .strong)
        table.add("uuid", status.uuid.description)
        table.add("fingerprint", lines: HumanText.fingerprint(status.fingerprint.description))
        try output.table(table)
    }
    try output.flush()
}

private struct OwnIdentity: JSONEncodable {
    var status: StatusJSON

    func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", status.name)
            $0.member("uuid", status.uuid)
            $0.member("fingerprint", status.fingerprint)
            if let count = status.formerEnvelopes { $0.member("formerEnvelopes", count) }
        }
    }
}

import ArgumentParser
import Glibc
import HexlistAPI
import HexlistJSON
import HexlistModel

struct IDCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "id", abstract: "Show the own name, UUID and fingerprint, or change the identity.",
        subcommands: [IDShowCommand.self, IDRotateCommand.self, IDKeepCommand.self], defaultSubcommand: IDShowCommand.self)
}

struct IDShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the own name, UUID and fingerprint.",
        discussion: "Whoever is to trust this machine compares the fingerprint with what `hexlist peer trust` shows there.")

    @OptionGroup var common: CommonOptions

    @Flag(help: "Print a URI that `hexlist peer add` takes on another machine, and on a terminal its QR code.")
    var qr = false

    func validate() throws {
        if qr, common.json { throw ValidationError("--qr and --json do not go together.") }
    }

    func run() async throws {
        let status = try await common.withClient { try await $0.status() }
        guard qr else { return try show(status, common.output) }
        let own = PeerURI(fingerprint: status.fingerprint, name: status.name, addresses: OwnAddresses.list(port: status.port))
        let output = common.output
        if output.terminal.isInteractive { try QRCodeText.write(own.text, output) }
        try output.line(own.text)
        try output.flush()
    }
}

struct IDRotateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Give this machine a new key, certificate and UUID.",
        discussion: """
            Inbox, My Hexlist, outbox, aliases and the trust of others stay. To others this machine is a new one: they have to trust it \
            again, and what waits in the outbox is sent under the new identity. A key given with `send --key` stands for another hex \
            from then on, so a rerun with it sends again.
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
                    .badRequest, "The identity is not changed without asking, and there is no terminal to ask on.",
                    hint: "Say --yes to go on.")
            }
            StandardError.note("Peers that trust \(before.uuid) will not know this machine any more, and there is no way back.")
            try Terminal.confirm("Give this machine a new identity? [y/N]")
        }
        try show(try await common.withClient { try await $0.rotateIdentity() }, output)
    }
}

struct IDKeepCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keep", abstract: "Say that the identity is this machine's, though its state folder came from another one.")

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
        }
    }
}

import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

/// Functions for files and folders in the arguments of `send` and `mine add`.
enum FileArgument {
    /// Whether an argument begins like a path. Files are only sent if they are named by a path, so that a typo cannot send a file.
    static func isPath(_ text: String) -> Bool { ["/", "./", "../"].contains(where: text.hasPrefix) }

    /// Parses a `--file` argument of the form `SERVICE:PATH`. Returns `nil` for a path, and for the name of an existing file.
    static func service(_ text: String) -> ServiceArgument? {
        guard !isPath(text), let argument = ServiceArgument(argument: text) else { return nil }
        var status = stat()
        return lstat(text, &status) == 0 ? nil : argument
    }

    /// Whether a URL is a link to a file that a peer offers: `hexlist://UUID/…`.
    static func isLink(_ url: String) -> Bool {
        let scheme = Array("hexlist://".utf8)
        let bytes = Array(url.utf8.prefix(scheme.count + 37))
        guard bytes.prefix(scheme.count).map(ASCII.lowercased) == scheme, bytes.last == UInt8(ascii: "/") else { return false }
        return PeerID(String(decoding: bytes.dropFirst(scheme.count).dropLast(), as: UTF8.self)) != nil
    }

    /// Refuses an argument that is the bare name of an existing file.
    /// - Parameter verb: of the hint to write a path.
    static func refuseBareName(_ text: String, verb: String = "send") throws(HexlistError) {
        guard !text.isEmpty, text != "-", LinkTextKind(text) != .link, text.utf8.count < 4_096 else { return }
        var status = stat()
        guard lstat(text, &status) == 0 else { return }
        let shown = TerminalText.clean(text, columns: 60)
        throw HexlistError(
            .badRequest, "`\(shown)` is a file, not a link.", hint: "To \(verb) the file: \(ShellText.quoted("./" + shown))")
    }

    /// Returns the absolute path of a file, with symlinks resolved.
    static func absolute(_ path: String) throws(HexlistError) -> String {
        guard let resolved = realpath(path, nil) else {
            // Swift replaces bytes that are not valid UTF-8 with U+FFFD.
            guard errno == ENOENT, path.unicodeScalars.contains("\u{FFFD}") else {
                throw InputFile.unreadable(TerminalText.clean(path, columns: 200))
            }
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(path, columns: 200)) does not exist, or its name is not UTF-8.", hint: "Rename it.")
        }
        defer { free(resolved) }
        guard let text = String(validatingCString: resolved) else {
            throw HexlistError(.badRequest, "The path of \(TerminalText.clean(path, columns: 200)) is not UTF-8 text.", hint: "Rename it.")
        }
        return text
    }

    /// Offers files to peers and shows the progress of reading them.
    /// - Parameters:
    ///   - copy: whether the daemon keeps copies of the files; `nil` for copies of small ones.
    ///   - hex: the id of a hex with links to files on this machine, which are offered instead of `paths`.
    static func offer(
        _ paths: [String], to peers: [String], all: Bool, copy: Bool? = nil, hex: Int64? = nil, _ client: HexlistClient
    ) async throws -> OfferResult {
        try await offer(
            OfferRequest(
                paths: paths, to: peers, toAll: all ? true : nil, copy: copy, copySmall: copy == nil && hex == nil ? true : nil, hex: hex),
            client)
    }

    /// Offers files in My Hexlist, and shows the progress of reading them.
    /// - Parameters:
    ///   - parent: the hex inside which the hex with the links will be; `nil` for the top level.
    ///   - copy: as for `offer`.
    static func offerMine(_ paths: [String], in parent: Int64?, copy: Bool?, _ client: HexlistClient) async throws -> OfferResult {
        try await offer(
            OfferRequest(paths: paths, to: [], mine: true, parent: parent, copy: copy, copySmall: copy == nil ? true : nil), client)
    }

    private static func offer(_ wanted: OfferRequest, _ client: HexlistClient) async throws -> OfferResult {
        var request = wanted
        request.paths = try wanted.paths.map { path throws(HexlistError) in try absolute(path) }
        let line = ProgressLine()
        let clock = ContinuousClock.now
        defer { line.end() }
        let offer = try await client.offer(request) { progress in
            guard ContinuousClock.now - clock > .seconds(1) else { return }
            line.update(
                "Reading \(HumanText.count(progress.files, "file", "files")): \(ByteCountText.of(progress.bytes)) of \(ByteCountText.of(progress.size))"
            )
        }
        line.end()
        if offer.leftOut > 0, request.hex == nil {
            let causes = offer.leftOutBy.map { " (\($0.text))" } ?? ""
            StandardError.note("Skipped \(HumanText.count(offer.leftOut, "entry", "entries"))\(causes).")
        }
        return offer
    }
}

/// A hex typed by the user, together with links to the offered files.
struct HexWithOfferedFiles: JSONEncodable {
    var hex: HexInput
    /// The HexJM with the links to the files, created by the daemon.
    var offered: JSONValue

    func write(to json: inout JSONWriter) {
        let offered = try? JSONObject(self.offered)
        let own = hex.links.map { JSONValue($0) }
        let links = own + (offered?["links"]?.elements ?? [])
        let given = offered?["hexDescription"]?.string ?? ""
        json.object {
            $0.member("hexDescription", hex.description.isEmpty ? given : hex.description)
            $0.member("hexColor", hex.color)
            $0.member("links", links)
            if let folder = offered?["folder"] { $0.member("folder", folder) }
            if let children = offered?["children"] { $0.member("children", children) }
        }
    }
}

import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

/// Files and folders in the arguments of `send`.
enum FileArgument {
    /// Whether an argument begins like a path. Required for files, so that a typo cannot send one.
    static func isPath(_ text: String) -> Bool { ["/", "./", "../"].contains(where: text.hasPrefix) }

    /// The `SERVICE:PATH` of a `--file` argument; `nil` for a path, and for the name of an existing file.
    static func service(_ text: String) -> ServiceArgument? {
        guard !isPath(text), let argument = ServiceArgument(argument: text) else { return nil }
        var status = stat()
        return lstat(text, &status) == 0 ? nil : argument
    }

    /// Whether a URL is a link to a file of a peer: `hexlist://UUID/`.
    static func isLink(_ url: String) -> Bool {
        let scheme = Array("hexlist://".utf8)
        let bytes = Array(url.utf8.prefix(scheme.count + 37))
        guard bytes.prefix(scheme.count).map(ASCII.lowercased) == scheme, bytes.last == UInt8(ascii: "/") else { return false }
        return PeerID(String(decoding: bytes.dropFirst(scheme.count).dropLast(), as: UTF8.self)) != nil
    }

    /// - Throws: `HexlistError` for an argument that is the bare name of an existing file.
    static func refuseBareName(_ text: String) throws(HexlistError) {
        guard !text.isEmpty, text != "-", LinkForm(text) != .link, text.utf8.count < 4_096 else { return }
        var status = stat()
        guard lstat(text, &status) == 0 else { return }
        let shown = TerminalText.clean(text, columns: 60)
        throw HexlistError(
            .badRequest, "`\(shown)` is a file, not a link.", hint: "To send the file: \(ShellText.quoted("./" + shown))")
    }

    /// The absolute path with symlinks resolved.
    static func absolute(_ path: String) throws(HexlistError) -> String {
        guard let resolved = realpath(path, nil) else {
            // Swift replaces bytes that are not UTF-8 with this scalar.
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

    /// Offers files to peers and shows the progress.
    /// - Parameters:
    ///   - copying: whether the daemon keeps copies.
    ///   - hex: instead of paths, a hex with links to files that exist here.
    static func offer(
        _ paths: [String], to peers: [String], all: Bool, copying: Bool = false, hex: Int64? = nil, _ client: HexlistClient
    ) async throws -> OfferResult {
        let paths = try paths.map { path throws(HexlistError) in try absolute(path) }
        let line = ProgressLine()
        let clock = ContinuousClock.now
        defer { line.end() }
        let request = OfferRequest(paths: paths, to: peers, toAll: all ? true : nil, copy: copying ? true : nil, hex: hex)
        let offer = try await client.offer(request) { progress in
            guard ContinuousClock.now - clock > .seconds(1) else { return }
            line.update(
                "Reading \(HumanText.count(progress.files, "file", "files")): \(ByteCountText.of(progress.bytes)) of \(ByteCountText.of(progress.size))"
            )
        }
        line.end()
        if offer.leftOut > 0, hex == nil {
            let causes = offer.leftOutBy.map { " (\($0.text))" } ?? ""
            StandardError.note("Skipped \(HumanText.count(offer.leftOut, "entry", "entries"))\(causes).")
        }
        return offer
    }
}

/// A typed hex with links to the offered files.
struct OfferingInput: JSONEncodable {
    var hex: HexInput
    /// The HexJM with the links to the files, from the daemon.
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
            if let children = offered?["children"] { $0.member("children", children) }
        }
    }
}

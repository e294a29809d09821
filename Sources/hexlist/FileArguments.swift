import Glibc
import HexlistAPI
import HexlistClient
import HexlistJSON
import HexlistModel

/// Files and folders of the user among the arguments of `send`.
enum FileArgument {
    /// Whether an argument is a path by its beginning, so that no slip hands a file over.
    static func isPath(_ text: String) -> Bool { ["/", "./", "../"].contains(where: text.hasPrefix) }

    /// Something in a service, as `--file` takes it beside paths; `nil` for a path, and for what is a file here.
    static func service(_ text: String) -> ServiceArgument? {
        guard !isPath(text), let argument = ServiceArgument(argument: text) else { return nil }
        var status = stat()
        return lstat(text, &status) == 0 ? nil : argument
    }

    /// Whether a link leads to a file of a peer: `hexlist://`, then a UUID.
    static func isLink(_ url: String) -> Bool {
        let scheme = Array("hexlist://".utf8)
        let bytes = Array(url.utf8.prefix(scheme.count + 37))
        guard bytes.prefix(scheme.count).map(ASCII.lowercased) == scheme, bytes.last == UInt8(ascii: "/") else { return false }
        return PeerID(String(decoding: bytes.dropFirst(scheme.count).dropLast(), as: UTF8.self)) != nil
    }

    /// - Throws: `HexlistError` for an argument that is the bare name of a file: it was probably meant.
    static func refuseBareName(_ text: String) throws(HexlistError) {
        guard !text.isEmpty, text != "-", LinkForm(text) != .link, text.utf8.count < 4_096 else { return }
        var status = stat()
        guard lstat(text, &status) == 0 else { return }
        let shown = TerminalText.clean(text, columns: 60)
        throw HexlistError(
            .badRequest, "`\(shown)` is a file here, and no link.", hint: "To send the file: \(ShellText.quoted("./" + shown))")
    }

    /// The absolute path, with symbolic links followed: what is named is what is meant.
    static func absolute(_ path: String) throws(HexlistError) -> String {
        guard let resolved = realpath(path, nil) else {
            // Swift has put this in the place of bytes that are no UTF-8.
            guard errno == ENOENT, path.unicodeScalars.contains("\u{FFFD}") else {
                throw InputFile.unreadable(TerminalText.clean(path, columns: 200))
            }
            throw HexlistError(
                .badRequest, "\(TerminalText.clean(path, columns: 200)) is not there, or its name is no UTF-8.", hint: "Rename it.")
        }
        defer { free(resolved) }
        guard let text = String(validatingCString: resolved) else {
            throw HexlistError(.badRequest, "The path of \(TerminalText.clean(path, columns: 200)) is not UTF-8 text.", hint: "Rename it.")
        }
        return text
    }

    /// Offers files to peers and shows how far it is.
    /// - Parameters:
    ///   - copying: whether copies of them are offered.
    ///   - hex: instead of paths, the hex whose links lead to files that are here.
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
            let causes = offer.leftOutBy.map { ": \($0.text)" } ?? ""
            StandardError.note("\(HumanText.count(offer.leftOut, "entry", "entries")) left out\(causes).")
        }
        return offer
    }
}

/// A typed hex with the files that are offered in it.
struct OfferingInput: JSONEncodable {
    var hex: HexInput
    /// A HexJM of the daemon's.
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

import HexlistJSON
import HexlistModel

/// The format of the body of a drop, by its `Content-Type`.
enum DropFormat: Equatable {
    case text
    /// `application/x-www-form-urlencoded`.
    case form
    case json
    /// `multipart/form-data`.
    case multipart(boundary: String)
    /// The body is a file with this media type.
    case file(type: String)

    /// - Parameter contentType: the value of the header, which is untrusted; `nil` counts as plain text.
    init(contentType: String?) throws(GuestRefusal) {
        let field = ParameterizedField(contentType ?? "text/plain")
        switch field.value {
        case "text/plain", "text/uri-list", "": self = .text
        case "application/x-www-form-urlencoded": self = .form
        case "application/json": self = .json
        case "multipart/form-data":
            guard let boundary = field["boundary"] else { throw .malformed }
            self = .multipart(boundary: boundary)
        default: self = .file(type: field.value)
        }
    }
}

/// The texts of a drop that has named fields: a form or JSON. Unknown members of JSON are ignored.
struct DropFields: JSONShape, Equatable {
    var title: String?
    var text: String?
    var url: String?

    /// Sets a field of a form.
    /// - Returns: `false` if the name is unknown.
    mutating func set(_ name: String, _ value: String) -> Bool {
        switch name {
        case "title": title = value
        case "text": text = value
        case "url": url = value
        default: return false
        }
        return true
    }

    /// The title, the text and the URL as one text, one per line. If the URL equals the text, it appears once.
    var joined: String {
        let url = PeerTextComparison.areEqual(url ?? "", text ?? "") ? nil : url
        return [title, text, url].compactMap { $0 }.filter { !$0.allSatisfy(\.isWhitespace) }.joined(separator: "\n")
    }

    /// Returns the text of a form. `curl -d` sends any text with the content type of a form. Therefore a body counts as plain text if it
    /// has no known field, or if the name of its first field contains a colon, as a URL does.
    static func form(_ bytes: [UInt8]) throws(GuestRefusal) -> String {
        var fields = DropFields()
        var isForm = false
        for (index, field) in bytes.split(separator: UInt8(ascii: "&")).enumerated() {
            let pair = field.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            if index == 0, pair[0].contains(UInt8(ascii: ":")) { break }
            let decoded = pair.map { part in PercentEncoding.decode(bytes: ArraySlice(part.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 })) }
            guard decoded.count == 2, let name = decoded[0], let value = decoded[1] else { continue }
            if fields.set(name, value) { isForm = true }
        }
        return isForm ? fields.joined : try text(bytes)
    }

    static func json(_ bytes: [UInt8]) throws(GuestRefusal) -> String {
        do { return try DropFields(jsonBytes: bytes).joined } catch { throw .malformed }
    }

    static func text(_ bytes: [UInt8]) throws(GuestRefusal) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw GuestRefusal(status: 400, message: "The text is not UTF-8. Send files as a form with a file, or with their own type.")
        }
        return text
    }
}

extension GuestRefusal {
    static let malformed = GuestRefusal(status: 400, message: "The request is not valid.")
}

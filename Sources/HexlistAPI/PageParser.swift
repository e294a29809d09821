public import HexlistJSON

/// Parses a page, `{"items":[…],"next":…}`, as its bytes arrive: only the incomplete item is kept.
public struct PageParser: Sendable {
    /// The most bytes of one item, and of everything around the items.
    private let limit: Int
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    private var isInItems = false
    private var item: [UInt8] = []
    /// The page without its items.
    private var frame: [UInt8] = []

    /// - Parameter limit: the most bytes of one item, far above the longest possible one.
    public init(limit: Int = 256 << 20) { self.limit = limit }

    /// The items that these bytes complete.
    public mutating func feed(_ bytes: some Sequence<UInt8>) throws(JSONFault) -> [[UInt8]] {
        var items: [[UInt8]] = []
        for byte in bytes {
            switch byte {
            case _ where isInString:
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth == 2, byte == UInt8(ascii: "["), frame.suffix(8).elementsEqual(#""items":"#.utf8) {
                    frame.append(byte)
                    isInItems = true
                    continue
                }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if isInItems, depth == 1 {
                    if !item.isEmpty { items.append(take()) }
                    isInItems = false
                }
            case UInt8(ascii: ",") where isInItems && depth == 2:
                items.append(take())
                continue
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"): continue
            default: break
            }
            if isInItems { item.append(byte) } else { frame.append(byte) }
            guard item.count <= limit, frame.count <= limit else { throw JSONFault("an item of the page is longer than \(limit) bytes") }
        }
        return items
    }

    private mutating func take() -> [UInt8] {
        defer { item = [] }
        return item
    }

    /// The value of `after=` for the next page; `nil` at the end of the list.
    /// - Throws: `JSONFault` for bytes that are no page, or not a whole one.
    public func finish() throws(JSONFault) -> String? { try end().optional("next") }

    /// The members beside the items, which are empty here.
    /// - Throws: `JSONFault` for bytes that are no page, or not a whole one.
    public func end() throws(JSONFault) -> JSONObject {
        let page = try JSONObject(JSONValue(parsing: frame))
        let _: JSONValue = try page.value("items")
        return page
    }
}

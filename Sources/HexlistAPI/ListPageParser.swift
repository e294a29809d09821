public import HexlistJSON

/// Incremental parser of a page of a list, `{"items":[…],"next":…}`. Buffers the incomplete item only.
public struct ListPageParser: Sendable {
    /// Maximum bytes of an item, and maximum bytes of the page without its items.
    private let limit: Int
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    private var isInItems = false
    private var item: [UInt8] = []
    /// The bytes of the page without its items.
    private var frame: [UInt8] = []

    /// - Parameter limit: maximum bytes of an item; the default is far above the largest possible one.
    public init(limit: Int = 256 << 20) { self.limit = limit }

    /// Parses the next bytes. Returns the items completed by them.
    public mutating func feed(_ bytes: some Sequence<UInt8>) throws(JSONFault) -> [[UInt8]] {
        // The bytes are copied into contiguous memory once: access to single bytes of a `ByteBufferView` is many times slower.
        try Array(bytes).withUnsafeBufferPointer { bytes throws(JSONFault) in try feed(run: bytes) }
    }

    /// Parses contiguous bytes. Handles each structural byte of JSON, and copies the bytes between two of them in one step.
    private mutating func feed(run bytes: UnsafeBufferPointer<UInt8>) throws(JSONFault) -> [[UInt8]] {
        guard let base = bytes.baseAddress else { return [] }
        var items: [[UInt8]] = []
        // `kept` is the offset of the first byte that is not copied yet, `position` that of the current byte.
        var (kept, position) = (0, 0)
        while position < bytes.count {
            if isInString {
                position = endOfText(base, position, bytes.count)
                continue
            }
            let byte = base[position]
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth == 2, byte == UInt8(ascii: "["), !isInItems {
                    try keep(bytes[kept..<position])
                    kept = position
                    guard frame.suffix(8).elementsEqual(#""items":"#.utf8) else { break }
                    frame.append(byte)
                    isInItems = true
                    kept = position + 1
                }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if isInItems, depth == 1 {
                    try keep(bytes[kept..<position])
                    kept = position
                    if !item.isEmpty { items.append(take()) }
                    isInItems = false
                }
            case UInt8(ascii: ",") where isInItems && depth == 2:
                try keep(bytes[kept..<position])
                kept = position + 1
                items.append(take())
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
                try keep(bytes[kept..<position])
                kept = position + 1
            default: break
            }
            position += 1
        }
        try keep(bytes[kept...])
        return items
    }

    /// Returns the offset after the current string, or `end` if the string continues in the next bytes.
    private mutating func endOfText(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
        var position = start
        while position < end {
            let byte = base[position]
            position += 1
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString = false
                break
            }
        }
        return position
    }

    private mutating func keep(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(JSONFault) {
        guard (isInItems ? item.count : frame.count) + bytes.count <= limit else {
            throw JSONFault("an item of the page is longer than \(limit) bytes")
        }
        let run = UnsafeBufferPointer(rebasing: bytes)
        if isInItems { item.append(contentsOf: run) } else { frame.append(contentsOf: run) }
    }

    private mutating func take() -> [UInt8] {
        defer { item = [] }
        return item
    }

    /// Returns the value of `after=` for the next page; `nil` at the end of the list.
    /// - Throws: `JSONFault` for an invalid or incomplete page.
    public func finish() throws(JSONFault) -> String? { try end().optional("next") }

    /// Returns the page as an object with its members such as `next`. Its `items` is empty, because `feed` has returned the items.
    /// - Throws: `JSONFault` for an invalid or incomplete page.
    public func end() throws(JSONFault) -> JSONObject {
        let page = try JSONObject(JSONValue(parsing: frame))
        let _: JSONValue = try page.value("items")
        return page
    }
}

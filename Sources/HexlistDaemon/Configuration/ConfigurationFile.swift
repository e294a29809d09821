import HexlistModel
import Yams

/// The file `config.yaml`, flattened: `limits: {connections: 3}` and `limits.connections: 3` are the same key.
struct ConfigurationFile {
    struct Entry {
        var name: String
        /// The values as written: the elements of a list, or a single text.
        var texts: [String]
        var isList: Bool
        var line: Int?
    }

    /// The entries in the order of the file. Known keys without a value (a line `peers:`) are omitted.
    private(set) var entries: [Entry] = []
    /// The path of the file, for error messages.
    let path: String

    static let maximumBytes = 64 << 10
    /// Maximum depth of nested mappings. The names of keys have at most three parts.
    private static let maximumDepth = 4
    /// Maximum number of keys in the file. Hexlist has about 50 keys, but YAML aliases can expand a short file to any number.
    private static let maximumEntries = 500

    /// - Throws: `HexlistError` `configuration`, with the line number, if the text is not YAML, has a key twice or exceeds a limit.
    init(path: String, text: String) throws(HexlistError) {
        self.path = path
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw Self.explain(error, path: path)
        } catch {
            throw HexlistError(.configuration, "\(path) is no YAML.", hint: "Correct it, or move it away to get the defaults.")
        }
        guard let root, !Self.isNull(root) else { return }
        guard let mapping = root.mapping else { throw fault("a list of `key: value` lines is expected", line: root.mark?.line) }
        try flatten(mapping, prefix: "", depth: 1)
    }

    /// The location of an entry, such as `config.yaml, line 3`.
    func location(_ line: Int?) -> String { line.map { "\(path), line \($0)" } ?? path }

    private mutating func flatten(_ mapping: Node.Mapping, prefix: String, depth: Int) throws(HexlistError) {
        for (key, value) in mapping {
            let line = key.mark?.line
            guard let name = key.scalar?.string else { throw fault("a key must be a text", line: line) }
            if let inner = value.mapping {
                guard depth < Self.maximumDepth else { throw fault("`\(prefix)\(name)` is nested too deep", line: line) }
                try flatten(inner, prefix: "\(prefix)\(name).", depth: depth + 1)
            } else {
                try add("\(prefix)\(name)", value, line: line)
            }
        }
    }

    private mutating func add(_ name: String, _ value: Node, line: Int?) throws(HexlistError) {
        guard entries.count < Self.maximumEntries else { throw fault("more than \(Self.maximumEntries) keys", line: line) }
        if entries.contains(where: { $0.name == name }) { throw fault("`\(name)` is given twice", line: line) }
        if let sequence = value.sequence {
            var texts: [String] = []
            for element in sequence {
                guard let text = element.scalar?.string, !Self.isNull(element) else {
                    throw fault("`\(name)` takes a list of texts", line: element.mark?.line ?? line)
                }
                texts.append(text)
            }
            entries.append(Entry(name: name, texts: texts, isList: true, line: line))
        } else if let text = value.scalar?.string, !Self.isNull(value) {
            entries.append(Entry(name: name, texts: [text], isList: false, line: line))
        } else if SettingKey.named(name) == nil, !SettingKey.all.contains(where: { $0.name.hasPrefix("\(name).") }) {
            entries.append(Entry(name: name, texts: [], isList: false, line: line))  // an unknown key, which the loader reports
        }
    }

    private func fault(_ text: String, line: Int?) -> HexlistError {
        HexlistError(.configuration, "\(location(line)): \(text).", hint: "Correct it, or move the file away to get the defaults.")
    }

    private static func isNull(_ node: Node) -> Bool {
        guard let scalar = node.scalar, scalar.style == .plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }

    private static func explain(_ error: YamlError, path: String) -> HexlistError {
        let (line, problem): (Int?, String) =
            switch error {
            case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _), .composer(_, let problem, let mark, _):
                (mark.line, problem)
            case .duplicatedKeysInMapping(let duplicates, let context):
                (context.mark.line, "given twice: \(duplicates.map { "`\($0)`" }.joined(separator: ", "))")
            case .reader(let problem, _, _, _): (nil, problem)
            case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded: (nil, "it cannot be read")
            @unknown default: (nil, "it cannot be read")
            }
        let location = line.map { "\(path), line \($0)" } ?? path
        return HexlistError(
            .configuration, "\(location) is not valid YAML: \(problem).", hint: "Correct it, or move the file away to get the defaults.")
    }
}

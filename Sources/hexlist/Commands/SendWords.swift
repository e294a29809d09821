import HexlistModel

extension SendCommand {
    /// Parses the common options of `send` without ArgumentParser, because its setup takes longer than a send. Returns `nil` for other
    /// options and for errors; ArgumentParser then parses the arguments. `SendWordsTests` checks that both give the same result.
    /// - Parameter arguments: the arguments without the name of the program.
    init?(usual arguments: [String]) {
        guard arguments.first == Self.configuration.commandName else { return nil }
        self.init()
        setDefaults()
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            switch word {
            case "--to-all": toAll = true
            case "--force": force = true
            case "--json": common.json = true
            case _ where !Self.isOption(word): links.append(word)
            default: guard let value = rest.popFirst(), !Self.isOption(value), set(word, value) else { return nil }
            }
        }
        guard (try? validate()) != nil else { return nil }
    }

    /// Whether a word begins with a dash. The word `-` (standard input) counts too, so that ArgumentParser handles it.
    private static func isOption(_ word: String) -> Bool { word.utf8.first == UInt8(ascii: "-") }

    private mutating func set(_ option: String, _ value: String) -> Bool {
        switch option {
        case "--to", "-t": to.append(value)
        case "--description", "-d": description = value
        case "--color", "-c": color = value
        case "--key": key = value
        case "--wait":
            guard let state = WaitArgument(rawValue: value) else { return false }
            wait = state
        case "--timeout":
            guard let seconds = Seconds(argument: value) else { return false }
            timeout = seconds
        default: return false
        }
        return true
    }

    /// Sets all properties to their defaults. ArgumentParser traps if a property is read that was never set.
    private mutating func setDefaults() {
        common = CommonOptions()
        (common.json, common.socket, common.stateDir) = (false, nil, nil)
        (to, toAll, links, file, description, color) = ([], false, [], [], "", "")
        (hex, from, bulk, key, wait, timeout, clipboard) = (nil, nil, nil, nil, .stored, Seconds(10), false)
        (copy, reoffer, guess, raw, strict, allowEmpty, force) = (nil, false, false, false, false, false, false)
    }
}

import HexlistModel

extension SendCommand {
    /// Reads the words that scripts send with: links, to whom, what describes them, how to wait and what to print. `nil` where any other is
    /// among them, or one is wrong. That is for ArgumentParser: what it makes to read with takes longer than a send. `SendWordsTests` holds the
    /// two against each other.
    /// - Parameter arguments: the arguments without the program's name.
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

    /// Also `-`, standard input: ArgumentParser knows where that may stand.
    private static func isOption(_ word: String) -> Bool { word.utf8.first == UInt8(ascii: "-") }

    private mutating func set(_ option: String, _ value: String) -> Bool {
        switch option {
        case "--to": to.append(value)
        case "--description": description = value
        case "--color": color = value
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

    /// Gives each property the value of its declaration, without which ArgumentParser lets none be read.
    private mutating func setDefaults() {
        common = CommonOptions()
        (common.json, common.socket, common.stateDir) = (false, nil, nil)
        (to, toAll, links, file, description, color) = ([], false, [], [], "", "")
        (hex, from, bulk, key, wait, timeout) = (nil, nil, nil, nil, .stored, Seconds(10))
        (copy, reoffer, guess, raw, strict, allowEmpty, force) = (false, false, false, false, false, false, false)
    }
}

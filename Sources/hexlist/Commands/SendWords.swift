import HexlistModel

extension SendCommand {
    /// Fast path for the common options of `send`, because setting up ArgumentParser takes longer than a send. `nil` for other options and
    /// for errors, which ArgumentParser then handles. `SendWordsTests` compares the two.
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

    /// Includes `-`, standard input, which is left to ArgumentParser.
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

    /// Sets all properties to their defaults; ArgumentParser traps when an unset one is read.
    private mutating func setDefaults() {
        common = CommonOptions()
        (common.json, common.socket, common.stateDir) = (false, nil, nil)
        (to, toAll, links, file, description, color) = ([], false, [], [], "", "")
        (hex, from, bulk, key, wait, timeout, clipboard) = (nil, nil, nil, nil, .stored, Seconds(10), false)
        (copy, reoffer, guess, raw, strict, allowEmpty, force) = (false, false, false, false, false, false, false)
    }
}

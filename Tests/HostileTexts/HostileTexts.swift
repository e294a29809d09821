import Foundation

/// Texts that break programs, and texts that a terminal would obey or not show. A stranger may put them into any field. Tests of all
/// targets use them, and so does `Tests/Faults/hostile-text`.
public enum HostileTexts {
    /// A list of our own, in the spirit of the "big list of naughty strings".
    public static let all: [String] = {
        guard let url = Bundle.module.url(forResource: "texts", withExtension: "json"), let data = try? Data(contentsOf: url),
            let texts = try? JSONDecoder().decode([String].self, from: data)
        else { return [] }
        return texts
    }()

    /// Each text alone, inside other text, and after a combining mark and an escape: over 2 000.
    public static var inContext: [String] { all + all.map { "a\($0)b" } + all.map { "\u{301}\u{1B}\($0)\u{7}" } }
}

import Foundation
import HexlistWire
import Testing

/// The vectors that each implementation of the protocol must satisfy.
struct VectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        var name: String
        var rule: String
        var input: String
        var expect: String

        var testDescription: String { "\(rule): \(name)" }
    }

    static let vectors: [Vector] = {
        guard let url = Bundle.module.url(forResource: "Vectors/tolerance", withExtension: "ndjson"),
            let text = try? String(contentsOf: url, encoding: .utf8)
        else { return [] }
        return text.split(separator: "\n").compactMap { line in
            guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                let name = object["name"] as? String, let rule = object["rule"] as? String, let input = object["input"] as? String,
                let expect = object["expect"], let json = try? JSONSerialization.data(withJSONObject: expect)
            else { return nil }
            return Vector(name: name, rule: rule, input: input, expect: String(decoding: json, as: UTF8.self))
        }
    }()

    @Test("the file is present and complete") func count() {
        #expect(Self.vectors.count == 75)
    }

    @Test("a vector gives the expected result", arguments: vectors) func vector(_ vector: Vector) throws {
        for repairs in [false, true] {
            var found = try described(decode(vector.input, repairs: repairs))
            let expected = try parsed(vector.expect)
            if expected["ok"] as? Bool == false { found["message"] = nil }
            #expect(same(found, expected), "\(found)")
        }
    }

    @Test("a vector's canonical frame decodes to the same value", arguments: vectors) func canonical(_ vector: Vector) throws {
        let expected = try parsed(vector.expect)
        switch FrameJSON.frame(fromJSON: Array(vector.input.utf8)) {
        case .failure(let refusal): #expect(refusal.code.rawValue == expected["code"] as? String)
        case .success(let frame): #expect(same(try described(decode(Array(frame.dropFirst(4)))), expected))
        }
    }
}

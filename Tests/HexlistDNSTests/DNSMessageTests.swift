import Testing

@testable import HexlistDNS

@Suite("DNS answers")
struct DNSMessageTests {
    @Test("each record type is read, with compressed names")
    func records() throws {
        var answer = Answer(count: 6)
        answer.add(12, Answer.label("Ada's \u{2014} lap.top") + [0xC0, 12])
        answer.add(33, Answer.service(24_391, Answer.name("ada.corp.example")))
        answer.add(16, Answer.label("id=1") + Answer.label("") + Answer.label([0xFF, 0x00]))
        answer.add(1, [10, 1, 2, 3])
        answer.add(28, [UInt8](repeating: 0xFD, count: 16))
        answer.add(5, ttl: [0x80, 0, 0, 1], Answer.name("elsewhere.example"))
        let answers = try #require(answer.message).answers
        let services = DNSName.of("_hexlist._tcp.corp.example")
        #expect(answers.allSatisfy { $0.name == services })
        let instance = try #require(services.prefixed(by: [Array("Ada's \u{2014} lap.top".utf8)]))
        #expect(
            answers.map(\.data) == [
                .pointer(instance), .service(priority: 0, port: 24_391, target: .of("ada.corp.example")),
                .text([Array("id=1".utf8), [], [0xFF, 0x00]]), .address([10, 1, 2, 3]), .address([UInt8](repeating: 0xFD, count: 16)),
                .alias(.of("elsewhere.example")),
            ])
        // A TTL with the highest bit set counts as 0.
        #expect(answers.map(\.ttl) == [120, 120, 120, 120, 120, 0])
        #expect(answer.message?.seconds == 0)
    }

    @Test("records of other classes and types are skipped, and the rest is read")
    func others() throws {
        var answer = Answer(count: 3)
        answer.add(12, recordClass: 3, Answer.name("chaos.example"))
        answer.add(46, [1, 2, 3])
        answer.add(1, recordClass: 0x8001, [10, 0, 0, 1])
        #expect(try #require(answer.message).answers.map(\.data) == [.address([10, 0, 0, 1])])
    }

    @Test("compression loops and forward pointers are refused in bounded time")
    func astray() {
        for target in [[0xC0, 0xFF], [0xC1, 0x00], [0xFF, 0xFF], [0x40, 0x01], [0xC0]] as [[UInt8]] {
            var answer = Answer(count: 1)
            answer.add(12, target)
            #expect(answer.message == nil, "\(target)")
        }
        var own = Answer(count: 1)
        let place = own.bytes.count + 12
        own.add(12, Answer.label("a") + [0xC0, UInt8(place)])  // a label, then a pointer back to it
        #expect(own.message == nil)
        // Many backward pointers that each add a label: the 255-byte bound ends the name.
        var long = Answer(count: 6)
        var before = 12
        for _ in 0..<6 {
            let at = long.bytes.count + 12
            long.add(12, Answer.label([UInt8](repeating: 0x61, count: 63)) + [0xC0 | UInt8(before >> 8), UInt8(before & 0xFF)])
            before = at
        }
        #expect(long.message == nil)
        // A chain of pointers without labels between them, longer than the number of labels of any name.
        for (count, isRead) in [(100, true), (200, false)] {
            var answer = Answer(count: 2)
            let first = answer.bytes.count + 12
            let pointer = { (place: Int) in [0xC0 | UInt8(place >> 8), UInt8(place & 0xFF)] }
            // The names are in a record of a type that is skipped.
            answer.add(99, (0..<count).flatMap { pointer($0 == 0 ? 12 : first + 2 * ($0 - 1)) })
            answer.add(12, pointer(first + 2 * (count - 1)))
            #expect((answer.message != nil) == isRead, "\(count)")
        }
    }

    @Test("a length that does not fit its record is refused")
    func lengths() {
        for (type, data) in [
            (1, [10, 0, 0]), (1, [10, 0, 0, 1, 1]), (28, [1, 2, 3, 4]), (33, [0, 0, 0, 0, 0]), (33, Answer.service(1, [0]) + [0]),
            (12, [0, 0]), (16, [5, 1]), (12, []),
        ] as [(Int, [UInt8])] {
            var answer = Answer(count: 1)
            answer.add(type, data)
            #expect(answer.message == nil, "\(type) \(data)")
        }
        var beyond = Answer(count: 1)
        beyond.add(16, length: 400, [1, 0x61])
        #expect(beyond.message == nil)
        var unknown = Answer(count: 1)
        unknown.add(46, length: 400, [1])
        #expect(unknown.message == nil)
        var missing = Answer(count: 2)
        missing.add(1, [10, 0, 0, 1])
        #expect(missing.message == nil)
        var query = Answer(flags: 0x0100, count: 1)
        query.add(1, [10, 0, 0, 1])
        #expect(query.message == nil)  // a question is not an answer
    }

    @Test("every prefix and every flipped bit of an answer is read or refused, without a trap")
    func damaged() {
        var answer = Answer(count: 4)
        answer.add(12, Answer.label("ada") + [0xC0, 12])
        answer.add(33, Answer.service(24_391, Answer.label("ada") + [0xC0, 26]))
        answer.add(16, Answer.label("id=1"))
        answer.add(28, [UInt8](repeating: 1, count: 16))
        var read = 0
        for count in 0..<answer.bytes.count { if DNSMessage(Array(answer.bytes.prefix(count))) != nil { read += 1 } }
        #expect(read == 0)
        for index in answer.bytes.indices {
            for bit in 0..<8 {
                var bytes = answer.bytes
                bytes[index] ^= 1 << bit
                if let message = DNSMessage(bytes) {
                    read += 1
                    for record in message.answers {
                        #expect(record.name.labels.reduce(1) { $0 + $1.count + 1 } <= 255)
                    }
                }
            }
        }
        #expect(read > 0)
    }

    @Test("records and text are bounded")
    func bounds() throws {
        var answer = Answer(count: 0xFFFF)
        for _ in 0..<3_000 { answer.add(1, [10, 0, 0, 1]) }
        #expect(try #require(answer.message).answers.count == DNSMessage.maximumRecords)
        var text = Answer(count: 1)
        text.add(16, (0..<40).flatMap { _ in Answer.label([UInt8](repeating: 0x61, count: 255)) })
        guard case .text(let strings)? = text.message?.answers.first?.data else {
            Issue.record("no text")
            return
        }
        #expect(strings.count == 16)
    }

    @Test("names compare without regard to case, and escapes make every byte of a label unambiguous")
    func names() throws {
        #expect(DNSName.of("Corp.Example") == DNSName.of("corp.example."))
        let services = DNSName.of("_hexlist._tcp.corp.example")
        let instance = try #require(services.prefixed(by: [Array("a.b\\ [\u{E4}]".utf8)]))
        #expect(instance.description == "a\\046b\\092\\032\\091\\195\\164\\093._hexlist._tcp.corp.example.")
        #expect(instance.label(under: .of("_HEXLIST._tcp.CORP.example")) == Array("a.b\\ [\u{E4}]".utf8))
        #expect(instance.label(under: .of("_tcp.corp.example")) == nil)
        #expect(services.prefixed(by: [[UInt8](repeating: 0x61, count: 64)]) == nil)
        for text in ["", ".", "a..b", String(repeating: "a", count: 64), String(repeating: "abcdefgh.", count: 32)] {
            #expect(DNSName(text) == nil, "\(text)")
        }
    }
}

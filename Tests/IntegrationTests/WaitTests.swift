import Foundation
import Testing

/// A rule for all test sources: each wait is bounded and can be cancelled. On a machine on which the awaited event never happens, an
/// unbounded wait would block the whole run. The permitted waits are `eventually`, `eventualValue`, `called` and `DispatchSemaphore.take`
/// (TestSupport).
@Suite("Waits of tests") struct WaitTests {
    private struct Rule {
        /// The kind of wait, for the message.
        var name: String
        var pattern: String
        /// Whether the pattern applies to conditions of `while` only.
        var isCondition = false
        /// Code that matches but is bounded: a part of "file: line", with the reason.
        var exceptions: [String: String] = [:]
    }

    private static let rules = [
        Rule(name: "a loop over Task.yield", pattern: #"\bTask\s*\.\s*yield\s*\("#),
        Rule(
            name: "a sleep, for a loop over it or a guess how long something takes",
            pattern: #"\b(?:Task\s*\.\s*sleep|Thread\s*\.\s*sleep|(?:u|nano)?sleep|sched_yield)\s*\("#,
            exceptions: [
                "TestSupport/Eventually.swift": "the helper itself",
                "HexlistNodeTests/TwoNodes.swift": "the bound of a wait for changes of a node",
                "HexlistClientTests/HTTPExchangeTests.swift: try? await Task.sleep(for: .seconds(3600))":
                    "an input that never comes; cancelled",
                "HexlistNodeTests/RemoteFetchTests.swift: try await Task.sleep(for: .seconds(3_600))": "a service that hangs; cancelled",
                "HexlistNodeTests/FilePoolTests.swift: if rest < 120_000": "the end of a day in UTC, at most two minutes away",
                "IntegrationTests/NetworkFaultTests.swift: private static func rest":
                    "a network that stays as it is for a time, which is what is tested",
            ]),
        Rule(
            name: "a condition that is awaited, or read out of a lock, again and again",
            pattern: #"\bawait\b|withLock|\.load\("#, isCondition: true,
            exceptions: [
                "TestSupport/Eventually.swift": "the helper itself",
                "IntegrationTests/BulkTests.swift: while piece := s.recv": "a program in Python, whose input ends",
                "HexlistNodeTests/TwoNodes.swift: while try await !holds(node)": "each round waits for a change of the node, or the bound",
                "HexlistTransportTests/PeerConnectionTests.swift: repeat { sent += ": "each round sends, which ends at the water mark",
                "HexlistTransportTests/PeerConnectionTests.swift: while connection.isWritable, count.withLock":
                    "each round counts, up to 400",
            ]),
        Rule(
            name: "a loop that does nothing but look",
            pattern: #"\bwhile\b[^{\n]*(?:isEmpty|isReady|isDone|isOver|\.value)\b[^{\n]*\{\s*\}"#),
        Rule(
            name: "a wait for a signal without a bound",
            pattern: #"\.wait\(\s*\)|\bwait\(timeout:\s*\.distantFuture|\b(?:sem_wait|pthread_join|sigwait)\s*\(|(?<!\.)\bpause\(\s*\)"#,
            exceptions: [
                "TestSupport/ChildProcess.swift: end.wait()": "a program, which is killed after its longest life",
                "HexlistTransportTests/ListenTests.swift": "binding a port of this machine and closing it",
                "HexlistFilesTests/TransferQueueTests.swift: ": "a step of a state machine, no wait",
            ]),
        Rule(
            name: "a continuation, which nobody may resume",
            pattern: #"\bwith(?:Checked|Unsafe)(?:Throwing)?Continuation\b"#,
            exceptions: [
                "TestSupport/ChildProcess.swift": "resumed by the end of a program, which is killed after its longest life",
                "TestSupport/InMemoryLink.swift": "resumed by the thread that delivers now, which waits for nothing",
                "HexlistTransportTests/Support/Inbox.swift": "resumed by cancellation",
            ]),
        Rule(
            name: "an input that may stay open",
            pattern: #"\breadLine\s*\(|\bwaitUntilExit\s*\(|\breadDataToEndOfFile\b|\breadToEnd\s*\(|\bavailableData\b"#,
            exceptions: [
                "TestSupport/ChildProcess.swift": "output of a program, which is killed after its longest life",
                "HexlistTransportTests/Support/OpenSSL.swift": "output of a ChildProcess",
                "HexlistAvahiTests/PrivateAvahi.swift": "output of a ChildProcess",
                "IntegrationTests/Support/Command.swift": "output of a ChildProcess",
                "HexlistNodeTests/StrictPhone.swift": "output of a ChildProcess",
            ]),
    ]

    @Test("every wait of a test is bounded and can be cancelled") func waits() throws {
        var used: Set<String> = []
        for file in try Self.files() where file != "IntegrationTests/WaitTests.swift" {
            let source = try String(contentsOfFile: "\(Checkout.root)/Tests/\(file)", encoding: .utf8)
            for (rule, line) in try Self.offences(in: source) {
                let place = "\(file): \(line)"
                let exceptions = rule.exceptions.keys.filter { place.contains($0) }
                used.formUnion(exceptions)
                #expect(!exceptions.isEmpty, "\(place)\nThis is \(rule.name). Use `eventually`, `eventualValue`, `called` or `take`.")
            }
        }
        let unused = Set(Self.rules.flatMap(\.exceptions.keys)).subtracting(used)
        #expect(unused.isEmpty, "exceptions that nothing needs: \(unused.sorted())")
    }

    /// A time limit cancels a test and names it.
    @Test("every suite of asynchronous tests, or its parent suite, has a time limit") func limits() throws {
        for file in try Self.files() {
            let source = try String(contentsOfFile: "\(Checkout.root)/Tests/\(file)", encoding: .utf8)
            guard source.contains("@Test"), source.contains("await ") else { continue }
            let limits = ["timeLimit(", "rigLimit(", "extension TwoMachines", "extension TroubledNetworks", "extension StrangeMachines"]
            #expect(limits.contains { source.contains($0) }, "\(file)")
        }
    }

    @Test(
        "the rule finds each kind of unbounded wait",
        arguments: [
            "while await two.node.waiting.all == 0 { await Task.yield() }",
            "while try await !holds() {\n    await Task.yield()\n}",
            "repeat {\n    await Task.yield()\n} while await node.isBusy",
            "repeat { await Task . yield() } while !done",
            "while !done {\n    try await Task.sleep(for: .milliseconds(5))\n}",
            "while true {\n    if isThere { break }\n    try? await Task.sleep(nanoseconds: 5)\n}",
            "while await node.count(where: { $0.isOpen }) > 0 { try await node.step() }",
            "while seen.withLock({ $0 }) < 3 { step() }",
            "while\n    await !node.isReady\n{\n    step()\n}",
            "while !flag.load(ordering: .relaxed) {}",
            "while queue.isEmpty {}",
            "while !gate.isDone { }",
            "while !file { usleep(1000) }",
            "Thread.sleep(forTimeInterval: 1)",
            "done.wait()",
            "_ = group.wait(timeout: .distantFuture)",
            "try promise.futureResult.wait()",
            "sem_wait(&semaphore)",
            "await withCheckedContinuation { continuation in listen { continuation.resume() } }",
            "try await withUnsafeThrowingContinuation { _ in }",
            "let line = readLine()",
            "process.waitUntilExit()",
            "pipe.fileHandleForReading.readDataToEndOfFile()",
            "try reader.readToEnd()",
        ])
    func finds(source: String) throws { #expect(try !Self.offences(in: source).isEmpty) }

    @Test(
        "and no other code",
        arguments: [
            "try await eventually(\"the hex waits\") { await two.node.waiting.all > 0 }",
            "try done.take()",
            "for await event in events { seen.append(event) }",
            "while let page = try store.page(after: next) { next = page.next }",
            "repeat { pages += 1 } while after != nil",
            "continuation.yield(value)",
            "// while await x { await Task.yield() }",
            "stage.wait(.seconds(10), answer: .noAnswer)",
            "while left > 0 { left -= 1 }\ntry await node.stop()",
        ])
    func leaves(source: String) throws { #expect(try Self.offences(in: source).map(\.line) == []) }

    private static let expressions: [(rule: Rule, expression: NSRegularExpression)]? = try? rules.map {
        ($0, try NSRegularExpression(pattern: $0.pattern))
    }

    /// The lines, without indentation, in which a wait of one of the rules begins. Comments are ignored.
    private static func offences(in source: String) throws -> [(rule: Rule, line: String)] {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        let code = lines.map { $0.drop { $0 == " " }.hasPrefix("//") ? "" : String($0) }.joined(separator: "\n") as NSString
        let (whole, conditions) = ([NSRange(location: 0, length: code.length)], conditions(in: code))
        return try #require(expressions).flatMap { rule, expression in
            (rule.isCondition ? conditions : whole).flatMap { range in
                let matches = expression.matches(in: code as String, range: range)
                return (rule.isCondition ? Array(matches.prefix(1)) : matches).map { match in
                    let line = code.lineRange(for: NSRange(location: rule.isCondition ? range.location : match.range.location, length: 0))
                    return (rule, code.substring(with: line).trimmingCharacters(in: .whitespacesAndNewlines))
                }
            }
        }
    }

    /// The conditions of `while`, including that word: up to the brace of the body, or after `repeat` to the end of the line. Closures in
    /// them are in parentheses.
    private static func conditions(in code: NSString) -> [NSRange] {
        let (open, close, brace, line) = (unichar(40), unichar(41), unichar(123), unichar(10))
        var ranges: [NSRange] = []
        var position = 0
        while position < code.length {
            let rest = NSRange(location: position, length: code.length - position)
            let word = code.range(of: #"\bwhile\s"#, options: .regularExpression, range: rest)
            guard word.location != NSNotFound else { break }
            let isRepeat = code.substring(with: NSRange(location: 0, length: word.location)).last { $0 != " " } == "}"
            var (depth, end) = (0, word.location + word.length)
            scan: while end < code.length {
                switch code.character(at: end) {
                case open: depth += 1
                case close: depth -= 1
                case brace where depth <= 0: break scan
                case line where depth <= 0 && isRepeat: break scan
                default: break
                }
                end += 1
            }
            ranges.append(NSRange(location: word.location, length: end - word.location))
            position = word.location + word.length
        }
        return ranges
    }

    private static func files() throws -> [String] {
        let paths = try #require(FileManager.default.enumerator(atPath: "\(Checkout.root)/Tests"))
        return paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.sorted()
    }
}

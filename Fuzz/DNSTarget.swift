// libFuzzer target: replies of a DNS server, or of an attacker in its name. Messages, lookups in them, and the browser that turns a
// domain's records into announcements. Must never trap, and memory and queries stay within the limits.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDNS(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var whole = FuzzInput(data, count)
    _ = read(whole.all())
    var input = FuzzInput(data, count)
    var stage = DomainStage()
    while !input.isAtEnd { stage.step(&input) }
    return 0
}

/// Reads one message and checks that it is within its bounds.
private func read(_ bytes: [UInt8]) -> DNSMessage? {
    guard let message = DNSMessage(bytes) else { return nil }
    check(message.answers.count <= DNSMessage.maximumRecords, "\(message.answers.count) records")
    for answer in message.answers {
        check(answer.ttl <= UInt32(Int32.max), "a time of \(answer.ttl)")
        check(isName(answer.name), "a name")
        switch answer.data {
        case .pointer(let name), .alias(let name): check(isName(name), "a name")
        case .service(_, _, let name): check(isName(name), "a name")
        case .text(let strings):
            check(strings.allSatisfy { $0.count <= 255 } && strings.reduce(0) { $0 + $1.count + 1 } <= DNSMessage.textBytes, "a long text")
        case .address(let bytes): check(bytes.count == 4 || bytes.count == 16, "an address of \(bytes.count) bytes")
        }
    }
    return message
}

private func isName(_ name: DNSName) -> Bool {
    name.labels.allSatisfy { (1...63).contains($0.count) } && name.labels.reduce(1) { $0 + $1.count + 1 } <= 255
}

/// A browser whose queries get replies made from the input.
private struct DomainStage {
    var browser: DomainBrowser
    var now = ContinuousClock.now
    var settled = ContinuousClock.now
    var records: Set<Record> = []

    init() {
        guard let browser = DomainBrowser(domain: "corp.example", now: now) else { fatalError("no domain") }
        self.browser = browser
    }

    mutating func step(_ input: inout FuzzInput) {
        switch input.byte() % 8 {
        case 0...4: answer(&input)
        case 5: now += .milliseconds(Int(input.word()))
        case 6:
            browser.networkChanged(now: now)
            settled = now + DomainBrowser.secondBrowseDelay
            check(browser.next.at <= now, "another network is not asked at once")
        default:
            let sorted = records.sorted { ($0.key.name, $0.unicast ?? 0) < ($1.key.name, $1.unicast ?? 0) }
            guard !sorted.isEmpty else { return }
            tell(browser.resolve(sorted[Int(input.byte()) % sorted.count], open: input.flag(), now: now))
        }
    }

    /// Answers the next query once it is due, with replies from the input.
    private mutating func answer(_ input: inout FuzzInput) {
        let (question, at) = browser.next
        now = max(now, at)
        let asked = now
        var messages: [[UInt8]] = (0..<5).map { _ in input.bytes(Int(input.word() % 600)) }
        let fails = input.byte()
        let lookup = ServiceLookup { _, _ in
            let bytes = messages.popLast() ?? []
            if fails & (1 << messages.count) != 0 { return .failed("nobody answers") }
            guard !bytes.isEmpty else { return .none }
            return read(bytes).map { .found($0, seconds: $0.seconds) } ?? .failed("unreadable")
        }
        switch question {
        case .browse:
            let outcome = lookup.browse(browser.services)
            if case .found(let labels, _) = outcome {
                check(labels.count <= ServiceLookup.instances && Set(labels).count == labels.count, "\(labels.count) instances")
                check(labels.allSatisfy { (1...63).contains($0.count) }, "a label")
            }
            tell(browser.browsed(outcome, asked: asked, now: now))
        case .resolve(let key):
            guard let name = browser.name(of: key) else { fatalError("a question about what is gone") }
            check(isName(name) && name.description.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "a name")
            let outcome = lookup.resolve(name)
            if case .found(let resolutions, _) = outcome { check(resolutions.count <= ServiceLookup.addresses, "many addresses") }
            tell(browser.resolved(key, outcome, asked: asked, now: now))
        }
        let next = browser.next
        let mayBeAgain = next.at >= now + .seconds(5) || next.at == settled && next.at > now
        check(next.question != question || mayBeAgain, "the same question again at once")
    }

    private mutating func tell(_ events: [DiscoveryEvent]) {
        for event in events {
            switch event {
            case .appeared(let record, _): check(records.insert(record).inserted, "it appears twice")
            case .withdrawn(let record): check(records.remove(record) != nil, "it was not there")
            case .resolved(let record, let resolution):
                check(records.contains(record), "it is resolved, and not there")
                check(resolution.host.utf8.count <= 1_024, "a long host")
            case .resolveFailed(let record, _): check(records.contains(record), "it fails, and is not there")
            case .domain(_, let state): check(state != .off, "off")
            case .backend, .interfaces, .woke: fatalError("not a domain's")
            }
        }
        check(records.count <= ServiceLookup.instances * ServiceLookup.addresses, "\(records.count) records")
    }
}

private func check(_ holds: Bool, _ message: @autoclosure () -> String) {
    if !holds { fatalError(message()) }
}

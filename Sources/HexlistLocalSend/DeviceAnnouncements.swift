/// The times at which this machine announces itself to devices. Outside of a burst, nothing is sent unless a user
/// requests the list of devices or rows wait.
struct DeviceAnnouncements {
    typealias Instant = ContinuousClock.Instant

    /// The delays of a burst, as in LocalSend. Announcements are repeated, because Wi-Fi loses datagrams.
    static let burst: [Duration] = [.milliseconds(100), .milliseconds(600), .milliseconds(2_600)]
    /// The interval of announcements on the request of a user.
    static let requestInterval = Duration.seconds(30)
    /// The interval of announcements while rows wait for a device.
    static let waitInterval = Duration.seconds(60)

    private var due: [Instant] = []
    private var lastSent: Instant?
    private var isRequested = false
    var isWaiting = false

    /// Starts a burst. A burst in progress starts over.
    mutating func burst(_ now: Instant) { due = Self.burst.map { now + $0 } }

    mutating func request(_ now: Instant) {
        if lastSent.map({ now - $0 >= Self.requestInterval }) ?? true { isRequested = true }
    }

    /// Whether an announcement is due. If so, it is recorded as sent.
    mutating func take(_ now: Instant) -> Bool {
        let isDue = isRequested || nextDeadline.map { $0 <= now } ?? false
        isRequested = false
        due.removeAll { $0 <= now }
        if isDue { lastSent = now }
        return isDue
    }

    var nextDeadline: Instant? {
        let repetition = isWaiting ? lastSent.map { $0 + Self.waitInterval } : nil
        return [due.first, repetition].compactMap(\.self).min()
    }
}

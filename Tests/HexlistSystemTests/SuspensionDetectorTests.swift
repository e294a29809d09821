import CLinux
import Glibc
import Testing

@testable import HexlistSystem

@Suite struct SleepWatchTests {
    @Test("only sleeping counts as waking up, and each sleep is reported once") func sleeping() {
        var watch = SuspensionDetector(slept: 7_000_000_000)
        // Nanoseconds of suspension at five calls: twice after the clock was set; after a sleep; again after the same sleep; after another
        // sleep. The 90 µs of the second reading are not a sleep.
        let readings: [Int64] = [7_000_000_000, 7_000_090_000, 9_000_000_000, 9_000_000_000, 30_000_000_000]
        let woken = readings.map { watch.hasWoken(slept: $0) }
        #expect(woken == [false, false, true, false, true])
    }

    @Test("a timer that clock changes cancel is created, and does not fire meanwhile") func timer() {
        let descriptor = hexlist_watch_wake()
        #expect(descriptor >= 0)
        defer { close(descriptor) }
        #expect(hexlist_arm_wake(descriptor) == 0)
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&waiting, 1, 0) == 0)
    }
}

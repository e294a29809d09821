import HexlistWire
import Testing

struct TokenBucketTests {
    private let start = ContinuousClock.now

    /// Takes all available tokens, at most 1 000, and returns their number.
    private func drain(_ bucket: inout TokenBucket, _ now: ContinuousClock.Instant) -> Int {
        var count = 0
        while bucket.hasToken(now: now), count < 1_000 {
            bucket.take(now: now)
            count += 1
        }
        return count
    }

    @Test("a second's worth as burst, then the rate")
    func rate() {
        var bucket = TokenBucket(perSecond: 20, now: start)
        #expect(drain(&bucket, start) == 20)
        #expect(bucket.nextToken == start + .milliseconds(50))
        #expect(drain(&bucket, start + .milliseconds(500)) == 10)
        // However long the bucket is unused, it holds a second's worth.
        #expect(drain(&bucket, start + .seconds(3_600)) == 20)
    }

    @Test("a smaller initial burst")
    func first() {
        var bucket = TokenBucket(perSecond: 20, first: 5, now: start)
        #expect(drain(&bucket, start) == 5)
        #expect(drain(&bucket, start + .seconds(9)) == 20)
    }

    @Test("a debt is waited for")
    func debt() {
        var bucket = TokenBucket(perSecond: 10, now: start)
        for _ in 0..<30 { bucket.take(now: start) }
        #expect(!bucket.hasToken(now: start + .seconds(2)))
        #expect(bucket.nextToken == start + .milliseconds(2_100))
        #expect(bucket.hasToken(now: bucket.nextToken))
    }

    @Test("a new rate applies from then on, and caps the tokens at its second's worth")
    func setRate() {
        var bucket = TokenBucket(perSecond: 20, now: start)
        bucket.setRate(2, now: start)
        #expect(drain(&bucket, start) == 2)
        bucket.setRate(100, now: start + .milliseconds(500))
        #expect(drain(&bucket, start + .milliseconds(500)) == 1)
        #expect(bucket.nextToken == start + .milliseconds(510))
    }

    @Test(
        "a clock that stops or goes back adds nothing; a senseless rate is a slow one",
        arguments: [0, -5, Double.nan, 0.001])
    func senseless(rate: Double) {
        var bucket = TokenBucket(perSecond: rate, now: start)
        #expect(drain(&bucket, start) == 1)
        #expect(drain(&bucket, start - .seconds(60)) == 0)
        #expect(bucket.nextToken == start + .seconds(10))
    }
}

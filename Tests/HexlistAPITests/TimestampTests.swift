import HexlistAPI
import Testing

@Suite("Times in the local API")
struct TimestampTests {
    @Test(
        "timestamps",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_933_135_628_009, "2031-04-05T06:07:08.009Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func times(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
        #expect(Timestamp(text)?.milliseconds == milliseconds)
    }

    @Test("a time out of range is shown as the nearest representable one; text that is not a time is refused")
    func oddTimes() {
        #expect(Timestamp(milliseconds: .max).description == "9999-12-31T23:59:59.999Z")
        #expect(Timestamp(milliseconds: .min).description == "0000-01-01T00:00:00.000Z")
        for text in [
            "", "2031-04-05", "2031-13-05T06:07:08.009Z", "2031-04-05T24:07:08.009Z", "2031-04-05T06:07:08.009+",
            "2031-04-05 06:07:08.009Z",
        ] {
            #expect(Timestamp(text) == nil)
        }
    }
}

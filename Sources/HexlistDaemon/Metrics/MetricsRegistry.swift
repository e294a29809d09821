import CoreMetrics
import Synchronization

/// The metrics of this process. They are recorded with swift-metrics, and exported in the Prometheus text format.
///
/// If a counter, meter or timer with the same name and labels is created again, it continues the existing series. The number of series is
/// bounded, because names are those of `MetricFamily`, and label values are from enums.
final class MetricsRegistry: MetricsFactory {
    private struct Series {
        let labels: String
        let handler: any MetricHandler
    }

    private let series = Mutex<[String: [Series]]>([:])

    private func handler<Handler: MetricHandler>(_ label: String, _ dimensions: [(String, String)], _ make: () -> Handler) -> Handler? {
        guard MetricFamily.all.contains(where: { $0.name == label && $0.kind == Handler.kind }) else { return nil }
        let labels = dimensions.map { "\($0)=\"\(MetricsText.escaped($1))\"" }.joined(separator: ",")
        return series.withLock { series in
            if let known = series[label, default: []].first(where: { $0.labels == labels }) { return known.handler as? Handler }
            let handler = make()
            series[label, default: []].append(Series(labels: labels, handler: handler))
            return handler
        }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        handler(label, dimensions) { CounterSeries() } ?? NOOPMetricsHandler.instance
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        handler(label, dimensions) { GaugeSeries() } ?? NOOPMetricsHandler.instance
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        handler(label, dimensions) { HistogramSeries() } ?? NOOPMetricsHandler.instance
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler { NOOPMetricsHandler.instance }

    // Series exist as long as the process, so these methods do nothing.
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}

    /// Returns all series in the Prometheus text format, version 0.0.4.
    func text() -> String {
        let all = series.withLock { $0 }
        var text = ""
        for family in MetricFamily.all {
            guard let series = all[family.name], !series.isEmpty else { continue }
            text += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n"
            for one in series { one.handler.write(name: family.name, labels: one.labels, to: &text) }
        }
        return text
    }
}

/// The values of one series; for a histogram, its buckets with sum and count. Thread-safe.
private protocol MetricHandler: AnyObject, Sendable {
    static var kind: MetricFamily.Kind { get }
    func write(name: String, labels: String, to text: inout String)
}

private final class CounterSeries: CounterHandler, MetricHandler {
    static let kind = MetricFamily.Kind.counter
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }

    func reset() { value.store(0, ordering: .relaxed) }

    func write(name: String, labels: String, to text: inout String) {
        text += MetricsText.line(name, labels, String(value.load(ordering: .relaxed)))
    }
}

private final class GaugeSeries: MeterHandler, MetricHandler {
    static let kind = MetricFamily.Kind.gauge
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { self.value.withLock { $0 = value } }

    func increment(by amount: Double) { value.withLock { $0 += amount } }

    func decrement(by amount: Double) { value.withLock { $0 -= amount } }

    func write(name: String, labels: String, to text: inout String) {
        text += MetricsText.line(name, labels, MetricsText.number(value.withLock { $0 }))
    }
}

/// A histogram of durations, counted in buckets.
private final class HistogramSeries: TimerHandler, MetricHandler {
    private struct State {
        /// The number of durations in each bucket, not cumulative. The last bucket has the durations above all bounds.
        var counts = [Int64](repeating: 0, count: HistogramSeries.bounds.count + 1)
        var nanoseconds = 0.0
    }

    static let kind = MetricFamily.Kind.histogram
    /// The upper bounds of the buckets in seconds. They range from the time of a commit on a fast disk to the timeout of receipts.
    static let bounds = [0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30]
    private let state = Mutex(State())

    func recordNanoseconds(_ duration: Int64) {
        let seconds = Double(duration) / 1e9
        let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
        state.withLock {
            $0.counts[bucket] &+= 1
            $0.nanoseconds += Double(duration)
        }
    }

    func write(name: String, labels: String, to text: inout String) {
        let state = state.withLock { $0 }
        let others = labels.isEmpty ? "" : labels + ","
        var count: Int64 = 0
        for (bound, own) in zip(Self.bounds.map(MetricsText.number) + ["+Inf"], state.counts) {
            count &+= own
            text += MetricsText.line("\(name)_bucket", "\(others)le=\"\(bound)\"", String(count))
        }
        text += MetricsText.line("\(name)_sum", labels, MetricsText.number(state.nanoseconds / 1e9))
        text += MetricsText.line("\(name)_count", labels, String(count))
    }
}

/// Formats the elements of the Prometheus text format.
enum MetricsText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    static func line(_ name: String, _ labels: String, _ value: String) -> String {
        labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }

    static func number(_ value: Double) -> String { Int64(exactly: value).map(String.init) ?? "\(value)" }

    static func escaped(_ label: String) -> String {
        var escaped = ""
        for scalar in label.unicodeScalars {
            if scalar == "\\" || scalar == "\"" { escaped += "\\" }
            escaped.unicodeScalars.append(scalar.properties.isWhitespace ? " " : scalar)
        }
        return escaped
    }
}

/// Formats a number of bytes for people: `17 B`, `1.5 MiB`.
public enum ByteCountText {
    public static func of(_ count: Int64) -> String {
        var value = Double(count)
        for unit in ["B", "KiB", "MiB", "GiB"] {
            if value < 1_024 { return unit == "B" ? "\(count) B" : "\((value * 10).rounded() / 10) \(unit)" }
            value /= 1_024
        }
        return "\((value * 10).rounded() / 10) TiB"
    }
}

/// A hex of 200 links with texts in many scripts, and unknown members on both levels, as a HexJM in JSON.
struct LargeHex {
    struct Link {
        var url: String
        var linkDescription: String
        var service: String
    }

    let description =
        "Grüße – Привет – 你好 – مرحبا – שלום – नमस्ते – สวัสดี – 👩🏽‍🚀 – e\u{301} and é – "
        + "\u{200F}RTL\u{200E} – \"quoted\" \\ / \u{8}\u{1F}"
    let links: [Link]
    /// Members in forms that a generic JSON library would change: a big integer, an exponent, an escape, a repeated depth.
    let hexExtra = #""tags":["x","\u00e9\/"],"big":123456789012345678901234567890,"exponent":1.50E+2"#
    let linkExtra = #""thumbnail":{"w":12,"h":-0.0,"alt":null},"färg":"\u2028""#

    init() {
        let scripts = [
            "Latin ẞß ﬁ", "Ελληνικά", "Кириллица", "עברית", "العربية", "हिन्दी", "বাংলা", "தமிழ்", "ไทย", "ᠮᠣᠩᠭᠣᠯ", "ქართული", "Հայերեն",
            "한국어", "日本語", "中文", "አማርኛ", "ᏣᎳᎩ", "𐍈 𝒳 🧑‍🚀 🇺🇳", "e\u{301}\u{327}", "tab\tline\nend\u{0B}",
        ]
        let services = ["Unknown", "Dropbox", "Box", "GoogleDrive", "A service of tomorrow ☁"]
        links = (0..<200).map { index in
            Link(
                url: "https://example.org/\(index)/\(scripts[index % scripts.count])?q=a&b=\"\\",
                linkDescription: "\(index) \(scripts[(index * 7) % scripts.count])", service: services[index % services.count])
        }
    }

    var json: [UInt8] {
        let members = links.enumerated().map { index, link in
            let extra = index % 3 == 0 ? ",\(linkExtra)" : ""
            let known = [("url", link.url), ("linkDescription", link.linkDescription), ("service", link.service)]
            return "{\(known.map { "\"\($0)\":\(quoted($1))" }.joined(separator: ","))\(extra)}"
        }
        let hex =
            ##"{"hexDescription":\##(quoted(description)),"hexColor":"#3366CC","##
            + #""links":[\#(members.joined(separator: ","))],\#(hexExtra)}"#
        return Array(hex.utf8)
    }

    private func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

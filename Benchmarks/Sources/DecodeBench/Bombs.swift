/// Frames that are small to write and expensive to read. The decoder takes time linear in their size.
enum Bombs {
    /// Frames of just under `bytes`, each with a name.
    static func all(bytes: Int) -> [(String, String)] {
        /// Head and tail with as many pieces between them as fit.
        func many(_ piece: String, _ head: String = "", _ tail: String = "") -> String {
            head + String(repeating: piece, count: (bytes - head.utf8.count - tail.utf8.count) / piece.utf8.count) + tail
        }
        /// Numbered pieces, all different.
        func numbered(_ head: String, _ tail: String, _ piece: (Int) -> String) -> String {
            var text = head
            var count = 0
            while true {
                let next = (count > 0 ? "," : "") + piece(count)
                guard text.utf8.count + next.utf8.count + tail.utf8.count <= bytes else { return text + tail }
                text += next
                count += 1
            }
        }
        let ping = #"{"operationType":"Ping","#
        let store = #"{"operationType":"Store","jmObject":{"#
        let key: (Int) -> String = { "\"\(String($0, radix: 36))\":1" }
        let link = (bytes - 200) / 5_000 - 14  // so that just under 5 000 fit
        return [
            ("marks in a name", many("\u{301}", ping + "\"a", "\":1}")),
            ("marks in a value", many("\u{301}\u{323}", ping + "\"message\":\"a", "\"}")),
            ("marks in a type name", many("\u{301}", "{\"operationType\":\"Store", "\"}")),
            ("marks in a code", many("\u{301}", #"{"operationType":"Ack","jmObject":{"rejected":[{"code":"blocked"#, "\"}]}}")),
            ("marks in a service", many("\u{301}", store + #""links":[{"service":"Box"#, "\"}]}}")),
            ("elements", many("1,", ping + "\"x\":[", "1]}")), ("empty objects", many("{},", ping + "\"x\":[", "1]}")),
            ("links that are not", many("1,", store + "\"links\":[", "1]}}")), ("empty links", many("{},", store + "\"links\":[", "1]}}")),
            ("empty children", many("{},", store + "\"children\":[", "{}]}}")),
            ("children that are none", many("1,", store + "\"children\":[", "1]}}")),
            ("depth of children", many("{\"children\":[", store + "\"children\":[")),
            ("children again and again", many("\"children\":[{\"links\":[\"u\"]}],", store, "\"x\":1}}")),
            (
                "eight levels of long ones",
                many(
                    "1,", store + String(repeating: "\"children\":[{", count: 7) + "\"hexColor\":[",
                    "1]" + String(repeating: "}]", count: 7) + "}}")
            ),
            ("links in a map", many("\"\":{},", store + "\"links\":{", "\"\":1}}}")),
            ("5 000 links", numbered(store + "\"links\":[", "]}}") { "{\"url\":\"\($0)\(String(repeating: "x", count: link))\"}" }),
            (
                "5 000 links with a member each",
                numbered(store + "\"links\":[", "]}}") { "{\"url\":\"\($0)\",\"x\":\"\(String(repeating: "\\n", count: link / 2 - 2))\"}" }
            ),
            ("keys", numbered(ping, "}", key)), ("keys of a hex", numbered(store, "}}", key)),
            ("keys of a link", numbered(store + "\"links\":[{", "}]}}", key)), ("keys of a package", numbered("{\"links\":[],", "}", key)),
            ("escaped keys", numbered(ping, "}") { "\"\\u006b\($0)\":1,\"k\($0)\":2" }), ("one key", many("\"k\":1,", ping, "\"k\":1}")),
            ("one alias", many("\"fileName\":1,", store + "\"links\":[{", "\"url\":\"u\"}]}}")),
            ("depth", many("[", ping + "\"x\":")), ("depth of objects", many("{\"a\":", "{\"x\":")),
            ("depth of links", many("[", store + "\"links\":")), ("depth in a text", many("[", store + "\"links\":\"", "\"}}")),
            ("digits", many("7", ping + "\"sequence\":", "}")), ("digits behind a point", many("7", ping + "\"message\":0.", "}")),
            ("digits of a window", many("7", "{\"operationType\":\"Hello\",\"jmObject\":{\"window\":", "}}")),
            ("escapes", many("\\u0041", ping + "\"message\":\"", "\"}")),
            ("pairs of surrogates", many("\\ud83d\\ude00", ping + "\"x\":\"", "\"}")),
            ("lone surrogates", many("\\ud800", store + "\"x\":\"", "\"}}")), ("zeros", many("\\u0000", store + "\"links\":\"[", "\"}}")),
            ("links again and again", many("\"links\":[],", store, "\"x\":1}}")),
            ("heavy links again and again", many("\"links\":[\"u\",{\"x\":1}],", store, "\"x\":1}}")),
            ("texts of links again and again", many("\"links\":\"[1,2,3]\",", store, "\"x\":1}}")),
            ("objects again and again", many("\"jmObject\":{\"links\":[\"u\"]},", "{", "\"x\":1}")),
            ("texts of objects again and again", many("\"jmObject\":\"{}\",", "{", "\"x\":1}")),
            (
                "operations again and again",
                many("\"operationType\":\"Hello\",\"jmObject\":{\"links\":[1]},", "{", "\"operationType\":\"Store\"}")
            ),
            ("a text of texts", many(#"\\\\\\\""#, #"{"operationType":"Store","jmObject":"{\"links\":\"[\\\""#, #"\\\"]\"}"}"#)),
            ("white space", many(" \n\t\r", "{\"operationType\":\"Ping\"", "}")), ("quotes", many("\"")), ("backslashes", many("\\")),
            ("rejections", many("{},", #"{"operationType":"Ack","jmObject":{"rejected":["#, "{}]}}")),
            ("features", many("\"a\",", #"{"operationType":"Hello","jmObject":{"features":["#, "1]}}")),
            ("protocols", many("1,", #"{"operationType":"Hello","jmObject":{"protocols":["#, "1]}}")),
        ]
    }
}

/// The SQL view `outbox_rows` of migration 16. It shows the outbox to users of the `sqlite3` program, with one line for each row.
///
/// The view expands row ranges and decodes packs in plain SQL for SQLite 3.40, without functions that Hexlist would have to register.
/// Subjects are only in the binary blob of a pack (`PackedHexes`), because a copy as text would have to be written with each hex. Therefore
/// a recursive query steps from row to row in the order of ids, and from entry to entry of a blob. It is evaluated lazily: a query with a
/// LIMIT reads only that many rows. Each row takes about 20 µs.
///
/// The column `reason` has the code and message of the peer, else the last error, else `waits for` and the row's `waitingFor`. Tabs and
/// line ends become spaces. Other control characters and characters that change the direction of text become U+FFFD, so that text of peers
/// is safe on a terminal.
enum OutboxRowsView {
    /// The statement of migration 16, which is never edited. To change the view, a later migration has to replace it.
    static let sql = sql(state: "outbox.state", note: "")
    /// The statements of migration 22. The view shows a row that a device has confirmed with the state `delivered`, and with the parts that
    /// could not be sent as the `reason`.
    static let sqlWithDevices =
        "DROP VIEW outbox_rows;\n"
        + sql(
            state: "CASE WHEN outbox.state = 'stored' AND outbox.code = 'delivered' THEN 'delivered' ELSE outbox.state END",
            note: " WHEN outbox.code = 'delivered' THEN outbox.message")

    private static func sql(state: String, note: String) -> String {
        """
        CREATE VIEW outbox_rows (id, peer, state, attempts, reason, description) AS
        WITH RECURSIVE
        -- entry: the first byte of the row's hex in outboxPack.hexes, counted from 1; position: its number in the pack, from 0.
        step (id, run, last, pack, position, entry) AS (
            VALUES (-1, -1, -1, NULL, NULL, NULL)
            UNION ALL
            SELECT
                CASE WHEN step.id < step.last THEN step.id + 1 ELSE outbox.id END, outbox.id, outbox.last, outbox.pack,
                CASE WHEN step.id < step.last THEN step.position + 1 ELSE (outbox.id - outboxPack.first) % outboxPack.count END,
                CASE
                    WHEN step.id < step.last
                        OR (outbox.pack = step.pack AND (outbox.id - outboxPack.first) % outboxPack.count = step.position + 1)
                    THEN step.entry + 54 + \(subjectBytes(at: "step.entry"))
                    ELSE (
                        WITH RECURSIVE earlier (position, entry) AS (
                            VALUES (0, 1)
                            UNION ALL
                            SELECT earlier.position + 1, earlier.entry + 54 + \(subjectBytes(at: "earlier.entry"))
                            FROM earlier WHERE earlier.position < (outbox.id - outboxPack.first) % outboxPack.count
                        )
                        SELECT max(entry) FROM earlier)
                END
            FROM step
                CROSS JOIN outbox ON outbox.id = CASE WHEN step.id < step.last THEN step.run
                    ELSE (SELECT min(id) FROM outbox WHERE id > step.last) END
                LEFT JOIN outboxPack ON outboxPack.id = outbox.pack
        ),
        found (id, uuid, state, attempts, reason, description) AS (
            SELECT step.id, hex(peer.uuid), \(state), outbox.attempts,
                CASE\(note) WHEN outbox.state NOT IN ('stored', 'held') THEN coalesce(
                    outbox.code || ': ' || coalesce(outbox.message, outbox.lastError), outbox.code, outbox.message, outbox.lastError,
                    'waits for ' || outbox.waitingFor) END,
                CASE WHEN substr(outboxPack.hexes, step.entry + 52, 2) <> x'FFFF'
                    THEN CAST(substr(outboxPack.hexes, step.entry + 54, \(subjectBytes(at: "step.entry"))) AS TEXT) END
            FROM step
                CROSS JOIN outbox ON outbox.id = step.run
                LEFT JOIN peer ON peer.id = outbox.peer
                LEFT JOIN outboxPack ON outboxPack.id = step.pack
            LIMIT -1  -- keeps SQLite from computing the texts again for each mention below
        )
        SELECT id,
            substr(uuid, 1, 8) || '-' || substr(uuid, 9, 4) || '-' || substr(uuid, 13, 4) || '-' || substr(uuid, 17, 4) || '-'
                || substr(uuid, 21),
            state, attempts, \(shown("reason")), \(shown("description"))
        FROM found;
        """
    }

    /// Returns an SQL expression for the length of an entry's subject. The length is in the two bytes before the subject, little-endian;
    /// the result is 0 for 0xFFFF, which means no subject. SQLite cannot convert a hexadecimal string to a number, so `instr` looks up each
    /// digit.
    private static func subjectBytes(at entry: String) -> String {
        func digit(_ number: Int) -> String {
            "instr('123456789ABCDEF', substr(hex(substr(outboxPack.hexes, \(entry) + 52, 2)), \(number), 1))"
        }
        return "((16 * \(digit(1)) + \(digit(2)) + 4096 * \(digit(3)) + 256 * \(digit(4))) % 65535)"
    }

    /// Returns an SQL expression for a text with control and bidirectional characters replaced. The text ends at its first NUL, as in
    /// SQLite's own text functions.
    private static func shown(_ text: String) -> String {
        let hidden = """
            '[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || char(1564, 8206, 8207) || char(8232) || '-' || char(8238)
                || char(8294) || '-' || char(8297) || ']'
            """
        return """
            CASE WHEN \(text) GLOB '*' || \(hidden) || '*' OR instr(\(text), char(0)) THEN (
                WITH RECURSIVE part (rest, shown) AS (
                    VALUES (\(text), '')
                    UNION ALL
                    SELECT substr(rest, 2), shown || CASE
                        WHEN rest GLOB '[' || char(9, 10, 13) || ']*' THEN ' '
                        WHEN rest GLOB \(hidden) || '*' THEN char(65533)
                        ELSE substr(rest, 1, 1) END
                    FROM part WHERE rest <> ''
                )
                SELECT shown FROM part WHERE rest = '')
            ELSE \(text) END
            """
    }
}
